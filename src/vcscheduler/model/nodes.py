"""Nodes in columns: one array a quantity over all nodes, and ``Node``, the view of one row.

Rows are slots in order of arrival and never move, so whatever is kept by row stays valid while nodes come and go;
``rank`` gives each row's place in name order, which decides ties. Every change of a row goes to a change log, from
which incremental placement learns what to compute again (spec 01 §5; docs/architecture.md, "Node table").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from vcscheduler.model.kubeview import KubeView
from vcscheduler.model.resources import CPU, MEMORY, PODS, Resources
from vcscheduler.model.status import ALLOCATED, PIPELINED, RELEASING, TaskStatus
from vcscheduler.model.task import Task, TaskClass
from vcscheduler.objects import Node as NodeObject

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

OVERSUBSCRIPTION_CPU = "volcano.sh/oversubscription-cpu"
OVERSUBSCRIPTION_MEMORY = "volcano.sh/oversubscription-memory"
REVOCABLE_ZONE = "volcano.sh/revocable-zone"

#: Columns of shape [dimensions, rows], in milli-CPU, bytes, pods and milli-units.
QUANTITIES = ("allocatable", "idle", "used", "releasing", "pipelined")


class NodeConflict(Exception):
    """A task cannot be put on a node: it is there already, is on another one, or does not fit while binding."""


class Dimensions:
    """Resource names interned as row numbers of the columns: cpu 0, memory 1, pods 2, then as they are met."""

    def __init__(self) -> None:
        self.names: list[str] = [CPU, MEMORY, PODS]
        self.index: dict[str, int] = {n: i for i, n in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def intern(self, name: str) -> int:
        i = self.index.get(name)
        if i is None:
            i = self.index[name] = len(self.names)
            self.names.append(name)
        return i


class Node:
    """One node: its object, its tasks by ``namespace/name``, and its row of the table."""

    __slots__ = ("labels", "name", "object", "revocable_zone", "row", "table", "tasks", "unschedulable")

    def __init__(self, name: str, row: int, table: NodeTable) -> None:
        self.name = name
        self.row = row
        self.table = table
        self.object: NodeObject | None = None
        self.tasks: dict[str, Task] = {}
        self.labels: dict[str, str] = {}
        self.revocable_zone = ""
        self.unschedulable = False

    @property
    def ready(self) -> bool:
        """Whether the node object is known; nothing else makes a node unready (spec 01 §5.2)."""
        return self.object is not None

    @property
    def allocatable(self) -> Resources:
        return self.table.vector("allocatable", self.row)

    @property
    def idle(self) -> Resources:
        return self.table.vector("idle", self.row)

    @property
    def used(self) -> Resources:
        return self.table.vector("used", self.row)

    @property
    def releasing(self) -> Resources:
        return self.table.vector("releasing", self.row)

    @property
    def pipelined(self) -> Resources:
        return self.table.vector("pipelined", self.row)

    @property
    def future_idle(self) -> Resources:
        """Idle + releasing - pipelined; may be negative."""
        return self.idle.add(self.releasing).sub(self.pipelined)

    @property
    def capacity(self) -> Resources:
        if self.object is None:
            return Resources()
        return oversubscribed(self.object, Resources.from_list(self.object.status.capacity))

    def sorted_tasks(self) -> list[Task]:
        """Tasks by ``namespace/name``, the order in which victims are looked for."""
        return [self.tasks[k] for k in sorted(self.tasks)]

    def check(self, task: Task) -> None:
        """Raise NodeConflict if the task cannot be added here."""
        if task.node_name and task.node_name != self.name:
            raise NodeConflict(f"task <{task.key}> already on different node <{task.node_name}>")
        if task.key in self.tasks:
            raise NodeConflict(f"task <{task.key}> already on node <{self.name}>")

    def add(self, task: Task) -> None:
        """Account the task under its status.

        Raises:
            NodeConflict: the task is here already, or on another node.
        """
        self.check(task)
        task.node_name = self.name
        self.tasks[task.key] = task
        task.counted = task.status
        self.table.account(self.row, task.cls, task.status, 1)

    def remove(self, task: Task) -> None:
        """Take the entry with the task's key off the node; nothing happens if there is none."""
        stored = self.tasks.pop(task.key, None)
        if stored is not None and stored.counted is not None:
            self.table.account(self.row, stored.cls, stored.counted, -1)
            stored.counted = None

    def update(self, task: Task) -> None:
        """Account the task anew after its status changed."""
        stored, before = self.tasks.get(task.key), task.counted
        if stored is task and before is not None and PIPELINED not in (before, task.status):
            task.counted = task.status
            self.table.account_release(self.row, task.cls, (task.status is RELEASING) - (before is RELEASING))
            return
        self.remove(task)
        self.tasks[task.key] = task
        task.counted = task.status
        self.table.account(self.row, task.cls, task.status, 1)

    def refuses_binding(self, task: Task) -> list[str]:
        """Names of resources that the node lacks for a bind, as the cache sees it: what only the session has
        allocated does not count, what is leaving still does (spec 01 §5.4, spec 03 §4)."""
        if self.object is None:
            return []
        free = self.idle
        for other in self.tasks.values():
            if other.status is ALLOCATED:
                free.add(other.resreq)
        return task.resreq.exceeding(free)

    def __repr__(self) -> str:
        return f"Node({self.name}, {len(self.tasks)} tasks)"


def oversubscribed(obj: NodeObject, base: Resources) -> Resources:
    """Adds what the oversubscription annotations lend (milli-CPU and bytes; spec 01 §5.5)."""
    annotations = obj.metadata.annotations
    for key, attribute in ((OVERSUBSCRIPTION_CPU, "cpu"), (OVERSUBSCRIPTION_MEMORY, "memory")):
        text = annotations.get(key)
        if text is not None:
            try:
                extra = float(text)
            except ValueError:
                continue
            setattr(base, attribute, getattr(base, attribute) + extra)
    return base


class NodeTable:
    """All nodes, in columns. Arrays are over-allocated; ``n`` rows are in use, ``ready`` marks those in the session.

    Attributes:
        allocatable, idle, used, releasing, pipelined: float64 [dimensions, rows].
        ready: bool [rows]. rank: int64 [rows], place in name order.
        epoch: grows when something changed that invalidates all that is kept by row (a node object, a dimension).
    """

    allocatable: FloatArray
    idle: FloatArray
    used: FloatArray
    releasing: FloatArray
    pipelined: FloatArray

    def __init__(self) -> None:
        self.dimensions = Dimensions()
        self.nodes: list[Node] = []
        self.by_name: dict[str, Node] = {}
        self._rows = 64
        self._dims = 8
        for q in QUANTITIES:
            setattr(self, q, np.zeros((self._dims, self._rows)))
        self.ready = np.zeros(self._rows, dtype=np.bool_)
        self.view = KubeView(self._rows)
        self.epoch = 0
        self._nil_scalars: set[int] = set()
        self._rank = np.zeros(0, dtype=np.int64)
        self._rank_stale = True
        self._total = Resources()
        self._ready_rows: IntArray | None = None
        self.log = np.zeros(1024, dtype=np.int64)
        self.log_start = 0
        self.log_end = 0

    # --- nodes come and go ------------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        return len(self.nodes)

    @property
    def rank(self) -> IntArray:
        if self._rank_stale:
            order = sorted(range(self.n), key=lambda r: self.nodes[r].name)
            self._rank = np.empty(self.n, dtype=np.int64)
            self._rank[order] = np.arange(self.n)
            self._rank_stale = False
        return self._rank

    @property
    def ready_rows(self) -> IntArray:
        """Rows of the session's nodes, in order of arrival."""
        if self._ready_rows is None:
            self._ready_rows = np.flatnonzero(self.ready[: self.n]).astype(np.int64)
        return self._ready_rows

    @property
    def total(self) -> Resources:
        """Sum of allocatable over the session's nodes; a new vector, safe to change."""
        return self._total.clone()

    def __iter__(self) -> Iterator[Node]:
        """The session's nodes in order of arrival."""
        return (self.nodes[r] for r in self.ready_rows)

    def get(self, name: str) -> Node | None:
        """The node if it is in the session."""
        node = self.by_name.get(name)
        return node if node is not None and node.object is not None else None

    def placeholder(self, name: str) -> Node:
        """The node of that name, made if need be; without an object it has no resources and is in no session."""
        node = self.by_name.get(name)
        if node is None:
            if self.n == self._rows:
                self._grow_rows(self._rows * 2)
            node = Node(name, self.n, self)
            self.nodes.append(node)
            self.by_name[name] = node
            self._invalidate()
            self._rank_stale = True
        return node

    def set_object(self, obj: NodeObject, extra: Resources | None = None) -> Node:
        """Add or update a node from its object and account its tasks anew. ``extra``: dimensions that the object
        lacks, such as CSI attach limits."""
        node = self.placeholder(obj.metadata.name)
        row = node.row
        if node.object is not None:
            self._total.sub(self.vector("allocatable", row))
        node.object = obj
        node.labels = obj.metadata.labels
        node.revocable_zone = obj.metadata.labels.get(REVOCABLE_ZONE, "")
        node.unschedulable = obj.spec.unschedulable
        allocatable = oversubscribed(obj, Resources.from_list(obj.status.allocatable))
        if extra is not None:
            allocatable.add(extra)
        for n, _ in allocatable.scalar_items():
            self.dimension(n)
        if allocatable.scalars is None:
            self._nil_scalars.add(row)
        else:
            self._nil_scalars.discard(row)
        for q in QUANTITIES:
            getattr(self, q)[:, row] = 0.0
        self.allocatable[0, row] = allocatable.cpu
        self.allocatable[1, row] = allocatable.memory
        for n, v in allocatable.scalar_items():
            self.allocatable[self.dimensions.index[n], row] = v
        self.idle[:, row] = self.allocatable[:, row]
        self.ready[row] = True
        self._total.add(allocatable)
        self.view.set_node(row, obj)
        for task in node.tasks.values():
            task.counted = task.status
            self.account(row, task.cls, task.status, 1)
            if task.view_row < 0:
                self.view.add(task, row)
        self._invalidate()
        return node

    def remove(self, name: str) -> list[Task]:
        """Forget a node; returns the tasks that were on it. Its slot stays empty until the table is packed."""
        node = self.by_name.pop(name, None)
        if node is None:
            return []
        row = node.row
        tasks = list(node.tasks.values())
        for task in tasks:
            self.view.remove(task)
            task.counted = None
        if node.object is not None:
            self._total.sub(self.vector("allocatable", row))
        node.tasks = {}
        node.object = None
        for q in QUANTITIES:
            getattr(self, q)[:, row] = 0.0
        self.ready[row] = False
        self._invalidate()
        return tasks

    def _invalidate(self) -> None:
        self.epoch += 1
        self._ready_rows = None

    def _grow_rows(self, rows: int) -> None:
        for q in QUANTITIES:
            old = getattr(self, q)
            new = np.zeros((self._dims, rows))
            new[:, : self._rows] = old
            setattr(self, q, new)
        ready = np.zeros(rows, dtype=np.bool_)
        ready[: self._rows] = self.ready
        self.ready = ready
        self.view.grow(rows)
        self._rows = rows

    # --- resources --------------------------------------------------------------------------------------------

    def dimension(self, name: str) -> int:
        d = self.dimensions.intern(name)
        if d >= self._dims:
            dims = self._dims * 2
            for q in QUANTITIES:
                new = np.zeros((dims, self._rows))
                new[: self._dims] = getattr(self, q)
                setattr(self, q, new)
            self._dims = dims
            self.epoch += 1
        return d

    def items(self, cls: TaskClass) -> list[tuple[int, float]]:
        """(dimension, amount) of the class's request: cpu, memory, then scalars by name. A scalar of 0 is listed,
        since comparisons look at it; cpu and memory always are."""
        found = cls.derived.get("items")
        if found is None:
            r = cls.resreq
            found = [(0, r.cpu), (1, r.memory)]
            found += [(self.dimension(n), v) for n, v in sorted(r.scalar_items())]
            cls.derived["items"] = found
        return found  # type: ignore[return-value]

    def request_columns(self, cls: TaskClass) -> tuple[IntArray, FloatArray]:
        """:meth:`items` as arrays: int64 [n] dimensions, float64 [n] amounts."""
        found = cls.derived.get("request columns")
        if found is None:
            items = self.items(cls)
            found = (np.array([d for d, _ in items], dtype=np.int64), np.array([x for _, x in items]))
            cls.derived["request columns"] = found
        return found  # type: ignore[return-value]

    def vector(self, quantity: str, row: int) -> Resources:
        """One cell column as a vector. Scalars are those of allocatable and whatever else is not 0."""
        column = getattr(self, quantity)[:, row]
        declared = self.allocatable[:, row]
        scalars = {
            n: float(column[d])
            for d, n in enumerate(self.dimensions.names)
            if d > 1 and (column[d] != 0.0 or (declared[d] != 0.0 and quantity in ("allocatable", "idle")))
        }
        return Resources(float(column[0]), float(column[1]), scalars or None, int(self.allocatable[2, row]))

    def account(self, row: int, cls: TaskClass, status: TaskStatus, times: int) -> None:
        """Add a class's request ``times`` times (negative: take it away) under a status (spec 01 §5.4)."""
        if not self.ready[row]:
            return
        items = self.items(cls)
        nil = row in self._nil_scalars
        if status is PIPELINED:
            for d, x in items:
                self.pipelined[d, row] += x * times
        else:
            for d, x in items:
                if not (nil and d > 1):
                    self.idle[d, row] -= x * times
                self.used[d, row] += x * times
                if status is RELEASING:
                    self.releasing[d, row] += x * times
        self.touch(row)

    def account_release(self, row: int, cls: TaskClass, times: int) -> None:
        """What a task holds begins (1) or ceases (-1) to be on its way out; 0 changes nothing but the log."""
        if self.ready[row]:
            for d, x in self.items(cls):
                self.releasing[d, row] += x * times
            self.touch(row)

    # --- change log -------------------------------------------------------------------------------------------

    def touch(self, row: int) -> None:
        if self.log_end - self.log_start == len(self.log):
            self._shift_log()
        self.log[self.log_end - self.log_start] = row
        self.log_end += 1

    def touch_many(self, rows: IntArray) -> None:
        while self.log_end - self.log_start + len(rows) > len(self.log):
            self._shift_log()
        at = self.log_end - self.log_start
        self.log[at : at + len(rows)] = rows
        self.log_end += len(rows)

    def _shift_log(self) -> None:
        """Forget the older half, or grow: a reader that is further behind looks at all rows again."""
        if len(self.log) < 4 * self._rows:
            self.log = np.concatenate([self.log, np.zeros_like(self.log)])
            return
        half = len(self.log) // 2
        self.log[:half] = self.log[half:]
        self.log_start += half

    def changed_since(self, position: int) -> IntArray | None:
        """Rows that changed since a log position, with repetitions; None = too long ago, look at all."""
        if position < self.log_start:
            return None
        return self.log[position - self.log_start : self.log_end - self.log_start]

    # --- tasks ------------------------------------------------------------------------------------------------

    def reconcile_view(self, tasks: Iterable[Task]) -> None:
        """Let the Kubernetes view hold exactly those of the tasks that are on a node. A session's view strays from
        that where the reference's does (spec 05 §2.1); the next session starts from the truth."""
        for task in tasks:
            node = self.by_name.get(task.node_name) if task.node_name else None
            row = node.row if node is not None and node.tasks.get(task.key) is task else -1
            if task.view_row == row:
                continue
            for changed in (task.view_row, row):
                if changed >= 0:
                    self.touch(changed)
            self.view.remove(task)
            if row >= 0:
                self.view.add(task, row)
