"""Sums over jobs that share plugins need when a session opens, kept from session to session.

Each job's last contribution is remembered, so a session pays only for the jobs that changed. Quantities are integral,
hence taking an old contribution away and adding the new one is exact. A scalar whose sum is 0 is not listed: no reader
tells "nothing of it" from "0 of it" (every comparison that uses these sums reads an absent scalar as 0).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from vcscheduler.model.job import Job
from vcscheduler.model.resources import PODS, Resources

_EPHEMERAL_STORAGE = "ephemeral-storage"


@dataclass(slots=True)
class QueueSums:
    """What the jobs of one queue amount to; vectors of the receiver's own, free to change.

    Attributes:
        allocated: requests of tasks that are Allocated, Binding, Bound or Running.
        request: ``allocated`` and the requests of all Pending tasks.
        inqueue: what admitted jobs are still owed of their minimum (spec 04 §1.3).
        elastic: what jobs hold above their minimum.
        jobs: number of jobs.
    """

    allocated: Resources
    request: Resources
    inqueue: Resources
    elastic: Resources
    jobs: int


@dataclass(slots=True)
class _Queue:
    allocated: Resources = field(default_factory=Resources)
    pending: Resources = field(default_factory=Resources)
    inqueue: Resources = field(default_factory=Resources)
    elastic: Resources = field(default_factory=Resources)
    jobs: int = 0


class _Contribution:
    """What one job adds; None = nothing."""

    __slots__ = ("allocated", "elastic", "inqueue", "overcommit", "pending", "queue")

    def __init__(self, job: Job) -> None:
        self.queue = job.queue
        self.allocated = _copy(job.allocated)
        self.pending = _copy(job.pending_request)
        self.inqueue: Resources | None = None
        self.overcommit: Resources | None = None
        minimum = job.min_resources
        if minimum is None:
            # Without a minimum everything that a job holds is elastic (Quirk, spec 04 §1.2).
            self.elastic = self.allocated
            return
        self.elastic = job.allocated.above(minimum) if self.allocated is not None else None
        phase = job.phase
        if phase == "Inqueue":
            self.inqueue = job.without_gated(reserved_minimum(job))
            # The overcommit plugin does not subtract what is placed already (spec 04 §8).
            self.overcommit = job.without_gated(minimum)
        elif phase == "Running" and job.allocated_tasks >= job.min_available:
            self.inqueue = self.overcommit = job.without_gated(reserved_minimum(job))


class Aggregates:
    """Per queue and for the cluster, over the jobs it was told of by :meth:`refresh`."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Contribution] = {}
        self._queues: dict[str, _Queue] = {}
        self._overcommit = Resources()

    def refresh(self, jobs: Iterable[Job]) -> None:
        """Look again at jobs that are new or may have changed."""
        for job in jobs:
            self.forget(job.id)
            new = self._jobs[job.id] = _Contribution(job)
            queue = self._queues.get(new.queue)
            if queue is None:
                queue = self._queues[new.queue] = _Queue()
            queue.jobs += 1
            self._shift(queue, new, 1)

    def forget(self, job_id: str) -> None:
        """The job is gone; nothing happens if it was not known."""
        old = self._jobs.pop(job_id, None)
        if old is None:
            return
        queue = self._queues[old.queue]
        queue.jobs -= 1
        self._shift(queue, old, -1)
        if not queue.jobs:
            del self._queues[old.queue]

    def _shift(self, queue: _Queue, by: _Contribution, sign: int) -> None:
        if by.allocated is not None:
            _shift(queue.allocated, by.allocated, sign)
        if by.pending is not None:
            _shift(queue.pending, by.pending, sign)
        if by.elastic is not None:
            _shift(queue.elastic, by.elastic, sign)
        if by.inqueue is not None:
            _shift(queue.inqueue, by.inqueue, sign)
        if by.overcommit is not None:
            _shift(self._overcommit, by.overcommit, sign)

    def queues(self) -> Iterable[str]:
        """Names of the queues that have a job."""
        return self._queues.keys()

    def queue(self, name: str) -> QueueSums | None:
        """None if no job is in the queue."""
        q = self._queues.get(name)
        if q is None:
            return None
        return QueueSums(
            q.allocated.clone(),
            q.allocated.clone().add(q.pending),
            q.inqueue.clone(),
            q.elastic.clone(),
            q.jobs,
        )

    def allocated_with(self, changed: Iterable[Job]) -> dict[str, Resources]:
        """What the queues have allocated with the given jobs as they are at the moment; nothing is remembered."""
        sums = {name: q.allocated.clone() for name, q in self._queues.items()}
        for job in changed:
            old = self._jobs.get(job.id)
            if old is not None and old.allocated is not None:
                _shift(sums[old.queue], old.allocated, -1)
            _shift(sums.setdefault(job.queue, Resources()), job.allocated, 1)
        return sums

    @property
    def overcommit_inqueue(self) -> Resources:
        """What admitted jobs of all queues are owed, by the overcommit plugin's own rule (spec 04 §8)."""
        return self._overcommit.clone()


def reserved_minimum(job: Job) -> Resources:
    """What the job still lacks of its minimum. A new vector.

    Ephemeral storage counts when a job is admitted but is never owed to it (Quirk, spec 04 §1.2, RESERVE).
    """
    minimum, held = job.minimum, job.allocated
    owed = Resources(max(minimum.cpu - held.cpu, 0.0), max(minimum.memory - held.memory, 0.0))
    for n, v in minimum.scalar_items():
        if n == _EPHEMERAL_STORAGE:
            continue
        left = v - held.get(n)
        if n == PODS:
            owed.set_scalar(n, max(left, 0.0))
        elif left > 0 or held.scalars is None or n not in held.scalars:
            owed.set_scalar(n, left)
    return owed


def _copy(r: Resources) -> Resources | None:
    """None for nothing at all, so that it costs nothing to add and take away."""
    if r.cpu == 0 and r.memory == 0 and (not r.scalars or not any(r.scalars.values())):
        return None
    return r.clone()


def _shift(total: Resources, by: Resources, sign: int) -> None:
    total.cpu += by.cpu * sign
    total.memory += by.memory * sign
    if by.scalars:
        mine = total.scalars
        if mine is None:
            mine = total.scalars = {}
        for n, v in by.scalars.items():
            left = mine.get(n, 0.0) + v * sign
            if left:
                mine[n] = left
            else:
                mine.pop(n, None)
