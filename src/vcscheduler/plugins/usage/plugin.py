"""The plugin: nodes above a threshold are refused, idler ones score higher (spec 05 §10).

A node counts only while what was measured of it is fresh; the others pass the filter and score 0, below any measured
node (Quirk).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from vcscheduler.config import Arguments
from vcscheduler.framework.plugin import Event, EventHandler, Plugin
from vcscheduler.model.fit import Status
from vcscheduler.model.nodes import Node
from vcscheduler.model.status import IS_ALLOCATED, RUNNING, Code
from vcscheduler.model.task import Task
from vcscheduler.objects import Node as NodeObject
from vcscheduler.placement.rules import FloatArray, IntArray, NodeFilter, NodeScorer
from vcscheduler.plugins.usage.estimate import estimate
from vcscheduler.plugins.usage.load import interval_of, node_loads
from vcscheduler.plugins.usage.options import Options

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

#: Older measurements say nothing about a node.
FRESH = timedelta(minutes=5)

CPU_LOADED, MEMORY_LOADED = 1, 2
_REASONS = {
    CPU_LOADED: "the CPU load of the node exceeds the upper limit.",
    MEMORY_LOADED: "the memory load of the node exceeds the upper limit.",
}


class UsagePlugin(Plugin):
    name = "usage"
    known_arguments: ClassVar[dict[str, str]] = {
        "usage.weight": "int",
        "cpu.weight": "int",
        "memory.weight": "int",
        "thresholds": "any",
        "estimator": "any",
    }

    def on_session_open(self, ssn: Session) -> None:
        options = self._options(ssn)
        loads = NodeLoads(ssn, options)
        if not loads.fresh.any():
            # Nothing is known: every node passes and scores 0, and the search keeps its fast ways.
            return
        loads.add_unmeasured()
        ssn.add_filter(self.name, UsageFilter(loads, options, self.name))
        ssn.add_scorer(self.name, UsageScorer(loads, options))
        ssn.add_event_handler(EventHandler(loads.on_allocate, loads.on_deallocate))

    def _options(self, ssn: Session) -> Options:
        """Read once as long as the configuration stays, so that its mistakes are reported once."""
        known = ssn.store.get("usage.options")
        if not isinstance(known, _ReadOptions) or known.arguments is not self.arguments:
            known = ssn.store["usage.options"] = _ReadOptions(self.arguments)
        return known.options


class _ReadOptions:
    def __init__(self, arguments: Arguments) -> None:
        self.arguments = arguments
        self.options = Options.of(arguments)


class NodeLoads:
    """Load of the nodes by row: what was measured, and the shadow of the pods that were not measured yet.

    Attributes:
        fresh: bool [rows]. cpu, memory: float64 [rows], percent. cpu_capacity, memory_capacity: milli-CPU, bytes.
        cpu_shadow, memory_shadow: estimates of pods by row, milli-CPU and bytes.
    """

    def __init__(self, ssn: Session, options: Options) -> None:
        self._ssn = ssn
        self._options = options
        n = ssn.table.n
        self.fresh = np.zeros(n, dtype=np.bool_)
        self.cpu, self.memory = np.zeros(n), np.zeros(n)
        self.cpu_capacity, self.memory_capacity = np.zeros(n), np.zeros(n)
        self.cpu_shadow, self.memory_shadow = np.zeros(n), np.zeros(n)
        self._recorded: dict[str, tuple[int, float, float]] = {}
        measured = node_loads(ssn)
        capacities = _Capacities.of(ssn)
        for node in ssn.table:
            load = measured.get(node.name)
            if load is None or ssn.now - load.time > FRESH:
                continue
            row = node.row
            self.fresh[row] = True
            self.cpu[row], self.memory[row] = load.cpu, load.memory
            self.cpu_capacity[row], self.memory_capacity[row] = capacities.get(node)

    # --- shadow -----------------------------------------------------------------------------------------------

    def add_unmeasured(self) -> None:
        """Pods on the nodes that the measurements cannot show yet."""
        window = timedelta(seconds=interval_of(self._ssn.configuration.metrics))
        since = self._ssn.now - window
        for row in np.flatnonzero(self.fresh).tolist():
            node = self._ssn.table.nodes[row]
            unmeasured = [t for t in node.tasks.values() if _unmeasured(t, since)]
            for task in sorted(unmeasured, key=lambda t: t.uid):
                self._record(task, row)

    def on_allocate(self, event: Event) -> None:
        node = self._ssn.table.by_name.get(event.task.node_name)
        if node is not None and node.row < len(self.fresh) and self.fresh[node.row]:
            self._forget(event.task)
            self._record(event.task, node.row)

    def on_deallocate(self, event: Event) -> None:
        self._forget(event.task)

    def _record(self, task: Task, row: int) -> None:
        cpu, memory = estimate(task.cls, self._options, self._risk(row))
        self.cpu_shadow[row] += cpu
        self.memory_shadow[row] += memory
        self._recorded[task.uid] = (row, cpu, memory)

    def _forget(self, task: Task) -> None:
        """Takes off exactly what was recorded; rounding must not leave less than nothing."""
        known = self._recorded.pop(task.uid, None)
        if known is not None:
            row, cpu, memory = known
            self.cpu_shadow[row] = max(self.cpu_shadow[row] - cpu, 0.0)
            self.memory_shadow[row] = max(self.memory_shadow[row] - memory, 0.0)

    def _risk(self, row: int) -> float:
        options = self._options
        weights = options.cpu_weight + options.memory_weight
        rows = np.array([row], dtype=np.int64)
        load = 0.0
        if weights:
            cpu, memory = float(self.cpu_used(rows)[0]), float(self.memory_used(rows)[0])
            load = (cpu * options.cpu_weight + memory * options.memory_weight) / weights
        return options.risk_factor if load >= options.risk_threshold else 1.0

    # --- utilisation ------------------------------------------------------------------------------------------

    def cpu_used(self, rows: IntArray) -> FloatArray:
        """Part of the capacity in use, 0 to 1, the shadow included."""
        return _used(self.cpu[rows], self.cpu_capacity[rows], self.cpu_shadow[rows])

    def memory_used(self, rows: IntArray) -> FloatArray:
        return _used(self.memory[rows], self.memory_capacity[rows], self.memory_shadow[rows])


def _used(percent: FloatArray, capacity: FloatArray, shadow: FloatArray) -> FloatArray:
    known = capacity > 0
    used = (percent / 100 * capacity + shadow) / np.where(known, capacity, 1.0)
    return np.where(known, np.minimum(1.0, np.maximum(0.0, used)), 0.0)


def _unmeasured(task: Task, since: datetime) -> bool:
    if not IS_ALLOCATED[task.status]:
        return False
    start = task.pod.status.start_time
    return task.status is not RUNNING or start is None or start > since


class _Capacities:
    """Capacity of nodes, (milli-CPU, bytes), kept between sessions for as long as a node's object stays."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[NodeObject | None, float, float]] = {}

    @classmethod
    def of(cls, ssn: Session) -> _Capacities:
        known = ssn.store.setdefault("usage.capacities", cls())
        assert isinstance(known, _Capacities)
        if len(known._known) > 2 * ssn.table.n:
            known._known.clear()
        return known

    def get(self, node: Node) -> tuple[float, float]:
        known = self._known.get(node.name)
        if known is None or known[0] is not node.object:
            capacity = node.capacity
            known = self._known[node.name] = (node.object, capacity.cpu, capacity.memory)
        return known[1], known[2]


class UsageFilter(NodeFilter):
    """By what was measured alone, so it is constant during a session."""

    def __init__(self, loads: NodeLoads, options: Options, plugin: str) -> None:
        self._plugin = plugin
        self._codes = np.zeros(len(loads.fresh), dtype=np.int64)
        self._codes[loads.fresh & (loads.memory > options.memory_threshold)] = MEMORY_LOADED
        self._codes[loads.fresh & (loads.cpu > options.cpu_threshold)] = CPU_LOADED

    def codes(self, task: Task, rows: IntArray) -> IntArray:
        return self._codes[rows]

    def statuses(self, task: Task, code: int) -> tuple[Status, ...]:
        return (Status(Code.UNRESOLVABLE, _REASONS[code], self._plugin),)


class UsageScorer(NodeScorer):
    def __init__(self, loads: NodeLoads, options: Options) -> None:
        self._loads = loads
        self._options = options

    def scores(self, task: Task, rows: IntArray) -> FloatArray:
        options, loads = self._options, self._loads
        weights = options.cpu_weight + options.memory_weight
        if weights == 0:
            return np.zeros(len(rows))
        cpu = (1 - loads.cpu_used(rows)) * options.cpu_weight
        memory = (1 - loads.memory_used(rows)) * options.memory_weight
        return np.where(loads.fresh[rows], (cpu + memory) / weights * 100 * options.weight, 0.0)
