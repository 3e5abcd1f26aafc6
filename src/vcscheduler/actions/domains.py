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

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from vcscheduler.actions.placing import Domain, Placing
from vcscheduler.actions.worksheet import TaskQueue, Worksheet
from vcscheduler.framework.session import Session
from vcscheduler.framework.statement import Operation, Statement
from vcscheduler.model.fit import FitErrors
from vcscheduler.model.job import Job, SubJob
from vcscheduler.model.queue import Queue
from vcscheduler.model.task import Task, TransactionContext
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
    """What worked in one domain: the operations, and the work that they leave. ``ready``: the job is; else it is only
    pipelined."""

    domain: str
    ready: bool
    operations: list[Operation]
    left: Worksheet
    score: float


class DomainSearch:
    """Places jobs inside network domains. One instance an execution of allocate: it remembers what was decided until
    the job is committed."""

    def __init__(self, ssn: Session, placing: Placing) -> None:
        self._ssn = ssn
        self._placing = placing
        self._job_domain: dict[str, str] = {}
        self._sub_job_domains: dict[tuple[str, str], dict[str, str]] = {}

    def place_job(self, queue: Queue, job: Job, worksheet: Worksheet) -> tuple[Statement, Worksheet] | None:
        """A statement that makes the job ready or pipelined, applied and not committed, and the work that is left."""
        for names in self._ssn.hyper_node_gradients_for_job(job, TOP, GradientPurpose.ALLOCATE):
            best = self._best_of(queue, job, worksheet, names)
            if best is None:
                continue
            statement = Statement(self._ssn)
            if statement.recover(best.operations) is not None:
                return None
            self._job_domain[job.id] = best.domain
            return statement, best.left
        return None

    def _best_of(self, queue: Queue, job: Job, worksheet: Worksheet, names: list[str]) -> _Trial | None:
        """What worked in the domain of the highest score; the first by name among equal ones."""
        scores = self._known_scores(job, names)
        if scores is not None:
            traces = _Traces(job, job.tasks)
            best = None
            for name in sorted(scores, key=lambda name: (-scores[name], name)):
                with traces.of(name):
                    best = self._try_job(queue, job, worksheet, name)
                if best is not None:
                    break
            if best is None or best.ready:
                if names[-1] in scores and not traces.has(names[-1]):
                    with traces.of(names[-1]):
                        self._try_job(queue, job, worksheet, names[-1])
                traces.leave_as_tried(names)
                return best
        trials = [self._try_job(queue, job, worksheet, name) for name in names]
        worked = [t for t in trials if t is not None]
        return min(worked, key=lambda t: (-t.score, t.domain)) if worked else None

    def _known_scores(self, job: Job, names: list[str]) -> dict[str, float] | None:
        """Scores by domain where they are known without trying, because the job is of one piece and each domain is its
        only choice inside itself. Domains that cannot take it are left out. Then the best one that works is found
        without trying the others; that is only of use where nobody sees what was tried (a cursor that moves, tasks that
        remember where they stood)."""
        ssn = self._ssn
        if len(names) < 3 or job.has_policies or not ssn.search.sampling.exact:
            return None
        sub_job = job.default_sub_job
        possible = []
        for name in names:
            inside = ssn.hyper_node_gradients_for_sub_job(sub_job, name, GradientPurpose.ALLOCATE)
            if inside == [[name]]:
                possible.append(name)
            elif inside:
                return None
        return ssn.hyper_node_scores_alone(sub_job, possible)

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
        ready = ssn.job_ready(job)
        good = ready or ssn.job_pipelined(job)
        operations = total.save()
        total.discard()
        return _Trial(name, ready, operations, work, score) if good else None

    def _place_sub_job(
        self, queue: Queue, job: Job, sub_job: SubJob, work: Worksheet, inside: str
    ) -> tuple[Statement, float] | None:
        """At least one task of the sub-job placed in one domain inside the given one, and that domain's score."""
        ssn = self._ssn
        tries = _SubJobTries(ssn, self._placing, queue, sub_job, work.tasks[sub_job.id])
        for names in ssn.hyper_node_gradients_for_sub_job(sub_job, inside, GradientPurpose.ALLOCATE):
            best = tries.best_of(names)
            if best is None:
                continue
            name, score, operations, left = best
            statement = Statement(ssn)
            if statement.recover(operations) is not None:
                return None
            sub_job.allocated_hyper_node = ssn.topology.common(sub_job.allocated_hyper_node, name)
            work.tasks[sub_job.id] = left
            self._sub_job_domains.setdefault((job.id, inside), {})[sub_job.id] = sub_job.allocated_hyper_node
            return statement, score
        return None

    def committed(self, job: Job) -> None:
        """The job and its sub-jobs are where they were placed. Decisions of earlier turns for the same domain count
        too (Quirk, spec 06 §A9)."""
        common, name = self._ssn.topology.common, self._job_domain[job.id]
        job.allocated_hyper_node = common(job.allocated_hyper_node, name)
        for id, domain in self._sub_job_domains.get((job.id, name), {}).items():
            sub_job = job.sub_jobs[id]
            sub_job.allocated_hyper_node = common(sub_job.allocated_hyper_node, domain)
            sub_job.nominated_hyper_node = ""


class _SubJobTries:
    """Tries of one sub-job in the domains of a group."""

    def __init__(self, ssn: Session, placing: Placing, queue: Queue, sub_job: SubJob, tasks: TaskQueue) -> None:
        self._ssn = ssn
        self._placing = placing
        self._queue = queue
        self._sub_job = sub_job
        self._tasks = tasks
        self._worked: dict[str, tuple[list[Operation], TaskQueue]] = {}
        self._traces = _Traces(sub_job.job, sub_job.tasks)

    def best_of(self, names: list[str]) -> tuple[str, float, list[Operation], TaskQueue] | None:
        """What worked in the domain of the highest score, with that score; the first by name among equal ones."""
        scores = self._scores(names)
        if not scores:
            return None
        best = min(scores, key=lambda name: (-scores[name], name))
        return best, scores[best], *self._worked[best]

    def _scores(self, names: list[str]) -> dict[str, float]:
        """Scores of those that worked, as far as they can be the best."""
        ssn, sub_job = self._ssn, self._sub_job
        alone = None
        if len(names) > 2 and ssn.search.sampling.exact:
            alone = ssn.hyper_node_scores_alone(sub_job, names)
        if alone is None:
            worked = [name for name in names if self._works(name)]
            return ssn.hyper_node_scores(sub_job, worked) if worked else {}
        scores: dict[str, float] = {}
        for score in sorted(set(alone.values()), reverse=True):
            equals = sorted(name for name in names if alone[name] == score)
            together = ssn.hyper_node_scores(sub_job, equals)
            if all(together[name] == score for name in equals):
                first = next((name for name in equals if self._works(name)), None)
                scores = {first: score} if first is not None else {}
            else:
                worked = [name for name in equals if self._works(name)]
                scores = ssn.hyper_node_scores(sub_job, worked) if worked else {}
            if scores:
                break
        if not self._traces.has(names[-1]):
            self._works(names[-1])
        self._traces.leave_as_tried(names)
        return scores

    def _works(self, name: str) -> bool:
        sub_job, job = self._sub_job, self._sub_job.job
        for uid in sub_job.tasks:
            job.fit_errors.pop(uid, None)
        tasks = self._tasks.clone()
        with self._traces.of(name):
            trial = self._placing.place(self._queue, job, sub_job, tasks, domain_of(self._ssn, name))
            if trial is None or not len(trial):
                return False
            self._worked[name] = trial.save(), tasks
            trial.discard()
            return True


class _Traces:
    """What tries leave behind on tasks, fit errors and where they stood, kept by domain: tries may be made in another
    order than the one in which they are listed, and in the end look as if they had not."""

    def __init__(self, job: Job, tasks: dict[str, Task]) -> None:
        self._job = job
        self._tasks = tasks
        self._errors: dict[str, dict[str, FitErrors]] = {}
        self._stood: dict[str, list[tuple[Task, TransactionContext | None]]] = {}

    def has(self, name: str) -> bool:
        return name in self._errors

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Around a try in a domain."""
        before = [(task, task.last_transaction) for task in self._tasks.values()]
        yield
        self._errors[name] = {uid: e for uid, e in self._job.fit_errors.items() if uid in self._tasks}
        self._stood[name] = [(t, t.last_transaction) for t, old in before if t.last_transaction is not old]

    def leave_as_tried(self, names: list[str]) -> None:
        """As if the domains had been tried in this order; those that were not tried left nothing."""
        for name in names:
            for task, context in self._stood.get(name, ()):
                task.last_transaction = context
        for uid in self._tasks:
            self._job.fit_errors.pop(uid, None)
        self._job.fit_errors.update(self._errors.get(names[-1], {}))
