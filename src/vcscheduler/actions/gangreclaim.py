"""gangreclaim: evicts tasks of other queues, so that a whole job of a queue under its due fits (spec 03 §8)."""

from __future__ import annotations

from collections.abc import Iterator

from vcscheduler.actions.gang_eviction import GangEviction
from vcscheduler.framework.session import Session
from vcscheduler.model.job import Job
from vcscheduler.model.queue import Queue
from vcscheduler.model.status import RUNNING, EvictionKind
from vcscheduler.model.task import Task


class GangReclaim(GangEviction):
    name = "gangreclaim"
    kind = EvictionKind.GANG_RECLAIM

    def may_begin(self, ssn: Session, queue: Queue) -> bool:
        return not ssn.overused(queue)

    def may_evict(self, ssn: Session, queue: Queue, tasks: list[Task]) -> bool:
        return ssn.preemptive(queue, tasks)

    def victims(self, ssn: Session, job: Job, by_queue: dict[str, list[Task]]) -> Iterator[Task]:
        for name, tasks in by_queue.items():
            if name != job.queue and ssn.queues[name].reclaimable:
                yield from (t for t in tasks if t.status is RUNNING)
