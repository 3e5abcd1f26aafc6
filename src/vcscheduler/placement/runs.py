"""Runs of equal tasks: placed by a compiled kernel in one call, with what one-by-one placement gives.

For each task class the fit and the score of every row are kept between calls and brought up to date from the table's
change log, so a call costs what changed since the last one. What cannot be expressed to a kernel is left to the search
(``Runs.place`` answers None).
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vcscheduler.model.fit import CodedFailures
from vcscheduler.model.resources import EPSILON
from vcscheduler.model.task import Task
from vcscheduler.placement import kernels
from vcscheduler.placement.rules import (
    BoolArray,
    ConstraintKind,
    DomainConstraint,
    FloatArray,
    IntArray,
    KernelFilter,
    KernelScores,
    NodeFilter,
    NodeScorer,
    Normalised,
    Reason,
)
from vcscheduler.placement.search import ErrorCache, Search

_NO_INTS = np.zeros(0, dtype=np.int64)
_NO_FLOATS = np.zeros(0)
_FEW = 16
#: Constraints that may bar a node for good: it lacks a label, or the pods that are asked for.
_FINAL = frozenset((ConstraintKind.AFFINITY, ConstraintKind.SPREAD))


@dataclass(slots=True)
class ClassState:
    """Fit and score of all rows for one task class, as of a position of the table's change log."""

    key: tuple[Any, ...]
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
    #: The batch constant as its rule gave it, held so that its identity stays its own.
    source: IntArray | None
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
    #: By class, and whether its tasks are to be pipelined.
    states: OrderedDict[tuple[int, bool], ClassState] = field(default_factory=OrderedDict)
    #: For benchmarks and tests: rows evaluated, states built anew, calls served.
    rows_evaluated: int = 0
    built: int = 0
    calls: int = 0

    def get(self, slot: tuple[int, bool], key: tuple[Any, ...]) -> ClassState | None:
        state = self.states.get(slot)
        if state is None or state.key != key:
            return None
        self.states.move_to_end(slot)
        return state

    def put(self, slot: tuple[int, bool], state: ClassState) -> None:
        self.states[slot] = state
        self.states.move_to_end(slot)
        if len(self.states) > self.limit:
            self.states.popitem(last=False)


class _Figures:
    """What all scorers say of one class, put together."""

    def __init__(self) -> None:
        self.least = self.most = self.balanced = self.uniform = 0
        self.node_constant: IntArray | None = None
        self.batch_constant: IntArray | None = None
        self.binpack_weight = 0.0
        self.binpack: list[tuple[int, float]] = []
        #: Those of the scaled scores that differ between rows; the others come to the same everywhere.
        self.scaled: list[Normalised] = []

    def add(self, scores: KernelScores) -> bool:
        """False if the kernels cannot put these scores together with the others."""
        self.least += scores.least
        self.most += scores.most
        self.balanced += scores.balanced
        if scores.node_constant is not None:
            if self.node_constant is not None:
                return False
            self.node_constant = scores.node_constant
        if scores.batch_constant is not None:
            if self.batch_constant is not None:
                return False
            self.batch_constant = scores.batch_constant
        if scores.binpack_weight != 0.0:
            if self.binpack_weight != 0.0:
                return False
            self.binpack_weight = scores.binpack_weight
            self.binpack = scores.binpack
        for each in scores.normalised:
            if _uniform(each.raw):
                self.uniform += _scaled_uniform(each)
            else:
                self.scaled.append(each)
        return True

    @functools.cached_property
    def key(self) -> tuple[Any, ...]:
        """To be asked once everything is put together."""
        return (
            self.least,
            self.most,
            self.balanced,
            self.uniform,
            id(self.node_constant),
            id(self.batch_constant),
            self.binpack_weight,
            tuple(self.binpack),
        )


class Runs:
    """Places runs over one session's search."""

    def __init__(self, search: Search, states: ClassStates, in_view: bool) -> None:
        """``in_view``: whether placing a pod enters it into the Kubernetes view (the predicates plugin is on)."""
        self._search = search
        self._states = states
        self._in_view = in_view
        self._zeros = np.zeros(0, dtype=np.int64)
        self._memo: dict[int, _Figures | None] = {}
        self._everywhere = ClassStates()
        self._scorers = (*search.node_scorers, *search.batch_scorers)
        self._rules: list[NodeFilter | NodeScorer] = [*search.filters, *self._scorers]
        self._kin_of: Task | None = None
        self._kin: list[Hashable] = []
        self._kin_of_class = False
        self._hopeful: dict[int, tuple[IntArray, IntArray]] = {}
        self.possible = (
            search.sampling.exact and search.rng is None and not search.best_node_fns and len(search.filters) <= 1
        )

    def place(
        self,
        task: Task,
        count: int,
        cache: ErrorCache,
        *,
        last: bool,
        nominated: IntArray | None = None,
        later: bool = False,
    ) -> list[int] | None:
        """Place up to ``count`` tasks like this one on what is idle; the rows in order. The columns of the table are
        up to date afterwards, jobs and nodes are the caller's to bring along. None: a kernel cannot serve this task.

        ``last``: no task follows those ``count``, so if all are placed nobody will read what the error cache would
        have to say. ``nominated``: int64 [count], the row that each task was promised, -1 for none. ``later``: on what
        will be idle; none is placed so while any of them fits on what is idle.
        """
        search = self._search
        self._kin_of = None  # What is placed may change what the rules look at.
        if not self.possible:
            return None
        filter_: KernelFilter | None = None
        if search.filters:
            filter_ = search.filters[0].kernel(task)
            if filter_ is None or len(filter_.conflicting_rows):
                return None
        figures = self._figures(task)
        if figures is None:
            return None
        constraints = filter_.constraints if filter_ is not None else []
        simple = not constraints and not figures.scaled and cache.refused(task) is None
        if nominated is not None and not simple:
            return None
        state = self._state(task, filter_, figures, self._states)
        if later:
            if state.ok.any():
                return []
            state = self._state(task, filter_, figures, self._states, later=True)
        self._states.calls += 1
        if simple:
            rows = self._blocks(state, count, _NO_INTS if nominated is None else nominated)
        else:
            rows = self._scan(state, task, count, cache, constraints, figures.scaled, last)
        if len(rows):
            done = len(rows) == count
            if nominated is not None:
                # The next task may look at no more than the node that it was promised.
                searched = np.flatnonzero(rows != nominated[: len(rows)])
                if len(searched) and not (last and done):
                    self._note_refusals(task, state, cache, rows, int(searched[-1]))
            elif done and not last:
                self._note_refusals(task, state, cache, rows, len(rows) - 1)
            search.table.touch_many(rows if len(rows) == 1 else np.unique(rows))
            state.position = search.table.log_end
        found: list[int] = rows.tolist()
        return found

    def scores(self, task: Task) -> FloatArray | None:
        """Score of every row, float64 [rows], whether the task fits there or not; not to be changed. None: the kernels
        do not know a score, or it depends on which nodes are candidates."""
        figures = self._figures(task)
        if figures is None or figures.scaled:
            return None
        return self._state(task, None, figures, self._everywhere).total

    def hopeful_rows(self, task: Task) -> IntArray | None:
        """Rows of all nodes that no rule bars to the task whoever is evicted, in search order: what a search for
        victims' nodes finds. None: only the search itself can tell."""
        search = self._search
        if not self.possible:
            return None
        if not search.filters:
            return search.all_rows
        filter_ = search.filters[0].kernel(task)
        if filter_ is None or any(c.kind in _FINAL for c in filter_.constraints):
            return None
        static = filter_.static
        known = self._hopeful.get(id(static))
        if known is None or known[0] is not static:
            rows = search.all_rows
            known = self._hopeful[id(static)] = (static, rows[static[rows] == 0])
        return known[1]

    def passes(self, task: Task, row: int) -> bool | None:
        """Whether no filter has anything against a node; resources are not looked at. None: only the search itself can
        tell."""
        search = self._search
        if not search.filters:
            return True
        filter_ = search.filters[0].kernel(task) if self.possible else None
        if filter_ is None or filter_.constraints or filter_.exclusive:
            return None
        view = search.table.view
        return not filter_.static[row] and bool(view.pods[row] < view.max_pods[row])

    def alike(self, a: Task, b: Task) -> bool:
        """Whether two tasks of one job may be placed in one run."""
        return (
            a.role == b.role
            and a.sub_job is b.sub_job
            and not b.pod.spec.scheduling_gates
            and self.alike_across_jobs(a, b)
        )

    def alike_across_jobs(self, a: Task, b: Task) -> bool:
        """Whether the rules about nodes cannot tell two tasks apart."""
        if a.cls is not b.cls or a.namespace != b.namespace:
            return False
        mine, theirs = a.pod.metadata, b.pod.metadata
        if mine.labels == theirs.labels and mine.annotations == theirs.annotations:
            return True
        if self._kin_of is not a:
            self._kin_of, self._kin = a, [rule.kin(a) for rule in self._rules]
            self._kin_of_class = all(rule.kin_of_class(a) for rule in self._rules)
        return self._kin_of_class or all(known == rule.kin(b) for known, rule in zip(self._kin, self._rules))

    def _figures(self, task: Task) -> _Figures | None:
        """What the scorers say, asked once a class as long as they look at nothing else of the task."""
        memo = all(scorer.kernel_of_class(task) for scorer in self._scorers)
        if memo and task.cls.id in self._memo:
            return self._memo[task.cls.id]
        figures: _Figures | None = _Figures()
        for scorer in self._scorers:
            scores = scorer.kernel(task)
            if scores is None or figures is None or not figures.add(scores):
                figures = None
                break
        if memo:
            self._memo[task.cls.id] = figures
        return figures

    # --- class state ------------------------------------------------------------------------------------------------

    def _state(
        self,
        task: Task,
        filter_: KernelFilter | None,
        figures: _Figures,
        states: ClassStates,
        *,
        later: bool = False,
    ) -> ClassState:
        table, cls = self._search.table, task.cls
        n = table.n
        if len(self._zeros) < n:
            self._zeros = np.zeros(n, dtype=np.int64)
        key: tuple[Any, ...] = (
            table.epoch,
            n,
            self._in_view,
            filter_ is not None and filter_.exclusive,
            # Arrays by identity: one stays the same object while what it says does, and the state holds it.
            id(filter_.static) if filter_ is not None else 0,
            figures.key,
        )
        slot = (cls.id, later)
        state = states.get(slot, key)
        if state is None:
            nothing = _NO_INTS, _NO_FLOATS
            columns = nothing if states is self._everywhere else table.request_columns(cls)
            state = self._build(task, key, filter_, figures, columns)
            state.figures[kernels.LATER] = later
            states.put(slot, state)
            changed = None
        else:
            changed = table.changed_since(state.position)
        if changed is None or len(changed) * 4 > n:
            rows = np.arange(n, dtype=np.int64)
        elif len(changed) == 0:
            return state
        else:
            # A few rows are sooner evaluated twice than sorted.
            rows = changed if len(changed) <= _FEW else np.unique(changed)
        states.rows_evaluated += len(rows)
        kernels.evaluate(rows, *self._class_arguments(state), *self._table_arguments(), *_kept(state))
        kernels.best_of_blocks(rows, state.size, n, state.total, table.rank, state.best)
        state.position = table.log_end
        return state

    def _build(
        self,
        task: Task,
        key: tuple[Any, ...],
        filter_: KernelFilter | None,
        given: _Figures,
        columns: tuple[IntArray, FloatArray],
    ) -> ClassState:
        """``columns``: what must fit."""
        table, cls = self._search.table, task.cls
        n = table.n
        self._states.built += 1
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
        figures[kernels.LEAST : kernels.CHECK_PODS] = (given.least, given.most, given.balanced)
        figures[kernels.CHECK_PODS] = filter_ is not None
        figures[kernels.EXCLUSIVE] = filter_ is not None and filter_.exclusive
        batch = self._zeros if given.batch_constant is None else given.batch_constant
        binpack = [(d, cls.resreq.get(table.dimensions.names[d]), w) for d, w in given.binpack]
        binpack = [(d, q, w) for d, q, w in binpack if q >= EPSILON]
        size = 64 if n <= 20_000 else 256
        return ClassState(
            key=key,
            dims=columns[0],
            amounts=columns[1],
            figures=figures,
            static=filter_.static if filter_ is not None else self._zeros,
            node_constant=self._zeros if given.node_constant is None else given.node_constant,
            batch_constant=batch + given.uniform if given.uniform else batch,
            binpack_dims=np.array([d for d, _, _ in binpack], dtype=np.int64),
            binpack_requests=np.array([q for _, q, _ in binpack], dtype=np.float64),
            binpack_weights=np.array([w for _, _, w in binpack], dtype=np.float64),
            binpack_weight=given.binpack_weight,
            source=given.batch_constant,
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

    def _table_arguments(self) -> tuple[Any, ...]:
        t = self._search.table
        v = t.view
        return (
            t.ready,
            t.idle,
            t.releasing,
            t.pipelined,
            t.used,
            t.allocatable,
            v.pods,
            v.max_pods,
            v.allocatable,
            v.requested,
            v.nonzero,
        )

    # --- kernels ----------------------------------------------------------------------------------------------------

    def _blocks(self, state: ClassState, count: int, nominated: IntArray) -> IntArray:
        table = self._search.table
        rows: IntArray = kernels.place_run(
            count,
            state.size,
            table.n,
            table.rank,
            state.best,
            nominated,
            self._in_view,
            *self._class_arguments(state),
            *self._table_arguments(),
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
        last: bool,
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
        counts = _NO_INTS if not c else np.concatenate([x.counts for x in constraints])
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
            _stacked([x.raw[:n] for x in scaled], n, np.int64),
            np.array([(x.weight, int(x.reverse)) for x in scaled], dtype=np.int64).reshape(len(scaled), 2),
            np.array([x.kind for x in constraints], dtype=np.int64),
            _stacked([x.domain[:n] for x in constraints], n, np.int64),
            offsets,
            counts,
            exists,
            np.array([x.increment for x in constraints], dtype=np.int64),
            _stacked([x.counted[:n] for x in constraints], n, np.bool_),
            np.array([(x.max_skew, x.self_match, x.min_domains) for x in constraints], dtype=np.int64).reshape(c, 3),
            bool(affinities) and all(x.first_pod for x in affinities),
            self._in_view,
            *self._class_arguments(state),
            *self._table_arguments(),
            *_kept(state),
        )
        if sticky and not (last and len(rows) == count):
            new = np.flatnonzero((seen != 0) & ~before)
            if len(new):
                cache.group(task, n).add(self._coded(task, new, seen[new] & ~kernels.SEEN, rows))
        if len(rows):
            # The blocks of this class were not kept up to date row by row.
            kernels.best_of_blocks(np.unique(rows), state.size, n, state.total, table.rank, state.best)
        return rows

    def _note_refusals(self, task: Task, state: ClassState, cache: ErrorCache, taken: IntArray, searched: int) -> None:
        """After a run that leaves tasks behind: what its last search of all nodes refused, for the error cache.
        ``taken``: the rows of the run; that search placed the task at ``searched``, so it still found room there, as
        on the rows that tasks went to later because they were promised."""
        table = self._search.table
        if not cache.serves(task):
            return
        known = cache.refused(task)
        refused = table.ready[: table.n] & ~state.ok
        refused[taken[searched:]] = False
        if known is not None:
            refused &= ~known.mask[: table.n]
        rows = np.flatnonzero(refused)
        if len(rows):
            cache.group(task, table.n).add(self._coded(task, rows, np.zeros(len(rows), dtype=np.int64), taken))

    def _coded(self, task: Task, rows: IntArray, constraint_bits: IntArray, taken: IntArray) -> CodedFailures:
        """Codes of rows that were refused: what concerns the row alone is as it was, since nothing was put there
        since; the domain constraints are those that the kernel saw. ``taken``: the rows of the run."""
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
                    bits |= np.where(np.isin(some, taken) & ~stops, int(Reason.PORTS), 0)
                bits = np.where(stops, bits, bits | constraint_bits[stage])
            codes[stage] = np.where(bits != 0, bits | search.code_of(1, 0), 0)
        keep = codes != 0
        return CodedFailures(rows[keep], codes[keep], search.describer(task))


def _stacked(arrays: list[Any], n: int, dtype: Any) -> Any:
    """One array a row, of shape [arrays, n]."""
    if not arrays:
        return np.zeros((0, n), dtype=dtype)
    return arrays[0].reshape(1, n) if len(arrays) == 1 else np.stack(arrays)


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
