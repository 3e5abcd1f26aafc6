"""reclaim: evicts tasks of other queues for the starving jobs of a queue that has less than its due (spec 03 §6)."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from vcscheduler.actions.answers import Answer, Answers
from vcscheduler.actions.victims import (
    NEVER,
    Evictables,
    Futile,
    Room,
    enough_with,
    in_order,
    rows_not_excluded,
    turns,
    waiting_tasks,
)
from vcscheduler.framework.action import Action
from vcscheduler.framework.session import Session
from vcscheduler.framework.statement import Statement
from vcscheduler.model.job import Job
from vcscheduler.model.queue import Queue as JobQueue
from vcscheduler.model.status import RUNNING
from vcscheduler.model.task import Task
from vcscheduler.placement.search import ErrorCache, Purpose


class Reclaim(Action):
    name = "reclaim"
    known_arguments: ClassVar[dict[str, str]] = {"predicateErrorCacheEnable": "bool"}

    def __init__(self) -> None:
        # Upstream keeps the last value when a key leaves the configuration (Quirk, spec 02 §2.8).
        self._error_cache = True

    def execute(self, ssn: Session) -> None:
        arguments = ssn.configuration.action_arguments(self.name)
        self._error_cache = arguments.get_bool("predicateErrorCacheEnable", self._error_cache)
        _Run(ssn, self._error_cache).execute()


class _Run:
    """One execution of the action."""

    def __init__(self, ssn: Session, error_cache: bool) -> None:
        self._ssn = ssn
        self._search = ssn.search
        self._error_cache = error_cache
        self._evictables = Evictables(ssn)
        self._answers = Answers(ssn, ssn.reclaimable, ssn.reclaimable_by_job)
        self._futile = Futile(ssn.table)
        self._protected = frozenset(q.name for q in ssn.queues.values() if not q.reclaimable)

    def execute(self) -> None:
        ssn = self._ssn
        queues, jobs = turns(ssn)
        while (next_queue := queues.pop()) is not None:
            heap = jobs.get(next_queue.name)
            if heap is None or ssn.overused(next_queue):
                continue
            # A queue's jobs all have their turn before another queue is looked at; the entries pushed meanwhile pop
            # empty, but move others (Quirk, spec 03 §6.2).
            while (next_job := heap.pop()) is not None:
                self._for_job(next_queue, next_job)
                if len(heap):
                    queues.push(next_queue)

    def _for_job(self, queue: JobQueue, job: Job) -> None:
        ssn = self._ssn
        statement = Statement(ssn)
        tasks = ssn.task_queue(waiting_tasks(job))
        while ssn.job_starving(job) and (task := tasks.pop()) is not None:
            if task.pod.spec.preemption_policy == NEVER or not ssn.preemptive(queue, [task]):
                continue
            if ssn.pre_predicate(task) is None:
                self._for_task(job, task, statement)
        if ssn.job_pipelined(job):
            statement.commit()
        else:
            statement.discard()

    def _for_task(self, job: Job, task: Task, statement: Statement) -> None:
        """Nodes in search order, without scores; after the evictions only resources are looked at (Quirk, spec 03
        §6.3)."""
        rows = rows_not_excluded(self._ssn, job, task)
        hopeful = self._ssn.runs.hopeful_rows(task) if rows is self._search.all_rows else None
        if hopeful is None:
            rows, _ = self._search.feasible(task, rows, ErrorCache(self._error_cache), Purpose.PREEMPT)
        else:
            rows = hopeful
        if self._futile.again(task, rows):
            return
        self._evictables.refresh()
        barren = self._evictables.barren(job.queue)
        candidates = partial(self._candidates, job.queue)
        for row in in_order(rows, barren):
            answer = self._answers.of(task, row, candidates)
            if answer is None:
                barren[row] = True
            elif self._on_node(task, row, answer, statement):
                return
        self._futile.note(task, rows)

    def _candidates(self, queue: str, row: int) -> list[Task]:
        by_queue = self._evictables.by_queue(row)
        found = [tasks for name, tasks in by_queue.items() if name != queue and name not in self._protected]
        if not found:
            return []
        if len(found) == 1:
            return [t for t in found[0] if t.status is RUNNING]
        return sorted((t for tasks in found for t in tasks if t.status is RUNNING), key=lambda t: t.key)

    def _on_node(self, task: Task, row: int, answer: Answer, statement: Statement) -> bool:
        ssn = self._ssn
        node = ssn.table.nodes[row]
        victims = answer.victims
        room = Room(ssn.table, task, row)
        if not enough_with(room.copy(), victims):
            if ssn.explaining_victims:
                why = f"{len(victims)} of {answer.candidates} candidates may be reclaimed, which frees too little"
                ssn.explain_node(task, Reclaim.name, node, why)
            return False
        here = Statement(ssn)
        evicted: list[Task] = []
        if not room.enough():
            queue = answer.queue()
            while not room.enough() and (victim := queue.pop()) is not None:
                here.evict(victim, Reclaim.name, task)
                evicted.append(victim)
                room.add(victim)
        if here.pipeline(task, node, bool(evicted)) is None:
            statement.merge(here)
            answer.evicted(evicted)
            return True
        here.discard()
        self._evictables.refresh()
        return False
