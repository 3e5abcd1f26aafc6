"""priority: jobs and tasks of higher priority first; strictly lower priority may be preempted (spec 04 §2)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from vcscheduler.framework.plugin import Plugin
from vcscheduler.model.job import Job, SubJob
from vcscheduler.model.status import EvictionKind, Vote
from vcscheduler.model.task import Task

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session


class PriorityPlugin(Plugin):
    """No Reclaimable function: reclaim between queues ignores priority."""

    name = "priority"

    def on_session_open(self, ssn: Session) -> None:
        self.ssn = ssn
        ssn.add_task_order_fn(self.name, _compare, key=_rank)
        ssn.add_job_order_fn(self.name, _compare, key=_rank)
        ssn.add_sub_job_order_fn(self.name, _compare, key=_rank)
        ssn.add_preemptable_fn(self.name, self.preemptable, by_job=True)
        ssn.add_unified_evictable_fn(self.name, self.unified_evictable)
        ssn.add_job_starving_fn(self.name, job_starving)

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> tuple[list[Task], Vote]:
        """Jobs of lower priority; inside the preemptor's own job, tasks of lower priority."""
        jobs = self.ssn.jobs
        job = jobs.get(preemptor.job_id)
        if job is None:
            return [], Vote.PERMIT
        victims = []
        for t in candidates:
            other = jobs.get(t.job_id)
            if other is None:
                continue
            if other is job:
                theirs, ours = t.priority, preemptor.priority
            else:
                theirs, ours = other.priority, job.priority
            lower = theirs < ours
            if lower:
                victims.append(t)
            if self.ssn.explaining_victims:
                text = "its {} priority is {}, the preemptor's {}"
                why = partial(text.format, "task" if other is job else "job", theirs, ours)
                self.ssn.explain_victim(self.name, preemptor, t, lower, why)
        return victims, Vote.PERMIT

    def unified_evictable(self, kind: EvictionKind, job: Job, candidates: list[Task]) -> tuple[list[Task], Vote]:
        if kind is EvictionKind.GANG_RECLAIM:
            return candidates, Vote.PERMIT
        jobs = self.ssn.jobs
        return [
            t for t in candidates if (other := jobs.get(t.job_id)) is not None and other.priority < job.priority
        ], Vote.PERMIT


def _rank(item: Task | Job | SubJob) -> int:
    return -item.priority


def _compare(a: Task | Job | SubJob, b: Task | Job | SubJob) -> int:
    return b.priority - a.priority


def job_starving(job: Job) -> bool:
    """Some task of the job, of whatever status, has not got what it takes."""
    return job.ready_tasks + job.waiting_tasks < len(job.tasks)
