"""allocate: places Pending tasks on what is idle (bind), or on what will be (pipeline) (spec 03 §3).

A queue takes its turn, then a job of it, then the tasks of that job until it is ready; a ready job gets one task a turn
from then on, so queues and jobs alternate as their shares grow.
"""

from __future__ import annotations

from vcscheduler.actions.placing import Domain, Placing
from vcscheduler.actions.worksheet import Worksheet, allocatable_task, build_worksheet
from vcscheduler.framework.action import Action
from vcscheduler.framework.heap import Queue
from vcscheduler.framework.session import Session
from vcscheduler.framework.statement import Statement
from vcscheduler.model.job import Job, SubJob
from vcscheduler.model.queue import Queue as JobQueue


class Allocate(Action):
    name = "allocate"
    known_arguments = {"predicateErrorCacheEnable": "bool"}

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
        self._whole_cluster = Domain("", ssn.search.all_rows)
        self._queues = ssn.queue_heap()
        self._jobs: dict[str, Queue[Job]] = {}
        self._worksheets: dict[str, Worksheet] = {}

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
            statement = self._turn(queue, job, worksheet)
            if statement is not None and ssn.job_ready(job):
                statement.commit()
                if not self._worksheets[job.id].is_empty:
                    jobs.push(job)
            # A statement of a job that is only pipelined stays as it is: it holds its place until the session closes.
            self._queues.push(queue)

    def _collect(self) -> None:
        ssn = self._ssn
        for job in ssn.active_jobs:
            if job.is_pending:
                if "enqueue" in ssn.actions:
                    continue
                ssn.set_phase(job, "Inqueue")
            if not job.has_pending_tasks or ssn.job_valid(job) is not None:
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
        if job.has_policies:
            return self._sub_jobs_turn(queue, job, worksheet)
        sub_job = worksheet.sub_jobs.pop()
        assert sub_job is not None
        tasks = worksheet.tasks[sub_job.id]
        statement = self._placing.place(queue, job, sub_job, tasks, self._whole_cluster)
        if len(tasks):
            worksheet.sub_jobs.push(sub_job)
        return statement

    # --- jobs with sub-groups (spec 03 §3.5; without network domains the whole cluster is the only one) ---------------

    def _sub_jobs_turn(self, queue: JobQueue, job: Job, worksheet: Worksheet) -> Statement | None:
        """Try on a copy of the worksheet; what worked is done again for good."""
        ssn = self._ssn
        job.fit_errors = {}
        trial = worksheet.clone()
        total = Statement(ssn)
        while (sub_job := trial.sub_jobs.pop()) is not None:
            statement = self._sub_job(queue, job, sub_job, trial)
            if statement is None or not len(statement):
                continue
            total.merge(statement)
            if len(trial.tasks[sub_job.id]):
                trial.sub_jobs.push(sub_job)
            if ssn.job_ready(job):
                break
        good = bool(len(total)) and (ssn.job_ready(job) or ssn.job_pipelined(job))
        saved = total.save()
        total.discard()
        if not good:
            return None
        final = Statement(ssn)
        if final.recover(saved) is not None:
            return None
        self._worksheets[job.id] = trial
        return final

    def _sub_job(self, queue: JobQueue, job: Job, sub_job: SubJob, trial: Worksheet) -> Statement | None:
        ssn = self._ssn
        for uid in sub_job.tasks:
            job.fit_errors.pop(uid, None)
        tasks = trial.tasks[sub_job.id].clone()
        statement = self._placing.place(queue, job, sub_job, tasks, self._whole_cluster)
        if statement is None or not len(statement):
            return None
        saved = statement.save()
        statement.discard()
        final = Statement(ssn)
        if final.recover(saved) is not None:
            return None
        trial.tasks[sub_job.id] = tasks
        return final
