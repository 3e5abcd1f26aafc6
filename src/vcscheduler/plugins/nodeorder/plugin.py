"""nodeorder: which scorers are on, and their weighted sum (spec 05 §5.1)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from vcscheduler.config import Arguments
from vcscheduler.framework.plugin import Plugin
from vcscheduler.model.listers import Listers
from vcscheduler.model.task import Task
from vcscheduler.placement.cluster import ClusterIndex
from vcscheduler.placement.images import ImageTable
from vcscheduler.placement.node_rules import NodeRules
from vcscheduler.placement.rules import (
    FloatArray,
    IntArray,
    KernelScores,
    NodeScorer,
    Normalised,
    ScoringFailed,
)
from vcscheduler.placement.terms import pod_terms
from vcscheduler.plugins.nodeorder.affinity import concerned, pod_affinity
from vcscheduler.plugins.nodeorder.arithmetic import checked, normalised
from vcscheduler.plugins.nodeorder.image_locality import ImageLocality
from vcscheduler.plugins.nodeorder.resources import (
    asks_balance,
    balanced_allocation,
    least_allocated,
    most_allocated,
)
from vcscheduler.plugins.nodeorder.spread import DefaultSelectors, soft_constraints, topology_spread

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session


@dataclass(frozen=True, slots=True)
class Weights:
    """A weight of 0 takes the scorer out; a negative one subtracts."""

    least: int
    most: int
    balanced: int
    node_affinity: int
    pod_affinity: int
    taints: int
    spread: int
    images: int

    @classmethod
    def read(cls, arguments: Arguments) -> Weights:
        return cls(
            least=arguments.get_int("leastrequested.weight", 1),
            most=arguments.get_int("mostrequested.weight", 0),
            balanced=arguments.get_int("balancedresource.weight", 1),
            node_affinity=arguments.get_int("nodeaffinity.weight", 2),
            pod_affinity=arguments.get_int("podaffinity.weight", 2),
            taints=arguments.get_int("tainttoleration.weight", 3),
            spread=arguments.get_int("podtopologyspread.weight", 2),
            images=arguments.get_int("imagelocality.weight", 1),
        )


class NodeOrderPlugin(Plugin):
    name = "nodeorder"
    known_arguments: ClassVar[dict[str, str]] = {
        "leastrequested.weight": "int",
        "mostrequested.weight": "int",
        "balancedresource.weight": "int",
        "nodeaffinity.weight": "int",
        "podaffinity.weight": "int",
        "tainttoleration.weight": "int",
        "podtopologyspread.weight": "int",
        "imagelocality.weight": "int",
    }

    def on_session_open(self, ssn: Session) -> None:
        weights = Weights.read(self.arguments)
        cluster = ClusterIndex.of(ssn.store, ssn.table, ssn.uid)
        scorers: list[NodeScorer] = [BatchScores(cluster, ssn.listers, weights)]
        if weights.images != 0:
            scorers.insert(0, ImageLocality(ssn.table, ImageTable.of(ssn.store), weights.images, ssn.store))
        ssn.add_scorer(self.name, *scorers)


class BatchScores(NodeScorer):
    """All scorers but image locality, as one sum."""

    batch = True

    def __init__(self, cluster: ClusterIndex, listers: Listers, weights: Weights) -> None:
        self._cluster = cluster
        self._listers = listers
        self._weights = weights
        self._defaults = DefaultSelectors(listers)

    def parts(self) -> dict[str, NodeScorer]:
        names = {
            "least": "LeastAllocated",
            "most": "MostAllocated",
            "balanced": "BalancedAllocation",
            "node_affinity": "NodeAffinity",
            "pod_affinity": "InterPodAffinity",
            "taints": "TaintToleration",
            "spread": "PodTopologySpread",
        }
        nothing = Weights(**{each.name: 0 for each in fields(Weights)})
        return {
            title: BatchScores(self._cluster, self._listers, replace(nothing, **{name: weight}))
            for name, title in names.items()
            if (weight := getattr(self._weights, name))
        }

    def scores(self, task: Task, rows: IntArray) -> FloatArray:
        weights, cluster, view = self._weights, self._cluster, self._cluster.view
        total = np.zeros(len(rows), dtype=np.int64)
        if weights.least:
            total += weights.least * checked(least_allocated(view, task, rows), "LeastAllocated")
        if weights.most:
            total += weights.most * checked(most_allocated(view, task, rows), "MostAllocated")
        if weights.balanced and asks_balance(task):
            total += weights.balanced * checked(balanced_allocation(view, task, rows), "BalancedAllocation")
        for each in self._normalised(task):
            scores = normalised(each.raw[rows], reverse=each.reverse)
            total += each.weight * checked(scores, "TaintToleration" if each.reverse else "NodeAffinity")
        if weights.pod_affinity and concerned(task, cluster, self._listers):
            scores = pod_affinity(task, rows, cluster, self._listers)
            total += weights.pod_affinity * checked(scores, "InterPodAffinity")
        if weights.spread:
            constraints, all_keys = soft_constraints(task, self._defaults)
            if constraints:
                scores = topology_spread(task, rows, cluster, constraints, all_keys)
                total += weights.spread * checked(scores, "PodTopologySpread")
        return total.astype(np.float64)

    def _normalised(self, task: Task) -> list[Normalised]:
        """Scores of node objects alone, to be scaled over the candidates."""
        weights, rules = self._weights, NodeRules.of(task.cls)
        found = []
        if weights.node_affinity:
            if rules.preferred_error:
                raise ScoringFailed(rules.preferred_error)
            if rules.preferred:
                raw = self._cluster.rules.preferred(rules)
                found.append(Normalised(raw, weights.node_affinity, reverse=False))
        if weights.taints:
            raw = self._cluster.rules.unpreferred(rules)
            found.append(Normalised(raw, weights.taints, reverse=True))
        return found

    def kernel(self, task: Task) -> KernelScores | None:
        weights = self._weights
        if weights.pod_affinity and concerned(task, self._cluster, self._listers):
            return None
        try:
            if weights.spread and soft_constraints(task, self._defaults)[0]:
                return None
            normalised_scores = self._normalised(task)
        except ScoringFailed:
            return None
        if any(weight < 0 for _, weight in NodeRules.of(task.cls).preferred):
            return None  # may be out of range, which only the scorer itself reports
        return KernelScores(
            least=weights.least,
            most=weights.most,
            balanced=weights.balanced if asks_balance(task) else 0,
            normalised=normalised_scores,
        )

    def kernel_of_class(self, task: Task) -> bool:
        return not self._cluster.holders.preferred and (
            bool(task.cls.pod.spec.topology_spread_constraints) or self._defaults.none
        )

    def kin_of_class(self, task: Task) -> bool:
        return self.kernel_of_class(task) and not pod_terms(task).keys

    def kin(self, task: Task) -> Hashable:
        """Tasks of one class and namespace with equal kin are the same to this scorer, labels or not."""
        keys = pod_terms(task).keys | self._cluster.holders.keys
        labels = task.pod.metadata.labels
        own = bool(task.cls.pod.spec.topology_spread_constraints)
        return (
            () if own or not self._weights.spread else self._defaults.of(task),
            tuple(labels.get(k) for k in sorted(keys)),
        )
