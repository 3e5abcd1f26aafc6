"""Soft topology spread, of the pod itself or by default for the pods of a service (spec 05 §5.8)."""

from __future__ import annotations

import math

import numpy as np

from vcscheduler.model.listers import Listers
from vcscheduler.model.task import Task
from vcscheduler.objects import controller_of
from vcscheduler.objects.selectors import Requirement, SelectorError, compile_label_map, compile_label_selector
from vcscheduler.objects.selectors import Selector as PodSelector
from vcscheduler.placement.affinity import at
from vcscheduler.placement.cluster import ClusterIndex
from vcscheduler.placement.rules import FloatArray, IntArray, ScoringFailed
from vcscheduler.placement.spread import SpreadConstraint, count_matching, spread_constraints
from vcscheduler.plugins.nodeorder.arithmetic import MAX_SCORE, divide, rounded

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
_CONTROLLERS = frozenset(("ReplicationController", "ReplicaSet", "StatefulSet"))


class DefaultSelectors:
    """Which pods belong together by default: those of the services and of the controller of a pod."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self._services: dict[str, list[tuple[PodSelector, dict[str, str]]]] | None = None
        #: Nothing in the cluster could select any pod.
        self.none = not (
            listers.services or listers.replication_controllers or listers.replica_sets or listers.stateful_sets
        )

    def of(self, task: Task) -> tuple[Requirement, ...]:
        """Requirements that select a pod's kin; empty = nothing does."""
        listers, meta = self._listers, task.pod.metadata
        owner = controller_of(meta) if meta.owner_references else None
        services = self._services_of(task.namespace)
        if not services and (owner is None or owner.kind not in _CONTROLLERS):
            return ()
        merged: dict[str, str] = {}
        for selector, labels in services:
            if selector.matches(meta.labels):
                merged.update(labels)
        extra: tuple[Requirement, ...] = ()
        if owner is not None:
            key = f"{task.namespace}/{owner.name}"
            kind = (owner.kind, owner.api_version)
            if kind == ("ReplicationController", "v1"):
                controller = listers.replication_controllers.get(key)
                if controller is not None:
                    merged.update(controller.spec.selector)
            elif kind in (("ReplicaSet", "apps/v1"), ("StatefulSet", "apps/v1")):
                sets = listers.replica_sets if owner.kind == "ReplicaSet" else listers.stateful_sets
                found = sets.get(key)
                if found is not None:
                    try:
                        extra = compile_label_selector(found.spec.selector).requirements or ()
                    except SelectorError:
                        extra = ()
        return (*(compile_label_map(merged).requirements or ()), *extra)

    def _services_of(self, namespace: str) -> list[tuple[PodSelector, dict[str, str]]]:
        if self._services is None:
            self._services = {}
            for _, service in sorted(self._listers.services.items()):
                labels = service.spec.selector
                if labels:
                    entry = (compile_label_map(labels), labels)
                    self._services.setdefault(service.metadata.namespace, []).append(entry)
        return self._services.get(namespace, [])


def soft_constraints(task: Task, defaults: DefaultSelectors) -> tuple[tuple[SpreadConstraint, ...], bool]:
    """The constraints to score, and whether a node must carry all their keys (not so for defaults)."""
    if task.cls.pod.spec.topology_spread_constraints:
        own = spread_constraints(task)
        if own.error:
            raise ScoringFailed(own.error)
        return own.soft, True
    requirements = defaults.of(task)
    if not requirements:
        return (), False
    selector = PodSelector(requirements)
    return (SpreadConstraint(3, HOSTNAME, selector), SpreadConstraint(5, ZONE, selector)), False


def topology_spread(
    task: Task, rows: IntArray, cluster: ClusterIndex, constraints: tuple[SpreadConstraint, ...], all_keys: bool
) -> IntArray:
    """Scores over exactly these candidates."""
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    keys = tuple(dict.fromkeys(c.key for c in constraints)) if all_keys else ()
    kept = np.ones(len(rows), dtype=np.bool_)
    for key in keys:
        kept &= cluster.columns.column(key).codes[rows] >= 0
    candidates = rows[kept]
    total: FloatArray = np.zeros(len(candidates))
    for c in constraints:
        counts, size = _counted(c, task, cluster, keys, candidates)
        amount = counts * math.log(size + 2) + float(c.max_skew - 1)
        total += np.where(cluster.columns.column(c.key).codes[candidates] >= 0, amount, 0.0)
    scores = np.zeros(len(rows), dtype=np.int64)
    scores[kept] = _scaled(rounded(total))
    return scores


def _counted(
    c: SpreadConstraint, task: Task, cluster: ClusterIndex, keys: tuple[str, ...], candidates: IntArray
) -> tuple[IntArray, int]:
    """Pods that the constraint counts for each candidate, and the number of domains among the candidates."""
    if c.key == HOSTNAME:
        size = len(candidates)
        if not c.counts_pods:
            return np.zeros(size, dtype=np.int64), size
        query = cluster.pods.query((c.pods_of(task.namespace),), terminating=False)
        itself = cluster.columns.itself
        return cluster.pods.count(query, "node", itself, len(itself)).values[candidates], size
    column = cluster.columns.column(c.key)
    domain, domains = (column.codes, column.domains) if keys else column.codes_or_empty()
    size = len(np.unique(domain[candidates]))
    counts, _ = count_matching(c, task, cluster, keys, domain, domains)
    if counts is None:
        return np.zeros(len(candidates), dtype=np.int64), size
    return at(counts.values, domain[candidates]), size


def _scaled(scores: IntArray) -> IntArray:
    if not len(scores):
        return scores
    smallest, largest = int(scores.min()), int(scores.max())
    if largest == 0:
        return np.full(len(scores), MAX_SCORE, dtype=np.int64)
    return divide(MAX_SCORE * (largest + smallest - scores), largest)
