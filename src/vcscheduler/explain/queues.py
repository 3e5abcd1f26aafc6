"""The queue tree as a session sees it when it opens: what each queue holds, is owed, asks for, deserves and may have.

Read from a session of which no action has run: only then do the sums over jobs and the share plugin's own figures speak
of the same moment.
"""

from __future__ import annotations

from dataclasses import dataclass

from vcscheduler.explain.standing import deciding_resource
from vcscheduler.framework.plugin import QueueStanding
from vcscheduler.framework.session import Session
from vcscheduler.model.amounts import names
from vcscheduler.model.queue import Queue
from vcscheduler.model.resources import CPU, MEMORY, PODS, Resources

ROOT = "root"
_SHARING = ("capacity", "proportion")


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue.

    Attributes:
        depth: 0 for root and for queues under no queue that exists.
        jobs: its own. weight, capability, guarantee, asked_deserved: of its spec; the last is ``spec.deserved``.
        deserved, real_capability, share: as the share plugin works them out; None where it gives the queue no account,
            for want of jobs or of such a plugin.
        allocated: held by running pods. inqueue: what admitted jobs are still owed of their minimum. request: held and
            wanted. In a tree these include all queues below.
        deciding: the resource of which the queue holds the largest part of what it deserves; "" if it holds nothing.
    """

    name: str
    parent: str
    depth: int
    state: str
    reclaimable: bool
    priority: int
    weight: int
    jobs: int
    allocated: Resources
    inqueue: Resources
    request: Resources
    guarantee: Resources
    asked_deserved: Resources
    capability: Resources | None
    deserved: Resources | None
    real_capability: Resources | None
    share: float | None
    deciding: str

    @property
    def shown(self) -> str:
        """The resource that speaks for the queue where there is room for one."""
        if self.deciding:
            return self.deciding
        return next((name for name in self.resources if self.request.get(name)), CPU)

    @property
    def resources(self) -> list[str]:
        """Names of all resources in which any of its figures is above 0; ``pods`` only if it decides."""
        vectors = [self.allocated, self.inqueue, self.request, self.guarantee, self.asked_deserved]
        vectors += [v for v in (self.capability, self.deserved) if v is not None]
        found = {name for v in vectors for name in names(v) if v.get(name) and name != PODS}
        found |= {PODS} if self.deciding == PODS else set()
        return [name for name in names(Resources(0, 0, dict.fromkeys(found - {CPU, MEMORY}, 0.0))) if name in found]


@dataclass(frozen=True, slots=True)
class QueueTable:
    """All queues, parents before their children. ``plugin``: which one shares out the cluster, "" if none does;
    ``tree``: whether it does so along the tree. ``total``: allocatable of all nodes that take pods."""

    rows: list[QueueRow]
    plugin: str
    tree: bool
    total: Resources


def queue_table(ssn: Session) -> QueueTable:
    """Read a session that was just opened."""
    opened = {plugin.name for plugin in ssn.plugins}
    plugin = next((name for name in _SHARING if name in opened), "")
    option = ssn.plugin_option(plugin) if plugin else None
    tree = plugin == "capacity" and option is not None and option.enable_hierarchy
    order = _in_tree_order(ssn.queues)
    own = {name: _Sums() for name in ssn.queues}
    for name, sums in own.items():
        found = ssn.aggregates.queue(name)
        if found is not None:
            sums.add(found.allocated, found.inqueue, found.request)
            sums.jobs = found.jobs
    if tree:
        for name, _ in reversed(order):
            above = own.get(_parent(ssn.queues[name]))
            if above is not None and name != ROOT:
                above.add(own[name].allocated, own[name].inqueue, own[name].request)
    rows = [_row(ssn.queues[name], depth, own[name], ssn.queue_standing(ssn.queues[name])) for name, depth in order]
    return QueueTable(rows, plugin, tree, ssn.total.clone())


class _Sums:
    def __init__(self) -> None:
        self.allocated, self.inqueue, self.request = Resources(), Resources(), Resources()
        self.jobs = 0

    def add(self, allocated: Resources, inqueue: Resources, request: Resources) -> None:
        self.allocated.add(allocated)
        self.inqueue.add(inqueue)
        self.request.add(request)


def _row(queue: Queue, depth: int, sums: _Sums, standing: QueueStanding | None) -> QueueRow:
    return QueueRow(
        name=queue.name,
        parent=_parent(queue),
        depth=depth,
        state=queue.state,
        reclaimable=queue.reclaimable,
        priority=queue.priority,
        weight=queue.weight,
        jobs=sums.jobs,
        allocated=sums.allocated,
        inqueue=sums.inqueue,
        request=sums.request,
        guarantee=queue.guarantee,
        asked_deserved=queue.deserved,
        capability=queue.capability,
        deserved=None if standing is None else standing.deserved.clone(),
        real_capability=None if standing is None else standing.capability.clone(),
        share=None if standing is None else standing.share,
        deciding="" if standing is None else deciding_resource(standing.allocated, standing.deserved),
    )


def _parent(queue: Queue) -> str:
    return "" if queue.name == ROOT else queue.parent or ROOT


def _in_tree_order(queues: dict[str, Queue]) -> list[tuple[str, int]]:
    """(name, depth): children by name below their parent. What hangs under no existing queue, or on a circle, comes
    last, each as a tree of its own."""
    children: dict[str, list[str]] = {}
    for name in sorted(queues, reverse=True):
        children.setdefault(_parent(queues[name]), []).append(name)
    found: dict[str, int] = {}

    def take(top: str) -> None:
        waiting = [(top, 0)]
        while waiting:
            name, depth = waiting.pop()
            if name not in found:
                found[name] = depth
                waiting += [(child, depth + 1) for child in children.get(name, ())]

    if ROOT in queues:
        take(ROOT)
    for name in sorted(queues, key=lambda name: (_parent(queues[name]) in queues, name)):
        if name not in found:
            take(name)
    return list(found.items())
