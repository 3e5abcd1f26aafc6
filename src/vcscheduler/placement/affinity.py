"""Inter-pod affinity of one pod to place: counts by domain when it is pre-filtered, and what they mean for nodes
(spec 05 §4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from vcscheduler.model.listers import Listers
from vcscheduler.model.task import Task
from vcscheduler.placement.cluster import ClusterIndex
from vcscheduler.placement.counts import Snapshot
from vcscheduler.placement.rules import (
    BoolArray,
    ConstraintKind,
    DomainConstraint,
    IntArray,
    Reason,
)
from vcscheduler.placement.terms import PodTerm, pod_terms


def namespace_labels(listers: Listers, name: str) -> Mapping[str, str]:
    found = listers.namespaces.get(name)
    return found.metadata.labels if found is not None else {}


def at(values: IntArray, domains: IntArray) -> IntArray:
    """``values`` of the domains, 0 where there is none."""
    if not len(values):
        return np.zeros(len(domains), dtype=np.int64)
    return np.where(domains >= 0, values[domains], 0)


def resolve(terms: tuple[PodTerm, ...], listers: Listers) -> tuple[PodTerm, ...]:
    if any(t.selects_namespaces for t in terms):
        return tuple(t.resolved(listers.namespaces) for t in terms)
    return terms


@dataclass(slots=True)
class _Anti:
    counts: Snapshot
    own: bool


@dataclass(slots=True)
class _Existing:
    """Required anti-affinity that pods hold against the pod to place, over one topology key."""

    domain: IntArray
    domains: int
    counts: list[Snapshot] = field(default_factory=list)
    increment: int = 0

    def total(self) -> IntArray:
        total = self.counts[0].copy() if self.counts else np.zeros(self.domains, dtype=np.int64)
        for each in self.counts[1:]:
            total += each.values
        return total


@dataclass(frozen=True, slots=True)
class DomainPods:
    """Pods by domain: int64 [domains], and each row's domain, int64 [rows], -1 = none. Both may be counted on."""

    domain: IntArray
    values: IntArray

    def at(self, row: int) -> int:
        d = int(self.domain[row])
        return int(self.values[d]) if d >= 0 else 0

    def change(self, row: int, n: int) -> None:
        d = int(self.domain[row])
        if d >= 0:
            self.values[d] += n


@dataclass(frozen=True, slots=True)
class AffinityCounts:
    """A copy of what PreFilter counted: for each topology key of the required affinity, for each required anti-affinity
    term, and for each topology key of what other pods hold against this one."""

    affinity: list[DomainPods]
    anti: list[DomainPods]
    existing: dict[str, DomainPods]
    first_pod: bool


class AffinityState:
    """What PreFilter found for one pod.

    ``first_pod``: the pod matches all its own required affinity terms. ``needed``: whether there is anything to filter;
    otherwise PreFilter answers Skip.
    """

    __slots__ = ("_affinity", "_anti", "_existing", "first_pod", "frozen", "needed")

    def __init__(self, task: Task, cluster: ClusterIndex, listers: Listers) -> None:
        terms = pod_terms(task)
        namespace, labels = task.namespace, task.pod.metadata.labels
        self._affinity: list[Snapshot] = []
        self._anti: list[_Anti] = []
        self._existing: dict[str, _Existing] = {}
        self.first_pod = False
        self.frozen = cluster.holders.frozen_anti
        if terms.affinity:
            wanted = resolve(terms.affinity, listers)
            query = cluster.pods.query(wanted, terminating=True)
            for key in dict.fromkeys(t.topology_key for t in wanted):
                column = cluster.columns.column(key)
                self._affinity.append(cluster.pods.count(query, key, column.codes, column.domains))
            self.first_pod = all(t.matches(namespace, labels, {}) for t in wanted)
        for term in resolve(terms.anti, listers):
            query = cluster.pods.query((term,), terminating=True)
            column = cluster.columns.column(term.topology_key)
            counts = cluster.pods.count(query, term.topology_key, column.codes, column.domains)
            self._anti.append(_Anti(counts, term.matches(namespace, labels, {})))
        if cluster.holders.anti:
            self._count_existing(namespace, labels, cluster, listers)
        if terms.anti:
            self._count_own(terms.anti, namespace, labels, cluster, listers)
        self.needed = bool(terms.affinity or terms.anti or any(e.total().any() for e in self._existing.values()))

    def _count_existing(
        self, namespace: str, labels: Mapping[str, str], cluster: ClusterIndex, listers: Listers
    ) -> None:
        for held in cluster.holders.anti.matching(namespace, labels, namespace_labels(listers, namespace)):
            key = held.term.topology_key
            column = cluster.columns.column(key)
            existing = self._existing.get(key)
            if existing is None:
                existing = self._existing[key] = _Existing(column.codes, column.domains)
            existing.counts.append(held.count(column, self.frozen))

    def _count_own(
        self,
        anti: tuple[PodTerm, ...],
        namespace: str,
        labels: Mapping[str, str],
        cluster: ClusterIndex,
        listers: Listers,
    ) -> None:
        """What the next pod of the same shape would add, once this one is placed."""
        around = namespace_labels(listers, namespace)
        for term, own in zip(anti, self._anti):
            if not term.matches(namespace, labels, around):
                continue
            existing = self._existing.get(term.topology_key)
            if existing is None:
                if own.own:
                    continue  # the pod's own anti-affinity refuses the same nodes, and is asked first
                column = cluster.columns.column(term.topology_key)
                existing = self._existing[term.topology_key] = _Existing(column.codes, column.domains)
            existing.increment += 1

    def codes(self, rows: IntArray) -> IntArray:
        """At most one reason a row: the rule answers with the first that holds."""
        codes = np.zeros(len(rows), dtype=np.int64)
        for existing in self._existing.values():
            codes[at(existing.total(), existing.domain[rows]) > 0] = Reason.EXISTING_ANTI_AFFINITY
        for anti in self._anti:
            codes[at(anti.counts.values, anti.counts.domain[rows]) > 0] = Reason.ANTI_AFFINITY
        if self._affinity:
            codes[~self._near(rows)] = Reason.AFFINITY
        return codes

    def _near(self, rows: IntArray) -> BoolArray:
        labelled = np.ones(len(rows), dtype=np.bool_)
        satisfied = np.ones(len(rows), dtype=np.bool_)
        empty = True
        for counts in self._affinity:
            domains, values = counts.domain[rows], counts.values
            labelled &= domains >= 0
            satisfied &= at(values, domains) > 0
            empty = empty and not values.any()
        return labelled if empty and self.first_pod else labelled & satisfied

    def counts(self) -> AffinityCounts:
        return AffinityCounts(
            [DomainPods(c.domain, c.copy()) for c in self._affinity],
            [DomainPods(a.counts.domain, a.counts.copy()) for a in self._anti],
            {key: DomainPods(e.domain, e.total()) for key, e in self._existing.items()},
            self.first_pod,
        )

    def constraints(self) -> list[DomainConstraint]:
        found = []
        own = int(self.first_pod)
        everywhere = np.ones(len(self.frozen), dtype=np.bool_)
        for counts in self._affinity:
            found.append(
                DomainConstraint(
                    ConstraintKind.AFFINITY,
                    counts.domain,
                    counts.copy(),
                    own,
                    everywhere,
                    first_pod=self.first_pod,
                )
            )
        for anti in self._anti:
            found.append(
                DomainConstraint(
                    ConstraintKind.ANTI,
                    anti.counts.domain,
                    anti.counts.copy(),
                    int(anti.own),
                    everywhere,
                )
            )
        for existing in self._existing.values():
            found.append(
                DomainConstraint(
                    ConstraintKind.EXISTING_ANTI,
                    existing.domain,
                    existing.total(),
                    existing.increment,
                    self.frozen,
                )
            )
        return found
