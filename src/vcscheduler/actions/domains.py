"""Network domains as the actions use them: which ones to try for a job or sub-job (spec 06 §A8, §A11.1).

For an action that evicts:

    for domain in eviction_domains(ssn, job, max_domains):          # widest first; those without nodes are left out
        ...
        for inner in sub_job_eviction_domains(ssn, sub_job, domain):  # take the first one that works
            placing on inner.rows ...

``Domain.name`` is "" for the whole cluster, which is also what both give where nothing is limited (no hard topology, or
no plugin that knows gradients).
"""

from __future__ import annotations

from collections.abc import Iterable

from vcscheduler.actions.placing import Domain
from vcscheduler.framework.session import Session
from vcscheduler.model.job import Job, SubJob
from vcscheduler.model.topology import TOP, GradientPurpose


def domain_of(ssn: Session, name: str) -> Domain:
    """A domain of the session's topology by name; the top is the whole cluster."""
    if name == TOP:
        return Domain("", ssn.search.all_rows)
    return Domain(name, ssn.topology.rows(name))


def eviction_domains(ssn: Session, job: Job, maximum: int) -> list[Domain]:
    """Where to look for victims on behalf of a job: at most ``maximum`` domains, in order, each once, none without
    nodes. A job without hard topology gets the whole cluster; one with it may get nothing."""
    gradients = ssn.hyper_node_gradients_for_job(job, TOP, GradientPurpose.EVICT)
    names = list(dict.fromkeys(name for group in gradients for name in group))[:maximum]
    if not names and not job.has_hard_topology:
        names = [TOP]
    return _with_nodes(domain_of(ssn, name) for name in names)


def sub_job_eviction_domains(ssn: Session, sub_job: SubJob, inside: Domain) -> list[Domain]:
    """Where inside a domain a sub-job may go, in the order in which to try; the domain itself unless the job has a
    hard topology."""
    if not sub_job.job.has_hard_topology:
        return [inside]
    gradients = ssn.hyper_node_gradients_for_sub_job(sub_job, inside.name or TOP, GradientPurpose.EVICT)
    return _with_nodes(domain_of(ssn, name) for group in gradients for name in group)


def _with_nodes(domains: Iterable[Domain]) -> list[Domain]:
    return [d for d in domains if len(d.rows)]
