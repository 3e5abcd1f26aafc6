"""Topology spread constraints: their normal form, and the filter that the hard ones make (spec 05 §4.8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vcscheduler.model.task import Task
from vcscheduler.objects import Pod
from vcscheduler.objects.selectors import NOTHING, Selector, SelectorError, compile_label_selector
from vcscheduler.placement.affinity import at
from vcscheduler.placement.cluster import ClusterIndex
from vcscheduler.placement.counts import Snapshot
from vcscheduler.placement.node_rules import NodeRules
from vcscheduler.placement.rules import (
    BoolArray,
    ConstraintKind,
    DomainConstraint,
    IntArray,
    Reason,
)
from vcscheduler.placement.terms import PodTerm, with_label_keys

HARD = "DoNotSchedule"
SOFT = "ScheduleAnyway"


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    max_skew: int
    key: str
    selector: Selector
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False

    @property
    def counts_pods(self) -> bool:
        """An empty selector counts no pods, although it selects all (Quirk, spec 05 §4.8)."""
        return not self.selector.matches_everything and not self.selector.matches_nothing

    def pods_of(self, namespace: str) -> PodTerm:
        return PodTerm(frozenset((namespace,)), NOTHING, self.selector, self.key)


@dataclass(frozen=True, slots=True)
class SpreadConstraints:
    hard: tuple[SpreadConstraint, ...] = ()
    soft: tuple[SpreadConstraint, ...] = ()
    error: str = ""

    @property
    def keys(self) -> frozenset[str]:
        """Label keys of pods that matter."""
        return frozenset(r.key for c in (*self.hard, *self.soft) for r in c.selector.requirements or ())


NONE = SpreadConstraints()


def spread_constraints(task: Task) -> SpreadConstraints:
    """The constraints that the pod itself has."""
    derived = task.cls.derived
    found = derived.get("spread")
    if found is None:
        own = task.cls.pod.spec.topology_spread_constraints
        if not own:
            found = NONE
        elif any(c.match_label_keys for c in own):
            found = {}
        else:
            found = _compile(task.pod)
        derived["spread"] = found
    if isinstance(found, SpreadConstraints):
        return found
    assert isinstance(found, dict)
    labels = frozenset(task.pod.metadata.labels.items())
    constraints = found.get(labels)
    if constraints is None:
        if len(found) > 4096:
            found.clear()
        constraints = found[labels] = _compile(task.pod)
    return constraints


def _compile(pod: Pod) -> SpreadConstraints:
    hard: list[SpreadConstraint] = []
    soft: list[SpreadConstraint] = []
    for c in pod.spec.topology_spread_constraints:
        try:
            selector = compile_label_selector(c.label_selector)
        except SelectorError as error:
            return SpreadConstraints(error=str(error))
        constraint = SpreadConstraint(
            c.max_skew,
            c.topology_key,
            with_label_keys(selector, pod.metadata.labels, c.match_label_keys),
            1 if c.min_domains is None else c.min_domains,
            (c.node_affinity_policy or "Honor") == "Honor",
            c.node_taints_policy == "Honor",
        )
        (hard if c.when_unsatisfiable == HARD else soft).append(constraint)
    return SpreadConstraints(tuple(hard), tuple(soft))


def count_matching(
    constraint: SpreadConstraint,
    task: Task,
    cluster: ClusterIndex,
    keys: tuple[str, ...],
    domain: IntArray,
    domains: int,
) -> tuple[Snapshot | None, BoolArray]:
    """Pods that a constraint counts, by domain, over the rows that may be looked at (also returned); None = counts
    nothing."""
    rules = NodeRules.of(task.cls)
    honor_affinity = constraint.honor_affinity and rules.asks_affinity
    eligible = cluster.rules.eligible(keys, rules, honor_affinity, constraint.honor_taints)
    if not constraint.counts_pods:
        return None, eligible
    query = cluster.pods.query((constraint.pods_of(task.namespace),), terminating=False)
    what = (
        constraint.key,
        keys,
        (rules.selector, rules.required) if honor_affinity else None,
        rules.tolerations if constraint.honor_taints else None,
    )
    return cluster.pods.count(query, what, domain, domains, eligible), eligible


@dataclass(slots=True)
class _Hard:
    constraint: SpreadConstraint
    domain: IntArray
    counts: Snapshot | None
    exists: BoolArray
    eligible: BoolArray
    self_match: int

    def values(self) -> IntArray:
        return self.counts.values if self.counts is not None else np.zeros(len(self.exists), dtype=np.int64)

    def smallest(self, values: IntArray) -> int:
        found = values[: len(self.exists)][self.exists]
        if not len(found) or len(found) < self.constraint.min_domains:
            return 0
        return int(found.min())


class SpreadState:
    """What PreFilter found for one pod's hard constraints."""

    __slots__ = ("_hard",)

    def __init__(self, task: Task, cluster: ClusterIndex) -> None:
        hard = spread_constraints(task).hard
        keys = tuple(dict.fromkeys(c.key for c in hard))
        self._hard: list[_Hard] = []
        for c in hard:
            column = cluster.columns.column(c.key)
            counts, eligible = count_matching(c, task, cluster, keys, column.codes, column.domains)
            exists = np.zeros(column.domains, dtype=np.bool_)
            exists[column.codes[eligible]] = True
            own = int(c.selector.matches(task.pod.metadata.labels))
            self._hard.append(_Hard(c, column.codes, counts, exists, eligible, own))

    def codes(self, rows: IntArray) -> IntArray:
        """At most one reason a row: the first constraint that refuses answers."""
        codes = np.zeros(len(rows), dtype=np.int64)
        for h in reversed(self._hard):
            values, domains = h.values(), h.domain[rows]
            skew = at(values, domains) + h.self_match - h.smallest(values)
            codes[skew > h.constraint.max_skew] = Reason.SPREAD
            codes[domains < 0] = Reason.SPREAD_LABEL
        return codes

    def constraints(self) -> list[DomainConstraint]:
        return [
            DomainConstraint(
                ConstraintKind.SPREAD,
                h.domain,
                h.counts.copy() if h.counts is not None else np.zeros(len(h.exists), dtype=np.int64),
                h.self_match if h.counts is not None else 0,
                h.eligible,
                max_skew=h.constraint.max_skew,
                self_match=h.self_match,
                min_domains=h.constraint.min_domains,
                exists=h.exists,
            )
            for h in self._hard
        ]
