"""Victims of the gang actions in bundles: what a job can spare, and the rest, which goes together (spec 03 §8.3)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from vcscheduler.framework.session import Session
from vcscheduler.model.job import Job
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import EvictionKind
from vcscheduler.model.task import Task, preemptable


@dataclass(frozen=True, slots=True)
class Bundle:
    """Tasks of one job to be evicted together. ``cost``: everything that breaking the job is taken to cost; empty for a
    safe bundle."""

    job: Job
    tasks: list[Task]
    safe: bool
    cost: Resources

    @property
    def gain(self) -> Resources:
        return total_request(self.tasks)

    def worth(self, need: Resources) -> float:
        """What is gained of the need for each part of it that is lost."""
        gain = self.gain
        gained = lost = 0.0
        for name, amount in (("cpu", need.cpu), ("memory", need.memory), *sorted(need.scalar_items())):
            if amount > 0:
                gained += min(gain.get(name), amount) / amount
                lost += self.cost.get(name) / amount
        return float("inf") if lost == 0 else gained / lost


def total_request(tasks: Iterable[Task]) -> Resources:
    total = Resources()
    for task in tasks:
        total.add(task.resreq)
    return total


def allows_eviction(job: Job) -> bool:
    """Whether the job's PodGroup leaves its tasks to the gang actions."""
    if job.pod_group is None:
        return False
    meta = job.pod_group.metadata
    return preemptable(meta.annotations, meta.labels, default=True)


def split(job: Job, tasks: Iterable[Task]) -> list[Bundle]:
    """What of these tasks the job can lose and keep its minimums, and the rest. A gang that is broken already has
    nothing to keep."""
    local = sorted(tasks, key=lambda t: (t.priority, t.uid))
    surplus = job.ready_tasks - job.min_available
    if surplus < 0:
        return [Bundle(job, local, True, Resources())]
    spare = _Spare(job, surplus)
    safe: list[Task] = []
    rest: list[Task] = []
    for task in local:
        (safe if spare.take(task) else rest).append(task)
    bundles = [Bundle(job, safe, True, Resources())] if safe else []
    if rest:
        bundles.append(Bundle(job, rest, False, total_request(job.tasks.values())))
    return bundles


class _Spare:
    """What a job can still lose: of itself, of each role and of each group of sub-jobs."""

    def __init__(self, job: Job, surplus: int) -> None:
        self._surplus = surplus
        self._roles: dict[str, int] = {}
        if job.roles_checked:
            self._roles = {role: job.role_ready(role) - minimum for role, minimum in job.task_min_available.items()}
        self._grouped = bool(job.min_sub_jobs)
        self._groups: dict[str, int] = {}
        self._broken: set[str] = set()
        if self._grouped:
            for sub_job in job.sub_jobs.values():
                minimum = job.min_sub_jobs.get(sub_job.group_id, 0)
                left = self._groups.get(sub_job.group_id, -minimum)
                self._groups[sub_job.group_id] = left + sub_job.is_ready

    def take(self, task: Task) -> bool:
        if self._surplus <= 0 or self._roles.get(task.role, 1) <= 0 or not self._group_spares(task):
            return False
        self._surplus -= 1
        if task.role in self._roles:
            self._roles[task.role] -= 1
        sub_job = task.sub_job
        if self._grouped and sub_job is not None and sub_job.id not in self._broken:
            self._broken.add(sub_job.id)
            self._groups[sub_job.group_id] -= 1
        return True

    def _group_spares(self, task: Task) -> bool:
        if not self._grouped:
            return True
        sub_job = task.sub_job
        if sub_job is None:
            return False
        return sub_job.id in self._broken or self._groups[sub_job.group_id] > 0


def approved(ssn: Session, kind: EvictionKind, job: Job, bundles: list[Bundle]) -> list[Bundle]:
    """What is left of the bundles once the plugins had their say: a whole bundle goes entirely or not at all."""
    allowed = {t.uid for t in ssn.unified_evictable(kind, job, [t for b in bundles for t in b.tasks])}
    left = []
    for bundle in bundles:
        tasks = [t for t in bundle.tasks if t.uid in allowed]
        if tasks and (bundle.safe or len(tasks) == len(bundle.tasks)):
            left.append(Bundle(bundle.job, tasks, bundle.safe, bundle.cost))
    return left


def ordered(ssn: Session, kind: EvictionKind, job: Job, need: Resources, bundles: list[Bundle]) -> list[Bundle]:
    """In the order in which they are to go: safe ones first."""
    jobs_first = _later_job(ssn) if kind is EvictionKind.GANG_PREEMPT else _queue_to_take_from(ssn, job)
    worth = {id(b): b.worth(need) for b in bundles}

    def compare(a: Bundle, b: Bundle) -> int:
        if a.safe != b.safe:
            return -1 if a.safe else 1
        c = jobs_first(a.job, b.job)
        if c:
            return c
        one, other = _tie(a, worth[id(a)]), _tie(b, worth[id(b)])
        return (one > other) - (one < other)

    return sorted(bundles, key=functools.cmp_to_key(compare))


def _tie(bundle: Bundle, worth: float) -> tuple[float, str, str, int]:
    return -worth, bundle.job.id, bundle.tasks[0].uid, len(bundle.tasks)


def _later_job(ssn: Session) -> Callable[[Job, Job], int]:
    def compare(a: Job, b: Job) -> int:
        if a is b:
            return 0
        return -1 if ssn.job_order.less(b, a) else 1

    return compare


def _queue_to_take_from(ssn: Session, job: Job) -> Callable[[Job, Job], int]:
    own = ssn.queues[job.queue]

    def compare(a: Job, b: Job) -> int:
        if a.queue == b.queue:
            return 0
        return -1 if ssn.victim_queue_less(ssn.queues[a.queue], ssn.queues[b.queue], own) else 1

    return compare
