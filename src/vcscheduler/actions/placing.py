"""Placing the tasks of one sub-job on a set of nodes (spec 03 §3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vcscheduler.actions.worksheet import TaskQueue
from vcscheduler.framework.heap import SortedQueue
from vcscheduler.framework.session import Session
from vcscheduler.framework.statement import Statement
from vcscheduler.model.fit import FitErrors
from vcscheduler.model.job import Job, SubJob
from vcscheduler.model.queue import Queue
from vcscheduler.model.status import ALLOCATED, PIPELINED
from vcscheduler.model.task import QUEUE_ALLOCATION_GATE, Task
from vcscheduler.placement.rules import IntArray
from vcscheduler.placement.search import ErrorCache, Purpose


@dataclass(frozen=True, slots=True)
class Domain:
    """Where tasks may go: a network domain, or (without name) the whole cluster."""

    name: str
    rows: IntArray

    @property
    def is_whole_cluster(self) -> bool:
        return not self.name


class Placing:
    """Places tasks of a sub-job until it is ready, or nothing more can be done."""

    def __init__(self, ssn: Session, error_cache: bool) -> None:
        self._ssn = ssn
        self._search = ssn.search
        self._runs = ssn.runs if ssn.runs_allowed and ssn.pre_predicates_run else None
        self._error_cache = error_cache

    def place(self, queue: Queue, job: Job, sub_job: SubJob, tasks: TaskQueue, domain: Domain) -> Statement | None:
        """A statement that makes the sub-job ready or pipelined, applied and not committed; else None."""
        ssn = self._ssn
        if not len(domain.rows):
            return None
        statement = Statement(ssn)
        topology = ssn.topology if sub_job.network_topology is not None else None
        home = sub_job.allocated_hyper_node
        cache = ErrorCache(self._error_cache)
        while len(tasks):
            task, in_run = self._next(job, tasks, domain)
            if not ssn.allocatable(queue, task):
                if in_run:
                    tasks.pop()
                continue
            if task.gated:
                if in_run:
                    tasks.pop()
                self._ask_gate_removal(task)
                continue
            if job.role_has_fit_errors(sub_job, task):
                if in_run:
                    tasks.pop()
                base = f"Task {task.name} with role spec {task.role} has already predicated failed, skip"
                job.record_fit_errors(task, FitErrors(base=base))
                ssn.touch(job)
                continue
            failure = ssn.pre_predicate(task)
            if failure is not None:
                if in_run:
                    tasks.pop()
                job.record_fit_errors(task, FitErrors.everywhere(domain.rows, failure))
                ssn.touch(job)
                if job.continues_after_failure(sub_job):
                    continue
                break
            if in_run:
                if self._place_run(queue, job, task, tasks, statement, cache):
                    if ssn.sub_job_ready(sub_job):
                        return statement
                    continue
                tasks.pop()
            found = self._feasible(job, task, domain, cache)
            if found is None:
                if job.continues_after_failure(sub_job):
                    continue
                break
            if topology is not None:
                # Nodes are scored by how near they are to where the sub-job is (spec 06 §A8.6).
                task.job_allocated_hyper_node = home
            row = self._search.choose(task, found)
            if row is None or not self._take(statement, task, row):
                task.job_allocated_hyper_node = ""
                continue
            if topology is not None:
                home = topology.common(topology.lowest_of(row), home)
            if ssn.sub_job_ready(sub_job):
                return statement
        if ssn.sub_job_ready(sub_job) or ssn.sub_job_pipelined(sub_job):
            return statement
        statement.discard()
        return None

    def _next(self, job: Job, tasks: TaskQueue, domain: Domain) -> tuple[Task, bool]:
        """The next task; True if it is still in the queue, because a run may start with it."""
        if self._runs is not None and domain.is_whole_cluster and isinstance(tasks, SortedQueue):
            first = tasks.peek()
            if not first.gated:
                return first, True
        task = tasks.pop()
        assert task is not None
        return task, False

    def _ask_gate_removal(self, task: Task) -> None:
        annotated = task.pod.metadata.annotations.get(QUEUE_ALLOCATION_GATE) == "true"
        if annotated and self._ssn.options.feature_gates.get("SchedulingGatesQueueAdmission", False):
            self._ssn.cache.remove_gate(task)

    def _place_run(
        self, queue: Queue, job: Job, first: Task, tasks: TaskQueue, statement: Statement, cache: ErrorCache
    ) -> bool:
        """Place the first task and those alike that follow it, as far as nobody needs to look in between."""
        ssn, runs = self._ssn, self._runs
        assert runs is not None
        assert isinstance(tasks, SortedQueue)
        # Of a job with sub-groups it is the sub-job that must be asked after every task.
        limit = 1 if job.has_policies else len(tasks)
        if limit > 1:
            limit = ssn.placements_until_ready(job, first, limit)
        run = tasks.run(runs.alike, limit) if limit > 1 else [first]
        count = ssn.allocatable_count(queue, first, len(run)) if len(run) > 1 else 1
        last, promised = count == len(tasks), self._promised(run[:count])
        status = ALLOCATED
        rows = runs.place(first, count, cache, last=last, nominated=promised)
        if rows is not None and not rows:
            status = PIPELINED
            rows = runs.place(first, count, cache, last=last, nominated=promised, later=True)
        if not rows:
            return False
        placed = run[: len(rows)]
        if len(placed) > 1:
            ssn.pre_predicate_run(placed)
        tasks.skip(len(placed))
        statement.place_run(job, placed, rows, status)
        return True

    def _promised(self, tasks: list[Task]) -> IntArray | None:
        """Rows of the nodes that the tasks are nominated to, -1 for none; None if none of them is nominated."""
        names = [t.pod.status.nominated_node_name for t in tasks]
        if not any(names):
            return None
        nodes = [self._ssn.node(name) if name else None for name in names]
        return np.array([-1 if node is None else node.row for node in nodes], dtype=np.int64)

    def _feasible(self, job: Job, task: Task, domain: Domain, cache: ErrorCache) -> IntArray | None:
        """Rows that the task fits; None after recording why there are none."""
        ssn, search = self._ssn, self._search
        found = domain.rows[:0]
        errors = FitErrors()
        nominated = task.pod.status.nominated_node_name
        if nominated:
            node = ssn.node(nominated)
            if node is not None:
                only = domain.rows[domain.rows == node.row]
                if len(only) and search.fits(task, only, future=True).all():
                    found, errors = search.feasible(task, only, cache, Purpose.ALLOCATE)
        if not len(found):
            found, errors = search.feasible(task, domain.rows, cache, Purpose.ALLOCATE)
        if not len(found):
            errors.hyper_node = domain.name
            job.record_fit_errors(task, errors)
            ssn.touch(job)
            return None
        return found

    def _take(self, statement: Statement, task: Task, row: int) -> bool:
        search, node = self._search, self._ssn.table.nodes[row]
        rows = np.array([row], dtype=np.int64)
        if search.fits(task, rows, future=False)[0]:
            return statement.allocate(task, node) is None
        if search.fits(task, rows, future=True)[0]:
            return statement.pipeline(task, node, False) is None
        return False
