"""What the ``/debug`` addresses show, as plain data. Everything here runs in the thread that decides.

Names, amounts and reasons only: no environment, no arguments of containers, no annotations, no configuration values,
which may hold credentials.
"""

from __future__ import annotations

from collections import Counter

from vcscheduler.explain.pending import PendingReasons, Reason
from vcscheduler.explain.standing import queue_reports
from vcscheduler.framework.session import Session
from vcscheduler.model.amounts import amount, names
from vcscheduler.model.job import Job
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import PENDING, PIPELINED, TaskStatus
from vcscheduler.model.task import Task
from vcscheduler.server.cache import LiveCache
from vcscheduler.server.http import NoSuchThing
from vcscheduler.server.loop import Cycle, SchedulingLoop
from vcscheduler.server.story import Stories

_MOST_TASKS = 1000
Data = dict[str, object]


def cache_view(cache: LiveCache) -> Data:
    """How much of everything there is, and what waits."""
    jobs = list(cache.jobs.values())
    return {
        "nodes": sum(1 for _ in cache.table),
        "queues": len(cache.queues),
        "jobs": {
            "total": len(jobs),
            "byPhase": dict(sorted(Counter(job.phase or "none" for job in jobs).items())),
            "active": len(cache.active),
            "unsettled": len(cache.unsettled),
        },
        "tasks": _by_status(jobs),
        "allocatable": _amounts(cache.table.total),
        "eventsWaiting": cache.events_waiting,
        "statusHeldBack": cache.held_back,
    }


def cycle_view(loop: SchedulingLoop) -> Data:
    """The last cycle: when, how long, and where the time went."""
    last: Cycle | None = loop.last
    if last is None:
        return {"cycles": 0}
    times = last.times
    return {
        "cycles": loop.cycles,
        "at": last.at.isoformat(),
        "session": last.session.uid,
        "reported": last.reported,
        "milliseconds": _milliseconds({"total": times.total, **times.phases}),
        "pluginsOpened": _milliseconds(times.plugins_opened),
        "pluginsClosed": _milliseconds(times.plugins_closed),
        "evictions": len(last.session.evictions),
    }


def queues_view(ssn: Session) -> Data:
    """Where each queue stands."""
    return {
        report.name: {
            "parent": report.parent,
            "state": report.state,
            "weight": report.weight,
            "jobs": report.jobs,
            "allocated": _amounts(report.allocated),
            "deserved": _amounts(report.deserved),
            "limit": _amounts(report.limit),
            "share": report.share,
            "deciding": report.deciding,
        }
        for report in queue_reports(ssn)
    }


def jobs_view(cache: LiveCache) -> Data:
    """Every job in a line."""
    return {
        job.id: {"queue": job.queue, "phase": job.phase, "minAvailable": job.min_available, "tasks": _counts(job)}
        for job in sorted(cache.jobs.values(), key=lambda job: job.id)
    }


def job_view(ssn: Session, job_id: str, stories: Stories) -> Data:
    """All about one job: how it stands, why it waits, what happened to it.

    Raises:
        NoSuchThing: no session sees such a job.
    """
    job = ssn.jobs.get(job_id)
    if job is None:
        raise NoSuchThing(f"there is no PodGroup {job_id} with a queue that exists")
    waits = job.counts[PENDING] or job.counts[PIPELINED] or job.is_pending
    tasks = sorted(job.tasks.values(), key=lambda task: task.sort_key)
    shown = [_task(job, task) for task in tasks[:_MOST_TASKS]]
    return {
        "name": job.id,
        "queue": job.queue,
        "phase": job.phase,
        "priority": job.priority,
        "minAvailable": job.min_available,
        "minResources": _amounts(job.min_resources),
        "allocated": _amounts(job.allocated),
        "ready": ssn.job_ready(job),
        "tasks": _counts(job),
        "waits": _reason(PendingReasons(ssn).why(job)) if waits else None,
        "conditions": [
            {"type": c.type, "status": c.status, "reason": c.reason, "message": c.message} for c in job.conditions
        ],
        "story": [{"at": each.at.isoformat(), "what": each.text} for each in stories.of(job_id)],
        "pods": shown,
        "podsLeftOut": len(tasks) - len(shown),
    }


def _task(job: Job, task: Task) -> Data:
    found: Data = {"name": task.name, "status": task.status.text}
    if task.node_name:
        found["node"] = task.node_name
    if task.status is PENDING:
        reason, message, nominated = job.scheduling_reason(task)
        found.update({"reason": reason, "message": message})
        if nominated:
            found["nominated"] = nominated
    return found


def _reason(reason: Reason) -> Data:
    return {
        "cause": reason.cause.value,
        "message": reason.message,
        "couldPlace": reason.could_place,
        "refusals": [
            {
                "role": each.role,
                "pods": each.pods,
                "nodes": each.nodes,
                "message": each.message,
                "rules": [
                    {"rule": r.rule, "reason": r.reason, "nodes": r.nodes, "detail": r.detail} for r in each.refusals
                ],
            }
            for each in reason.no_node
        ],
    }


def _counts(job: Job) -> dict[str, int]:
    return {status.text: job.counts[status] for status in TaskStatus if job.counts[status]}


def _by_status(jobs: list[Job]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for job in jobs:
        total.update(_counts(job))
    return dict(sorted(total.items()))


def _amounts(vector: Resources | None) -> dict[str, str] | None:
    return None if vector is None else {name: amount(name, vector.get(name)) for name in names(vector)}


def _milliseconds(seconds: dict[str, float]) -> dict[str, float]:
    return {name: round(value * 1000, 3) for name, value in seconds.items()}
