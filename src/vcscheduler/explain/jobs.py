"""The arithmetic of a gang: what a job needs to start, and what it has of it."""

from __future__ import annotations

from dataclasses import dataclass

from vcscheduler.framework.plugin import QueueStanding
from vcscheduler.framework.session import Session
from vcscheduler.model.job import Job
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import PENDING, TaskStatus


@dataclass(frozen=True, slots=True)
class RoleCount:
    """One task of a job's spec: pods there are, those that count as ready, and how many must be; 0 if no minimum."""

    role: str
    pods: int
    ready: int
    minimum: int


@dataclass(frozen=True, slots=True)
class GangState:
    """A job in a session.

    Attributes:
        ready: pods that have what they need, or are done. minimum: how many must be at once. missing: still to come.
        asks: request of the pods that wait. admission: what must be there for the job to be admitted, if it says so.
        held, deserved, limit: of its queue, by the share plugin; None where there is none.
    """

    job: str
    queue: str
    priority: int
    phase: str
    statuses: dict[str, int]
    ready: int
    minimum: int
    missing: int
    roles: tuple[RoleCount, ...]
    asks: Resources
    admission: Resources | None
    held: Resources | None
    deserved: Resources | None
    limit: Resources | None


def gang_state(ssn: Session, job: Job) -> GangState:
    """Count a job's pods."""
    counts: dict[str, list[int]] = {}
    for task in job.tasks.values():
        counts.setdefault(task.role, [0])[0] += 1
    roles = tuple(
        RoleCount(role, pods, job.role_ready(role), job.task_min_available.get(role, 0))
        for role, (pods,) in sorted(counts.items())
    )
    asks = Resources()
    for task in job.tasks_in(PENDING):
        asks.add(task.resreq)
    queue = ssn.queues.get(job.queue)
    standing: QueueStanding | None = None if queue is None else ssn.queue_standing(queue)
    return GangState(
        job.id,
        job.queue,
        job.priority,
        job.phase,
        {status.text: job.counts[status] for status in TaskStatus if job.counts[status]},
        job.ready_tasks,
        job.min_available,
        max(0, job.min_available - job.ready_tasks),
        roles,
        asks,
        job.min_resources,
        None if standing is None else standing.allocated.clone(),
        None if standing is None else standing.deserved.clone(),
        None if standing is None else standing.ceiling.clone(),
    )
