"""Hierarchical dominant resource fairness: queues ordered along a tree of weighted shares (spec 04 §5.3).

Queues say their place in annotations, for example ``root/eng/dev`` with weights ``1/2/8``; jobs are the leaves below
their queue. Shares of inner nodes follow from what the leaves hold; they are worked out when somebody compares, and
only where something changed, unless a resource ran out or came back, which every leaf takes notice of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from vcscheduler.model.job import Job
from vcscheduler.model.queue import Queue
from vcscheduler.model.resources import Resources
from vcscheduler.plugins.shares import DominantShare

_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


class _Node:
    """A queue's place or, with ``job``, a leaf. ``stale``: something below changed."""

    __slots__ = ("alloc", "children", "job", "parent", "saturated", "share", "stale", "weight")

    def __init__(self, parent: _Node | None, weight: float, job: Job | None = None) -> None:
        self.parent = parent
        self.weight = weight
        self.job = job
        self.children: dict[str, _Node] = {}
        self.alloc = Resources()
        self.share = 0.0
        self.saturated = False
        self.stale = True

    def touch(self) -> None:
        node: _Node | None = self
        while node is not None:
            node.stale = True
            node = node.parent


class Hierarchy:
    """The tree over the jobs of a session. ``held(job)`` is what a job holds, pipelined tasks included."""

    def __init__(
        self,
        jobs: Iterable[Job],
        queues: Mapping[str, Queue],
        total: Resources,
        share_of: DominantShare,
        held: Callable[[Job], Resources],
    ) -> None:
        self._share_of = share_of
        self._total = total
        self._held = held
        self._root = _Node(None, 1.0)
        self._leaves: dict[str, _Node] = {}
        self._allocated = Resources()
        self._demanding: frozenset[str] = frozenset()
        # A node's weight is that of the queue whose job makes it, so the order matters.
        for job in sorted(jobs, key=lambda j: j.id):
            self._add(job, queues[job.queue])

    def _add(self, job: Job, queue: Queue) -> None:
        node = self._root
        weights = queue.hierarchy_weights.split("/")
        for i, name in enumerate(queue.hierarchy.split("/")):
            if i == 0:
                continue
            child = node.children.get(name)
            if child is None:
                child = node.children[name] = _Node(node, _weight(weights[i]) if i < len(weights) else 1.0)
            node = child
        leaf = self._leaves[job.id] = node.children[job.id] = _Node(node, 1.0, job)
        leaf.alloc = self._held(job)
        self._allocated.add(leaf.alloc)

    # --- changes ----------------------------------------------------------------------------------------------

    def change(self, job: Job, request: Resources, times: int) -> None:
        """The job now holds that much more (or, negative, less); ``held`` says so already."""
        leaf = self._leaves[job.id]
        leaf.alloc = self._held(job)
        leaf.touch()
        self._allocated.add_times(request, times)

    @contextmanager
    def trial(self, job: Job, request: Resources, times: int) -> Iterator[None]:
        """As if the job held that much more or less."""
        leaf = self._leaves[job.id]
        alloc, allocated = leaf.alloc, self._allocated
        leaf.alloc = alloc.clone().add_times(request, times)
        self._allocated = allocated.clone().add_times(request, times)
        leaf.touch()
        try:
            yield
        finally:
            leaf.alloc, self._allocated = alloc, allocated
            leaf.touch()

    # --- comparing --------------------------------------------------------------------------------------------

    def compare(self, a: Queue, b: Queue) -> float:
        """Negative: ``a`` first. Down both paths: what still demands before what is saturated, then the smaller
        weighted share."""
        self._settle()
        paths = a.hierarchy.split("/"), b.hierarchy.split("/")
        x: _Node | None = self._root
        y: _Node | None = self._root
        depth = min(len(paths[0]), len(paths[1]))
        for i in range(depth):
            if x is None or y is None:
                return 0
            if x.saturated != y.saturated:
                return 1 if x.saturated else -1
            difference = x.share / x.weight - y.share / y.weight
            if difference != 0:
                return difference
            if i < depth - 1:
                x, y = x.children.get(paths[0][i + 1]), y.children.get(paths[1][i + 1])
        return 0

    def _settle(self) -> None:
        demanding = frozenset(n for n in self._total.names() if self._allocated.get(n) < self._total.get(n))
        if demanding != self._demanding:
            self._demanding = demanding
            for leaf in self._leaves.values():
                leaf.touch()
        if self._root.stale:
            self._work_out(self._root)

    def _work_out(self, node: _Node) -> None:
        node.stale = False
        if node.job is not None:
            node.share = self._share_of(node.alloc)
            node.saturated = self._is_saturated(node.job, node.alloc)
            return
        for child in node.children.values():
            if child.stale:
                self._work_out(child)
        holding = [c for c in node.children.values() if c.share != 0]
        smallest = min((c.share for c in holding if not c.saturated), default=1.0)
        smallest = min(smallest, 1.0)
        # Children count with what they would hold if all had the smallest share. Their weights do not enter, and what
        # is exhausted is not left out (Quirks).
        alloc = Resources()
        for c in holding:
            alloc.add(c.alloc if c.saturated else c.alloc.clone().multiply(smallest / c.share))
        node.alloc = alloc
        node.share = self._share_of(alloc)
        node.saturated = all(c.saturated for c in node.children.values())

    def _is_saturated(self, job: Job, alloc: Resources) -> bool:
        """It has all it wants of something, or something that it holds and wants is exhausted. A job that holds
        nothing never is (Quirk)."""
        for n in alloc.names():
            wanted = job.total_request.get(n)
            if wanted != 0 and (alloc.get(n) >= wanted or n not in self._demanding):
                return True
        return False


def _weight(text: str) -> float:
    return max(float(text), 1.0) if _DECIMAL.fullmatch(text) else 1.0
