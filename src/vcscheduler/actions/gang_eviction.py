"""What gangpreempt and gangreclaim share: make room for a whole job in one domain, by evicting bundles (spec 03 §8).

For each domain bundles are taken in order until the job fits in thought; then it is tried in full, and what worked is
done again for good. The rest is a matter of who may be a victim.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from vcscheduler.actions.bundles import Bundle, allows_eviction, approved, ordered, split, total_request
from vcscheduler.actions.domains import eviction_domains, sub_job_eviction_domains
from vcscheduler.actions.placing import Domain
from vcscheduler.actions.victims import Evictables, rows_not_excluded, turns
from vcscheduler.actions.worksheet import TaskQueue, Worksheet, build_worksheet
from vcscheduler.framework.action import Action
from vcscheduler.framework.session import Session
from vcscheduler.framework.statement import Operation, Statement
from vcscheduler.model.job import Job, SubJob
from vcscheduler.model.queue import Queue as JobQueue
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import EvictionKind
from vcscheduler.model.task import Task
from vcscheduler.placement.rules import IntArray
from vcscheduler.placement.search import ErrorCache, Purpose

log = logging.getLogger(__name__)

MAX_DOMAINS = 8


class GangEviction(Action):
    """Base of both actions. ``kind``: as what they ask the plugins."""

    kind: ClassVar[EvictionKind]
    known_arguments: ClassVar[dict[str, str]] = {"maxDomains": "int", "allowWholeBundle": "bool"}

    def __init__(self) -> None:
        # Upstream keeps the last value when a key leaves the configuration (Quirk, spec 03 §1.9).
        self._max_domains = MAX_DOMAINS
        self._refused = MAX_DOMAINS
        self._whole_bundles = True

    def execute(self, ssn: Session) -> None:
        arguments = ssn.configuration.action_arguments(self.name)
        given = arguments.get_int("maxDomains", self._max_domains)
        if given <= 0 and given != self._refused:
            log.warning("%s: maxDomains must be at least 1, found %d; %d is used", self.name, given, MAX_DOMAINS)
            self._refused = given
        self._max_domains = given if given > 0 else MAX_DOMAINS
        self._whole_bundles = arguments.get_bool("allowWholeBundle", self._whole_bundles)
        _Run(ssn, self, self._max_domains, self._whole_bundles).execute()

    @abstractmethod
    def may_begin(self, ssn: Session, queue: JobQueue) -> bool:
        """Whether jobs of the queue are looked at."""

    @abstractmethod
    def may_evict(self, ssn: Session, queue: JobQueue, tasks: list[Task]) -> bool:
        """Whether the queue may have others evicted for these tasks."""

    @abstractmethod
    def victims(self, ssn: Session, job: Job, by_queue: dict[str, list[Task]]) -> Iterator[Task]:
        """Tasks of one node that may be looked at on behalf of the job, from those of each queue that could go."""


class _Run:
    """One execution of either action."""

    def __init__(self, ssn: Session, action: GangEviction, max_domains: int, whole_bundles: bool) -> None:
        self._ssn = ssn
        self._search = ssn.search
        self._action = action
        self._max_domains = max_domains
        self._whole_bundles = whole_bundles
        self._evictables = Evictables(ssn)
        arguments = ssn.configuration.action_arguments("allocate")
        self._error_cache = arguments.get_bool("predicateErrorCacheEnable", True)

    def execute(self) -> None:
        ssn, action = self._ssn, self._action
        queues, jobs = turns(ssn)
        while (next_queue := queues.pop()) is not None:
            heap = jobs.get(next_queue.name)
            if heap is None or not action.may_begin(ssn, next_queue):
                continue
            while (next_job := heap.pop()) is not None:
                self._for_job(next_queue, next_job)

    def _for_job(self, queue: JobQueue, job: Job) -> None:
        ssn = self._ssn
        worksheet = build_worksheet(ssn, job, lambda t: not t.best_effort and not t.gated)
        wanted = self._wanted(job, worksheet.clone())
        if not wanted or not self._action.may_evict(ssn, queue, wanted):
            return
        statement = Statement(ssn)
        for domain in eviction_domains(ssn, job, self._max_domains):
            plan = self._plan(queue, job, worksheet, wanted, domain)
            if plan is not None:
                statement.recover(plan)
                break
        if ssn.job_pipelined(job):
            statement.commit()
        else:
            statement.discard()

    def _wanted(self, job: Job, worksheet: Worksheet) -> list[Task]:
        """All tasks of the worksheet; of a job that is ready, those of its first sub-job. Not only what the job's
        minimum takes (Quirk, spec 03 §8.1)."""
        ready = self._ssn.job_ready(job)
        tasks: list[Task] = []
        while (sub_job := worksheet.sub_jobs.pop()) is not None:
            queue = worksheet.tasks[sub_job.id]
            while (task := queue.pop()) is not None:
                tasks.append(task)
            if ready:
                break
        return tasks

    # --- one domain ---------------------------------------------------------------------------------------------------

    def _plan(
        self, queue: JobQueue, job: Job, worksheet: Worksheet, wanted: list[Task], domain: Domain
    ) -> list[Operation] | None:
        """Operations that make the job pipelined, undone again; None if no victims in the domain do."""
        need = total_request(wanted)
        bundles = self._bundles(job, need, domain)
        room = self._room(domain)
        victims: list[Task] = []
        for bundle in bundles:
            victims += bundle.tasks
            room.add(bundle.gain)
            if need.less_equal(room):
                plan = self._simulate(queue, job, worksheet.clone(), wanted[0], victims, domain)
                if plan is not None:
                    return plan
        return None

    def _bundles(self, job: Job, need: Resources, domain: Domain) -> list[Bundle]:
        ssn, kind = self._ssn, self._action.kind
        self._evictables.refresh()
        by_job: dict[str, list[Task]] = {}
        for row in domain.rows.tolist():
            for task in self._action.victims(ssn, job, self._evictables.by_queue(row)):
                by_job.setdefault(task.job_id, []).append(task)
        bundles: list[Bundle] = []
        for id, tasks in sorted(by_job.items()):
            if allows_eviction(ssn.jobs[id]):
                bundles += split(ssn.jobs[id], tasks)
        bundles = approved(ssn, kind, job, ordered(ssn, kind, job, need, bundles))
        bundles = ordered(ssn, kind, job, need, bundles)
        return bundles if self._whole_bundles else [b for b in bundles if b.safe]

    def _room(self, domain: Domain) -> Resources:
        """What is idle or being released in the domain. What is promised to others is not taken off (Quirk, spec 03
        §8.4)."""
        table = self._ssn.table
        names = table.dimensions.names
        free = (table.idle[: len(names), domain.rows] + table.releasing[: len(names), domain.rows]).sum(axis=1)
        amounts: list[float] = free.tolist()
        return Resources(amounts[0], amounts[1], dict(zip(names[2:], amounts[2:], strict=True)))

    # --- trying it ----------------------------------------------------------------------------------------------------

    def _simulate(
        self, queue: JobQueue, job: Job, worksheet: Worksheet, first: Task, victims: list[Task], domain: Domain
    ) -> list[Operation] | None:
        ssn = self._ssn
        was_ready = ssn.job_ready(job)
        total = Statement(ssn)
        for victim in victims:
            total.evict(victim, self._action.name, first)
        placed = False
        while (sub_job := worksheet.sub_jobs.pop()) is not None:
            statement = self._place_somewhere(queue, job, sub_job, worksheet.tasks[sub_job.id], bool(victims), domain)
            placed = statement is not None
            if statement is None:
                break
            total.merge(statement)
            if was_ready or ssn.job_pipelined(job):
                break
        good = placed and ssn.job_pipelined(job)
        plan = total.save()
        total.discard()
        return plan if good else None

    def _place_somewhere(
        self, queue: JobQueue, job: Job, sub_job: SubJob, tasks: TaskQueue, evicted: bool, domain: Domain
    ) -> Statement | None:
        """The sub-job in the first domain inside this one that holds it."""
        for inner in sub_job_eviction_domains(self._ssn, sub_job, domain):
            statement = self._place(queue, job, sub_job, tasks.clone(), evicted, inner)
            if statement is not None:
                return statement
        return None

    def _place(
        self, queue: JobQueue, job: Job, sub_job: SubJob, tasks: TaskQueue, evicted: bool, domain: Domain
    ) -> Statement | None:
        """Pipeline every task of the sub-job in the domain, or none."""
        ssn = self._ssn
        statement = Statement(ssn)
        cache = ErrorCache(self._error_cache)
        while (task := tasks.pop()) is not None:
            row = self._row_for(queue, job, task, cache, domain)
            if row is None or statement.pipeline(task, ssn.table.nodes[row], evicted) is not None:
                statement.discard()
                return None
        if ssn.sub_job_ready(sub_job) or ssn.sub_job_pipelined(sub_job):
            return statement
        statement.discard()
        return None

    def _row_for(self, queue: JobQueue, job: Job, task: Task, cache: ErrorCache, domain: Domain) -> int | None:
        ssn, search = self._ssn, self._search
        if not ssn.allocatable(queue, task):
            return None
        rows = self._rows_in(domain, rows_not_excluded(ssn, job, task))
        if not len(rows) or ssn.pre_predicate(task) is not None:
            return None
        found, _ = search.feasible(task, rows, cache, Purpose.EVICT)
        return search.choose(task, found)

    def _rows_in(self, domain: Domain, open_rows: IntArray) -> IntArray:
        """The domain's nodes that are not excluded. If all nodes are, none counts as excluded (Quirk, spec 03 §8.4)."""
        if domain.is_whole_cluster or not len(open_rows):
            return open_rows if len(open_rows) else domain.rows
        return domain.rows[np.isin(domain.rows, open_rows)]
