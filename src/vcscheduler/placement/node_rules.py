"""What a task class asks of node objects: selector, node affinity, tolerations; evaluated once for all alike."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vcscheduler.model.task import TaskClass
from vcscheduler.objects import Toleration
from vcscheduler.objects.selectors import (
    NodeQuery,
    NodeTerm,
    Requirement,
    SelectorError,
    compile_label_map,
    compile_node_selector,
    compile_node_selector_term,
)
from vcscheduler.placement.labels import UNSCHEDULABLE_TAINT, BoolArray, IntArray, NodeColumns, tolerated
from vcscheduler.placement.rules import Reason

Array = NDArray[np.int64] | NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class NodeRules:
    """Of one class. ``required`` is None without required node affinity; ``preferred``: (term, weight), and
    ``preferred_error`` when a preferred term cannot be parsed. ``conflict``: every required term names nodes, and
    none of them can be (spec 05 §4.2)."""

    selector: tuple[Requirement, ...]
    required: NodeQuery | None
    tolerations: tuple[Toleration, ...]
    preferred: tuple[tuple[NodeTerm, int], ...]
    preferred_error: str
    conflict: bool

    @classmethod
    def of(cls, task_class: TaskClass) -> NodeRules:
        found = task_class.derived.get("node rules")
        if found is None:
            found = task_class.derived["node rules"] = _compile(task_class)
        return found  # type: ignore[return-value]

    @property
    def asks_affinity(self) -> bool:
        return bool(self.selector) or self.required is not None


def _compile(task_class: TaskClass) -> NodeRules:
    spec = task_class.pod.spec
    node_affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = None
    preferred: list[tuple[NodeTerm, int]] = []
    error = ""
    conflict = False
    if node_affinity is not None:
        if node_affinity.required is not None:
            required = compile_node_selector(node_affinity.required)
            conflict = _names_no_node([t.match_fields for t in node_affinity.required.node_selector_terms])
        for each in node_affinity.preferred:
            term = each.preference
            if each.weight == 0 or not (term.match_expressions or term.match_fields):
                continue
            try:
                preferred.append((compile_node_selector_term(term), each.weight))
            except SelectorError as problem:
                error = error or str(problem)
    selector = compile_label_map(spec.node_selector).requirements or ()
    return NodeRules(selector, required, tuple(spec.tolerations), tuple(preferred), error, conflict)


def _names_no_node(terms: list[list]) -> bool:  # type: ignore[type-arg]
    for fields in terms:
        names: set[str] | None = None
        for r in fields:
            if r.key == "metadata.name" and r.operator == "In":
                names = set(r.values) if names is None else names & set(r.values)
        if names is None or names:
            return False
    return bool(terms)


class NodeRuleCache:
    """Results by what was asked, each good for one version of the node columns.

    A result that comes out the same after nodes changed is the same array object as before, so what depends on it
    stands as well.
    """

    _LIMIT = 256

    def __init__(self, columns: NodeColumns) -> None:
        self.columns = columns
        self._kept: OrderedDict[object, tuple[int, Array]] = OrderedDict()

    def _get(self, key: object, compute: Callable[[], Array]) -> Array:
        version = self.columns.version
        kept = self._kept.get(key)
        if kept is not None and kept[0] == version:
            self._kept.move_to_end(key)
            return kept[1]
        result = compute()
        if kept is not None and np.array_equal(kept[1], result):
            result = kept[1]
        self._kept[key] = (version, result)
        self._kept.move_to_end(key)
        if len(self._kept) > self._LIMIT:
            self._kept.popitem(last=False)
        return result

    def affinity(self, rules: NodeRules) -> BoolArray:
        """Rows that node selector and required node affinity allow."""

        def compute() -> BoolArray:
            mask = self.columns.matching_labels(rules.selector)
            if rules.required is not None:
                mask &= self.columns.matching_query(rules.required)
            return mask

        return self._get(("affinity", rules.selector, rules.required), compute)  # type: ignore[return-value]

    def untolerated(self, rules: NodeRules) -> BoolArray:
        return self._get(  # type: ignore[return-value]
            ("untolerated", rules.tolerations), lambda: self.columns.untolerated(rules.tolerations)
        )

    def static(self, rules: NodeRules, affinity: bool, taints: bool) -> IntArray:
        """Codes of what node objects decide: the first of cordon, affinity and taints that refuses."""

        def compute() -> IntArray:
            codes = np.zeros(self.columns.capacity, dtype=np.int64)
            if taints:
                codes[self.untolerated(rules)] = Reason.TAINT
            if affinity and rules.asks_affinity:
                codes[~self.affinity(rules)] = Reason.NODE_AFFINITY
            if not tolerated(UNSCHEDULABLE_TAINT, rules.tolerations):
                codes[self.columns.cordoned] = Reason.UNSCHEDULABLE
            return codes

        key = ("static", rules.selector, rules.required, rules.tolerations, affinity, taints)
        return self._get(key, compute)  # type: ignore[return-value]

    def preferred(self, rules: NodeRules) -> IntArray:
        """Sum of the weights of the preferred terms that a row matches."""

        def compute() -> IntArray:
            raw = np.zeros(self.columns.capacity, dtype=np.int64)
            for term, weight in rules.preferred:
                raw[self.columns.matching_term(term)] += weight
            return raw

        return self._get(("preferred", rules.preferred), compute)  # type: ignore[return-value]

    def unpreferred(self, rules: NodeRules) -> IntArray:
        return self._get(  # type: ignore[return-value]
            ("unpreferred", rules.tolerations), lambda: self.columns.unpreferred(rules.tolerations)
        )

    def eligible(self, keys: tuple[str, ...], rules: NodeRules, honor_affinity: bool, honor_taints: bool) -> BoolArray:
        """Session rows that carry all keys and satisfy the inclusion policies of a spread constraint."""

        def compute() -> BoolArray:
            mask = self.columns.table.ready.copy()
            for key in keys:
                mask &= self.columns.column(key).codes >= 0
            if honor_affinity and rules.asks_affinity:
                mask &= self.affinity(rules)
            if honor_taints:
                mask &= ~self.untolerated(rules)
            return mask

        asked = (rules.selector, rules.required) if honor_affinity else None
        key = ("eligible", keys, asked, rules.tolerations if honor_taints else None)
        return self._get(key, compute)  # type: ignore[return-value]
