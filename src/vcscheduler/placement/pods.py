"""Index of the pods in the Kubernetes view by label set, and counts of the pods that a query matches, by domain.

Pods of one namespace with equal labels form a set; a query (the terms or the selector of a pod to place) is matched
against sets, once, and each set knows the counts that its pods belong to. Placing a pod therefore costs as much as
there are counts that it belongs to, and a query costs nothing once its counts exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from vcscheduler.model.nodes import NodeTable
from vcscheduler.model.task import Task
from vcscheduler.objects.selectors import Selector
from vcscheduler.placement.counts import DomainCounts, Snapshot
from vcscheduler.placement.terms import PodTerm, TermIndex

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_KEPT_SESSIONS = 16
_FEW = 512


class LabelSet:
    """Pods of one namespace with equal labels, terminating or not. ``rows``: row -> number of them there."""

    __slots__ = ("counts", "labels", "namespace", "rows", "terminating")

    def __init__(self, namespace: str, labels: Mapping[str, str], terminating: bool) -> None:
        self.namespace = namespace
        self.labels = labels
        self.terminating = terminating
        self.rows: dict[int, int] = {}
        self.counts: list[DomainCounts] = []


class PodQuery:
    """Pods that match all of some terms. ``counts`` by what tells one way of counting from another."""

    __slots__ = ("counts", "sets", "terminating", "terms", "used")

    def __init__(self, terms: tuple[PodTerm, ...], terminating: bool) -> None:
        self.terms = terms
        self.terminating = terminating
        self.sets: list[LabelSet] = []
        self.counts: dict[object, DomainCounts] = {}
        self.used = 0

    def matches(self, pods: LabelSet) -> bool:
        if pods.terminating and not self.terminating:
            return False
        # A term of a pod to place has had its namespace selector resolved to names, or selects all.
        return all(t.matches(pods.namespace, pods.labels, {}) for t in self.terms)

    @property
    def selectors(self) -> tuple[Selector, ...]:
        return tuple(t.selector for t in self.terms)


class PodIndex:
    """Listens to a Kubernetes view. Made when the first query comes, then kept from session to session."""

    def __init__(self, table: NodeTable) -> None:
        self._set_of: dict[Task, LabelSet] = {}
        self._sets: dict[object, LabelSet] = {}
        self._sets_by_label: dict[tuple[str, str], dict[LabelSet, None]] = {}
        self._queries: dict[object, PodQuery] = {}
        self._index: TermIndex[PodQuery] = TermIndex()
        self._session = 0
        for node in table.nodes:
            for task in node.tasks.values():
                if task.view_row >= 0:
                    self.pod_added(task, task.view_row)
        table.view.listeners.append(self)

    # --- the view changes -------------------------------------------------------------------------------------

    def pod_added(self, task: Task, row: int) -> None:
        pods = self._set_of[task] = self._set(task)
        pods.rows[row] = pods.rows.get(row, 0) + 1
        for counts in pods.counts:
            counts.add(row, 1)

    def pod_removed(self, task: Task, row: int) -> None:
        pods = self._set_of.pop(task)
        if pods.rows[row] == 1:
            del pods.rows[row]
        else:
            pods.rows[row] -= 1
        for counts in pods.counts:
            counts.add(row, -1)

    def rows_grown(self, rows: int) -> None:
        """Counts are built anew on the longer columns when they are next asked for."""

    def _set(self, task: Task) -> LabelSet:
        meta = task.pod.metadata
        terminating = meta.deletion_timestamp is not None
        key = (meta.namespace, frozenset(meta.labels.items()), terminating)
        found = self._sets.get(key)
        if found is None:
            found = self._sets[key] = LabelSet(meta.namespace, dict(meta.labels), terminating)
            for pair in found.labels.items():
                self._sets_by_label.setdefault(pair, {})[found] = None
            for query in self._index.candidates(found.labels):
                if query.matches(found):
                    query.sets.append(found)
                    found.counts.extend(query.counts.values())
        return found

    # --- queries ----------------------------------------------------------------------------------------------

    def query(self, terms: tuple[PodTerm, ...], *, terminating: bool) -> PodQuery:
        """The pods that match all terms. ``terminating``: whether pods that are being deleted count."""
        # The topology key is no part of which pods match.
        key = (tuple((t.namespaces, t.namespace_selector, t.selector) for t in terms), terminating)
        query = self._queries.get(key)
        if query is None:
            query = self._queries[key] = PodQuery(terms, terminating)
            for pods in self._offered(query):
                if query.matches(pods):
                    query.sets.append(pods)
            self._index.add(query, query.selectors)
        query.used = self._session
        return query

    def _offered(self, query: PodQuery) -> Iterable[LabelSet]:
        """The sets that may match: those under the requirement that fewest satisfy, or all."""
        fewest: list[dict[LabelSet, None]] | None = None
        size = len(self._sets)
        for selector in query.selectors:
            if selector.requirements is None:
                return ()
            for r in selector.requirements:
                if r.operator == "In":
                    places = [self._sets_by_label.get((r.key, v), {}) for v in sorted(r.values)]
                    n = sum(map(len, places))
                    if fewest is None or n < size:
                        fewest, size = places, n
        return self._sets.values() if fewest is None else (pods for place in fewest for pods in place)

    def count(
        self, query: PodQuery, what: object, domain: IntArray, domains: int, mask: BoolArray | None = None
    ) -> Snapshot:
        """The query's pods by domain, now. ``what`` names the way of counting (topology key, which rows count)."""
        query.used = self._session
        counts = query.counts.get(what)
        if counts is None or not counts.fits(domain, mask) or len(counts.counts) < domains:
            new = DomainCounts(domain, domains, mask, (pods.rows for pods in query.sets))
            for pods in query.sets:
                if counts is not None:
                    pods.counts.remove(counts)
                pods.counts.append(new)
            counts = query.counts[what] = new
        return Snapshot(counts)

    # --- between sessions -------------------------------------------------------------------------------------

    def begin_session(self) -> None:
        """Forget logs, and what nobody has asked for in a while."""
        self._session += 1
        for query in self._queries.values():
            for counts in query.counts.values():
                if counts.log:
                    counts.log = []
        if len(self._queries) > _FEW or self._session % _KEPT_SESSIONS == 0:
            oldest = self._session - (2 if len(self._queries) > _FEW else _KEPT_SESSIONS)
            self._forget([(k, q) for k, q in self._queries.items() if q.used < oldest])
        if len(self._sets) > _FEW and len(self._sets) > 2 * len(self._set_of):
            self._pack()

    def _forget(self, queries: list[tuple[object, PodQuery]]) -> None:
        for key, query in queries:
            del self._queries[key]
            self._index.discard(query, query.selectors)
            for pods in query.sets:
                for counts in query.counts.values():
                    pods.counts.remove(counts)

    def _pack(self) -> None:
        """Drop label sets that no pod has any more."""
        self._sets = {key: pods for key, pods in self._sets.items() if pods.rows}
        self._sets_by_label = {}
        for pods in self._sets.values():
            for pair in pods.labels.items():
                self._sets_by_label.setdefault(pair, {})[pods] = None
        for query in self._queries.values():
            query.sets = [pods for pods in query.sets if pods.rows]
