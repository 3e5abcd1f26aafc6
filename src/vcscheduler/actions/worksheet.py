"""What there is to place of a job: its sub-jobs with their tasks, in the order of work (spec 03 §3.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vcscheduler.framework.heap import Less, PriorityQueue, SortedQueue
from vcscheduler.framework.session import Session
from vcscheduler.model.job import Job, SubJob
from vcscheduler.model.status import PENDING
from vcscheduler.model.task import Task

TaskQueue = SortedQueue[Task] | PriorityQueue[Task]


@dataclass(slots=True)
class Worksheet:
    """Sub-jobs to work on, and the tasks of each by sub-job id. ``tasks`` of a sub-job that was put back are what is
    left of it."""

    sub_jobs: PriorityQueue[SubJob]
    tasks: dict[str, TaskQueue]

    @property
    def is_empty(self) -> bool:
        return not len(self.sub_jobs)

    def take_all(self) -> None:
        """Everything was placed by other means."""
        while self.sub_jobs.pop() is not None:
            pass

    def clone(self) -> Worksheet:
        return Worksheet(self.sub_jobs.clone(), {id: queue.clone() for id, queue in self.tasks.items()})


def allocatable_task(task: Task) -> bool:
    """Allocate takes tasks that request something and are not held back by a foreign gate."""
    return not task.best_effort and (not task.gated or task.only_queue_gated)


def build_worksheet(ssn: Session, job: Job, wanted: Callable[[Task], bool]) -> Worksheet:
    less = ssn.sub_job_order.less
    if job.has_policies:
        less = _required_first(less, _required(ssn, job))
    worksheet = Worksheet(PriorityQueue(less), {})
    sub_jobs = job.sub_jobs.values()
    for sub_job in sub_jobs if len(sub_jobs) == 1 else sorted(sub_jobs, key=lambda s: s.id):
        tasks = [t for t in sub_job.tasks.values() if t.status is PENDING and wanted(t)]
        if tasks:
            if len(tasks) > 1:
                tasks.sort(key=lambda t: t.key)
            worksheet.tasks[sub_job.id] = ssn.task_queue(tasks)
            worksheet.sub_jobs.push(sub_job)
    return worksheet


def _required_first(then: Less[SubJob], required: frozenset[str]) -> Less[SubJob]:
    def less(a: SubJob, b: SubJob) -> bool:
        if (a.id in required) != (b.id in required):
            return a.id in required
        return then(a, b)

    return less


def _required(ssn: Session, job: Job) -> frozenset[str]:
    """Ids of the sub-jobs that must become ready for their group to reach its minimum: the first ones in order."""
    required = set()
    for group, minimum in job.min_sub_jobs.items():
        members = [s for s in job.sub_jobs.values() if s.group_id == group]
        waiting = [s for s in members if not ssn.sub_job_ready(s)]
        missing = minimum - (len(members) - len(waiting))
        queue = PriorityQueue(ssn.sub_job_order.less, sorted(waiting, key=lambda s: s.id))
        while missing > 0 and (sub_job := queue.pop()) is not None:
            required.add(sub_job.id)
            missing -= 1
    return frozenset(required)
