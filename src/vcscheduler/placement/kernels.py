"""Compiled inner loops: evaluate rows for one task class, and place a run of equal tasks one after the other.

``place_run`` serves classes whose score of a row depends on that row alone: scores sit in blocks, each with its best
row, so a step looks at one block and at the list of blocks, not at all nodes. ``place_scan`` serves rules that count
pods by topology domain and scores that are scaled over the candidates: it looks at every row in every step.

Both give what placing the tasks one by one gives. The NumPy search in ``search.py`` is their twin; tests hold them
equal. No fast-math: the operations and their order are those of the specs (spec 05 §5-6), so ties stay ties.

Arrays are passed one by one, although they are many: in tuples they would cost ``place_scan`` a third of its speed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from vcscheduler.placement.rules import BoolArray, ConstraintKind, FloatArray, IntArray, Reason

F = TypeVar("F", bound=Callable[..., Any])


def compiled(f: F) -> F:
    try:
        return cast(F, numba.njit(cache=True, nogil=True)(f))
    except RuntimeError:
        # No folder for its cache can be written, as with a read-only file system: compiled anew by every process.
        return cast(F, numba.njit(nogil=True)(f))


# Places in the ``figures`` array of a class, all integral.
SCORED_CPU, SCORED_MEMORY, CPU, MEMORY, GPU, NONZERO_CPU, NONZERO_MEMORY = range(7)
LEAST, MOST, BALANCED, CHECK_PODS, EXCLUSIVE, LATER = range(7, 13)
FIGURES = 13

#: A row that some search of this attempt found not to fit; the lower bits are those of Reason.
SEEN = 1 << 40

_AFFINITY = int(ConstraintKind.AFFINITY)
_ANTI = int(ConstraintKind.ANTI)
_EXISTING = int(ConstraintKind.EXISTING_ANTI)
_R_AFFINITY = int(Reason.AFFINITY)
_R_ANTI = int(Reason.ANTI_AFFINITY)
_R_EXISTING = int(Reason.EXISTING_ANTI_AFFINITY)
_R_SPREAD_LABEL = int(Reason.SPREAD_LABEL)
_R_SPREAD = int(Reason.SPREAD)


@compiled
def _fits(
    i: int,
    later: bool,
    dims: IntArray,
    amounts: FloatArray,
    idle: FloatArray,
    releasing: FloatArray,
    pipelined: FloatArray,
) -> bool:
    """Request <= future idle and, unless ``later``, <= idle, with the tolerance of a tenth."""
    for j in range(dims.shape[0]):
        d = dims[j]
        x = amounts[j]
        free = idle[d, i]
        if not later and not (x < free or abs(x - free) < 0.1):
            return False
        future = free + releasing[d, i] - pipelined[d, i]
        if not (x < future or abs(x - future) < 0.1):
            return False
    return True


@compiled
def shortage(
    rows: IntArray,
    later: bool,
    dims: IntArray,
    amounts: FloatArray,
    idle: FloatArray,
    releasing: FloatArray,
    pipelined: FloatArray,
) -> IntArray:
    """int64 of the shape of ``rows``: 0 where a request fits what is idle (``later``: will be idle), else 1 + the first
    dimension that is short; tolerance as in :func:`_fits`."""
    result = np.zeros(rows.shape[0], dtype=np.int64)
    for k in range(rows.shape[0]):
        i = rows[k]
        for j in range(dims.shape[0]):
            d = dims[j]
            free = idle[d, i]
            if later:
                free = free + releasing[d, i] - pipelined[d, i]
            if not (amounts[j] < free or abs(amounts[j] - free) < 0.1):
                result[k] = d + 1
                break
    return result


@compiled
def best_of(rows: IntArray, scores: FloatArray, rank: IntArray, skip: BoolArray) -> int:
    """The row of highest score, the first by rank of several, that is not to be skipped; -1 if there is none.
    ``scores``, ``rank`` and ``skip`` go by row."""
    top = -1
    for k in range(rows.shape[0]):
        i = rows[k]
        if not skip[i] and (top < 0 or scores[i] > scores[top] or (scores[i] == scores[top] and rank[i] < rank[top])):
            top = i
    return top


@compiled
def next_of(rows: IntArray, skip: BoolArray, start: int) -> int:
    """The first position from ``start`` on whose row is not to be skipped; the number of rows if there is none."""
    at = start
    while at < rows.shape[0] and skip[rows[at]]:
        at += 1
    return at


@compiled
def _spread_of(used0: float, used1: float, used2: float, cap0: int, cap1: int, cap2: int, gpu: bool) -> int:
    """100 x (1 - deviation of the used fractions), cut to a whole number (spec 05 §5.4)."""
    n = 0
    f0 = f1 = f2 = 0.0
    if cap0 > 0:
        f0 = min(1.0, used0 / cap0)
        n += 1
    if cap1 > 0:
        f1 = min(1.0, used1 / cap1)
        n += 1
    if gpu and cap2 > 0:
        f2 = min(1.0, used2 / cap2)
        n += 1
    std = 0.0
    if n == 2:
        if not (gpu and cap2 > 0):
            std = abs(f0 - f1) / 2.0
        elif cap1 > 0:
            std = abs(f1 - f2) / 2.0
        else:
            std = abs(f0 - f2) / 2.0
    elif n == 3:
        mean = (f0 + f1 + f2) / 3.0
        std = np.sqrt(((f0 - mean) * (f0 - mean) + (f1 - mean) * (f1 - mean) + (f2 - mean) * (f2 - mean)) / 3.0)
    return int((1.0 - std) * 100.0)


@compiled
def _batch_score(i: int, figures: IntArray, allocatable: IntArray, requested: IntArray, nonzero: IntArray) -> int:
    """Least, most and balanced allocation with their weights (spec 05 §5.3-5.4)."""
    total = 0
    cap0 = allocatable[0, i]
    cap1 = allocatable[1, i]
    if figures[LEAST] != 0 or figures[MOST] != 0:
        req0 = nonzero[0, i] + figures[SCORED_CPU]
        req1 = nonzero[1, i] + figures[SCORED_MEMORY]
        if figures[LEAST] != 0:
            score = 0
            weight = 0
            if cap0 > 0:
                weight += 50
                if req0 <= cap0:
                    score += (cap0 - req0) * 100 // cap0 * 50
            if cap1 > 0:
                weight += 50
                if req1 <= cap1:
                    score += (cap1 - req1) * 100 // cap1 * 50
            if weight > 0:
                total += score // weight * figures[LEAST]
        if figures[MOST] != 0:
            score = 0
            weight = 0
            if cap0 > 0:
                weight += 1
                score += min(req0, cap0) * 100 // cap0
            if cap1 > 0:
                weight += 1
                score += min(req1, cap1) * 100 // cap1
            if weight > 0:
                total += score // weight * figures[MOST]
    if figures[BALANCED] != 0 and (figures[CPU] > 0 or figures[MEMORY] > 0 or figures[GPU] > 0):
        gpu = figures[GPU] > 0
        cap2 = allocatable[2, i]
        r0 = requested[0, i]
        r1 = requested[1, i]
        r2 = requested[2, i]
        after = _spread_of(
            float(r0 + figures[CPU]), float(r1 + figures[MEMORY]), float(r2 + figures[GPU]), cap0, cap1, cap2, gpu
        )
        before = _spread_of(float(r0), float(r1), float(r2), cap0, cap1, cap2, gpu)
        change = 50 + after - before
        half = change // 2 if change >= 0 else -((-change) // 2)
        total += (50 + half) * figures[BALANCED]
    return total


@compiled
def _binpack_score(
    i: int,
    dims: IntArray,
    requests: FloatArray,
    weights: FloatArray,
    weight: float,
    used: FloatArray,
    allocatable: FloatArray,
) -> float:
    """Spec 05 §6; ``weight`` is 100 x binpack.weight, 0 = the plugin does not score."""
    if weight == 0.0:
        return 0.0
    score = 0.0
    total = 0.0
    for j in range(dims.shape[0]):
        w = weights[j]
        cap = allocatable[dims[j], i]
        total += w
        if cap == 0.0 or w == 0.0:
            continue
        filled = requests[j] + used[dims[j], i]
        if filled > cap:
            return 0.0
        score += filled * w / cap
    if total > 0.0:
        score /= total
    return score * weight


@compiled
def evaluate(
    rows: IntArray,
    dims: IntArray,
    amounts: FloatArray,
    figures: IntArray,
    static: IntArray,
    node_constant: IntArray,
    batch_constant: IntArray,
    binpack_dims: IntArray,
    binpack_requests: FloatArray,
    binpack_weights: FloatArray,
    binpack_weight: float,
    ready: BoolArray,
    idle: FloatArray,
    releasing: FloatArray,
    pipelined: FloatArray,
    used: FloatArray,
    allocatable: FloatArray,
    pods: IntArray,
    max_pods: IntArray,
    kube_allocatable: IntArray,
    requested: IntArray,
    nonzero: IntArray,
    ok: BoolArray,
    node_part: FloatArray,
    batch_part: FloatArray,
    total: FloatArray,
) -> None:
    """For each of the rows: ``ok`` = fits on what is idle now (a class of LATER: on what will be) by everything that
    concerns the row alone; ``total`` = its score without what is scaled over the candidates (-inf if it does not fit),
    the sum of node and batch part."""
    later = figures[LATER] != 0
    for k in range(rows.shape[0]):
        i = rows[k]
        fits = ready[i] and static[i] == 0 and (figures[CHECK_PODS] == 0 or pods[i] < max_pods[i])
        fits = fits and _fits(i, later, dims, amounts, idle, releasing, pipelined)
        ok[i] = fits
        if fits:
            node = float(node_constant[i]) + _binpack_score(
                i, binpack_dims, binpack_requests, binpack_weights, binpack_weight, used, allocatable
            )
            batch = _batch_score(i, figures, kube_allocatable, requested, nonzero) + batch_constant[i]
            node_part[i] = node
            batch_part[i] = float(batch)
            total[i] = node + float(batch)
        else:
            total[i] = -np.inf


@compiled
def _best_of_block(b: int, size: int, n: int, total: FloatArray, rank: IntArray, best: IntArray) -> None:
    start = b * size
    found = start
    for i in range(start + 1, min(start + size, n)):
        if total[i] > total[found] or (total[i] == total[found] and rank[i] < rank[found]):
            found = i
    best[b] = found


@compiled
def best_of_blocks(rows: IntArray, size: int, n: int, total: FloatArray, rank: IntArray, best: IntArray) -> None:
    """Bring up to date the best row of every block that one of the rows is in."""
    last = -1
    for k in range(rows.shape[0]):
        b = rows[k] // size
        if b != last:
            _best_of_block(b, size, n, total, rank, best)
            last = b


@compiled
def _occupy(
    i: int,
    dims: IntArray,
    amounts: FloatArray,
    figures: IntArray,
    idle: FloatArray,
    pipelined: FloatArray,
    used: FloatArray,
    pods: IntArray,
    requested: IntArray,
    nonzero: IntArray,
    in_view: bool,
) -> None:
    """Account one more task of the class on the row, as Allocated, or (LATER) as Pipelined."""
    for j in range(dims.shape[0]):
        d = dims[j]
        if figures[LATER] != 0:
            pipelined[d, i] += amounts[j]
        else:
            idle[d, i] -= amounts[j]
            used[d, i] += amounts[j]
    if in_view:
        pods[i] += 1
        requested[0, i] += figures[CPU]
        requested[1, i] += figures[MEMORY]
        requested[2, i] += figures[GPU]
        nonzero[0, i] += figures[NONZERO_CPU]
        nonzero[1, i] += figures[NONZERO_MEMORY]


@compiled
def place_run(
    count: int,
    size: int,
    n: int,
    rank: IntArray,
    best: IntArray,
    nominated: IntArray,
    in_view: bool,
    dims: IntArray,
    amounts: FloatArray,
    figures: IntArray,
    static: IntArray,
    node_constant: IntArray,
    batch_constant: IntArray,
    binpack_dims: IntArray,
    binpack_requests: FloatArray,
    binpack_weights: FloatArray,
    binpack_weight: float,
    ready: BoolArray,
    idle: FloatArray,
    releasing: FloatArray,
    pipelined: FloatArray,
    used: FloatArray,
    allocatable: FloatArray,
    pods: IntArray,
    max_pods: IntArray,
    kube_allocatable: IntArray,
    requested: IntArray,
    nonzero: IntArray,
    ok: BoolArray,
    node_part: FloatArray,
    batch_part: FloatArray,
    total: FloatArray,
) -> IntArray:
    """Place up to ``count`` tasks of a class; the rows in order of placement. Fewer rows: the next task fits nowhere.

    ``nominated``: int64 [count] or empty, the row that a task was promised, or -1: it goes there if it fits, whatever
    the scores. One that fits there only later also ends the run: it is to be pipelined, and this run is not LATER.
    """
    later = figures[LATER] != 0
    out = np.empty(count, dtype=np.int64)
    one = np.empty(1, dtype=np.int64)
    blocks = (n + size - 1) // size
    placed = 0
    while placed < count:
        top = -1
        promised = nominated[placed] if nominated.shape[0] > 0 else -1
        if promised >= 0:
            if ok[promised]:
                top = promised
            elif (
                not later
                and ready[promised]
                and static[promised] == 0
                and (figures[CHECK_PODS] == 0 or pods[promised] < max_pods[promised])
                and _fits(promised, True, dims, amounts, idle, releasing, pipelined)
            ):
                break
        if top < 0:
            for b in range(blocks):
                i = best[b]
                if total[i] == -np.inf:
                    continue
                if top < 0 or total[i] > total[top] or (total[i] == total[top] and rank[i] < rank[top]):
                    top = i
        if top < 0:
            break
        _occupy(top, dims, amounts, figures, idle, pipelined, used, pods, requested, nonzero, in_view)
        out[placed] = top
        placed += 1
        if figures[EXCLUSIVE] != 0:
            ok[top] = False
            total[top] = -np.inf
        else:
            one[0] = top
            evaluate(
                one,
                dims,
                amounts,
                figures,
                static,
                node_constant,
                batch_constant,
                binpack_dims,
                binpack_requests,
                binpack_weights,
                binpack_weight,
                ready,
                idle,
                releasing,
                pipelined,
                used,
                allocatable,
                pods,
                max_pods,
                kube_allocatable,
                requested,
                nonzero,
                ok,
                node_part,
                batch_part,
                total,
            )
        _best_of_block(top // size, size, n, total, rank, best)
    return out[:placed]


@compiled
def _smallest(j: int, spread: IntArray, offsets: IntArray, counts: IntArray, exists: BoolArray) -> int:
    """Fewest pods in any domain of constraint j; 0 while there are fewer domains than asked for."""
    least = -1
    domains = 0
    for d in range(offsets[j], offsets[j + 1]):
        if exists[d]:
            domains += 1
            if least < 0 or counts[d] < least:
                least = counts[d]
    if least < 0 or domains < spread[j, 2]:
        return 0
    return least


@compiled
def _constrained(
    i: int,
    kinds: IntArray,
    domain: IntArray,
    offsets: IntArray,
    counts: IntArray,
    spread: IntArray,
    smallest: IntArray,
    first_pod: bool,
) -> int:
    """Reason bits of the domain constraints for a row. Constraints come sorted by kind; ``first_pod``: no pod counts
    yet for any affinity and this task may be the first."""
    reason = 0
    for j in range(kinds.shape[0]):
        d = domain[j, i]
        kind = kinds[j]
        if kind == _AFFINITY:
            if d < 0 or (counts[offsets[j] + d] <= 0 and not first_pod):
                return _R_AFFINITY
        elif kind == _ANTI:
            if reason == 0 and d >= 0 and counts[offsets[j] + d] > 0:
                reason = _R_ANTI
        elif kind == _EXISTING:
            if reason == 0 and d >= 0 and counts[offsets[j] + d] > 0:
                reason = _R_EXISTING
        else:
            if d < 0:
                return reason | _R_SPREAD_LABEL
            if counts[offsets[j] + d] + spread[j, 1] - smallest[j] > spread[j, 0]:
                return reason | _R_SPREAD
    return reason


@compiled
def place_scan(
    count: int,
    n: int,
    rank: IntArray,
    sticky: bool,
    seen: IntArray,
    raw: IntArray,
    scaled: IntArray,
    kinds: IntArray,
    domain: IntArray,
    offsets: IntArray,
    counts: IntArray,
    exists: BoolArray,
    increments: IntArray,
    counted: BoolArray,
    spread: IntArray,
    may_be_first: bool,
    in_view: bool,
    dims: IntArray,
    amounts: FloatArray,
    figures: IntArray,
    static: IntArray,
    node_constant: IntArray,
    batch_constant: IntArray,
    binpack_dims: IntArray,
    binpack_requests: FloatArray,
    binpack_weights: FloatArray,
    binpack_weight: float,
    ready: BoolArray,
    idle: FloatArray,
    releasing: FloatArray,
    pipelined: FloatArray,
    used: FloatArray,
    allocatable: FloatArray,
    pods: IntArray,
    max_pods: IntArray,
    kube_allocatable: IntArray,
    requested: IntArray,
    nonzero: IntArray,
    ok: BoolArray,
    node_part: FloatArray,
    batch_part: FloatArray,
    total: FloatArray,
) -> IntArray:
    """As ``place_run``, with domain constraints and scaled scores.

    ``seen``: int64 [rows], rows that a search of this attempt refused, for which reasons; with ``sticky`` they stay
    refused (the predicate error cache). ``raw``: int64 [scores, rows], ``scaled``: int64 [scores, 2], weight and
    whether reversed. ``domain``: int64 [constraints, rows]; ``counts``, ``exists`` of all constraints one after the
    other, from ``offsets``. ``spread``: int64 [constraints, 3]: max skew, self match, fewest domains. ``counted``:
    bool [constraints, rows].
    """
    out = np.empty(count, dtype=np.int64)
    one = np.empty(1, dtype=np.int64)
    constraints = kinds.shape[0]
    scores = raw.shape[0]
    candidates = np.empty(n, dtype=np.int64)
    smallest = np.zeros(constraints, dtype=np.int64)
    largest = np.zeros(scores, dtype=np.int64)
    placed = 0
    while placed < count:
        first_pod = may_be_first
        for j in range(constraints):
            if kinds[j] == 3:
                smallest[j] = _smallest(j, spread, offsets, counts, exists)
            elif kinds[j] == _AFFINITY and first_pod:
                for d in range(offsets[j], offsets[j + 1]):
                    if counts[d] > 0:
                        first_pod = False
                        break
        m = 0
        for s in range(scores):
            largest[s] = 0
        for i in range(n):
            if not ready[i] or (sticky and seen[i] != 0):
                continue
            reason = _constrained(i, kinds, domain, offsets, counts, spread, smallest, first_pod)
            if not ok[i] or reason != 0:
                if sticky:
                    seen[i] = SEEN | reason
                continue
            candidates[m] = i
            m += 1
            for s in range(scores):
                if raw[s, i] > largest[s]:
                    largest[s] = raw[s, i]
        top = -1
        top_score = -np.inf
        for k in range(m):
            i = candidates[k]
            batch = batch_part[i]
            for s in range(scores):
                if largest[s] == 0:
                    value = 100 if scaled[s, 1] != 0 else 0
                else:
                    value = 100 * raw[s, i] // largest[s]
                    if scaled[s, 1] != 0:
                        value = 100 - value
                batch += float(value * scaled[s, 0])
            score = node_part[i] + batch
            if top < 0 or score > top_score or (score == top_score and rank[i] < rank[top]):
                top = i
                top_score = score
        if top < 0:
            break
        _occupy(top, dims, amounts, figures, idle, pipelined, used, pods, requested, nonzero, in_view)
        for j in range(constraints):
            if counted[j, top] and domain[j, top] >= 0:
                counts[offsets[j] + domain[j, top]] += increments[j]
        out[placed] = top
        placed += 1
        if figures[EXCLUSIVE] != 0:
            ok[top] = False
            total[top] = -np.inf
        else:
            one[0] = top
            evaluate(
                one,
                dims,
                amounts,
                figures,
                static,
                node_constant,
                batch_constant,
                binpack_dims,
                binpack_requests,
                binpack_weights,
                binpack_weight,
                ready,
                idle,
                releasing,
                pipelined,
                used,
                allocatable,
                pods,
                max_pods,
                kube_allocatable,
                requested,
                nonzero,
                ok,
                node_part,
                batch_part,
                total,
            )
    return out[:placed]
