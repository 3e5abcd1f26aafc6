"""enqueue: lets pending PodGroups in (phase Pending -> Inqueue) as far as the plugins agree (spec 03 §2)."""

from __future__ import annotations

from vcscheduler.framework.action import Action
from vcscheduler.framework.heap import Queue
from vcscheduler.framework.session import Session
from vcscheduler.model.job import Job


class Enqueue(Action):
    name = "enqueue"

    def execute(self, ssn: Session) -> None:
        queues = ssn.queue_heap()
        jobs: dict[str, Queue[Job]] = {}
        for job in ssn.active_jobs:
            if not job.is_pending:
                continue
            if job.queue not in jobs:
                jobs[job.queue] = ssn.job_queue()
                queues.push(ssn.queues[job.queue])
            jobs[job.queue].push(job)
        # Admitting changes no queue's share, so the best queue is drained before the next (Quirk, spec 03 §2).
        while (queue := queues.pop()) is not None:
            job_queue = jobs[queue.name]
            job_or_none = job_queue.pop()
            if job_or_none is None:
                continue
            job = job_or_none
            if job.min_resources is None or ssn.job_enqueueable(job):
                ssn.job_enqueued(job)
                ssn.set_phase(job, "Inqueue")
            queues.push(queue)
