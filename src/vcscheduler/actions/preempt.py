"""preempt: evicts lower-ranking tasks of the same queue for jobs that starve (spec 03 §5).

First between the jobs of a queue: what is done for a job stands only if the job can be run with it. Then inside each of
these jobs, task by task, without asking what becomes of the gang (Quirk, spec 03 §5.2).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from vcscheduler.actions.answers import Answer, Answers
from vcscheduler.actions.dry_run import DryRun, DryRunSettings
from vcscheduler.actions.victims import (
    NEVER,
    Evictables,
    Futile,
    Room,
    best_first,
    enough_with,
    free_something,
    passes,
    rows_not_excluded,
    starving_jobs,
    waiting_tasks,
)
from vcscheduler.config import Arguments
from vcscheduler.framework.action import Action
from vcscheduler.framework.heap import PriorityQueue
from vcscheduler.framework.session import Session
from vcscheduler.framework.statement import Statement
from vcscheduler.model.job import Job
from vcscheduler.model.queue import Queue as JobQueue
from vcscheduler.model.status import Code
from vcscheduler.model.task import Task
from vcscheduler.objects.pod import Pod
from vcscheduler.placement.rules import BoolArray, IntArray
from vcscheduler.placement.search import ErrorCache, Purpose


@dataclass(frozen=True, slots=True)
class Settings:
    error_cache: bool = True
    topology_aware: bool = False
    dry_run: DryRunSettings = field(default_factory=DryRunSettings)

    def updated(self, arguments: Arguments) -> Settings:
        """With the arguments that are there; what is missing stays (Quirk, spec 03 §1.9)."""
        return Settings(
            arguments.get_bool("predicateErrorCacheEnable", self.error_cache),
            arguments.get_bool("enableTopologyAwarePreemption", self.topology_aware),
            self.dry_run.updated(arguments),
        )


class Preempt(Action):
    name = "preempt"
    known_arguments: ClassVar[dict[str, str]] = {
        "predicateErrorCacheEnable": "bool",
        "enableTopologyAwarePreemption": "bool",
        "topologyAwarePreemptWorkerNum": "int",
        "minCandidateNodesPercentage": "int",
        "minCandidateNodesAbsolute": "int",
        "maxCandidateNodesAbsolute": "int",
    }

    def __init__(self) -> None:
        self._settings = Settings()

    def execute(self, ssn: Session) -> None:
        self._settings = self._settings.updated(ssn.configuration.action_arguments(self.name))
        _Run(ssn, self._settings).execute()


class _Run:
    """One execution of the action."""

    def __init__(self, ssn: Session, settings: Settings) -> None:
        self._ssn = ssn
        self._attempts = _Attempts(ssn, settings)

    def execute(self) -> None:
        ssn = self._ssn
        queues = ssn.queue_heap()
        by_queue: dict[str, list[Job]] = {}
        for job in starving_jobs(ssn, lambda job: not job.has_network_topology):
            if job.queue not in by_queue:
                by_queue[job.queue] = []
                queues.push(ssn.queues[job.queue])
            by_queue[job.queue].append(job)
        if not any(job.has_pending_tasks for jobs in by_queue.values() for job in jobs):
            return
        heaps = {name: PriorityQueue(ssn.job_order.less, jobs) for name, jobs in by_queue.items()}
        while (queue := queues.pop()) is not None:
            heap = heaps[queue.name]
            while (job_or_none := heap.pop()) is not None:
                self._between_jobs(queue, job_or_none)
            for job in by_queue[queue.name]:
                self._inside(queue, job)

    def _between_jobs(self, queue: JobQueue, job: Job) -> None:
        ssn, attempts = self._ssn, self._attempts
        statement = Statement(ssn)
        tasks = ssn.task_queue(waiting_tasks(job))
        while ssn.job_starving(job) and (task := tasks.pop()) is not None:
            attempts.make(queue, job, task, attempts.whose(job, task, own=False), statement)
        if ssn.job_pipelined(job):
            statement.commit()
        else:
            statement.discard()

    def _inside(self, queue: JobQueue, job: Job) -> None:
        ssn, attempts = self._ssn, self._attempts
        tasks = ssn.task_queue(waiting_tasks(job))
        while (task := tasks.pop()) is not None:
            statement = Statement(ssn)
            if not attempts.make(queue, job, task, attempts.whose(job, task, own=True), statement):
                statement.discard()
                return
            statement.commit()


class Whose:
    """Who may be evicted for a task: tasks of other jobs of its queue, or of its own job. A task that requests nothing
    only replaces such ones."""

    def __init__(self, evictables: Evictables, job: Job, task: Task, own: bool) -> None:
        self.own = own
        self.barren = evictables.barren(job.queue)
        self._evictables = evictables
        self._job = job
        self._best_effort = task.best_effort

    def candidates(self, row: int) -> list[Task]:
        found = self._evictables.by_queue(row).get(self._job.queue)
        if found is None:
            self.barren[row] = True
            return []
        id, own = self._job.id, self.own
        if self._best_effort:
            found = [t for t in found if t.best_effort]
        return [t for t in found if (t.job_id == id) is own]


class _Attempts:
    """Attempts to make room for one task on some node."""

    def __init__(self, ssn: Session, settings: Settings) -> None:
        self._ssn = ssn
        self._search = ssn.search
        self._evictables = Evictables(ssn)
        # One for the whole run: what is evicted meanwhile does not open a node again (spec 03 §1.5).
        self._cache = ErrorCache(settings.error_cache)
        #: Job, role and nodes (an array that the runs keep for the session) for which the cache has been filled.
        self._asked: set[tuple[str, str, int]] = set()
        self._answers = {own: Answers(ssn, ssn.preemptable, ssn.preemptable_by_job) for own in (False, True)}
        self._futile = {own: Futile(ssn.table) for own in (False, True)}
        self._dry_run = DryRun(ssn, settings.dry_run) if settings.topology_aware else None

    def whose(self, job: Job, task: Task, *, own: bool) -> Whose:
        return Whose(self._evictables, job, task, own)

    def make(self, queue: JobQueue, job: Job, task: Task, whose: Whose, statement: Statement) -> bool:
        """Whether the task is pipelined now; what it took is in the statement (spec 03 §5.3)."""
        ssn = self._ssn
        if not self._eligible(task) or ssn.pre_predicate(task) is not None:
            return False
        rows = self._rows(job, task)
        self._evictables.refresh()
        if self._dry_run is not None:
            return self._dry_run.preempt(queue, task, rows, whose.candidates, statement)
        futile = self._futile[whose.own]
        if futile.again(task, rows):
            return False
        if self._normal(queue, task, rows, whose, self._answers[whose.own], statement):
            return True
        futile.note(task, rows)
        return False

    def _rows(self, job: Job, task: Task) -> IntArray:
        """Nodes where evicting somebody might help. Where only rules about nodes can bar one for good, asking once a
        role of a job is enough; the answers are in the cache then."""
        ssn = self._ssn
        rows = rows_not_excluded(ssn, job, task)
        hopeful = ssn.runs.hopeful_rows(task) if rows is self._search.all_rows else None
        if hopeful is not None:
            known = self._cache.refused(task)
            asked = (task.job_id, task.role, id(hopeful))
            if asked in self._asked:
                return hopeful if known is None else hopeful[~known.mask[hopeful]]
            self._asked.add(asked)
        rows, _ = self._search.feasible(task, rows, self._cache, Purpose.PREEMPT)
        return rows

    # --- may it? ----------------------------------------------------------------------------------------------------

    def _eligible(self, task: Task) -> bool:
        if task.pod.spec.preemption_policy == NEVER:
            return False
        nominated = task.pod.status.nominated_node_name
        return not nominated or self._may_leave(task, nominated)

    def _may_leave(self, task: Task, nominated: str) -> bool:
        """A pod that was promised a node must wait there as long as the predicates, which know nothing of resources,
        let it (Quirk, spec 03 §5.3)."""
        node = self._ssn.node(nominated)
        if node is None:
            return False
        if self._ssn.runs.passes(task, node.row):
            return False
        search = self._search
        code = int(search.failure_codes(task, np.array([node.row]), Purpose.BACKFILL)[0])
        if not code:
            return False
        if any(s.code is Code.UNRESOLVABLE for s in search.describer(task)(code)):
            return True
        ours = _pod_priority(task.pod)
        return not any(_pod_priority(t.pod) < ours and _leaves_for_another(t.pod) for t in node.tasks.values())

    # --- normal mode (spec 03 §5.4) -----------------------------------------------------------------------------------

    def _normal(
        self, queue: JobQueue, task: Task, rows: IntArray, whose: Whose, answers: Answers, statement: Statement
    ) -> bool:
        ssn = self._ssn
        skip = whose.barren
        if skip.any():
            skip = np.zeros_like(skip) if ssn.explaining_victims else self._hopeless(task, rows, skip)
        nobody = Answer(ssn, task, [], 0)
        return any(
            self._on_node(queue, task, row, answers.of(task, row, whose.candidates) or nobody, statement)
            for row in best_first(ssn, task, rows, skip)
        )

    def _hopeless(self, task: Task, rows: IntArray, barren: BoolArray) -> BoolArray:
        """Nodes with nobody to evict, on which the task does not fit as it is."""
        empty = rows[barren[rows]]
        hopeless = np.zeros_like(barren)
        hopeless[empty] = ~self._search.fits(task, empty, future=True)
        return hopeless

    def _on_node(self, queue: JobQueue, task: Task, row: int, answer: Answer, statement: Statement) -> bool:
        ssn = self._ssn
        node = ssn.table.nodes[row]
        victims = answer.victims
        tally = ssn.eviction_tally
        tally.candidates = len(victims)
        room = Room(ssn.table, task, row)
        if not enough_with(room.copy(), victims):
            if ssn.explaining_victims:
                ssn.explain_node(task, Preempt.name, node, _too_little(answer))
            return False

        def fits() -> bool:
            return room.enough() and ssn.allocatable(queue, task) and passes(ssn, task, row)

        here = Statement(ssn)
        evicted: list[Task] = []
        fitting = fits()
        if not fitting:
            victims_queue = answer.queue()
            while not fitting and (victim := victims_queue.pop()) is not None:
                here.evict(victim, Preempt.name, task)
                evicted.append(victim)
                room.add(victim)
                fitting = fits()
        tally.attempts += 1
        if fitting and here.pipeline(task, node, free_something(evicted)) is None:
            statement.merge(here)
            answer.evicted(evicted)
            return True
        here.discard()
        # The victims came back, and with them changes on the node.
        self._evictables.refresh()
        if ssn.explaining_victims:
            why = "with all victims gone the queue may still not run it, or a predicate refuses the node"
            ssn.explain_node(task, Preempt.name, node, why)
        return False


def _too_little(answer: Answer) -> str:
    if not answer.candidates:
        return "it does not fit and no task there may be evicted for it"
    return f"{len(answer.victims)} of {answer.candidates} candidates may be evicted, which frees too little"


def _pod_priority(pod: Pod) -> int:
    return pod.spec.priority or 0


def _leaves_for_another(pod: Pod) -> bool:
    """Whether a pod is on its way out because the scheduler preempted it."""
    return pod.metadata.deletion_timestamp is not None and any(
        c.type == "DisruptionTarget" and c.status == "True" and c.reason == "PreemptionByScheduler"
        for c in pod.status.conditions
    )
