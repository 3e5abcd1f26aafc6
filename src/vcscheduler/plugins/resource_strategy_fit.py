"""resource-strategy-fit: a strategy by resource (spread or pack), scarce resources kept free, and room kept in
proportion to what is rare (spec 05 §7)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import msgspec
import numpy as np

from vcscheduler.framework.plugin import Plugin
from vcscheduler.model.fit import Status
from vcscheduler.model.nodes import NodeTable
from vcscheduler.model.status import Code
from vcscheduler.model.task import Task
from vcscheduler.placement.rules import BoolArray, FloatArray, IntArray, NodeFilter, NodeScorer

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

LEAST = "LeastAllocated"
MOST = "MostAllocated"
TYPE_ANNOTATION = "volcano.sh/resource-strategy-scoring-type"
WEIGHT_ANNOTATION = "volcano.sh/resource-strategy-weight"


class _ResourceType(msgspec.Struct):
    type: str = ""
    weight: int = 0


class _Sra(msgspec.Struct, rename="camel"):
    enable: bool = False
    resources: str = ""
    weight: int = 0
    resource_weight: dict[str, int] = msgspec.field(default_factory=dict)


class _Proportional(msgspec.Struct, rename="camel"):
    enable: bool = False
    resources: str = ""
    resource_proportion: dict[str, float] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Strategy:
    type: str
    weight: int


class Strategies:
    """Strategy by resource name; names may end with a wildcard, of which the longest prefix wins."""

    def __init__(self, given: dict[str, _ResourceType]) -> None:
        self._exact: dict[str, Strategy] = {}
        self._prefixes: list[tuple[str, Strategy]] = []
        if not given:
            self._exact = {"cpu": Strategy(LEAST, 1), "memory": Strategy(LEAST, 1)}
        for name, entry in given.items():
            strategy = Strategy(
                entry.type if entry.type in (LEAST, MOST) else LEAST, entry.weight if entry.weight > 0 else 1
            )
            if "*" not in name:
                self._exact[name] = strategy
            elif name.count("*") == 1 and name.endswith("*") and len(name) > 1:
                self._prefixes.append((name[:-1], strategy))
        self._prefixes.sort(key=lambda p: -len(p[0]))

    def of(self, name: str) -> Strategy | None:
        found = self._exact.get(name)
        if found is not None:
            return found
        return next((s for prefix, s in self._prefixes if name.startswith(prefix)), None)


class ResourceStrategyFitPlugin(Plugin):
    name = "resource-strategy-fit"
    known_arguments: ClassVar[dict[str, str]] = {
        "resourceStrategyFitWeight": "int",
        "resources": "any",
        "sra": "any",
        "proportional": "any",
    }

    def on_session_open(self, ssn: Session) -> None:
        arguments = self.arguments
        weight = arguments.decode("resourceStrategyFitWeight", int, 10)
        strategies = Strategies(arguments.decode("resources", dict[str, _ResourceType], {}))
        sra = arguments.decode("sra", _Sra, _Sra())
        scarce = _scarce(sra) if sra.enable and sra.weight > 0 else None
        fit = (10 if weight < 0 else weight, strategies)
        if fit[0] > 0 or scarce is not None:
            ssn.add_scorer(self.name, StrategyScorer(ssn.table, fit[0], strategies, scarce, sra.weight))
        proportional = arguments.decode("proportional", _Proportional, _Proportional())
        if proportional.enable:
            ssn.add_filter(self.name, ProportionalFilter(ssn.table, proportional, self.name))


def _names(text: str) -> list[str]:
    return [n for n in (part.strip() for part in text.split(",")) if n]


def _scarce(sra: _Sra) -> list[tuple[str, int]]:
    """(name, weight) as listed, repetitions included."""
    found = []
    for name in _names(sra.resources):
        weight = sra.resource_weight.get(name, 1)
        found.append((name, 1 if weight < 0 else weight))
    return found


class StrategyScorer(NodeScorer):
    """Strategy score plus scarce resource avoidance: one node order."""

    def __init__(
        self,
        table: NodeTable,
        weight: int,
        strategies: Strategies,
        scarce: list[tuple[str, int]] | None,
        scarce_weight: int,
    ) -> None:
        self._table = table
        self._weight = weight
        self._strategies = strategies
        self._scarce = scarce
        self._scarce_weight = scarce_weight

    def scores(self, task: Task, rows: IntArray) -> FloatArray:
        total = np.zeros(len(rows))
        if self._weight > 0:
            total = self._strategy(task, rows)
        if self._scarce is not None:
            total = total + self._avoidance(task, rows, self._scarce)
        return total

    def _wanted(self, task: Task) -> list[tuple[str, Strategy]] | None:
        """Strategy by requested resource, from the pod's annotations if it has any; None = they are unusable."""
        annotations = task.pod.metadata.annotations
        kind = annotations.get(TYPE_ANNOTATION, "")
        if not kind:
            pairs = [(n, self._strategies.of(n)) for n in task.resreq.names()]
            return [(n, s) for n, s in pairs if s is not None]
        weights = _weights(annotations.get(WEIGHT_ANNOTATION, ""))
        if weights is None:
            return None
        return [(n, Strategy(kind, weights[n])) for n in task.resreq.names() if n in weights]

    def _strategy(self, task: Task, rows: IntArray) -> FloatArray:
        total = np.zeros(len(rows))
        wanted = self._wanted(task)
        if wanted is None:
            return total
        table = self._table
        overfull = np.zeros(len(rows), dtype=np.bool_)
        weights = 0
        for name, strategy in wanted:
            weights += strategy.weight
            if strategy.weight == 0:
                continue
            d = table.dimension(name)
            capacity = table.allocatable[d, rows]
            filled = task.resreq.get(name) + table.used[d, rows]
            present = capacity != 0
            if strategy.type in (LEAST, MOST):
                overfull |= present & (filled > capacity)
                amount = filled if strategy.type == MOST else capacity - filled
                total += np.where(present, amount * strategy.weight / np.where(present, capacity, 1.0), 0.0)
        if weights > 0:
            total /= weights
        total *= 100 * self._weight
        total[overfull] = 0.0
        return total

    def _avoidance(self, task: Task, rows: IntArray, scarce: list[tuple[str, int]]) -> FloatArray:
        table = self._table
        whole = sum(weight for _, weight in scarce)
        if whole == 0:
            return np.zeros(len(rows))
        held = np.zeros(len(rows), dtype=np.int64)
        for name, weight in dict(scarce).items():
            held += np.where(table.allocatable[table.dimension(name), rows] > 0, weight, 0)
        scores: FloatArray = (1 - held / whole) * (100 * self._scarce_weight)
        lacking: BoolArray = np.zeros(len(rows), dtype=np.bool_)
        for name in task.resreq.names():
            lacking |= table.allocatable[table.dimension(name), rows] == 0
        scores[lacking] = 0.0
        return scores


def _weights(text: str) -> dict[str, int] | None:
    try:
        return msgspec.convert(json.loads(text), dict[str, int])
    except (ValueError, msgspec.ValidationError):
        return None


class ProportionalFilter(NodeFilter):
    """Keeps cpu and memory free in proportion to the idle rare resources of a node, from tasks that use none."""

    def __init__(self, table: NodeTable, given: _Proportional, plugin: str) -> None:
        self._table = table
        self._plugin = plugin
        self._rates: list[tuple[str, float, float]] = []
        for name in sorted(set(_names(given.resources))):
            cpu = given.resource_proportion.get(f"{name}.cpu", 1.0)
            memory = given.resource_proportion.get(f"{name}.memory", 1.0)
            self._rates.append((name, cpu if cpu >= 0 else 1.0, memory if memory >= 0 else 1.0))

    def codes(self, task: Task, rows: IntArray) -> IntArray:
        codes = np.zeros(len(rows), dtype=np.int64)
        if any(task.resreq.get(name) > 0 for name, _, _ in self._rates):
            return codes
        table = self._table
        cpu = table.idle[0, rows] - task.resreq.cpu
        memory = table.idle[1, rows] - task.resreq.memory
        for code, (name, cpu_rate, memory_rate) in reversed(list(enumerate(self._rates, 1))):
            d = table.dimension(name)
            idle = table.idle[d, rows]
            # A node that never had the resource keeps nothing, not even out of an overcommitted idle.
            present = (table.allocatable[d, rows] != 0) | (idle != 0)
            short = (cpu < idle * cpu_rate) | (memory < idle * memory_rate * 1_000_000)
            codes[present & short] = code
        return codes

    def statuses(self, task: Task, code: int) -> tuple[Status, ...]:
        name = self._rates[code - 1][0]
        return (Status(Code.UNRESOLVABLE, f"proportional of resource {name} check failed", self._plugin),)
