"""gang: all of a job's minimum or nothing, and no running gang is broken (spec 04 §3)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from vcscheduler.framework.plugin import Plugin
from vcscheduler.model.job import PENDING_BEST_EFFORT, Job, SubJob, new_condition, ready_count
from vcscheduler.model.status import (
    ALLOCATED_STATUSES,
    FAILED,
    PENDING,
    PIPELINED,
    RELEASING,
    UNKNOWN,
    EvictionKind,
    Vote,
)
from vcscheduler.model.task import Task

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session


class GangPlugin(Plugin):
    name = "gang"

    def on_session_open(self, ssn: Session) -> None:
        self.ssn = ssn
        self._spare: dict[str, int] = ssn.memo_by_job()
        ssn.add_job_valid_fn(self.name, job_valid)
        ssn.add_preemptable_fn(self.name, self.evictable, by_job=True)
        ssn.add_reclaimable_fn(self.name, self.evictable, by_job=True)
        ssn.add_unified_evictable_fn(self.name, _all_evictable)
        ssn.add_job_order_fn(self.name, _compare, key=_is_ready)
        ssn.add_sub_job_order_fn(self.name, _compare, key=_is_ready)
        ssn.add_job_ready_fn(self.name, job_ready, after=tasks_until_ready)
        ssn.add_sub_job_ready_fn(self.name, _is_ready)
        ssn.add_job_pipelined_fn(self.name, job_pipelined)
        ssn.add_sub_job_pipelined_fn(self.name, sub_job_pipelined)
        ssn.add_job_starving_fn(self.name, job_starving)

    def evictable(self, task: Task, candidates: list[Task]) -> tuple[list[Task], Vote]:
        """Tasks that their job can lose and still have its minimum, counted over this call."""
        explaining, known = self.ssn.explaining_victims, self._spare
        taken: dict[str, int] = {}
        victims = []
        for t in candidates:
            id = t.job_id
            spare = known.get(id)
            if spare is None:
                job = self.ssn.jobs.get(id)
                if job is None:
                    continue
                spare = known[id] = ready_count(job.counts) - job.min_available
            gone = taken.get(id, 0)
            if gone < spare:
                victims.append(t)
                taken[id] = gone + 1
            if explaining:
                least = self.ssn.jobs[id].min_available
                why = partial("its job has {} ready tasks and needs {}".format, spare - gone + least, least)
                self.ssn.explain_victim(self.name, task, t, gone < spare, why)
        return victims, Vote.PERMIT

    def on_session_close(self, ssn: Session) -> None:
        """Say in each PodGroup's conditions whether its gang can run (spec 04 §3.3)."""
        for job in ssn.unsettled_jobs():
            if not job.tasks:
                continue
            if job.is_ready:
                reason = "tasks in gang are ready to be scheduled"
                job.set_condition(new_condition("Scheduled", ssn.uid, ssn.now, reason))
                continue
            if only_leaving(job):
                continue
            message = f"{missing_tasks(job)}/{len(job.tasks)} tasks in gang unschedulable: {job.fit_text()}"
            job.set_condition(new_condition("Unschedulable", ssn.uid, ssn.now, "NotEnoughResources", message))


def job_valid(job: Job) -> tuple[str, str] | None:
    """Whether the job's pods, placed or not, can make a gang at all."""
    if job.task_min_available and not job.tasks_valid:
        return "NotEnoughPodsOfTask", "Not enough valid pods of each task for gang-scheduling"
    if job.min_sub_jobs and not job.sub_jobs_valid:
        return "NotEnoughPodsOfTask", "Not enough valid subGroups of each task for gang-scheduling"
    c = job.counts
    valid = len(job.tasks) - c[RELEASING] - c[FAILED] - c[UNKNOWN]
    if valid < job.min_available:
        return (
            "NotEnoughTasks",
            f"Not enough valid tasks for gang-scheduling, valid: {valid}, min: {job.min_available}",
        )
    return None


def job_ready(job: Job) -> bool:
    return (
        job.is_ready
        and (not job.task_min_available or job.tasks_ready)
        and (not job.min_sub_jobs or job.sub_jobs_ready)
    )


def tasks_until_ready(job: Job, task: Task) -> int | None:
    """How many further tasks of the task's role and sub-job must become Allocated until :func:`job_ready`; None if
    tasks of this role alone cannot bring that about. Best-effort tasks count as ready while still Pending, so placing
    them brings nothing."""
    needed = job.min_available - job.ready_tasks - job.counts[PENDING_BEST_EFFORT]
    if job.task_min_available and job.roles_checked:
        for role, minimum in job.task_min_available.items():
            lacking = minimum - job.role_ready(role)
            if lacking > 0:
                if role != task.role:
                    return None
                needed = max(needed, lacking)
    for group, minimum in job.min_sub_jobs.items():
        if not minimum:
            continue
        lacking = minimum - sum(s.group_id == group and s.is_ready for s in job.sub_jobs.values())
        if lacking <= 0:
            continue
        own = task.sub_job
        if lacking > 1 or own is None or own.group_id != group or own.is_ready:
            return None
        needed = max(needed, own.min_available - ready_count(own.counts) - own.counts[PENDING_BEST_EFFORT])
    if needed <= 0:
        return 0
    return None if task.best_effort else needed


def job_pipelined(job: Job) -> Vote:
    pipelined = (
        job.is_pipelined
        and (not job.task_min_available or job.tasks_pipelined)
        and (not job.min_sub_jobs or job.sub_jobs_pipelined)
    )
    return Vote.PERMIT if pipelined else Vote.REJECT


def sub_job_pipelined(sub_job: SubJob) -> Vote:
    return Vote.PERMIT if sub_job.is_pipelined else Vote.REJECT


def job_starving(job: Job) -> bool:
    return job.is_starving


def missing_tasks(job: Job) -> int:
    """How many tasks the gang lacks; what a discarded transaction had placed counts as placed."""
    schedulable = job.ready_tasks
    if job.counts[PENDING]:
        schedulable += sum(t.context.status in ALLOCATED_STATUSES for t in job.tasks_in(PENDING))
    return job.min_available - schedulable


def only_leaving(job: Job) -> bool:
    """Nothing is left to place and the gang is short only because tasks are on their way out."""
    leaving = job.releasing_scheduled
    return (
        leaving > 0
        and not job.counts[PENDING]
        and not job.counts[PIPELINED]
        and job.scheduled_tasks + leaving >= job.min_available
    )


def _all_evictable(kind: EvictionKind, job: Job, candidates: list[Task]) -> tuple[list[Task], Vote]:
    """The gang actions split gangs themselves."""
    return candidates, Vote.PERMIT


def _is_ready(item: Job | SubJob) -> bool:
    return item.is_ready


def _compare(a: Job | SubJob, b: Job | SubJob) -> int:
    """Not ready first; roles are not looked at."""
    return a.is_ready - b.is_ready
