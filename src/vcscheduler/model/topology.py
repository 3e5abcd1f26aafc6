"""Topology: the network domains of a session, as a tree over its nodes (spec 06 §A4).

A view is made from what the cache knows of HyperNodes and from the nodes of the session, and never changes; the same
one serves every session until a HyperNode or a node object changes. A virtual top domain, which holds all nodes, is
always there, so any two domains have a common ancestor.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

TOP = "<cluster-top-hypernode>"


class GradientPurpose(Enum):
    """What domains are looked for: to place tasks on what is or becomes free, or to make room by evicting."""

    ALLOCATE = "allocate"
    EVICT = "evict"


@dataclass(slots=True)
class NetworkDomain:
    """One HyperNode, or the top. ``listed``: whether its tier is known; a HyperNode that only a parent names is not.

    ``rows``: the nodes of the session that belong to it, by row of the node table in ascending order, which is the
    cluster's node order. ``children``: in the order in which the HyperNode lists them.
    """

    name: str
    tier: int
    rows: IntArray
    parent: str = ""
    children: list[str] = field(default_factory=list)
    listed: bool = True


class Topology:
    """A tree of domains.

    Attributes:
        domains: by name, the top included. ready: whether HyperNodes are free of errors; if not, jobs that ask for a
            topology wait. tiers: all tiers in use, ascending; the top's is the last. tier_names: tier by its name.
    """

    def __init__(
        self,
        domains: Iterable[NetworkDomain],
        all_rows: IntArray,
        rows_in_table: int,
        *,
        tier_names: dict[str, int] | None = None,
        ready: bool = True,
    ) -> None:
        """``domains`` are taken over, without the top: those without parent are put under it."""
        self.domains: dict[str, NetworkDomain] = {d.name: d for d in sorted(domains, key=lambda d: d.name)}
        self.tier_names = tier_names or {}
        self.ready = ready
        self.rows_in_table = rows_in_table
        listed = {d.tier for d in self.domains.values() if d.listed}
        top = NetworkDomain(TOP, max(1, max(listed, default=0) + 1), all_rows)
        for domain in self.domains.values():
            if not domain.parent:
                domain.parent = TOP
                top.children.append(domain.name)
        self.domains[TOP] = top
        self.top = top
        self.tiers = sorted({*listed, top.tier})
        self.names = list(self.domains)
        self.index = {name: i for i, name in enumerate(self.names)}
        self._below: dict[str, list[NetworkDomain]] = {}
        self._by_tier: dict[int, IntArray] = {}

    def rows(self, name: str) -> IntArray:
        """The nodes of a domain; an unknown one has none."""
        domain = self.domains.get(name)
        return domain.rows if domain is not None else self.top.rows[:0]

    # --- up ---------------------------------------------------------------------------------------------------------

    def ancestors(self, name: str) -> list[str]:
        """The domain itself and what it lies in, innermost first. An unknown name has only itself."""
        chain = [name]
        while (domain := self.domains.get(chain[-1])) is not None and domain.parent and domain.parent not in chain:
            chain.append(domain.parent)
        return chain

    def common(self, a: str, b: str) -> str:
        """The innermost domain that holds both; of one alone, that one; "" if there is none."""
        if not a or not b:
            return a or b
        above = set(self.ancestors(a))
        return next((name for name in self.ancestors(b) if name in above), "")

    # --- down -------------------------------------------------------------------------------------------------------

    def below(self, name: str) -> list[NetworkDomain]:
        """The domain and all inside it by tier; within a tier as they are met going down, members in the order in which
        they are listed. The reference takes members in any order (spec 06 §A7.3)."""
        found = self._below.get(name)
        if found is None:
            seen = {name}
            waiting = [name]
            found = []
            for each in waiting:
                domain = self.domains.get(each)
                # A removed HyperNode stays a child of a parent that still names it (spec 06 §A3.7).
                if domain is None:
                    continue
                found.append(domain)
                waiting += [c for c in domain.children if c not in seen]
                seen.update(domain.children)
            found.sort(key=lambda d: d.tier)
            self._below[name] = found
        return found

    # --- by node ----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def lowest(self) -> IntArray:
        """Domain of each row at the lowest tier of all, and only there: a node whose domains all have higher tiers has
        none (Quirk, spec 06 §A7.5)."""
        return self.of_tier(self.tiers[0])

    def lowest_of(self, row: int) -> str:
        i = int(self.lowest[row])
        return self.names[i] if i >= 0 else ""

    def of_tier(self, tier: int) -> IntArray:
        """int64 [rows of the table]: index of the domain of this tier that holds the row, -1 = none. Of several, the
        first by name."""
        found = self._by_tier.get(tier)
        if found is None:
            found = np.full(self.rows_in_table, -1, dtype=np.int64)
            for name in sorted(n for n, d in self.domains.items() if d.listed and d.tier == tier)[::-1]:
                found[self.domains[name].rows] = self.index[name]
            self._by_tier[tier] = found
        return found

    def sums(self, columns: FloatArray) -> FloatArray:
        """float64 [dimensions, domains], in the order of ``names``: columns of the node table added up by domain."""
        filled, starts, rows = self._flat
        sums = np.zeros((len(columns), len(self.names)))
        if len(filled):
            sums[:, filled] = np.add.reduceat(columns[:, rows], starts, axis=1)
        return sums

    @functools.cached_property
    def _flat(self) -> tuple[IntArray, IntArray, IntArray]:
        """Domains that have nodes, where each begins in the list of all their rows, that list."""
        held = [self.domains[name].rows for name in self.names]
        filled = [i for i, rows in enumerate(held) if len(rows)]
        ends = np.cumsum([len(held[i]) for i in filled], dtype=np.int64)
        starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]])[: len(filled)]
        rows = np.concatenate([held[i] for i in filled]) if filled else np.zeros(0, dtype=np.int64)
        return np.array(filled, dtype=np.int64), starts, rows

    @functools.cached_property
    def holders(self) -> list[IntArray]:
        """For each row of the table, the indices of all domains that hold it."""
        found: list[list[int]] = [[] for _ in range(self.rows_in_table)]
        for i, name in enumerate(self.names):
            for row in self.domains[name].rows.tolist():
                found[row].append(i)
        return [np.array(each, dtype=np.int64) for each in found]
