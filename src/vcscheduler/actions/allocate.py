"""allocate: places Pending tasks on what is idle (bind), or on what will be (pipeline) (spec 03 §3).

A queue takes its turn, then a job of it, then the tasks of that job until it is ready; a ready job gets one task a turn
from then on, so queues and jobs alternate as their shares grow.
"""

from __future__ import annotations

from typing import ClassVar

from vcscheduler.actions.domains import DomainSearch
from vcscheduler.actions.placing import Domain, Placing
from vcscheduler.actions.single_tasks import SingleTasks
from vcscheduler.actions.worksheet import Worksheet, allocatable_task, build_worksheet
from vcscheduler.framework.action import Action
from vcscheduler.framework.heap import KeyedQueue, Queue
from vcscheduler.framework.session import Session
from vcscheduler.framework.statement import Statement
from vcscheduler.model.job import Job
from vcscheduler.model.queue import Queue as JobQueue


class Allocate(Action):
    name = "allocate"
    known_arguments: ClassVar[dict[str, str]] = {"predicateErrorCacheEnable": "bool"}

    def __init__(self) -> None:
        # Upstream keeps the last value when a key leaves the configuration (Quirk, spec 02 §2.8).
        self._error_cache = True

    def execute(self, ssn: Session) -> None:
        arguments = ssn.configuration.action_arguments(self.name)
        self._error_cache = arguments.get_bool("predicateErrorCacheEnable", self._error_cache)
        _Run(ssn, Placing(ssn, self._error_cache)).execute()


class _Run:
    """One execution of the action."""

    def __init__(self, ssn: Session, placing: Placing) -> None:
        self._ssn = ssn
        self._placing = placing
        self._domains = DomainSearch(ssn, placing)
        self._whole_cluster = Domain("", ssn.search.all_rows)
        self._queues = ssn.queue_heap()
        self._jobs: dict[str, Queue[Job]] = {}
        self._worksheets: dict[str, Worksheet] = {}
        self._singles = SingleTasks(ssn, self._worksheets)

    def execute(self) -> None:
        ssn = self._ssn
        self._collect()
        while (queue := self._queues.pop()) is not None:
            if ssn.overused(queue):
                continue
            jobs = self._jobs[queue.name]
            job = jobs.pop()
            if job is None:
                continue
            worksheet = self._worksheets[job.id]
            if (
                self._singles.possible
                and not len(self._queues)
                and isinstance(jobs, KeyedQueue)
                and self._singles.place(queue, job, jobs)
            ):
                self._queues.push(queue)
                continue
            statement = self._turn(queue, job, worksheet)
            if statement is not None and ssn.job_ready(job):
                statement.commit()
                if _searches_domains(job):
                    self._domains.committed(job)
                if not self._worksheets[job.id].is_empty:
                    jobs.push(job)
            # A statement of a job that is only pipelined stays as it is: it holds its place until the session closes.
            self._queues.push(queue)

    def _collect(self) -> None:
        ssn = self._ssn
        ready = ssn.topology.ready
        for job in ssn.active_jobs:
            if job.is_pending:
                if "enqueue" in ssn.actions:
                    continue
                ssn.set_phase(job, "Inqueue")
            if not job.has_pending_tasks or ssn.job_valid(job) is not None:
                continue
            if not ready and job.has_network_topology:
                continue
            worksheet = build_worksheet(ssn, job, allocatable_task)
            if worksheet.is_empty:
                continue
            self._worksheets[job.id] = worksheet
            if job.queue not in self._jobs:
                self._jobs[job.queue] = ssn.job_queue()
                self._queues.push(ssn.queues[job.queue])
            self._jobs[job.queue].push(job)

    def _turn(self, queue: JobQueue, job: Job, worksheet: Worksheet) -> Statement | None:
        if _searches_domains(job):
            placed = self._domains.place_job(queue, job, worksheet)
            if placed is None:
                return None
            self._worksheets[job.id] = placed[1]
            return placed[0]
        sub_job = worksheet.sub_jobs.pop()
        assert sub_job is not None
        tasks = worksheet.tasks[sub_job.id]
        statement = self._placing.place(queue, job, sub_job, tasks, self._whole_cluster)
        if len(tasks):
            worksheet.sub_jobs.push(sub_job)
        return statement


def _searches_domains(job: Job) -> bool:
    """The one sub-job of a job without policies has the job's own topology."""
    return job.has_policies or job.hard_tier is not None
