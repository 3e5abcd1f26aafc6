"""Why a task does not fit: statuses of one node, fit errors over many nodes, and their texts (spec 01 §7).

Fit errors are kept as structured values; the reference's sentences are rendered from them on demand. The errors of a
vectorised search stay in arrays (one code a node) until somebody asks, so a failed search over all nodes costs no
Python object a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vcscheduler.model.status import Code

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Status:
    """One rule's answer about one node: code, reason for people, the plugin that says so."""

    code: Code
    reason: str
    plugin: str = ""


class FitFailure(Exception):
    """Raised by per-node predicates: the node does not fit, for the given statuses.

    A predicate may also raise any other exception; it then counts as one status of code Error.
    """

    def __init__(self, *statuses: Status) -> None:
        super().__init__(", ".join(s.reason for s in statuses if s.reason))
        self.statuses = statuses


def histogram(counts: Mapping[str, int]) -> str:
    """``"<count> <reason>"`` entries sorted as text (so ``10 x`` precedes ``2 y``), joined by commas."""
    return ", ".join(sorted(f"{n} {reason}" for reason, n in counts.items()))


@dataclass(slots=True)
class CodedFailures:
    """Rows that failed with a code each, and how a code reads.

    ``rows`` and ``codes`` are int arrays of equal length; ``describe(code)`` gives the statuses behind a code.
    """

    rows: IntArray
    codes: IntArray
    describe: Callable[[int], tuple[Status, ...]]

    def counted(self) -> Iterator[tuple[tuple[Status, ...], int]]:
        codes, counts = np.unique(self.codes, return_counts=True)
        for code, n in zip(codes.tolist(), counts.tolist()):
            yield self.describe(code), n


@dataclass(slots=True)
class FitErrors:
    """Why one task fits none of the nodes that were looked at.

    ``failures`` hold disjoint sets of rows. ``base`` replaces the default head of the text. ``hyper_node``: the
    network domain that was searched, empty for the whole cluster.
    """

    failures: list[CodedFailures] = field(default_factory=list)
    base: str = ""
    hyper_node: str = ""

    @classmethod
    def everywhere(cls, rows: Iterable[int], *statuses: Status) -> FitErrors:
        """The same statuses for every row."""
        array = np.fromiter(rows, dtype=np.int64)
        return cls([CodedFailures(array, np.ones_like(array), lambda _code: statuses)])

    @property
    def count(self) -> int:
        return sum(len(f.rows) for f in self.failures)

    def reasons(self) -> dict[str, int]:
        """Number of nodes by reason; a node counts once for each of its reasons."""
        counts: dict[str, int] = {}
        for failure in self.failures:
            for statuses, n in failure.counted():
                for status in statuses:
                    if status.reason:
                        counts[status.reason] = counts.get(status.reason, 0) + n
        return counts

    def by_rule(self) -> dict[tuple[str, str], int]:
        """Number of nodes by (plugin, reason), for reports."""
        counts: dict[tuple[str, str], int] = {}
        for failure in self.failures:
            for statuses, n in failure.counted():
                for status in statuses:
                    key = (status.plugin, status.reason)
                    counts[key] = counts.get(key, 0) + n
        return counts

    def unresolvable_rows(self) -> IntArray:
        """Rows where no eviction can help: those with a status of code UnschedulableAndUnresolvable."""
        found = []
        for failure in self.failures:
            codes = np.unique(failure.codes)
            hopeless = [c for c in codes.tolist() if any(s.code is Code.UNRESOLVABLE for s in failure.describe(c))]
            if hopeless:
                found.append(failure.rows[np.isin(failure.codes, hopeless)])
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)

    @property
    def text(self) -> str:
        n = self.count
        base = self.base or f"0/{n} nodes are unavailable"
        if n:
            base = f"{base}: {histogram(self.reasons())}."
        return f"In hyperNode {self.hyper_node}: {base}" if self.hyper_node else base
