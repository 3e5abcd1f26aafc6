"""gangpreempt: evicts tasks of lower-priority jobs of the same queue, so that a whole job fits (spec 03 §8)."""

from __future__ import annotations

from collections.abc import Iterator

from vcscheduler.actions.gang_eviction import GangEviction
from vcscheduler.framework.session import Session
from vcscheduler.model.job import Job
from vcscheduler.model.queue import Queue
from vcscheduler.model.status import EvictionKind
from vcscheduler.model.task import Task


class GangPreempt(GangEviction):
    name = "gangpreempt"
    kind = EvictionKind.GANG_PREEMPT

    def may_begin(self, ssn: Session, queue: Queue) -> bool:
        return True

    def may_evict(self, ssn: Session, queue: Queue, tasks: list[Task]) -> bool:
        return True

    def victims(self, ssn: Session, job: Job, by_queue: dict[str, list[Task]]) -> Iterator[Task]:
        jobs = ssn.jobs
        return (t for t in by_queue.get(job.queue, ()) if jobs[t.job_id].priority < job.priority)
