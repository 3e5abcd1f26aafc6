"""Jobs and network domains before a session opens: how far each may spread, where it is already (spec 06 §A5.3, §A9).

Only jobs that changed are looked at, or all of them when the topology did.
"""

from __future__ import annotations

from collections.abc import Iterable

from vcscheduler.model.job import Job, SubJob
from vcscheduler.model.nodes import NodeTable
from vcscheduler.model.status import IS_ALLOCATED
from vcscheduler.model.topology import Topology
from vcscheduler.objects import NetworkTopologySpec

HARD, SOFT = "hard", "soft"


def settle_domains(jobs: Iterable[Job], topology: Topology, table: NodeTable) -> None:
    for job in jobs:
        _limit(job, topology)
        if topology.ready:
            _forget(job, topology)
            if job.has_network_topology:
                _recover(job, topology, table)


# --- how far (spec 02 §4.3) -----------------------------------------------------------------------------------------


def _limit(job: Job, topology: Topology) -> None:
    """From here on soft is hard without a bound: the whole cluster, or for a sub-job what its job is held to."""
    top = topology.top.tier
    mode, tier = _wish(job.network_topology, topology)
    if mode == SOFT:
        mode, tier = HARD, top
    job.hard_tier = tier if mode == HARD else None
    for sub_job in job.sub_jobs.values():
        own_mode, own_tier = _wish(sub_job.network_topology, topology)
        if own_mode == SOFT:
            own_mode, own_tier = HARD, top if tier is None else tier
        sub_job.hard_tier = own_tier if own_mode == HARD else None


def _wish(spec: NetworkTopologySpec | None, topology: Topology) -> tuple[str, int | None]:
    """Mode and tier. A tier name that no HyperNode has leaves the tier open (Quirk, spec 06 §A5.4)."""
    if spec is None:
        return "", None
    if spec.highest_tier_allowed is None and spec.highest_tier_name:
        return spec.mode, topology.tier_names.get(spec.highest_tier_name)
    return spec.mode, spec.highest_tier_allowed


# --- where (spec 02 §4.4) ---------------------------------------------------------------------------------------------


def _forget(job: Job, topology: Topology) -> None:
    """Domains that are gone, or that nothing of the job is in any more."""
    owners: tuple[Job | SubJob, ...] = (job, *job.sub_jobs.values())
    for owner in owners:
        if owner.allocated_hyper_node and (
            owner.allocated_hyper_node not in topology.domains
            or not any(n for status, n in zip(IS_ALLOCATED, owner.counts) if status)
        ):
            owner.allocated_hyper_node = ""


def _recover(job: Job, topology: Topology, table: NodeTable) -> None:
    """From where tasks run, for sub-jobs whose domain is not known, as after a restart."""
    found = False
    for sub_job in job.sub_jobs.values():
        if sub_job.network_topology is None or sub_job.allocated_hyper_node:
            continue
        sub_job.allocated_hyper_node = _smallest_domain(sub_job, topology, table)
        found = found or bool(sub_job.allocated_hyper_node)
    if not job.allocated_hyper_node or found:
        common = ""
        for sub_job in sorted(job.sub_jobs.values(), key=lambda s: s.id):
            if sub_job.allocated_hyper_node:
                common = topology.common(common, sub_job.allocated_hyper_node)
                if not common:
                    break
        job.allocated_hyper_node = common


def _smallest_domain(sub_job: SubJob, topology: Topology, table: NodeTable) -> str:
    """The domain of lowest tier that holds all nodes on which the sub-job has tasks; "" if there is none."""
    rows: set[int] = set()
    for task in sub_job.tasks.values():
        if IS_ALLOCATED[task.status] and task.node_name:
            node = table.get(task.node_name)
            if node is None:
                return ""
            rows.add(node.row)
    shared: set[int] | None = None
    for row in rows:
        holding = set(topology.holders[row].tolist())
        shared = holding if shared is None else shared & holding
    domains = [topology.domains[topology.names[i]] for i in shared or ()]
    return min(domains, key=lambda d: (d.tier, d.name)).name if domains else ""
