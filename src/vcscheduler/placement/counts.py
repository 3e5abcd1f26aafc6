"""Pods counted by topology domain, kept current as pods come and go, with a memory of how they stood before."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class DomainCounts:
    """Counts over the domains of one topology key.

    Attributes:
        domain: int64 [rows], each row's domain, -1 = none. mask: rows that count at all; None = all.
        counts: int64 [domains], as of now. log: what changed since the session opened, (domain, by how much).
    """

    __slots__ = ("_mask", "counts", "domain", "log", "mask")

    def __init__(self, domain: IntArray, domains: int, mask: BoolArray | None, rows: Iterable[dict[int, int]]) -> None:
        self.domain = domain
        self.mask = mask
        self.log: list[tuple[int, int]] = []
        self.counts: IntArray = np.zeros(domains, dtype=np.int64)
        for held in rows:
            if len(held) < 16:
                for row, n in held.items():
                    self._count(row, n)
                continue
            at = np.fromiter(held.keys(), dtype=np.int64, count=len(held))
            by = np.fromiter(held.values(), dtype=np.int64, count=len(held))
            inside = at < len(domain)
            inside[inside] &= domain[at[inside]] >= 0
            if mask is not None:
                inside[inside] &= mask[at[inside]]
            np.add.at(self.counts, domain[at[inside]], by[inside])

    def _count(self, row: int, n: int) -> int:
        # A row beyond the columns, or a value that is new, belongs to a node that the columns have yet to read; the
        # counts are built anew after that.
        if row >= len(self.domain):
            return -1
        d = int(self.domain[row])
        if d < 0 or d >= len(self.counts) or (self.mask is not None and not self.mask[row]):
            return -1
        self.counts[d] += n
        return d

    def add(self, row: int, n: int) -> None:
        d = self._count(row, n)
        if d >= 0:
            self.log.append((d, n))

    def fits(self, domain: IntArray, mask: BoolArray | None) -> bool:
        """Whether the counts are still about these domains and rows."""
        return self.domain is domain and self.mask is mask


class Snapshot:
    """Counts as they stood when the snapshot was taken, without a copy: later changes are taken back from the log.

    PreFilter counts pods once; what is placed between that and the filtering of the same pod does not count
    (spec 05 §15).
    """

    __slots__ = ("_counts", "_position")

    def __init__(self, counts: DomainCounts) -> None:
        self._counts = counts
        self._position = len(counts.log)

    @property
    def domain(self) -> IntArray:
        return self._counts.domain

    @property
    def values(self) -> IntArray:
        """Not to be changed; :meth:`copy` may be."""
        return self._counts.counts if len(self._counts.log) == self._position else self.copy()

    def copy(self) -> IntArray:
        values = self._counts.counts.copy()
        for d, n in self._counts.log[self._position :]:
            values[d] -= n
        return values
