"""Scores from how full a node is, in Kubernetes' own accounting (spec 05 §5.3-5.4)."""

from __future__ import annotations

import numpy as np

from vcscheduler.model.kubeview import KubeView
from vcscheduler.model.task import Task
from vcscheduler.placement.rules import FloatArray, IntArray
from vcscheduler.plugins.nodeorder.arithmetic import MAX_SCORE, divide


def _filled(view: KubeView, task: Task, rows: IntArray) -> list[tuple[IntArray, IntArray]]:
    """(capacity, amount with the pod) of cpu and memory; containers without a request count with a default."""
    kube = task.cls.kube
    return [
        (view.allocatable[i, rows], view.nonzero[i, rows] + own)
        for i, own in enumerate((kube.scored_cpu, kube.scored_memory))
    ]


def least_allocated(view: KubeView, task: Task, rows: IntArray) -> IntArray:
    return _weighted(
        [
            (capacity, np.where(amount > capacity, 0, capacity - amount))
            for capacity, amount in _filled(view, task, rows)
        ],
        50,
    )


def most_allocated(view: KubeView, task: Task, rows: IntArray) -> IntArray:
    return _weighted([(capacity, np.minimum(amount, capacity)) for capacity, amount in _filled(view, task, rows)], 1)


def _weighted(parts: list[tuple[IntArray, IntArray]], weight: int) -> IntArray:
    """Mean of ``100 * amount / capacity`` over the resources that the node has."""
    total = np.zeros(len(parts[0][0]), dtype=np.int64)
    weights = np.zeros_like(total)
    for capacity, amount in parts:
        present = capacity != 0
        share = divide(amount * MAX_SCORE, np.where(present, capacity, 1))
        total += np.where(present, share * weight, 0)
        weights += np.where(present, weight, 0)
    return np.where(weights != 0, divide(total, np.where(weights != 0, weights, 1)), 0)


def asks_balance(task: Task) -> bool:
    """Whether balancing says anything about the pod; one that requests nothing is skipped."""
    kube = task.cls.kube
    return bool(kube.cpu or kube.memory or kube.gpu)


def balanced_allocation(view: KubeView, task: Task, rows: IntArray) -> IntArray:
    kube = task.cls.kube
    wanted = [kube.cpu, kube.memory, kube.gpu]
    used = [0, 1, 2] if kube.gpu else [0, 1]
    requested = [view.requested[i, rows] for i in used]
    capacities = [view.allocatable[i, rows] for i in used]
    before = _balance(requested, capacities)
    after = _balance([r + wanted[i] for i, r in zip(used, requested)], capacities)
    return 50 + divide(50 + after - before, 2)


def _balance(amounts: list[IntArray], capacities: list[IntArray]) -> IntArray:
    """100 less the spread of the fractions in use, over the resources that the node has."""
    present = [c != 0 for c in capacities]
    fractions: list[FloatArray] = [
        np.where(p, np.minimum(a / np.where(p, c, 1), 1.0), 0.0) for a, c, p in zip(amounts, capacities, present)
    ]
    n = sum(p.astype(np.int64) for p in present)
    if len(fractions) == 2:
        deviation = np.where(n == 2, np.abs((fractions[0] - fractions[1]) / 2), 0.0)
    else:
        # With two present, the third fraction is 0 by construction and stands aside.
        cpu, memory, gpu = fractions
        first = np.where(present[0], cpu, memory)
        second = np.where(present[2], gpu, memory)
        pair = np.abs((first - second) / 2)
        mean = ((cpu + memory) + gpu) / 3
        squares = ((cpu - mean) * (cpu - mean) + (memory - mean) * (memory - mean)) + (gpu - mean) * (gpu - mean)
        deviation = np.where(n == 3, np.sqrt(squares / 3), np.where(n == 2, pair, 0.0))
    return ((1.0 - deviation) * MAX_SCORE).astype(np.int64)
