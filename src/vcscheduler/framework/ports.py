"""What a session asks of the cache: the door through which decisions leave (spec 02 §9.2, §11)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from vcscheduler.model.aggregates import Aggregates
from vcscheduler.model.job import Job
from vcscheduler.model.listers import Listers
from vcscheduler.model.nodes import Node, NodeTable
from vcscheduler.model.queue import Queue
from vcscheduler.model.task import Task
from vcscheduler.model.topology import Topology
from vcscheduler.model.volume_plan import VolumePlan
from vcscheduler.objects import PodGroup
from vcscheduler.objects.pod import Pod


class SessionCache(Protocol):
    """The scheduler cache as a session sees it. Writes return an error text, or None when they were accepted."""

    @property
    def table(self) -> NodeTable: ...

    @property
    def jobs(self) -> dict[str, Job]:
        """Jobs that have a PodGroup and a queue that exists."""

    @property
    def queues(self) -> dict[str, Queue]: ...

    @property
    def topology(self) -> Topology:
        """The network domains; limits and domains of jobs agree with it."""

    @property
    def listers(self) -> Listers: ...

    @property
    def aggregates(self) -> Aggregates: ...

    @property
    def unsettled(self) -> dict[str, Job]:
        """Jobs that changed, or are not at rest, since they were last closed; a session adds those it touches."""

    @property
    def active(self) -> dict[str, Job]:
        """Jobs of :attr:`jobs` whose PodGroup is pending or that had Pending tasks when the session began."""

    @property
    def store(self) -> dict[str, object]:
        """Room for what lives as long as the scheduler: caches, process-wide state of plugins."""

    def begin_session(self) -> None:
        """Apply what happened since the last session and bring the sums up to date."""

    def bind(self, task: Task, node: Node, plan: VolumePlan | None) -> str | None:
        """Bind one; ``plan``: what has to be written and finished before."""

    def bind_run(self, tasks: list[Task], rows: list[int]) -> list[tuple[Task, str]]:
        """Bind many; returns those that were refused."""

    def evict(self, task: Task, reason: str) -> str | None: ...

    def update_pod_group(self, job: Job, pg: PodGroup) -> str | None: ...

    def update_queue_status(self, queue: Queue, allocated: dict[str, str]) -> str | None: ...

    def tells_of(self, job: Job) -> bool:
        """Whether events about a job and conditions of its pods that a closing session comes up with would be
        written."""

    def update_pod_condition(self, pod: Pod, reason: str, message: str, nominated: str) -> None: ...

    def record_event(self, kind: str, namespace: str, name: str, type: str, reason: str, message: str) -> None: ...

    def remove_gate(self, task: Task) -> None:
        """Ask for the removal of the queue allocation gate from the task's pod, some time later."""

    def settle(self, touched: Iterable[Job]) -> None:
        """The session is over: jobs at rest leave :attr:`unsettled`."""
