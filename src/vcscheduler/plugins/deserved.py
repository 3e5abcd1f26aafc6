"""Dividing the cluster between queues by weight: iterative weighted filling (spec 04 §6.2).

Vectorised over queues and dimensions: a matrix of values, and one of booleans for which scalars a vector lists, since
"absent" and 0 differ in the test for having stopped changing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vcscheduler.model.resources import CPU, EPSILON, MEMORY, PODS, Resources

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Claim:
    """What one queue brings to the division."""

    weight: int
    request: Resources
    real_capability: Resources
    guarantee: Resources


def divide(total: Resources, claims: Sequence[Claim]) -> list[Resources]:
    """The deserved vector of each claim.

    In each round what remains is handed out by weight, then cut to what the queue may and wants to have, then raised to
    its guarantee. A queue is done when it has what it requests or no longer changes. A queue that its capability stops
    keeps its weight for one more round, so the others receive the rest in halving steps (Quirk).
    """
    names = _names(total, claims)
    remaining, listed = _values([total], names)[0], _listed([total], names)[0]
    request = _values([c.request for c in claims], names)
    limits = [c.real_capability for c in claims]
    limit = np.where(_listed(limits, names), _values(limits, names), np.inf)
    guarantees = [c.guarantee for c in claims]
    guarantee = _values(guarantees, names)
    guaranteed = _listed(guarantees, names) & (guarantee >= 0)
    weight = np.array([c.weight for c in claims], dtype=np.float64)
    deserved = np.zeros_like(request)
    held = np.zeros_like(guaranteed)
    held[:, :2] = True
    pods = names.index(PODS) if PODS in names else len(names)
    judged = np.arange(len(names)) != pods
    waiting = np.arange(len(claims))
    while len(waiting):
        w = float(weight[waiting].sum())
        if w == 0:
            break
        before, before_held = deserved[waiting], held[waiting]
        now = before + remaining * (weight[waiting, None] / w)
        now_held = before_held | listed
        now = np.minimum(now, limit[waiting])
        now = np.minimum(now, request[waiting])
        now = np.maximum(now, guarantee[waiting])
        now_held |= guaranteed[waiting]
        deserved[waiting], held[waiting] = now, now_held
        wanted = request[waiting]
        satisfied = ((wanted < now) | (np.abs(wanted - now) < EPSILON)).all(axis=1)
        unchanged = (now == before).all(axis=1) & (now_held == before_held).all(axis=1)
        gained = np.maximum(now - before, 0.0).sum(axis=0)
        lost = np.maximum(before - now, 0.0).sum(axis=0)
        old, old_listed = remaining, listed
        remaining = np.maximum((remaining + lost) - gained, 0.0)
        listed = remaining > 0
        listed[:2] = True
        waiting = waiting[~(satisfied | unchanged)]
        if (remaining[judged] < EPSILON).all():
            break
        if (remaining == old).all() and (listed == old_listed).all():
            break
    return [_vector(deserved[i], held[i], names) for i in range(len(claims))]


def _names(total: Resources, claims: Sequence[Claim]) -> list[str]:
    scalars = set(total.scalars or ())
    for c in claims:
        scalars.update(c.guarantee.scalars or ())
        scalars.update(c.request.scalars or ())
    return [CPU, MEMORY, *sorted(scalars)]


def _values(vectors: Sequence[Resources], names: list[str]) -> FloatArray:
    """[vectors, names], 0 for what is not listed."""
    rows = [[v.cpu, v.memory, *((v.scalars or {}).get(n, 0.0) for n in names[2:])] for v in vectors]
    return np.array(rows, dtype=np.float64).reshape(len(vectors), len(names))


def _listed(vectors: Sequence[Resources], names: list[str]) -> BoolArray:
    """[vectors, names], whether a vector lists the name; cpu and memory always are."""
    rows = [[True, True, *(n in (v.scalars or {}) for n in names[2:])] for v in vectors]
    return np.array(rows, dtype=np.bool_).reshape(len(vectors), len(names))


def _vector(values: FloatArray, listed: BoolArray, names: list[str]) -> Resources:
    v: list[float] = values.tolist()
    scalars = {n: v[i] for i, n in enumerate(names) if i > 1 and listed[i]}
    return Resources(v[0], v[1], scalars or None)
