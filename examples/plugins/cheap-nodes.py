"""cheap-nodes: prefer the nodes with the lower price, and let a pod say what it is willing to pay.

The vectorised style: rules that answer for many nodes at once, from a column that is made once and kept for as long as
no node object changes.

    tiers:
    - plugins:
      - name: cheap-nodes
        arguments: {label: example.com/price-per-hour, weight: 2, limits: true}

The cheapest node scores ``100 * weight``, the dearest 0, a node without a price 0. With ``limits`` a pod with the
annotation ``example.com/max-price`` goes only to nodes that cost no more; nodes without a price are refused to it.

The score depends on the node alone, so it is also offered to the compiled kernels: whole gangs are then placed in one
call. A filter beside that of ``predicates`` ends that (each task is searched for by itself), so it is registered only
when asked for.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from vcscheduler.config import Arguments
from vcscheduler.framework.plugin import Plugin
from vcscheduler.framework.session import Session
from vcscheduler.model.fit import Status
from vcscheduler.model.nodes import NodeTable
from vcscheduler.model.status import Code
from vcscheduler.model.task import Task
from vcscheduler.placement.rules import FloatArray, IntArray, KernelScores, NodeFilter, NodeScorer

LIMIT_ANNOTATION = "example.com/max-price"
TOO_DEAR, NO_PRICE, BAD_LIMIT = 1, 2, 3
REASONS = {
    TOO_DEAR: "node(s) cost more than the pod's limit",
    NO_PRICE: "node(s) had no price",
    BAD_LIMIT: f"the pod's {LIMIT_ANNOTATION} is not a number",
}


class CheapNodes(Plugin):
    name = "cheap-nodes"

    def on_session_open(self, ssn: Session) -> None:
        label = self.arguments.get_str("label", "example.com/price-per-hour")
        weight = self.arguments.get_int("weight", 1)
        # The column outlives the session; `epoch` grows with every change of a node object.
        prices = ssn.store.get(self.name)
        if not isinstance(prices, Prices) or prices.made_of != (label, weight, ssn.table.epoch):
            prices = ssn.store[self.name] = Prices(ssn.table, label, weight)
        ssn.add_scorer(self.name, PriceScorer(prices))
        if self.arguments.get_bool("limits", False):
            ssn.add_filter(self.name, PriceLimit(prices, self.name))


class Prices:
    """``price``: float64 [rows], NaN = none. ``score``: int64 [rows]."""

    def __init__(self, table: NodeTable, label: str, weight: int) -> None:
        self.made_of = (label, weight, table.epoch)
        self.price = np.full(table.n, np.nan)
        for node in table:
            self.price[node.row] = number(node.labels.get(label, ""))
        known = self.price[~np.isnan(self.price)]
        span = known.max() - known.min() if len(known) else 0.0
        if span > 0.0:
            relative = (known.max() - self.price) / span
        else:
            relative = np.where(np.isnan(self.price), 0.0, 1.0)
        # Whole points: sums of whole numbers are exact, in whichever order plugins are added up.
        self.score: IntArray = np.rint(100.0 * np.nan_to_num(relative)).astype(np.int64) * weight


class PriceScorer(NodeScorer):
    def __init__(self, prices: Prices) -> None:
        self._prices = prices

    def scores(self, task: Task, rows: IntArray) -> FloatArray:
        return self._prices.score[rows].astype(np.float64)

    # The rest is for speed only. Without it the answers are the same.

    def kernel(self, task: Task) -> KernelScores | None:
        return KernelScores(node_constant=self._prices.score)

    def kernel_of_class(self, task: Task) -> bool:
        return True

    def kin(self, task: Task) -> Hashable:
        return None


class PriceLimit(NodeFilter):
    def __init__(self, prices: Prices, plugin: str) -> None:
        self._prices = prices
        self._plugin = plugin

    def codes(self, task: Task, rows: IntArray) -> IntArray:
        text = task.pod.metadata.annotations.get(LIMIT_ANNOTATION)
        if text is None:
            return np.zeros(len(rows), dtype=np.int64)
        limit = number(text)
        if np.isnan(limit):
            return np.full(len(rows), BAD_LIMIT, dtype=np.int64)
        price = self._prices.price[rows]
        return np.where(np.isnan(price), NO_PRICE, np.where(price > limit, TOO_DEAR, 0))

    def statuses(self, task: Task, code: int) -> tuple[Status, ...]:
        return (Status(Code.UNRESOLVABLE, REASONS[code], self._plugin),)


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def New(arguments: Arguments) -> CheapNodes:
    return CheapNodes(arguments)
