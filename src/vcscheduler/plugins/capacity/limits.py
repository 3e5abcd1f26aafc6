"""What each queue is guaranteed, deserves and may hold at most: decided by queue specs and the size of the cluster.

Nothing here depends on jobs, so the outcome is kept from session to session while specs and cluster stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vcscheduler.model.queue import Queue
from vcscheduler.model.resources import MAX_FLOAT, MAX_SCALAR, Resources
from vcscheduler.plugins.shares import DominantShare, bounded, real_capability

ROOT = "root"


class NotReady(Exception):
    """The queues do not make a tree; until they do, nothing is admitted or allocated. The message says why."""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The fixed figures of one queue; vectors are shared and not to be changed.

    Attributes:
        ancestors: names from root down to the parent; empty in flat mode.
        leaf: no queue has it as parent.
        share_of: share of a vector in ``deserved``; None if nothing (or only ``pods``) is deserved, which makes a
            best-effort queue, whose share is always 1.
    """

    guarantee: Resources
    deserved: Resources
    real_capability: Resources
    ancestors: tuple[str, ...] = ()
    leaf: bool = True
    share_of: DominantShare | None = None


def flat_limits(queues: Mapping[str, Queue], total: Resources) -> dict[str, QueueLimits]:
    guaranteed = Resources()
    for q in queues.values():
        guaranteed.add(q.guarantee)
    unreserved = total.above(guaranteed)
    limits = {}
    for name, q in queues.items():
        real = real_capability(unreserved, q)
        deserved = bounded(q.deserved.clone(), real).maximum(q.guarantee)
        limits[name] = QueueLimits(q.guarantee, deserved, real, share_of=_share_of(deserved))
    return limits


def tree_limits(queues: Mapping[str, Queue], total: Resources) -> dict[str, QueueLimits]:
    """Limits handed down from root. Unlike in flat mode, deserved is not cut to what the queue may hold, and with an
    unlimited root the queues below it are not bounded by the cluster (Quirks, spec 04 §7.2).

    Raises:
        NotReady: no root, an unknown parent or a cycle.
    """
    if ROOT not in queues:
        raise NotReady(f"there is no queue {ROOT}")
    children: dict[str, list[str]] = {name: [] for name in queues}
    for name in sorted(queues):
        if name != ROOT:
            parent = queues[name].parent or ROOT
            if parent not in queues:
                raise NotReady(f"queue {name} has the parent {parent}, which does not exist")
            children[parent].append(name)
    tree = _Tree(queues, children)
    limits = tree.build(total)
    lost = sorted(queues.keys() - limits.keys())
    if lost:
        raise NotReady(f"queues {', '.join(lost)} are not below {ROOT}: their parents form a cycle")
    return limits


class _Tree:
    def __init__(self, queues: Mapping[str, Queue], children: Mapping[str, list[str]]) -> None:
        self._queues = queues
        self._children = children
        self._limits: dict[str, QueueLimits] = {}

    def build(self, total: Resources) -> dict[str, QueueLimits]:
        below = self._children[ROOT]
        guarantee, deserved = Resources(), Resources()
        for name in below:
            guarantee.add(self._queues[name].guarantee)
            deserved.add(self._deserved(name))
        # A root that limits only some resources has 0 of the others (Quirk, spec 04 §7.2).
        capability = self._queues[ROOT].capability
        if capability is None or capability.is_empty():
            capability = Resources(MAX_FLOAT, MAX_FLOAT, {n: MAX_SCALAR for n, _ in total.scalar_items()} or None)
        self._limits[ROOT] = QueueLimits(guarantee, deserved, capability, leaf=not below, share_of=_share_of(deserved))
        waiting = [(ROOT, capability)]
        while waiting:
            waiting += self._hand_down(*waiting.pop())
        return self._limits

    def _deserved(self, name: str) -> Resources:
        return self._queues[name].deserved.maximum(self._queues[name].guarantee)

    def _hand_down(self, parent: str, capability: Resources) -> list[tuple[str, Resources]]:
        """Work out the children of a queue; returns their names and capabilities."""
        above = self._limits[parent]
        names = self._children[parent]
        guaranteed = Resources()
        for name in names:
            guaranteed.add(self._queues[name].guarantee)
        unreserved = above.real_capability.above(guaranteed)
        found = []
        for name in names:
            q = self._queues[name]
            own = Resources() if q.capability is None else q.capability.clone()
            if own.cpu <= 0:
                own.cpu = capability.cpu
            if own.memory <= 0:
                own.memory = capability.memory
            for n, v in capability.scalar_items():
                if own.scalars is None or n not in own.scalars:
                    own.set_scalar(n, v)
            deserved = self._deserved(name)
            self._limits[name] = QueueLimits(
                q.guarantee,
                deserved,
                bounded(unreserved.clone().add(q.guarantee), own),
                (*above.ancestors, parent),
                leaf=not self._children[name],
                share_of=_share_of(deserved),
            )
            found.append((name, own))
        return found


def _share_of(deserved: Resources) -> DominantShare | None:
    return None if deserved.is_empty() else DominantShare(deserved)
