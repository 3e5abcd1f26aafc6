"""Runs of equal tasks: placed by a compiled kernel in one call, with what one-by-one placement gives.

For each task class the fit and the score of every row are kept between calls and brought up to date from the table's
change log, so a call costs what changed since the last one. What cannot be expressed to a kernel is left to the search
(``Runs.place`` answers None).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vcscheduler.model.fit import CodedFailures
from vcscheduler.model.task import Task, TaskClass
from vcscheduler.placement import kernels
from vcscheduler.placement.rules import (
    BoolArray,
    ConstraintKind,
    DomainConstraint,
    FloatArray,
    IntArray,
    KernelFilter,
    KernelScores,
    Normalised,
    Reason,
)
from vcscheduler.placement.search import ErrorCache, Search

_NO_INTS = np.zeros(0, dtype=np.int64)


@dataclass(slots=True)
class ClassState:
    """Fit and score of all rows for one task class, as of a position of the table's change log."""

    key: tuple[object, ...]
    dims: IntArray
    amounts: FloatArray
    figures: IntArray
    static: IntArray
    node_constant: IntArray
    batch_constant: IntArray
    binpack_dims: IntArray
    binpack_requests: FloatArray
    binpack_weights: FloatArray
    binpack_weight: float
    size: int
    ok: BoolArray
    node_part: FloatArray
    batch_part: FloatArray
    total: FloatArray
    best: IntArray
    position: int = -1


@dataclass(slots=True)
class ClassStates:
    """The most recently used class states; lives as long as the scheduler."""

    limit: int = 64
    states: OrderedDict[int, ClassState] = field(default_factory=OrderedDict)
    #: For benchmarks and tests: rows evaluated, states built anew, calls served.
    rows_evaluated: int = 0
    built: int = 0
    calls: int = 0

    def get(self, cls: TaskClass, key: tuple[object, ...]) -> ClassState | None:
        state = self.states.get(cls.id)
        if state is None or not _same(state.key, key):
            return None
        self.states.move_to_end(cls.id)
        return state

    def put(self, cls: TaskClass, state: ClassState) -> None:
        self.states[cls.id] = state
        self.states.move_to_end(cls.id)
        if len(self.states) > self.limit:
            self.states.popitem(last=False)


def _same(a: tuple[object, ...], b: tuple[object, ...]) -> bool:
    """Figures by value, arrays by identity: an array stays the same object while what it says does."""
    return len(a) == len(b) and all(
        x is y or (not isinstance(x, np.ndarray) and not isinstance(y, np.ndarray) and x == y) for x, y in zip(a, b)
    )


class Runs:
    """Places runs over one session's search."""

    def __init__(self, search: Search, states: ClassStates, in_view: bool) -> None:
        """``in_view``: whether placing a pod enters it into the Kubernetes view (the predicates plugin is on)."""
        self._search = search
        self._states = states
        self._in_view = in_view
        self._zeros = np.zeros(0, dtype=np.int64)
        self.possible = (
            search.sampling.exact and search.rng is None and not search.best_node_fns and len(search.filters) <= 1
        )

    def place(self, task: Task, count: int, cache: ErrorCache) -> list[int] | None:
        """Place up to ``count`` tasks like this one on what is idle; the rows in order. The columns of the table are
        up to date afterwards, jobs and nodes are the caller's to bring along. None: a kernel cannot serve this task.
        """
        search = self._search
        if not self.possible:
            return None
        known = cache.refused(task)
        filter_: KernelFilter | None = None
        if search.filters:
            filter_ = search.filters[0].kernel(task)
            if filter_ is None:
                return None
        scores: list[KernelScores] = []
        for scorer in (*search.node_scorers, *search.batch_scorers):
            figures = scorer.kernel(task)
            if figures is None:
                return None
            scores.append(figures)
        normalised = [n for s in scores for n in s.normalised]
        if filter_ is not None and len(filter_.conflicting_rows):
            return None
        state = self._state(task, filter_, scores, normalised)
        if state is None:
            return None
        self._states.calls += 1
        constraints = filter_.constraints if filter_ is not None else []
        scaled = [n for n in normalised if not self._constant(n)]
        if not constraints and not scaled and known is None:
            rows = self._blocks(state, count)
        else:
            rows = self._scan(state, task, count, cache, constraints, scaled)
        if len(rows):
            search.table.touch_many(np.unique(rows))
            state.position = search.table.log_end
        found: list[int] = rows.tolist()
        return found

    # --- class state ------------------------------------------------------------------------------------------------

    def _constant(self, n: Normalised) -> bool:
        """Raw values that do not differ anywhere scale to the same value everywhere."""
        return _uniform(n.raw)

    def _state(
        self,
        task: Task,
        filter_: KernelFilter | None,
        scores: list[KernelScores],
        normalised: list[Normalised],
    ) -> ClassState | None:
        table, cls = self._search.table, task.cls
        n = table.n
        if len(self._zeros) < n:
            self._zeros = np.zeros(n, dtype=np.int64)
        node_constants = [s.node_constant for s in scores if s.node_constant is not None]
        batch_constants = [s.batch_constant for s in scores if s.batch_constant is not None]
        binpacks = [s for s in scores if s.binpack_weight != 0.0]
        if len(node_constants) > 1 or len(batch_constants) > 1 or len(binpacks) > 1:
            return None
        uniform = sum(_scaled_uniform(x) for x in normalised if self._constant(x))
        key: tuple[Any, ...] = (
            table.epoch,
            n,
            sum(s.least for s in scores),
            sum(s.most for s in scores),
            sum(s.balanced for s in scores),
            uniform,
            self._in_view,
            filter_ is not None,
            filter_ is not None and filter_.exclusive,
            filter_.static if filter_ is not None else None,
            node_constants[0] if node_constants else None,
            batch_constants[0] if batch_constants else None,
            binpacks[0].binpack_weight if binpacks else 0.0,
            tuple(binpacks[0].binpack) if binpacks else (),
        )
        state = self._states.get(cls, key)
        if state is None:
            state = self._build(task, key, filter_, node_constants, batch_constants, binpacks, uniform)
            self._states.put(cls, state)
            changed = None
        else:
            changed = table.changed_since(state.position)
        if changed is None or len(changed) * 4 > n:
            rows = np.arange(n, dtype=np.int64)
        elif len(changed) == 0:
            state.position = table.log_end
            return state
        else:
            rows = changed.copy() if len(changed) == 1 else np.unique(changed)
        self._states.rows_evaluated += len(rows)
        kernels.evaluate(rows, *self._class_arguments(state), *self._table_arguments(), *_kept(state))
        kernels.best_of_blocks(rows, state.size, n, state.total, table.rank, state.best)
        state.position = table.log_end
        return state

    def _build(
        self,
        task: Task,
        key: tuple[Any, ...],
        filter_: KernelFilter | None,
        node_constants: list[IntArray],
        batch_constants: list[IntArray],
        binpacks: list[KernelScores],
        uniform: int,
    ) -> ClassState:
        table, cls = self._search.table, task.cls
        n = table.n
        self._states.built += 1
        items = table.items(cls)
        kube = cls.kube
        figures = np.zeros(kernels.FIGURES, dtype=np.int64)
        figures[: kernels.LEAST] = (
            kube.scored_cpu,
            kube.scored_memory,
            kube.cpu,
            kube.memory,
            kube.gpu,
            kube.nonzero_cpu,
            kube.nonzero_memory,
        )
        figures[kernels.LEAST : kernels.CHECK_PODS] = key[2:5]
        figures[kernels.CHECK_PODS] = filter_ is not None
        figures[kernels.EXCLUSIVE] = filter_ is not None and filter_.exclusive
        batch = batch_constants[0] if batch_constants else self._zeros
        binpack = [
            (d, cls.resreq.get(table.dimensions.names[d]), w) for s in binpacks for d, w in s.binpack
        ]
        binpack = [(d, q, w) for d, q, w in binpack if q >= 0.1]
        size = 64 if n <= 20_000 else 256
        return ClassState(
            key=key,
            dims=np.array([d for d, _ in items], dtype=np.int64),
            amounts=np.array([x for _, x in items]),
            figures=figures,
            static=filter_.static if filter_ is not None else self._zeros,
            node_constant=node_constants[0] if node_constants else self._zeros,
            batch_constant=batch + uniform if uniform else batch,
            binpack_dims=np.array([d for d, _, _ in binpack], dtype=np.int64),
            binpack_requests=np.array([q for _, q, _ in binpack], dtype=np.float64),
            binpack_weights=np.array([w for _, _, w in binpack], dtype=np.float64),
            binpack_weight=binpacks[0].binpack_weight if binpacks else 0.0,
            size=size,
            ok=np.zeros(n, dtype=np.bool_),
            node_part=np.zeros(n),
            batch_part=np.zeros(n),
            total=np.full(n, -np.inf),
            best=np.zeros((n + size - 1) // size, dtype=np.int64),
        )

    def _class_arguments(self, s: ClassState) -> tuple[Any, ...]:
        return (
            s.dims,
            s.amounts,
            s.figures,
            s.static,
            s.node_constant,
            s.batch_constant,
            s.binpack_dims,
            s.binpack_requests,
            s.binpack_weights,
            s.binpack_weight,
        )

    def _table_arguments(self, *, placing: bool = False) -> tuple[Any, ...]:
        t = self._search.table
        v = t.view
        columns = (t.ready, t.idle, t.releasing, t.pipelined, t.used)
        held = (t.held,) if placing else ()
        return (*columns, *held, t.allocatable, v.pods, v.max_pods, v.allocatable, v.requested, v.nonzero)

    # --- kernels ----------------------------------------------------------------------------------------------------

    def _blocks(self, state: ClassState, count: int) -> IntArray:
        table = self._search.table
        rows: IntArray = kernels.place_run(
            count,
            state.size,
            table.n,
            table.rank,
            state.best,
            self._in_view,
            *self._class_arguments(state),
            *self._table_arguments(placing=True),
            *_kept(state),
        )
        return rows

    def _scan(
        self,
        state: ClassState,
        task: Task,
        count: int,
        cache: ErrorCache,
        constraints: list[DomainConstraint],
        scaled: list[Normalised],
    ) -> IntArray:
        table = self._search.table
        n = table.n
        constraints = sorted(constraints, key=lambda c: c.kind)
        sticky = cache.serves(task)
        seen = np.zeros(n, dtype=np.int64)
        known = cache.refused(task)
        if known is not None:
            seen[known.mask[:n]] = kernels.SEEN
        before = seen != 0
        c = len(constraints)
        offsets = np.zeros(c + 1, dtype=np.int64)
        for j, each in enumerate(constraints):
            offsets[j + 1] = offsets[j] + len(each.counts)
        counts = np.concatenate([x.counts for x in constraints]) if c else _NO_INTS
        exists = np.ones(len(counts), dtype=np.bool_)
        for j, each in enumerate(constraints):
            if each.kind is ConstraintKind.SPREAD:
                exists[offsets[j] : offsets[j + 1]] = each.exists
        affinities = [x for x in constraints if x.kind is ConstraintKind.AFFINITY]
        rows: IntArray = kernels.place_scan(
            count,
            n,
            table.rank,
            sticky,
            seen,
            np.stack([x.raw[:n] for x in scaled]) if scaled else np.zeros((0, n), dtype=np.int64),
            np.array([(x.weight, int(x.reverse)) for x in scaled], dtype=np.int64).reshape(len(scaled), 2),
            np.array([x.kind for x in constraints], dtype=np.int64),
            np.stack([x.domain[:n] for x in constraints]) if c else np.zeros((0, n), dtype=np.int64),
            offsets,
            counts,
            exists,
            np.array([x.increment for x in constraints], dtype=np.int64),
            np.stack([x.counted[:n] for x in constraints]) if c else np.zeros((0, n), dtype=np.bool_),
            np.array(
                [(x.max_skew, x.self_match, x.min_domains) for x in constraints], dtype=np.int64
            ).reshape(c, 3),
            bool(affinities) and all(x.first_pod for x in affinities),
            self._in_view,
            *self._class_arguments(state),
            *self._table_arguments(placing=True),
            *_kept(state),
        )
        if sticky:
            new = np.flatnonzero((seen != 0) & ~before)
            if len(new):
                cache.group(task, n).add(self._coded(task, new, seen[new] & ~kernels.SEEN))
        if len(rows):
            # The blocks of this class were not kept up to date row by row.
            kernels.best_of_blocks(np.unique(rows), state.size, n, state.total, table.rank, state.best)
        return rows

    def note_refusals(self, task: Task, cache: ErrorCache, last_row: int) -> None:
        """After a run that left tasks behind: what its last search refused, for the error cache. ``last_row`` took
        the last task, so that search still found room there."""
        table = self._search.table
        if not cache.serves(task):
            return
        known = cache.refused(task)
        state = self._states.states.get(task.cls.id)
        if state is None:
            return
        refused = table.ready[: table.n] & ~state.ok
        refused[last_row] = False
        if known is not None:
            refused &= ~known.mask[: table.n]
        rows = np.flatnonzero(refused)
        if len(rows):
            cache.group(task, table.n).add(self._coded(task, rows, np.zeros(len(rows), dtype=np.int64)))

    def _coded(self, task: Task, rows: IntArray, constraint_bits: IntArray) -> CodedFailures:
        """Codes of rows that were refused: what concerns the row alone is as it was, since nothing was put there
        since; the domain constraints are those that the kernel saw."""
        search, table = self._search, self._search.table
        codes = search.shortage(task, rows, future=True)
        stage = codes == 0
        if stage.any() and search.filters:
            view = table.view
            some = rows[stage]
            bits = np.where(view.pods[some] >= view.max_pods[some], int(Reason.POD_NUMBER), 0)
            filter_ = search.filters[0].kernel(task)
            if filter_ is not None:
                static = filter_.static[some]
                stops = static != 0
                bits |= static
                if filter_.exclusive:
                    # Only rows that took one of these tasks are refused for their ports in a run.
                    ports = np.array([r in view.ports for r in some.tolist()], dtype=np.bool_)
                    bits |= np.where(ports & ~stops, int(Reason.PORTS), 0)
                bits = np.where(stops, bits, bits | constraint_bits[stage])
            codes[stage] = np.where(bits != 0, bits | search.code_of(1, 0), 0)
        keep = codes != 0
        return CodedFailures(rows[keep], codes[keep], search.describer(task))


def _kept(s: ClassState) -> tuple[Any, ...]:
    return (s.ok, s.node_part, s.batch_part, s.total)


_uniform_known: OrderedDict[int, tuple[IntArray, bool]] = OrderedDict()


def _uniform(raw: IntArray) -> bool:
    """Whether all values are alike; remembered by array object, since rules hand out the same one while it is true."""
    found = _uniform_known.get(id(raw))
    if found is not None and found[0] is raw:
        return found[1]
    answer = len(raw) == 0 or bool((raw == raw[0]).all())
    _uniform_known[id(raw)] = (raw, answer)
    if len(_uniform_known) > 256:
        _uniform_known.popitem(last=False)
    return answer


def _scaled_uniform(n: Normalised) -> int:
    """The scaled value of raw values that are all alike, times its weight (spec 05 §5.2)."""
    value = 0 if len(n.raw) == 0 or n.raw[0] == 0 else 100
    return n.weight * (100 - value if n.reverse else value)


