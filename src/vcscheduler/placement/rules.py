"""What filters and scorers are, for those who write them and for the search that asks them.

A rule works on many nodes at once: it gets a task and row numbers of the node table and answers with one value a
row. A rule that the compiled kernels know also offers ``kernel(task)``: its figures as plain arrays, from which a
whole run of equal tasks is placed without coming back to Python. A rule that answers None there (the default) makes
the search ask it anew for every task, which is always right, only slower.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag

import numpy as np
from numpy.typing import NDArray

from vcscheduler.model.fit import Status
from vcscheduler.model.task import Task

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class Reason(IntFlag):
    """Codes of the ``predicates`` filter: why a node is refused, in the order in which the rules are asked.

    Several bits may be set: a rule that eviction could help with lets the later ones be asked (spec 05 §3.4).
    ERROR: a rule failed as such; its text is kept by the filter.
    """

    POD_NUMBER = 1 << 0
    UNSCHEDULABLE = 1 << 1
    NODE_AFFINITY = 1 << 2
    TAINT = 1 << 3
    PORTS = 1 << 4
    AFFINITY = 1 << 5
    ANTI_AFFINITY = 1 << 6
    EXISTING_ANTI_AFFINITY = 1 << 7
    VOLUME_LIMITS = 1 << 8
    VOLUME_ZONE = 1 << 9
    SPREAD_LABEL = 1 << 10
    SPREAD = 1 << 11
    VOLUME_NODE = 1 << 12
    VOLUME_BIND = 1 << 13
    VOLUME_SPACE = 1 << 14
    VOLUME_LOST = 1 << 15
    ERROR = 1 << 16


class ConstraintKind(IntEnum):
    """How a kernel reads a domain constraint on a row of domain ``d`` with ``c = counts[d]``.

    AFFINITY: the row must have the label and ``c > 0`` (or the first-pod rule holds). ANTI: fails if ``c > 0``; a row
    without the label passes. EXISTING_ANTI: the same with another reason. SPREAD: the row must have the label and
    ``c + self_match - smallest <= max_skew``.
    """

    AFFINITY = 0
    ANTI = 1
    EXISTING_ANTI = 2
    SPREAD = 3


@dataclass(slots=True)
class DomainConstraint:
    """A rule that counts pods by topology domain, as the kernel takes it.

    Attributes:
        domain: int64 [rows], the row's domain, -1 = the node lacks the label.
        counts: int64 [domains], pods that count there now; a copy, which the kernel goes on counting in.
        increment: what placing one more task of this class adds to ``counts`` of its row's domain.
        counted: bool [rows], rows on which a placement counts at all.
        first_pod: AFFINITY only: the task matches all its own terms, so it may be the first of its group. All
            AFFINITY constraints of a task must be satisfied together, or all counts of all of them be 0 and this hold.
        max_skew, self_match, min_domains: SPREAD only. ``exists``: bool [domains], the domains that count for the
            smallest.
    """

    kind: ConstraintKind
    domain: IntArray
    counts: IntArray
    increment: int
    counted: BoolArray
    first_pod: bool = False
    max_skew: int = 0
    self_match: int = 0
    min_domains: int = 1
    exists: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))


@dataclass(slots=True)
class KernelFilter:
    """The ``predicates`` filter of one task class as arrays. Codes are bits of :class:`Reason`.

    ``static``: int64 [rows], what node objects alone decide; the same array object as long as nothing of it changed.
    ``conflicting_rows``: rows whose used host ports conflict; ``exclusive``: two tasks of the class cannot share a row.
    """

    static: IntArray
    constraints: list[DomainConstraint]
    conflicting_rows: IntArray
    exclusive: bool


class NodeFilter(ABC):
    """Says for each row whether a task fits there, and why not."""

    @abstractmethod
    def codes(self, task: Task, rows: IntArray) -> IntArray:
        """int64 of the shape of ``rows``; 0 = fits, anything else is a code of this filter's own."""

    @abstractmethod
    def statuses(self, task: Task, code: int) -> tuple[Status, ...]:
        """What a code that :meth:`codes` gave for this task means."""

    def kernel(self, task: Task) -> KernelFilter | None:
        return None

    def kin(self, task: Task) -> Hashable:
        """Tasks of one class and namespace with equal kin are alike to this rule. Only asked of rules with a kernel;
        by default every task is its own kind."""
        return task.uid

    def kin_of_class(self, task: Task) -> bool:
        """Whether at the moment all tasks of this one's class and namespace are of one kin."""
        return False


@dataclass(slots=True)
class Normalised:
    """A score that is scaled over the candidates: ``100 * raw / largest``, or 100 less that (spec 05 §5.2).

    ``raw``: int64 [rows], constant for the class; ``weight`` multiplies the scaled value.
    """

    raw: IntArray
    weight: int
    reverse: bool


@dataclass(slots=True)
class KernelScores:
    """One plugin's scores of a task class as figures.

    Attributes:
        least, most, balanced: weights of the Kubernetes resource scorers (batch part), 0 = off.
        node_constant: int64 [rows] or None, added to the node-order part. batch_constant: to the batch part.
        normalised: scores scaled over the candidates (batch part).
        binpack_weight: ``100 * binpack.weight`` or 0; binpack: (dimension, weight) in order of summation
            (node-order part, spec 05 §6).
    """

    least: int = 0
    most: int = 0
    balanced: int = 0
    node_constant: IntArray | None = None
    batch_constant: IntArray | None = None
    normalised: list[Normalised] = field(default_factory=list)
    binpack_weight: float = 0.0
    binpack: list[tuple[int, float]] = field(default_factory=list)


class ScoringFailed(Exception):
    """A scorer cannot answer. A batch scorer's failure leaves the task without a node; a node-order scorer names the
    rows concerned, which then get no node-order score (spec 05 §1.3)."""

    def __init__(self, message: str, rows: IntArray | None = None) -> None:
        super().__init__(message)
        self.rows = rows


class NodeScorer(ABC):
    """Scores candidates. ``batch``: whether it belongs to the batch node order (normalised over the candidates, summed
    after everything else) or to the node order (spec 02 §13.4)."""

    batch = False

    @abstractmethod
    def scores(self, task: Task, rows: IntArray) -> FloatArray:
        """float64 of the shape of ``rows``, over exactly these candidates.

        Raises:
            ScoringFailed: see there.
        """

    def kernel(self, task: Task) -> KernelScores | None:
        return None

    def kin(self, task: Task) -> Hashable:
        """As for filters."""
        return task.uid

    def kin_of_class(self, task: Task) -> bool:
        """As for filters."""
        return False

    def parts(self) -> dict[str, NodeScorer]:
        """For reports: scorers by name that this one adds up, if it does. Each may be asked alone."""
        return {}

    def kernel_of_class(self, task: Task) -> bool:
        """Whether, for the rest of the session, :meth:`kernel` answers the same for every task of this one's class."""
        return False
