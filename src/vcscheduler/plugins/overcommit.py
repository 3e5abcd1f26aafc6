"""overcommit: admit PodGroups only up to a multiple of what the cluster has (spec 04 §8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from vcscheduler.framework.plugin import Plugin
from vcscheduler.model.job import Job
from vcscheduler.model.nodes import NodeTable
from vcscheduler.model.resources import CPU, MEMORY, Resources
from vcscheduler.model.status import Vote
from vcscheduler.plugins.notices import refuse, say_once
from vcscheduler.plugins.shares import beyond

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

FACTOR = "overcommit-factor"
DEFAULT_FACTOR = 1.2


class OvercommitPlugin(Plugin):
    name = "overcommit"
    known_arguments: ClassVar[dict[str, str]] = {FACTOR: "float"}

    def on_session_open(self, ssn: Session) -> None:
        self.ssn = ssn
        self.factor = self.arguments.get_float(FACTOR, DEFAULT_FACTOR)
        if self.factor < 1:
            say_once(ssn, self.name, f"{FACTOR} is {self.factor:g}, below 1: {DEFAULT_FACTOR} is used")
            self.factor = DEFAULT_FACTOR
        # What is in use is taken as it stands now; placements of this session do not change it.
        self.idle = ssn.total.clone().multiply(self.factor).sub(used(ssn.table))
        self.inqueue = ssn.aggregates.overcommit_inqueue
        ssn.add_job_enqueueable_fn(self.name, self.job_enqueueable)
        ssn.add_job_enqueued_fn(self.name, self.job_enqueued)

    def job_enqueueable(self, job: Job) -> Vote:
        minimum = job.min_resources
        if minimum is None:
            return Vote.PERMIT
        lacking = beyond(minimum, self.idle, self.inqueue)
        if not lacking:
            return Vote.PERMIT
        return refuse(self.ssn, job, "resource in cluster is overused", "overused", lacking)

    def job_enqueued(self, job: Job) -> None:
        if job.min_resources is not None:
            self.inqueue.add(job.without_gated(job.min_resources))


def used(table: NodeTable) -> Resources:
    """What all nodes of the session have in use, releasing included, pipelined not."""
    sums = table.used[: len(table.dimensions), : table.n].sum(axis=1).tolist()
    by_name = dict(zip(table.dimensions.names, sums))
    cpu, memory = by_name.pop(CPU), by_name.pop(MEMORY)
    return Resources(cpu, memory, {n: v for n, v in by_name.items() if v} or None)
