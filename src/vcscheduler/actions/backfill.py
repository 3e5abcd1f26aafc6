"""backfill: places tasks that request nothing (spec 03 §4). Not the classic small jobs that fill holes."""

from __future__ import annotations

from typing import ClassVar

from vcscheduler.framework.action import Action
from vcscheduler.framework.heap import PriorityQueue, Queue
from vcscheduler.framework.session import Session
from vcscheduler.model.fit import FitErrors, Status
from vcscheduler.model.job import Job
from vcscheduler.model.status import PENDING, PIPELINED, Code
from vcscheduler.model.task import Task
from vcscheduler.placement.search import ErrorCache, Purpose


class Backfill(Action):
    name = "backfill"
    known_arguments: ClassVar[dict[str, str]] = {"predicateErrorCacheEnable": "bool"}

    def execute(self, ssn: Session) -> None:
        for task in self._pick(ssn):
            self._place(ssn, task)

    def _pick(self, ssn: Session) -> list[Task]:
        """Queue by queue, job by job; neither Overused nor the queue's state is asked (Quirk, spec 03 §4)."""
        queues = ssn.queue_heap()
        jobs: dict[str, Queue[Job]] = {}
        tasks: dict[str, list[Task]] = {}
        for job in ssn.active_jobs:
            if job.is_pending or not (job.counts[PENDING] or job.counts[PIPELINED]):
                continue
            if not any(t.best_effort for t in job.tasks_in(PENDING, PIPELINED)) or ssn.job_valid(job) is not None:
                continue
            found = []
            for task in sorted(job.tasks_in(PENDING, PIPELINED), key=lambda t: t.key):
                if not task.best_effort:
                    continue
                if task.status is PIPELINED:
                    ssn.unpipeline(task)
                elif task.gated:
                    continue
                found.append(task)
            if not found:
                continue
            tasks[job.id] = found
            if job.queue not in jobs:
                jobs[job.queue] = ssn.job_queue()
                queues.push(ssn.queues[job.queue])
            jobs[job.queue].push(job)
        picked: list[Task] = []
        while (queue := queues.pop()) is not None:
            while (next_job := jobs[queue.name].pop()) is not None:
                heap = PriorityQueue(ssn.task_less, tasks[next_job.id])
                while (task_or_none := heap.pop()) is not None:
                    picked.append(task_or_none)
        return picked

    def _place(self, ssn: Session, task: Task) -> None:
        search = ssn.search
        job = ssn.jobs[task.job_id]
        rows = search.all_rows
        failure = ssn.pre_predicate(task)
        if failure is not None:
            job.record_fit_errors(task, FitErrors.everywhere(rows, failure))
            ssn.touch(job)
            return
        found, errors = search.feasible(task, rows, ErrorCache(reads=False), Purpose.BACKFILL)
        if not len(found):
            job.record_fit_errors(task, errors)
            ssn.touch(job)
            return
        chosen = search.best(task, found)
        if chosen is None:
            job.record_fit_errors(task, errors)
            ssn.touch(job)
            return
        error = ssn.allocate(task, ssn.table.nodes[chosen])
        if error is not None:
            status = Status(Code.ERROR, error)
            only = found[found == chosen]
            job.record_fit_errors(task, FitErrors.everywhere(only.tolist(), status))
            ssn.touch(job)
