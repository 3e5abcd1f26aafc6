"""binpack: fuller nodes first, by Volcano's own accounting (spec 05 §6)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from vcscheduler.config import Arguments
from vcscheduler.framework.plugin import Plugin
from vcscheduler.model.nodes import NodeTable
from vcscheduler.model.task import Task
from vcscheduler.placement.rules import FloatArray, IntArray, KernelScores, NodeScorer

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

_PREFIX = "binpack.resources."


class BinpackPlugin(Plugin):
    name = "binpack"
    known_arguments: ClassVar[dict[str, str]] = {
        "binpack.weight": "int",
        "binpack.cpu": "int",
        "binpack.memory": "int",
        "binpack.resources": "str",
        "binpack.resources.*": "int",
    }

    def on_session_open(self, ssn: Session) -> None:
        weight = self.arguments.get_int("binpack.weight", 1)
        if weight != 0:
            ssn.add_scorer(self.name, BinpackScorer(ssn.table, weight, resource_weights(self.arguments)))


def resource_weights(arguments: Arguments) -> dict[str, int]:
    """Resource name -> weight. Negative weights become 1; cpu and memory have arguments of their own."""
    weights: dict[str, int] = {}
    for part in arguments.get_str("binpack.resources", "").split(","):
        name = part.strip()
        if name:
            weights[name] = _weight(arguments, _PREFIX + name)
    weights["cpu"] = _weight(arguments, "binpack.cpu")
    weights["memory"] = _weight(arguments, "binpack.memory")
    return weights


def _weight(arguments: Arguments, key: str) -> int:
    weight = arguments.get_int(key, 1)
    return weight if weight >= 0 else 1


class BinpackScorer(NodeScorer):
    def __init__(self, table: NodeTable, weight: int, weights: dict[str, int]) -> None:
        self._table = table
        self._weight = 100.0 * weight
        self._weights = weights

    def scores(self, task: Task, rows: IntArray) -> FloatArray:
        table = self._table
        total = np.zeros(len(rows))
        overfull = np.zeros(len(rows), dtype=np.bool_)
        weights = 0
        for name in task.resreq.names():
            weight = self._weights.get(name)
            if weight is None:
                continue
            weights += weight
            if weight == 0:
                continue
            d = table.dimension(name)
            capacity = table.allocatable[d, rows]
            filled = task.resreq.get(name) + table.used[d, rows]
            present = capacity != 0
            overfull |= present & (filled > capacity)
            total += np.where(present, filled * weight / np.where(present, capacity, 1.0), 0.0)
        if weights > 0:
            total /= weights
        total *= self._weight
        total[overfull] = 0.0
        return total

    def kernel_of_class(self, task: Task) -> bool:
        return True

    def kin(self, task: Task) -> Hashable:
        return None

    def kin_of_class(self, task: Task) -> bool:
        return True

    def kernel(self, task: Task) -> KernelScores | None:
        table = self._table
        used = [(table.dimension(n), float(self._weights[n])) for n in task.resreq.names() if n in self._weights]
        return KernelScores(binpack_weight=self._weight, binpack=used)
