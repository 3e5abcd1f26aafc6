"""Network domains as the actions use them: allocate's search over them (spec 06 §A8), where to evict (spec 06 §A11.1).

Allocate tries a job in every domain of a group, undoes each try, and does the best one again for good; inside a domain
it does the same with every sub-job. For an action that evicts:

    for domain in eviction_domains(ssn, job, max_domains):          # widest first; those without nodes are left out
        ...
        for inner in sub_job_eviction_domains(ssn, sub_job, domain):  # take the first one that works
            placing on inner.rows ...

``Domain.name`` is "" for the whole cluster, which is also what both give where nothing is limited (no hard topology, or
no plugin that knows gradients).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vcscheduler.actions.placing import Domain, Placing
from vcscheduler.actions.worksheet import TaskQueue, Worksheet
from vcscheduler.framework.session import Session
from vcscheduler.framework.statement import Operation, Statement
from vcscheduler.model.job import Job, SubJob
from vcscheduler.model.queue import Queue
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


@dataclass(slots=True)
class _Trial:
    """What worked in one domain: the operations, and the work that they leave."""

    domain: str
    operations: list[Operation]
    left: Worksheet
    score: float


class DomainSearch:
    """Places jobs inside network domains. One instance an execution of allocate: it remembers what was decided until
    the job is committed."""

    def __init__(self, ssn: Session, placing: Placing) -> None:
        self._ssn = ssn
        self._placing = placing
        self._domains: dict[str, Domain] = {}
        self._job_domain: dict[str, str] = {}
        self._sub_job_domains: dict[tuple[str, str], dict[str, str]] = {}

    def place_job(self, queue: Queue, job: Job, worksheet: Worksheet) -> tuple[Statement, Worksheet] | None:
        """A statement that makes the job ready or pipelined, applied and not committed, and the work that is left."""
        for names in self._ssn.hyper_node_gradients_for_job(job, TOP, GradientPurpose.ALLOCATE):
            trials = [self._try_job(queue, job, worksheet, name) for name in names]
            worked = [t for t in trials if t is not None]
            if not worked:
                continue
            best = min(worked, key=lambda t: (-t.score, t.domain))
            statement = Statement(self._ssn)
            if statement.recover(best.operations) is not None:
                return None
            self._job_domain[job.id] = best.domain
            return statement, best.left
        return None

    def _try_job(self, queue: Queue, job: Job, worksheet: Worksheet, name: str) -> _Trial | None:
        ssn = self._ssn
        job.fit_errors = {}
        work = worksheet.clone()
        homes = [(job.sub_jobs[id], job.sub_jobs[id].allocated_hyper_node) for id in work.tasks]
        total, score = Statement(ssn), 0.0
        while (sub_job := work.sub_jobs.pop()) is not None:
            placed = self._place_sub_job(queue, job, sub_job, work, name)
            if placed is None:
                continue
            total.merge(placed[0])
            score += placed[1]
            if len(work.tasks[sub_job.id]):
                work.sub_jobs.push(sub_job)
            if ssn.job_ready(job):
                break
        for sub_job, home in homes:
            sub_job.allocated_hyper_node = home
        if not len(total):
            return None
        good = ssn.job_ready(job) or ssn.job_pipelined(job)
        operations = total.save()
        total.discard()
        return _Trial(name, operations, work, score) if good else None

    def _place_sub_job(
        self, queue: Queue, job: Job, sub_job: SubJob, work: Worksheet, inside: str
    ) -> tuple[Statement, float] | None:
        """At least one task of the sub-job placed in one domain inside the given one, and that domain's score."""
        ssn = self._ssn
        for names in ssn.hyper_node_gradients_for_sub_job(sub_job, inside, GradientPurpose.ALLOCATE):
            worked: dict[str, tuple[list[Operation], TaskQueue]] = {}
            for name in names:
                for uid in sub_job.tasks:
                    job.fit_errors.pop(uid, None)
                tasks = work.tasks[sub_job.id].clone()
                trial = self._placing.place(queue, job, sub_job, tasks, self._domain(name))
                if trial is not None and len(trial):
                    worked[name] = trial.save(), tasks
                    trial.discard()
            if not worked:
                continue
            scores = ssn.hyper_node_scores(sub_job, list(worked))
            best = min(worked, key=lambda name: (-scores[name], name))
            operations, left = worked[best]
            statement = Statement(ssn)
            if statement.recover(operations) is not None:
                return None
            sub_job.allocated_hyper_node = ssn.topology.common(sub_job.allocated_hyper_node, best)
            work.tasks[sub_job.id] = left
            self._sub_job_domains.setdefault((job.id, inside), {})[sub_job.id] = sub_job.allocated_hyper_node
            return statement, scores[best]
        return None

    def _domain(self, name: str) -> Domain:
        found = self._domains.get(name)
        if found is None:
            found = self._domains[name] = domain_of(self._ssn, name)
        return found

    def committed(self, job: Job) -> None:
        """The job and its sub-jobs are where they were placed. Decisions of earlier turns for the same domain count
        too (Quirk, spec 06 §A9)."""
        common, name = self._ssn.topology.common, self._job_domain[job.id]
        job.allocated_hyper_node = common(job.allocated_hyper_node, name)
        for id, domain in self._sub_job_domains.get((job.id, name), {}).items():
            sub_job = job.sub_jobs[id]
            sub_job.allocated_hyper_node = common(sub_job.allocated_hyper_node, domain)
            sub_job.nominated_hyper_node = ""
