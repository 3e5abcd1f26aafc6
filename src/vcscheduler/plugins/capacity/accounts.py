"""What queues hold in a session: own jobs, and in a tree those of all queues below."""

from __future__ import annotations

from vcscheduler.model.aggregates import QueueSums
from vcscheduler.model.queue import Queue
from vcscheduler.model.resources import Resources
from vcscheduler.model.task import QUEUE_ALLOCATION_GATE, Task
from vcscheduler.plugins.capacity.limits import QueueLimits


class QueueAccount:
    """One queue. ``allocated`` follows the session, pipelined tasks included; ``inqueue`` only grows.

    Attributes:
        ancestors: accounts from root down to the parent. chain: this account, its parent, … root.
        reserved: tasks whose queue-allocation gate was lifted and that are not placed yet, by uid (spec 04 §7.6).
    """

    __slots__ = (
        "_reserved_request",
        "_share",
        "allocated",
        "ancestors",
        "chain",
        "elastic",
        "inqueue",
        "limits",
        "queue",
        "reserved",
    )

    def __init__(self, queue: Queue, limits: QueueLimits) -> None:
        self.queue = queue
        self.limits = limits
        self.allocated = Resources()
        self.inqueue = Resources()
        self.elastic = Resources()
        self.ancestors: tuple[QueueAccount, ...] = ()
        self.chain: tuple[QueueAccount, ...] = (self,)
        self.reserved: dict[str, Task] = {}
        self._reserved_request = Resources()
        self._share: float | None = None

    @property
    def name(self) -> str:
        return self.queue.name

    def join(self, ancestors: tuple[QueueAccount, ...]) -> None:
        self.ancestors = ancestors
        self.chain = (self, *reversed(ancestors))

    def ancestor(self, level: int) -> QueueAccount | None:
        """1 = the parent; None above root."""
        return self.chain[level] if level < len(self.chain) else None

    def open(self, sums: QueueSums) -> None:
        """Count the queue's own jobs, here and upwards. A queue with jobs has nothing below it."""
        self.allocated, self.inqueue, self.elastic = sums.allocated, sums.inqueue, sums.elastic
        for account in self.ancestors:
            account.allocated.add(sums.allocated)
            account.inqueue.add(sums.inqueue)
            account.elastic.add(sums.elastic)

    @property
    def share(self) -> float:
        if self.limits.share_of is None:
            return 1.0
        if self._share is None:
            self._share = self.limits.share_of(self.allocated)
        return self._share

    @property
    def standing(self) -> tuple[float, bool]:
        """Order between queues: smaller share, then those that deserve something."""
        return self.share, self.limits.share_of is None

    def fix_share(self) -> None:
        """Work the share out now. Events do not bring the shares of inner queues up to date, so cousins are ordered
        by shares as they were at session open (Quirk, spec 04 §7.2)."""
        self._share = None
        self._share = self.share

    def change(self, request: Resources, times: int) -> None:
        """Tasks of the queue itself came (or, negative, went)."""
        self._share = None
        for account in self.chain:
            account.allocated.add_times(request, times)

    # --- reservations -----------------------------------------------------------------------------------------

    def reserve(self, task: Task) -> None:
        if task.uid not in self.reserved:
            self.reserved[task.uid] = task
            self._reserved_request.add(task.resreq)

    def release(self, task: Task) -> None:
        if self.reserved.pop(task.uid, None) is not None:
            self._reserved_request.sub(task.resreq)

    def reserved_for_others(self, task: Task) -> Resources:
        if task.uid in self.reserved:
            return self._reserved_request.clone().sub(task.resreq)
        return self._reserved_request


def asks_for_reservation(task: Task) -> bool:
    return task.pod.metadata.annotations.get(QUEUE_ALLOCATION_GATE) == "true"


def common_depth(a: QueueAccount, b: QueueAccount) -> int:
    """Index, in both lists of ancestors, of the deepest one they share; 0 if there is none."""
    depth = 0
    for x, y in zip(a.ancestors, b.ancestors):
        if x is not y:
            break
        depth += 1
    return max(depth - 1, 0)
