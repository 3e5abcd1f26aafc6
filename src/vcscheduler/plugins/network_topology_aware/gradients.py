"""Which domains to try for a job or a sub-job, in which groups (spec 06 §A7.3)."""

from __future__ import annotations

from vcscheduler.framework.extension_points import Gradients
from vcscheduler.model.job import Job, SubJob
from vcscheduler.model.resources import Resources
from vcscheduler.model.topology import GradientPurpose, NetworkDomain, Topology
from vcscheduler.plugins.network_topology_aware.books import DomainBooks


class GradientSearch:
    def __init__(self, topology: Topology, books: DomainBooks, max_evict_domains: int) -> None:
        self._topology = topology
        self._books = books
        self._max_evict_domains = max_evict_domains

    def of_job(self, job: Job, start: str, purpose: GradientPurpose) -> Gradients:
        if job.hard_tier is None:
            return [[start]]
        return self._gradients(job.hard_tier, job.allocated_hyper_node, job.minimum, start, purpose)

    def of_sub_job(self, sub_job: SubJob, start: str, purpose: GradientPurpose) -> Gradients:
        """A sub-job needs room for all its Pending tasks, be its minimum smaller (Quirk, spec 06 §A7.3)."""
        if sub_job.hard_tier is None:
            return [[start]]
        need = sub_job.pending_request
        return self._gradients(sub_job.hard_tier, sub_job.allocated_hyper_node, need, start, purpose)

    def _gradients(self, limit: int, home: str, need: Resources, start: str, purpose: GradientPurpose) -> Gradients:
        root = self._search_root(limit, home, start)
        if root is None:
            return []
        tiers: dict[int, list[str]] = {}
        for domain in self._eligible(root, limit, home, need, purpose):
            tiers.setdefault(domain.tier, []).append(domain.name)
        groups = list(tiers.values())
        return self._widest(groups) if purpose is GradientPurpose.EVICT else groups

    def _search_root(self, limit: int, home: str, start: str) -> str | None:
        """Inside the start, but not outside of what the home allows; None if that leaves nothing."""
        if not home:
            return start
        topology = self._topology
        widest = ""
        for name in topology.ancestors(home):
            domain = topology.domains.get(name)
            if domain is None:
                return None
            if domain.tier > limit:
                break
            widest = name
        if not widest:
            return None
        common = topology.common(start, widest)
        if common == widest:
            return start
        return widest if common == start else None

    def _eligible(
        self, root: str, limit: int, home: str, need: Resources, purpose: GradientPurpose
    ) -> list[NetworkDomain]:
        domains = [d for d in self._topology.below(root) if d.tier <= limit]
        if home:
            return domains
        books = self._books
        if purpose is GradientPurpose.ALLOCATE:
            fits = books.fits(need, books.idle) | books.fits(need, books.future_idle)
        else:
            fits = books.fits(need, books.allocatable)
        index = self._topology.index
        return [d for d in domains if fits[index[d.name]]]

    def _widest(self, groups: Gradients) -> Gradients:
        """Widest first, not too many; of a group that does not fit whole, the last ones."""
        left = self._max_evict_domains
        chosen = []
        for group in reversed(groups):
            if not left:
                break
            chosen.append(group[-left:])
            left -= len(chosen[-1])
        return chosen
