"""Per-node functions as rules: what a custom plugin writes, in the shape that the search asks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

import numpy as np

from vcscheduler.model.fit import FitFailure, Status
from vcscheduler.model.nodes import Node, NodeTable
from vcscheduler.model.status import Code
from vcscheduler.model.task import Task
from vcscheduler.placement.rules import FloatArray, IntArray, NodeFilter, NodeScorer, ScoringFailed

log = logging.getLogger(__name__)


class HasTable(Protocol):
    """Whoever knows the node table; in practice the session."""

    @property
    def table(self) -> NodeTable: ...


class PerNodeFilter(NodeFilter):
    """Asks ``fn(task, node)`` node by node."""

    def __init__(self, owner: object, plugin: str, fn: Callable[[Task, Node], None]) -> None:
        self._owner: HasTable = owner  # type: ignore[assignment]
        self._plugin = plugin
        self._fn = fn
        self._known: list[tuple[Status, ...]] = [()]
        self._code_of: dict[tuple[Status, ...], int] = {}

    def codes(self, task: Task, rows: IntArray) -> IntArray:
        codes = np.zeros(len(rows), dtype=np.int64)
        nodes = self._owner.table.nodes
        for i, row in enumerate(rows.tolist()):
            try:
                self._fn(task, nodes[row])
            except FitFailure as failure:
                statuses = tuple(s for s in failure.statuses if s.code is not Code.SUCCESS)
                if statuses:
                    codes[i] = self._code(statuses)
            except Exception as error:
                codes[i] = self._code((Status(Code.ERROR, str(error), self._plugin),))
        return codes

    def _code(self, statuses: tuple[Status, ...]) -> int:
        code = self._code_of.get(statuses)
        if code is None:
            code = self._code_of[statuses] = len(self._known)
            self._known.append(statuses)
        return code

    def statuses(self, task: Task, code: int) -> tuple[Status, ...]:
        return self._known[code]


class PerNodeScorer(NodeScorer):
    """Asks ``fn(task, node)`` node by node. Scores that fail or are no number have consequences of their own (spec 02
    §13.4), which whoever wrote the function would look for in vain: they are told of once a session."""

    def __init__(self, owner: object, plugin: str, fn: Callable[[Task, Node], float]) -> None:
        self._owner: HasTable = owner  # type: ignore[assignment]
        self._plugin = plugin
        self._fn = fn
        self._told = False

    def scores(self, task: Task, rows: IntArray) -> FloatArray:
        nodes = self._owner.table.nodes
        scores = np.zeros(len(rows))
        failed = []
        for i, row in enumerate(rows.tolist()):
            try:
                scores[i] = self._fn(task, nodes[row])
            except Exception as error:
                self._tell(f"failed: {type(error).__name__}: {error}; its nodes get no node-order score")
                failed.append(i)
            else:
                if np.isnan(scores[i]):
                    self._tell(f"gives NaN for node {nodes[row].name}; such a node is never chosen")
        if failed:
            raise ScoringFailed("node order failed", np.array(failed, dtype=np.int64))
        return scores

    def _tell(self, what: str) -> None:
        if not self._told:
            self._told = True
            log.warning("plugin %s: its node order function %s", self._plugin, what)


class BatchScorer(NodeScorer):
    """Asks ``fn(task, nodes)`` once; nodes that the answer leaves out score 0."""

    batch = True

    def __init__(self, owner: object, plugin: str, fn: Callable[[Task, list[Node]], dict[str, float]]) -> None:
        self._owner: HasTable = owner  # type: ignore[assignment]
        self._plugin = plugin
        self._fn = fn
        self._told = False

    def scores(self, task: Task, rows: IntArray) -> FloatArray:
        nodes = [self._owner.table.nodes[row] for row in rows.tolist()]
        try:
            answer = self._fn(task, nodes)
        except Exception as error:
            if not self._told:
                self._told = True
                log.warning(
                    "plugin %s: its batch node order function failed: %s: %s; the task gets no node",
                    self._plugin,
                    type(error).__name__,
                    error,
                )
            raise ScoringFailed(str(error)) from error
        return np.array([answer.get(node.name, 0.0) for node in nodes])
