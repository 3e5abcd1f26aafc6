"""What node objects say, in columns: label values as small integers, taints and cordons by row.

Selectors are evaluated on columns, so a rule costs a few vector operations whatever the number of nodes. A column is
replaced, never changed in place, and only when its content changed: whoever derived something from a column keeps it as
long as the column is the same object.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from vcscheduler.model.nodes import NodeTable
from vcscheduler.objects import Node as NodeObject
from vcscheduler.objects import Taint, Toleration
from vcscheduler.objects.selectors import NodeQuery, NodeTerm, Requirement

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class LabelColumn:
    """One label key over all rows.

    Attributes:
        codes: int64 [rows], place in ``values`` of the row's value; -1 = the node lacks the label or is not in the
            session. As topology domains, these are the domains' numbers.
        values: distinct values; may hold some that no node has any more.
    """

    __slots__ = ("_codes_or_empty", "code_of", "codes", "key", "values")

    def __init__(self, key: str, labels: list[dict[str, str] | None], capacity: int) -> None:
        self.key = key
        self.values: list[str] = []
        self.code_of: dict[str, int] = {}
        self.codes: IntArray = np.full(capacity, -1, dtype=np.int64)
        self._codes_or_empty: IntArray | None = None
        for row, found in enumerate(labels):
            if found is not None and key in found:
                self.codes[row] = self._code(found[key])

    def _code(self, value: str | None) -> int:
        if value is None:
            return -1
        code = self.code_of.get(value)
        if code is None:
            code = self.code_of[value] = len(self.values)
            self.values.append(value)
        return code

    @property
    def domains(self) -> int:
        return len(self.values)

    def updated(self, rows: list[int], labels: list[dict[str, str] | None], capacity: int) -> None:
        codes = self.codes
        if len(codes) != capacity:
            codes = np.full(capacity, -1, dtype=np.int64)
            codes[: len(self.codes)] = self.codes
        for row in rows:
            found = labels[row]
            code = self._code(None if found is None else found.get(self.key))
            if codes[row] != code:
                if codes is self.codes:
                    codes = codes.copy()
                codes[row] = code
        if codes is not self.codes:
            self.codes = codes
            self._codes_or_empty = None

    def codes_or_empty(self) -> tuple[IntArray, int]:
        """As ``codes`` and ``domains``, a missing label read as the empty value (spec 05 §5.8)."""
        if self._codes_or_empty is None:
            empty = self.code_of.get("", len(self.values))
            missing = self.codes < 0
            self._codes_or_empty = np.where(missing, empty, self.codes) if missing.any() else self.codes
        return self._codes_or_empty, len(self.values) + 1

    def matching(self, requirement: Requirement) -> BoolArray:
        operator = requirement.operator
        if operator == "Exists":
            return self.codes >= 0
        if operator == "DoesNotExist":
            return self.codes < 0
        if operator in ("In", "NotIn"):
            wanted = [self.code_of[v] for v in requirement.values if v in self.code_of]
            if len(wanted) == 1:
                found: BoolArray = self.codes == wanted[0]
            elif wanted:
                found = np.isin(self.codes, wanted)
            else:
                found = np.zeros(len(self.codes), dtype=np.bool_)
            return found if operator == "In" else ~found
        table = np.zeros(len(self.values) + 1, dtype=np.bool_)
        for code, value in enumerate(self.values):
            table[code] = requirement.matches({requirement.key: value})
        return table[self.codes]


class NodeColumns:
    """Columns over the node objects of a table, brought up to date by :meth:`refresh`.

    Attributes:
        version: grows when anything changed that a node rule may read. ``cordoned``: bool [rows].
        taint_sets: distinct lists of taints; ``taints``: int64 [rows], place in it.
    """

    def __init__(self, table: NodeTable) -> None:
        self.table = table
        self.version = 0
        self.cordoned = np.zeros(0, dtype=np.bool_)
        self.taints = np.zeros(0, dtype=np.int64)
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        self.itself = np.zeros(0, dtype=np.int64)
        self._taint_code: dict[tuple[Taint, ...], int] = {(): 0}
        self._epoch = -1
        self._objects: list[NodeObject | None] = []
        self._labels: list[dict[str, str] | None] = []
        self._columns: dict[str, LabelColumn] = {}
        self.refresh()

    @property
    def capacity(self) -> int:
        return len(self.table.ready)

    def refresh(self) -> None:
        """Read the node objects that changed since the last call."""
        table = self.table
        if self._epoch == table.epoch and len(self.cordoned) == self.capacity:
            return
        self._epoch = table.epoch
        changed: list[int] = []
        objects, labels = self._objects, self._labels
        objects += [None] * (table.n - len(objects))
        labels += [None] * (table.n - len(labels))
        for row, node in enumerate(table.nodes):
            if node.object is not objects[row]:
                objects[row] = node.object
                changed.append(row)
        if len(self.cordoned) != self.capacity:
            self._resize()
        if not changed:
            return
        relabelled = []
        for row in changed:
            obj = objects[row]
            self._read(row, obj)
            new = None if obj is None else table.nodes[row].labels
            if new != labels[row]:
                # A copy: an object that is edited in place must not look unchanged.
                labels[row] = None if new is None else dict(new)
                relabelled.append(row)
                self.version += 1
        for column in self._columns.values():
            column.updated(relabelled, labels, self.capacity)
            if column.domains > 2 * self.capacity + 64:
                self._columns[column.key] = LabelColumn(column.key, labels, self.capacity)

    def _resize(self) -> None:
        size = self.capacity
        self.version += 1
        self.cordoned = np.concatenate([self.cordoned, np.zeros(size - len(self.cordoned), dtype=np.bool_)])
        self.taints = np.concatenate([self.taints, np.zeros(size - len(self.taints), dtype=np.int64)])
        self.itself = np.arange(size, dtype=np.int64)
        for column in self._columns.values():
            column.updated([], self._labels, size)

    def _read(self, row: int, obj: NodeObject | None) -> None:
        taints = () if obj is None else tuple(obj.spec.taints)
        cordoned = obj is not None and obj.spec.unschedulable
        code = self._taint_code.get(taints)
        if code is None:
            code = self._taint_code[taints] = len(self.taint_sets)
            self.taint_sets.append(taints)
        if self.taints[row] != code or bool(self.cordoned[row]) != cordoned:
            self.taints[row] = code
            self.cordoned[row] = cordoned
            self.version += 1

    def column(self, key: str) -> LabelColumn:
        found = self._columns.get(key)
        if found is None:
            found = self._columns[key] = LabelColumn(key, self._labels, self.capacity)
        return found

    # --- rules over columns -----------------------------------------------------------------------------------

    def matching_labels(self, requirements: Iterable[Requirement]) -> BoolArray:
        mask = np.ones(self.capacity, dtype=np.bool_)
        for requirement in requirements:
            mask &= self.column(requirement.key).matching(requirement)
        return mask

    def matching_term(self, term: NodeTerm) -> BoolArray:
        if not term.labels and not term.names:
            return np.zeros(self.capacity, dtype=np.bool_)
        mask = self.matching_labels(term.labels)
        for requirement in term.names:
            named = np.zeros(self.capacity, dtype=np.bool_)
            for name in requirement.values:
                node = self.table.by_name.get(name)
                if node is not None:
                    named[node.row] = True
            mask &= named if requirement.operator == "In" else ~named
        return mask

    def matching_query(self, query: NodeQuery) -> BoolArray:
        mask = np.zeros(self.capacity, dtype=np.bool_)
        for term in query.terms:
            mask |= self.matching_term(term)
        return mask

    def untolerated(self, tolerations: tuple[Toleration, ...]) -> BoolArray:
        """Rows with a NoSchedule or NoExecute taint that none of the tolerations tolerates."""
        table = np.array(
            [
                any(t.effect in ("NoSchedule", "NoExecute") and not tolerated(t, tolerations) for t in taints)
                for taints in self.taint_sets
            ],
            dtype=np.bool_,
        )
        return table[self.taints]

    def unpreferred(self, tolerations: tuple[Toleration, ...]) -> IntArray:
        """Number of PreferNoSchedule taints that no toleration made for them tolerates (spec 05 §5.6)."""
        own = tuple(t for t in tolerations if t.effect in ("", "PreferNoSchedule"))
        table = np.array(
            [
                sum(t.effect == "PreferNoSchedule" and not tolerated(t, own) for t in taints)
                for taints in self.taint_sets
            ],
            dtype=np.int64,
        )
        return table[self.taints]


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(tolerates(each, taint) for each in tolerations)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Comparison operators of tolerations are gated off upstream (spec 05 §4.3)."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value
