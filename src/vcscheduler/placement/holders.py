"""Terms that pods in the Kubernetes view hold against or for pods to come: who holds them, and in which domains.

A session looks only at holders on nodes that had any when it opened, whatever is placed later (Quirk, spec 05 §2,
"Frozen affinity lists"); for preferred terms, a pod with preferences of its own looks at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from vcscheduler.model.nodes import NodeTable
from vcscheduler.model.task import Task
from vcscheduler.placement.counts import DomainCounts, Snapshot
from vcscheduler.placement.labels import LabelColumn
from vcscheduler.placement.terms import NO_TERMS, PodTerm, PodTerms, TermIndex, pod_terms

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class HeldTerm:
    """One distinct term and its holders: row -> how many, or for preferred terms the sum of their weights."""

    __slots__ = ("frozen", "live", "pods", "rows", "term")

    def __init__(self, term: PodTerm) -> None:
        self.term = term
        self.rows: dict[int, int] = {}
        self.pods = 0
        self.frozen: DomainCounts | None = None
        self.live: DomainCounts | None = None

    def add(self, row: int, n: int, pods: int) -> None:
        self.pods += pods
        total = self.rows.get(row, 0) + n
        if total:
            self.rows[row] = total
        else:
            self.rows.pop(row, None)
        for counts in (self.frozen, self.live):
            if counts is not None:
                counts.add(row, n)

    def count(self, column: LabelColumn, frozen: BoolArray | None) -> Snapshot:
        """Holders by domain of the term's topology key, on the rows marked only, or on all."""
        counts = self.live if frozen is None else self.frozen
        if counts is None or not counts.fits(column.codes, frozen) or len(counts.counts) < column.domains:
            counts = DomainCounts(column.codes, column.domains, frozen, (self.rows,))
            if frozen is None:
                self.live = counts
            else:
                self.frozen = counts
        return Snapshot(counts)

    def forget_log(self) -> None:
        for counts in (self.frozen, self.live):
            if counts is not None:
                counts.log = []


class HeldTerms:
    """The terms of one kind that pods hold."""

    def __init__(self) -> None:
        self._held: dict[PodTerm, HeldTerm] = {}
        self._index: TermIndex[HeldTerm] = TermIndex()

    def __bool__(self) -> bool:
        return bool(self._held)

    def add(self, term: PodTerm, row: int, n: int, pods: int) -> None:
        held = self._held.get(term)
        if held is None:
            held = self._held[term] = HeldTerm(term)
            self._index.add(held, (term.selector,))
        held.add(row, n, pods)
        if not held.pods:
            del self._held[term]
            self._index.discard(held, (term.selector,))

    def matching(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> Iterator[HeldTerm]:
        for held in self._index.candidates(labels):
            if held.term.matches(namespace, labels, namespace_labels):
                yield held

    def begin_session(self) -> None:
        for held in self._held.values():
            held.forget_log()


class TermHolders:
    """Listens to a Kubernetes view.

    Attributes:
        anti: required anti-affinity terms. preferred: preferred terms, of anti-affinity with negative weights.
        frozen_anti, frozen: bool [rows], rows that held required anti-affinity terms, or any pod affinity at all,
            when the session opened. keys: label keys that held terms look at.
    """

    def __init__(self, table: NodeTable) -> None:
        self.anti = HeldTerms()
        self.preferred = HeldTerms()
        size = len(table.ready)
        self._with_anti = np.zeros(size, dtype=np.int64)
        self._with_affinity = np.zeros(size, dtype=np.int64)
        self.frozen_anti = np.zeros(size, dtype=np.bool_)
        self.frozen = np.zeros(size, dtype=np.bool_)
        self._key_uses: dict[str, int] = {}
        self._keys: frozenset[str] | None = frozenset()
        self._terms: dict[Task, PodTerms] = {}
        for task in table.view.with_affinity:
            self.pod_added(task, task.view_row)
        table.view.listeners.append(self)

    @property
    def keys(self) -> frozenset[str]:
        if self._keys is None:
            self._keys = frozenset(self._key_uses)
        return self._keys

    def pod_added(self, task: Task, row: int) -> None:
        if not task.cls.has_affinity:
            return
        terms = pod_terms(task)
        if terms is not NO_TERMS:
            self._terms[task] = terms
            self._account(terms, row, 1)

    def pod_removed(self, task: Task, row: int) -> None:
        # What was added is what is removed, whatever happened to the pod object meanwhile.
        terms = self._terms.pop(task, None)
        if terms is not None:
            self._account(terms, row, -1)

    def rows_grown(self, rows: int) -> None:
        for name in ("_with_anti", "_with_affinity", "frozen_anti", "frozen"):
            old = getattr(self, name)
            new = np.zeros(rows, dtype=old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)

    def _account(self, terms: PodTerms, row: int, n: int) -> None:
        self._with_affinity[row] += n
        if not terms.held:
            return
        if terms.anti:
            self._with_anti[row] += n
            for term in terms.anti:
                self.anti.add(term, row, n, n)
        for term, weight in terms.preferred:
            self.preferred.add(term, row, n * weight, n)
        for key in terms.keys:
            uses = self._key_uses.get(key, 0) + n
            if uses <= 1:
                self._keys = None
            if uses:
                self._key_uses[key] = uses
            else:
                del self._key_uses[key]

    def begin_session(self) -> None:
        self.anti.begin_session()
        self.preferred.begin_session()
        for name, counts in (("frozen_anti", self._with_anti), ("frozen", self._with_affinity)):
            marked = counts > 0
            if not np.array_equal(marked, getattr(self, name)):
                setattr(self, name, marked)
