"""Which nodes a task fits, which of them is best: the search, over all nodes at once (spec 02 §13, spec 03 §1.5-1.6).

This is the NumPy form: every rule is asked for one task over all rows that are still left. It is always right, and it
is the twin of the compiled runs in ``runs.py``, which serve the rules that a kernel knows.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from vcscheduler.model.fit import CodedFailures, FitErrors, Status
from vcscheduler.model.nodes import Node, NodeTable
from vcscheduler.model.status import Code
from vcscheduler.model.task import Task
from vcscheduler.placement import kernels
from vcscheduler.placement.rules import BoolArray, FloatArray, IntArray, NodeFilter, NodeScorer, ScoringFailed

_STAGE = 40  # Bits below: a filter's own code; above: its place in the chain, 0 = the resource check.
_CODE_MASK = (1 << _STAGE) - 1

BestNodeFn = Callable[[Task, dict[float, list[Node]]], Node | None]


class Purpose(Enum):
    """Which filter chain a search runs (spec 03 §1.5).

    ALLOCATE: the request must fit future idle, then the predicates. BACKFILL: the predicates alone. PREEMPT: the
    predicates alone, and a node passes when eviction might help. EVICT: future idle, then as PREEMPT.
    """

    ALLOCATE = "allocate"
    BACKFILL = "backfill"
    PREEMPT = "preempt"
    EVICT = "evict"

    @property
    def checks_resources(self) -> bool:
        return self in (Purpose.ALLOCATE, Purpose.EVICT)

    @property
    def forgives(self) -> bool:
        """Whether a plain Unschedulable passes."""
        return self in (Purpose.PREEMPT, Purpose.EVICT)


@dataclass(slots=True)
class RefusedRows:
    """Rows that were refused to a role of a job, and why."""

    mask: BoolArray
    failures: list[CodedFailures] = field(default_factory=list)

    def add(self, failures: CodedFailures) -> None:
        if len(failures.rows):
            self.mask[failures.rows] = True
            self.failures.append(failures)


class ErrorCache:
    """The predicate error cache: a node that was refused to one task of a role stays refused to the next ones, for as
    long as the cache lives. ``reads``: whether it is looked at; tasks without role never use it."""

    def __init__(self, reads: bool) -> None:
        self.reads = reads
        self._groups: dict[tuple[str, str], RefusedRows] = {}

    def refused(self, task: Task) -> RefusedRows | None:
        return self._groups.get((task.job_id, task.role)) if self.reads and task.role else None

    def serves(self, task: Task) -> bool:
        return self.reads and bool(task.role)

    def group(self, task: Task, rows: int) -> RefusedRows:
        key = (task.job_id, task.role)
        found = self._groups.get(key)
        if found is None:
            found = self._groups[key] = RefusedRows(np.zeros(rows, dtype=np.bool_))
        return found


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many feasible nodes are enough (spec 02 §13.1). ``exact``: all."""

    exact: bool = True
    minimum_nodes: int = 100
    minimum_percentage: int = 5
    percentage: int = 0

    def wanted(self, n: int) -> int:
        if self.exact or n <= self.minimum_nodes or self.percentage >= 100:
            return n
        p = self.percentage
        if p <= 0:
            p = max(50 - n // 125, self.minimum_percentage)
        return max(n * p // 100, self.minimum_nodes)


class Cursor:
    """Where the next search starts; outlives sessions and is shared by all searches (spec 02 §13.2)."""

    def __init__(self) -> None:
        self.at = 0


class Search:
    """Filters and scorers of one session over its node table."""

    def __init__(
        self,
        table: NodeTable,
        filters: Sequence[NodeFilter],
        scorers: Sequence[NodeScorer],
        best_node_fns: Sequence[BestNodeFn] = (),
        sampling: Sampling | None = None,
        cursor: Cursor | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.table = table
        self.filters = list(filters)
        self.node_scorers = [s for s in scorers if not s.batch]
        self.batch_scorers = [s for s in scorers if s.batch]
        self.best_node_fns = list(best_node_fns)
        self.sampling = sampling or Sampling()
        self.cursor = cursor or Cursor()
        self.rng = rng

    @property
    def all_rows(self) -> IntArray:
        return self.table.ready_rows

    # --- filtering --------------------------------------------------------------------------------------------------

    def feasible(self, task: Task, rows: IntArray, cache: ErrorCache, purpose: Purpose) -> tuple[IntArray, FitErrors]:
        """Rows that the task fits, in search order, and why it does not fit the others that were looked at."""
        n = len(rows)
        if n == 0:
            return rows, FitErrors()
        wanted = self.sampling.wanted(n)
        if not self.sampling.exact:
            rows = np.roll(rows, -(self.cursor.at % n))
        known = cache.refused(task)
        if known is not None:
            open_rows = rows[~known.mask[rows]]
        else:
            open_rows = rows
        codes = self.failure_codes(task, open_rows, purpose)
        passing = open_rows[codes == 0]
        failed = codes != 0
        failures = CodedFailures(open_rows[failed], codes[failed], self.describer(task))
        if self.sampling.exact:
            processed: IntArray | None = None
        else:
            passing, processed = self._sampled(rows, passing, wanted)
        errors = FitErrors()
        if known is not None:
            errors.failures = [_among(f, rows if processed is None else processed) for f in known.failures]
        if processed is not None:
            failures = _among(failures, processed)
        errors.failures.append(failures)
        errors.failures = [f for f in errors.failures if len(f.rows)]
        if cache.serves(task):
            cache.group(task, self.table.n).add(failures)
        return passing, errors

    def _sampled(self, rows: IntArray, passing: IntArray, wanted: int) -> tuple[IntArray, IntArray]:
        """Stop at the first node beyond those wanted, which was looked at but is dropped."""
        n = len(rows)
        looked = n
        if len(passing) > wanted:
            looked = int(np.flatnonzero(rows == passing[wanted])[0]) + 1
            passing = passing[:wanted]
        self.cursor.at = (self.cursor.at + looked) % n
        return passing, rows[:looked]

    def failure_codes(self, task: Task, rows: IntArray, purpose: Purpose) -> IntArray:
        """int64 of the shape of ``rows``: 0 = passes, else the code of the first rule in the chain that refuses."""
        result = np.zeros(len(rows), dtype=np.int64)
        left = np.arange(len(rows))
        if purpose.checks_resources:
            short = self.shortage(task, rows, future=True)
            result[short > 0] = short[short > 0]
            left = left[short == 0]
        for stage, rule in enumerate(self.filters, start=1):
            if not len(left):
                break
            codes = rule.codes(task, rows[left])
            refused = codes != 0
            if not refused.any():
                continue
            stop = codes[refused]
            if purpose.forgives:
                # The chain ends at the first rule that says anything, even where that lets the node pass.
                hopeful = [
                    c
                    for c in np.unique(stop).tolist()
                    if all(s.code in (Code.SUCCESS, Code.UNSCHEDULABLE) for s in rule.statuses(task, c))
                ]
                stop = np.where(np.isin(stop, hopeful), 0, stop | (stage << _STAGE))
                result[left[refused]] = stop
            else:
                result[left[refused]] = stop | (stage << _STAGE)
            left = left[~refused]
        return result

    def shortage(self, task: Task, rows: IntArray, *, future: bool) -> IntArray:
        """0 where the request fits (future) idle, else 1 + the first dimension that is short."""
        table = self.table
        dims, amounts = table.request_columns(task.cls)
        found: IntArray = kernels.shortage(rows, future, dims, amounts, table.idle, table.releasing, table.pipelined)
        return found

    def fits(self, task: Task, rows: IntArray, *, future: bool) -> BoolArray:
        return np.equal(self.shortage(task, rows, future=future), 0)

    def describer(self, task: Task) -> Callable[[int], tuple[Status, ...]]:
        """What the codes of :meth:`failure_codes` for this task mean."""
        filters, names = self.filters, self.table.dimensions.names

        def describe(code: int) -> tuple[Status, ...]:
            stage = code >> _STAGE
            if stage == 0:
                return (Status(Code.UNSCHEDULABLE, f"Insufficient {names[code - 1]}", "resources"),)
            return filters[stage - 1].statuses(task, code & _CODE_MASK)

        return describe

    def code_of(self, stage: int, code: int) -> int:
        return code | (stage << _STAGE)

    # --- scoring ----------------------------------------------------------------------------------------------------

    def scores(self, task: Task, rows: IntArray) -> FloatArray | None:
        """Score of each candidate; None when a batch scorer failed, which leaves the task without a node."""
        node = np.zeros(len(rows))
        unscored: list[IntArray] = []
        for scorer in self.node_scorers:
            try:
                node = node + scorer.scores(task, rows)
            except ScoringFailed as failure:
                unscored.append(np.arange(len(rows)) if failure.rows is None else failure.rows)
        for positions in unscored:
            node[positions] = 0.0
        batch = np.zeros(len(rows))
        for scorer in self.batch_scorers:
            try:
                batch = batch + scorer.scores(task, rows)
            except ScoringFailed:
                return None
        return node + batch

    def best(self, task: Task, rows: IntArray) -> int | None:
        """The best of the candidates; a single one is not scored. Ties go to the first by name, or by lot."""
        if len(rows) == 0:
            return None
        if len(rows) == 1:
            return int(rows[0])
        scores = self.scores(task, rows)
        if scores is None:
            return None
        for f in self.best_node_fns:
            groups: dict[float, list[Node]] = {}
            for row, score in zip(rows.tolist(), scores.tolist()):
                groups.setdefault(score, []).append(self.table.nodes[row])
            chosen = f(task, groups)
            if chosen is not None:
                return chosen.row
        usable = ~np.isnan(scores) & (scores > -np.inf)
        if not usable.any():
            return None
        top = rows[usable & (scores == scores[usable].max())]
        if self.rng is not None and len(top) > 1:
            by_name = top[np.argsort(self.table.rank[top])]
            return int(by_name[self.rng.randrange(len(by_name))])
        return int(top[np.argmin(self.table.rank[top])])

    def ranked(self, task: Task, rows: IntArray) -> IntArray:
        """Candidates by descending score, equal ones by name. A scorer's failure leaves none."""
        scores = self.scores(task, rows)
        if scores is None:
            return rows[:0]
        usable = ~np.isnan(scores)
        rows, scores = rows[usable], scores[usable]
        return rows[np.lexsort((self.table.rank[rows], -scores))]

    def choose(self, task: Task, rows: IntArray) -> int | None:
        """The best of those with room now, else the best of those that will have room (spec 03 §3.3, step 8)."""
        now = rows[self.fits(task, rows, future=False)]
        chosen = self.best(task, now)
        if chosen is not None:
            return chosen
        later = rows[self.fits(task, rows, future=True) & ~self.fits(task, rows, future=False)]
        return self.best(task, later)


def _among(failures: CodedFailures, rows: IntArray) -> CodedFailures:
    keep = np.isin(failures.rows, rows)
    if keep.all():
        return failures
    return CodedFailures(failures.rows[keep], failures.codes[keep], failures.describe)
