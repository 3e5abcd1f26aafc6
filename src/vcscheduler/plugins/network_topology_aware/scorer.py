"""Scores of nodes: close to the rest of the gang, or, for pods that do not care, where they leave most whole domains
free (spec 06 §A7.5)."""

from __future__ import annotations

import math

import numpy as np

from vcscheduler.model.job import SubJob
from vcscheduler.model.task import Task
from vcscheduler.model.topology import Topology
from vcscheduler.placement.rules import FloatArray, IntArray, KernelScores, NodeScorer
from vcscheduler.plugins.network_topology_aware.books import DomainBooks
from vcscheduler.plugins.network_topology_aware.options import Options


class NetworkScorer(NodeScorer):
    batch = True

    def __init__(self, topology: Topology, books: DomainBooks, options: Options) -> None:
        self._topology = topology
        self._books = books
        self._options = options
        self._tier_weights = _tier_weights(options.fading, topology.tiers[0], topology.top.tier)

    def scores(self, task: Task, rows: IntArray) -> FloatArray:
        sub_job = task.sub_job
        if sub_job is None:
            return np.zeros(len(rows))
        if sub_job.network_topology is None:
            scores = self._normal(task, rows)
        else:
            scores = self._near(sub_job, task.job_allocated_hyper_node, rows)
        return scores * self._options.scale

    def kernel(self, task: Task) -> KernelScores | None:
        """Every placement changes the scores of other nodes too."""
        sub_job = task.sub_job
        normal = sub_job is not None and sub_job.network_topology is None
        if self._options.scale == 0 or sub_job is None or (normal and not self._options.normal_pods):
            return KernelScores()
        return None

    def _near(self, sub_job: SubJob, home: str, rows: IntArray) -> FloatArray:
        """1 in the domain of the lowest tier where the sub-job is, less the further up the network they meet."""
        if not home:
            return np.zeros(len(rows))
        topology = self._topology
        lowest = topology.lowest[rows]
        closeness = np.zeros(len(topology.names) + 1)  # The last one: in no domain of the lowest tier.
        for i in np.unique(lowest).tolist():
            if i >= 0:
                closeness[i] = self._closeness(topology.names[i], home)
        scores = closeness[lowest]
        best = scores == scores.max()
        if np.count_nonzero(best) > 1:
            shares = np.append(self._books.placed(sub_job), 0) / len(sub_job.tasks)
            scores[best] += shares[lowest[best]]
        return scores

    def _closeness(self, domain: str, home: str) -> float:
        if domain == home:
            return 1.0
        topology = self._topology
        meeting = topology.domains.get(topology.common(domain, home))
        least, most = topology.tiers[0], topology.top.tier
        if meeting is None:
            return 0.0
        if least == most:
            return 1.0
        return (most - meeting.tier) / (most - least) if least <= meeting.tier <= most else 0.0

    def _normal(self, task: Task, rows: IntArray) -> FloatArray:
        """How full the domains around the node are, nearer ones counting more. A node that lies in no domain of a tier
        counts as one in a full domain."""
        if not self._options.normal_pods:
            return np.zeros(len(rows))
        packing = np.append(self._books.packing(task.resreq), 1.0)
        total, sum_of_weights = np.zeros(len(rows)), 0.0
        with np.errstate(invalid="ignore"):
            for tier, weight in self._tier_weights:
                total += weight * packing[self._topology.of_tier(tier)[rows]]
                sum_of_weights += weight
            if sum_of_weights <= 0:
                return np.zeros(len(rows))
            return total / sum_of_weights


def _tier_weights(fading: float, least: int, most: int) -> list[tuple[int, float]]:
    """``fading ** (tier - 1)`` for every tier number, also those that no domain has, as long as it counts."""
    weights = []
    for tier in range(least, most + 1):
        weight = _power(fading, tier - 1)
        if weight == 0.0 and tier > 0:
            break
        weights.append((tier, weight))
    return weights


def _power(x: float, n: int) -> float:
    """By squaring, as Go does it, so that equal scores stay equal."""
    if n == 0:
        return 1.0
    if x == 0.0:
        return math.inf if n < 0 else 0.0
    result, square, left = 1.0, x, abs(n)
    while left:
        if left & 1:
            result *= square
        square *= square
        left >>= 1
    return 1.0 / result if n < 0 else result
