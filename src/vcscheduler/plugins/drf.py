"""drf: dominant resource fairness between jobs (spec 04 §5).

A job's share is the largest part that it holds of any of the cluster's resources, ``pods`` included. Shares are worked
out when somebody asks: a job without events in this session holds what its model says, the others have a vector of
their own here, since what is only pipelined counts too until the session ends.

With ``enableHierarchy`` the plugin also orders queues; :mod:`vcscheduler.plugins.drf_hierarchy` does that.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from vcscheduler.framework.plugin import Event, EventHandler, Plugin, RunEvent
from vcscheduler.model.job import Job
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import PIPELINED, Vote
from vcscheduler.model.task import Task
from vcscheduler.plugins.drf_hierarchy import Hierarchy
from vcscheduler.plugins.shares import DominantShare

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

#: Shares closer than this count as equal when victims are chosen.
SHARE_DELTA = 0.000001


class DrfPlugin(Plugin):
    name = "drf"

    def on_session_open(self, ssn: Session) -> None:
        self.ssn = ssn
        self.share_of = DominantShare(ssn.total)
        self._allocated: dict[str, Resources] = {}
        self._shares: dict[str, float] = {}
        self._hierarchy: Hierarchy | None = None
        ssn.add_preemptable_fn(self.name, self.preemptable)
        ssn.add_job_order_fn(self.name, self._compare, key=self.share)
        option = ssn.plugin_option(self.name)
        if option is not None and option.enable_hierarchy:
            self._hierarchy = Hierarchy(ssn.jobs.values(), ssn.queues, ssn.total, self.share_of, self.allocated)
            ssn.add_queue_order_fn(self.name, self._hierarchy.compare)
            ssn.add_reclaimable_fn(self.name, partial(self.reclaimable, self._hierarchy))
        ssn.add_event_handler(
            EventHandler(self._on_allocate, self._on_deallocate, self._on_allocate_run, self._on_deallocate_run)
        )

    # --- what jobs hold ---------------------------------------------------------------------------------------

    def allocated(self, job: Job) -> Resources:
        """Requests of the job's allocated and pipelined tasks; not to be changed."""
        return self._allocated.get(job.id, job.allocated)

    def share(self, job: Job) -> float:
        own = self._allocated.get(job.id)
        if own is None:
            return self.share_of(job.allocated)
        share = self._shares.get(job.id)
        if share is None:
            share = self._shares[job.id] = self.share_of(own)
        return share

    def _compare(self, a: Job, b: Job) -> float:
        return self.share(a) - self.share(b)

    # --- victims ----------------------------------------------------------------------------------------------

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> tuple[list[Task], Vote]:
        """Tasks of jobs that, without them, still have no smaller share than the preemptor's job with it.

        A job's holdings are counted down over the call, also for tasks that are spared (harmless: they only fall).
        """
        jobs = self.ssn.jobs
        job = jobs.get(preemptor.job_id)
        if job is None:
            return [], Vote.PERMIT
        ours = self.share_of(self.allocated(job).clone().add(preemptor.resreq))
        left: dict[str, Resources] = {}
        victims = []
        for t in candidates:
            other = jobs.get(t.job_id)
            if other is None:
                continue
            held = left.get(other.id)
            if held is None:
                held = left[other.id] = self.allocated(other).clone()
            theirs = self.share_of(held.sub(t.resreq))
            victim = ours < theirs or abs(ours - theirs) <= SHARE_DELTA
            if victim:
                victims.append(t)
            if self.ssn.explaining_victims:
                text = "its job would keep a share of {:.4f}, the preemptor's would have {:.4f}"
                self.ssn.explain_victim(self.name, preemptor, t, victim, partial(text.format, theirs, ours))
        return victims, Vote.PERMIT

    def reclaimable(self, hierarchy: Hierarchy, reclaimer: Task, candidates: list[Task]) -> tuple[list[Task], Vote]:
        """Tasks whose queue would, without them, still come after the reclaimer's with it. Each is judged on its own,
        so more may be offered than it takes to restore the balance (Quirk)."""
        ssn = self.ssn
        job = ssn.jobs.get(reclaimer.job_id)
        if job is None:
            return [], Vote.PERMIT
        queue = ssn.queues[job.queue]
        victims = []
        with hierarchy.trial(job, reclaimer.resreq, 1):
            for t in candidates:
                other = ssn.jobs.get(t.job_id)
                if other is None:
                    continue
                with hierarchy.trial(other, t.resreq, -1):
                    order = hierarchy.compare(queue, ssn.queues[other.queue])
                if order < 0:
                    victims.append(t)
                if ssn.explaining_victims:
                    text = "without it, queue {} would come {} queue {}"
                    place = "after" if order < 0 else "before or level with"
                    ssn.explain_victim(
                        self.name,
                        reclaimer,
                        t,
                        order < 0,
                        partial(text.format, other.queue, place, queue.name),
                    )
        return victims, Vote.PERMIT

    # --- events -----------------------------------------------------------------------------------------------

    def _on_allocate(self, event: Event) -> None:
        task = event.task
        job = self.ssn.jobs.get(task.job_id)
        if job is not None:
            self._change(job, task.resreq, 1, in_model=task.status is not PIPELINED)

    def _on_deallocate(self, event: Event) -> None:
        job = self.ssn.jobs.get(event.task.job_id)
        if job is not None:
            self._change(job, event.task.resreq, -1, in_model=True)

    def _on_allocate_run(self, event: RunEvent) -> None:
        in_model = event.tasks[0].status is not PIPELINED
        for job, n in event.jobs:
            self._change(job, event.cls.resreq, n, in_model=in_model)

    def _on_deallocate_run(self, event: RunEvent) -> None:
        for job, n in event.jobs:
            self._change(job, event.cls.resreq, -n, in_model=True)

    def _change(self, job: Job, request: Resources, times: int, *, in_model: bool) -> None:
        """``in_model``: the job's own sum shows the change already. The first event of a job starts from that sum; it
        cannot be the end of a pipelining, which an earlier event began."""
        own = self._allocated.get(job.id)
        if own is None:
            own = self._allocated[job.id] = job.allocated.clone()
            if not in_model:
                own.add_times(request, times)
        else:
            own.add_times(request, times)
        self._shares.pop(job.id, None)
        if self._hierarchy is not None:
            self._hierarchy.change(job, request, times)
