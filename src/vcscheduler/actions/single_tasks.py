"""Many jobs of one task each, placed at once.

A queue that has the stage to itself hands out its jobs one after the other, each for one turn. Where the jobs in a row
have a single task each, all alike, and one placement makes each of them ready, their turns cannot influence one
another but through the nodes: then one run of the kernel gives what the turns would.
"""

from __future__ import annotations

from vcscheduler.actions.worksheet import Worksheet
from vcscheduler.framework.heap import KeyedQueue, SortedQueue
from vcscheduler.framework.session import Session
from vcscheduler.model.job import Job
from vcscheduler.model.queue import Queue
from vcscheduler.model.resources import EPSILON
from vcscheduler.model.task import Task
from vcscheduler.placement.search import ErrorCache

MOST = 4096


class SingleTasks:
    """Takes jobs off a queue as long as they can be placed together."""

    def __init__(self, ssn: Session, worksheets: dict[str, Worksheet]) -> None:
        self._ssn = ssn
        self._worksheets = worksheets
        self.possible = ssn.runs_allowed and ssn.pre_predicates_run and ssn.overused_follows and ssn.runs.possible

    def place(self, queue: Queue, first: Job, jobs: KeyedQueue[Job]) -> bool:
        """Place and bind ``first`` and the jobs after it in ``jobs``, as many as can be; False if not even the first,
        which then is as it was."""
        ssn = self._ssn
        task = self._single(first)
        if task is None or not ssn.ready_after_one(first, task) or not ssn.allocatable(queue, task):
            return False
        chosen, tasks = [first], [task]
        while len(chosen) < MOST and (job := jobs.peek()) is not None:
            other = self._single(job)
            if other is None or not ssn.runs.alike_across_jobs(task, other) or not ssn.ready_after_one(job, other):
                break
            jobs.pop()
            chosen.append(job)
            tasks.append(other)
        rows: list[int] | None = None
        if len(chosen) > 1 and ssn.pre_predicate(task) is None:
            count = ssn.allocatable_count(queue, task, len(tasks))
            rows = ssn.runs.place(task, count, ErrorCache(reads=False), last=True)
        n = len(rows or ())
        for job in chosen[max(n, 1) :]:
            jobs.push(job)
        if not rows:
            self.possible = self.possible and len(chosen) == 1
            return False
        ssn.pre_predicate_run(tasks[:n])
        ssn.bind_run(chosen[:n], tasks[:n], rows)
        for job in chosen[:n]:
            self._worksheets[job.id].take_all()
        return True

    def _single(self, job: Job) -> Task | None:
        """The only task of the job's worksheet, if it is an ordinary one."""
        if job.has_policies or job.network_topology is not None or job.fit_errors:
            return None
        tasks = self._worksheets[job.id].tasks.get(job.id)
        if not isinstance(tasks, SortedQueue) or len(tasks) != 1:
            return None
        task = tasks.peek()
        request = task.resreq
        if task.gated or task.pod.status.nominated_node_name or (request.cpu < EPSILON and request.memory < EPSILON):
            return None
        return task
