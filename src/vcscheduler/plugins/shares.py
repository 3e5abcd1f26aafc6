"""Arithmetic that the plugins sharing out resources have in common: dominant shares, and exact "fits" tests.

All tests here are FITS of spec 04 §1.1: only dimensions that are asked for count, ``pods`` never does, and there is no
tolerance. They avoid building vectors, because some run once a task.
"""

from __future__ import annotations

from vcscheduler.model.queue import Queue
from vcscheduler.model.resources import CPU, EPSILON, INFINITY, MAX_FLOAT, MEMORY, PODS, Resources


class DominantShare:
    """``share(v)``: the largest part that ``v`` is of ``whole``, over the dimensions of which ``whole`` has anything
    (``pods`` included); 0 if there is none."""

    __slots__ = ("_cpu", "_memory", "_scalars")

    def __init__(self, whole: Resources) -> None:
        self._cpu = whole.cpu if whole.cpu >= EPSILON else 0.0
        self._memory = whole.memory if whole.memory >= EPSILON else 0.0
        self._scalars = [(n, v) for n, v in sorted(whole.scalar_items()) if v >= EPSILON]

    def __call__(self, v: Resources) -> float:
        share = 0.0
        if self._cpu:
            share = max(share, v.cpu / self._cpu)
        if self._memory:
            share = max(share, v.memory / self._memory)
        held = v.scalars
        if held:
            for n, whole in self._scalars:
                amount = held.get(n)
                if amount:
                    share = max(share, amount / whole)
        return share


def beyond(ask: Resources, limit: Resources, *held: Resources, less: Resources | None = None) -> list[str]:
    """Names in which ``ask`` on top of all of ``held``, with ``less`` given back, is more than ``limit``."""
    over = []
    if ask.cpu > 0 and ask.cpu + sum(h.cpu for h in held) - (less.cpu if less else 0.0) > limit.cpu:
        over.append(CPU)
    if ask.memory > 0 and ask.memory + sum(h.memory for h in held) - (less.memory if less else 0.0) > limit.memory:
        over.append(MEMORY)
    if ask.scalars:
        for n in sorted(ask.scalars):
            amount = ask.scalars[n]
            if n == PODS or not amount > 0:
                continue
            for h in held:
                amount += h.get(n)
            if amount - (less.get(n) if less else 0.0) > limit.get(n):
                over.append(n)
    return over


def within(ask: Resources, limit: Resources, held: Resources) -> bool:
    """Whether ``ask`` on top of ``held`` stays within ``limit``; the same as an empty :func:`beyond`, but faster."""
    if ask.cpu > 0 and held.cpu + ask.cpu > limit.cpu:
        return False
    if ask.memory > 0 and held.memory + ask.memory > limit.memory:
        return False
    if ask.scalars:
        for n, v in ask.scalars.items():
            if n != PODS and v > 0 and held.get(n) + v > limit.get(n):
                return False
    return True


def times_within(ask: Resources, limit: Resources, held: Resources, k: int) -> int:
    """How often ``ask`` can be added to ``held``, one after the other, without exceeding ``limit``; at most ``k``."""
    if k <= 1:
        return k if within(ask, limit, held) else 0
    if ask.cpu > 0:
        k = _times(held.cpu, ask.cpu, limit.cpu, k)
    if ask.memory > 0:
        k = _times(held.memory, ask.memory, limit.memory, k)
    if ask.scalars:
        for n, v in ask.scalars.items():
            if n != PODS and v > 0:
                k = _times(held.get(n), v, limit.get(n), k)
    return k


def _times(held: float, step: float, limit: float, k: int) -> int:
    if held + step * k <= limit:
        return k
    n = max(0, min(k, int((limit - held) // step)))
    # The quotient may be off by one; the sums, being integral, are not.
    while n > 0 and held + step * n > limit:
        n -= 1
    while n < k and held + step * (n + 1) <= limit:
        n += 1
    return n


def real_capability(unreserved: Resources, queue: Queue) -> Resources:
    """The most that a queue can hold: what no guarantee reserves, its own guarantee, bounded by its capability.

    ``unreserved`` is what is left of the whole after all guarantees. A scalar that guarantees use up entirely is not
    listed there and therefore does not bound a queue without capability for it (Quirk, spec 04 §6.2).
    """
    real = unreserved.clone().add(queue.guarantee)
    limit = capability(queue)
    if limit is not None:
        real = bounded(real, limit)
    return real


def capability(queue: Queue) -> Resources | None:
    """``spec.capability``, in which cpu or memory of 0 means no limit; None if unset."""
    if queue.capability is None:
        return None
    limit = queue.capability.clone()
    if limit.cpu <= 0:
        limit.cpu = MAX_FLOAT
    if limit.memory <= 0:
        limit.memory = MAX_FLOAT
    return limit


def bounded(amount: Resources, limit: Resources) -> Resources:
    """``amount``, changed in place: at most ``limit`` in each dimension that ``limit`` lists (MIN_INF)."""
    return amount.min_dimension(limit, INFINITY)
