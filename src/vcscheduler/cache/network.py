"""The network as the cache keeps it: HyperNodes from events, the topology of the next session, jobs that care."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from vcscheduler.cache.domains import settle_domains
from vcscheduler.model.hypernodes import HyperNodes
from vcscheduler.model.job import Job
from vcscheduler.model.nodes import NodeTable
from vcscheduler.model.topology import NetworkDomain, Topology
from vcscheduler.objects import HyperNode, KubernetesObject, Node


class Network:
    """``topology``: that of the current session, or of the last one."""

    def __init__(self, table: NodeTable) -> None:
        self.hyper_nodes = HyperNodes()
        self._table = table
        self._jobs: dict[str, Job] = {}
        self.topology = Topology((), table.ready_rows, table.n)
        self._version = self.hyper_nodes.version
        self._epoch = table.epoch

    def on_hyper_node(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        if isinstance(new, HyperNode):
            self.hyper_nodes.put(new)
        elif old is not None:
            self.hyper_nodes.drop(old.name)

    def on_node(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        """Every node of the cluster, also those that this scheduler does not use."""
        if isinstance(new, Node):
            self.hyper_nodes.put_node(new.name, new.metadata.labels)
        elif old is not None:
            self.hyper_nodes.drop_node(old.name)

    def begin_session(self, changed: Iterable[Job], left: Iterable[str]) -> None:
        """``changed``: jobs that anything happened to since the last session; ``left``: ids of those that are gone."""
        due = {}
        for id in left:
            self._jobs.pop(id, None)
        for job in changed:
            job.drop_empty_sub_jobs()
            if job.has_network_topology or job.has_policies:
                due[job.id] = self._jobs[job.id] = job
            elif self._jobs.pop(job.id, None) is not None:
                due[job.id] = job
        self.hyper_nodes.settle()
        if self._renew():
            due.update(self._jobs)
        settle_domains(due.values(), self.topology, self._table)

    def _renew(self) -> bool:
        """Whether there is a new topology."""
        table, known, old = self._table, self.hyper_nodes, self.topology
        if self._version == known.version:
            if self._epoch == table.epoch:
                return False
            self._epoch = table.epoch
            if np.array_equal(old.top.rows, table.ready_rows) and old.rows_in_table == table.n:
                return False
        self._version, self._epoch = known.version, table.epoch
        domains = []
        tier_names: dict[str, int] = {}
        for name in sorted(known.entries):
            entry = known.entries[name]
            nodes = (table.get(node) for node in known.nodes.get(name, ()))
            rows = np.array(sorted(node.row for node in nodes if node is not None), dtype=np.int64)
            listed = name in known.by_tier.get(entry.tier, ())
            domains.append(NetworkDomain(name, entry.tier, rows, entry.parent, entry.listed_children, listed))
            if entry.spec is not None and entry.spec.tier_name:
                tier_names.setdefault(entry.spec.tier_name, entry.tier)
        self.topology = Topology(domains, table.ready_rows, table.n, tier_names=tier_names, ready=known.ready)
        return True
