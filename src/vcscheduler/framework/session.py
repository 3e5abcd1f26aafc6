"""Session: one scheduling cycle's view of the cluster, and everything that may be done to it.

A session works on the cache's own jobs and nodes; nothing is copied. What it only planned is undone when it closes,
so the cache is left with what was committed (docs/architecture.md, "Sessions"). Actions change state through a
Statement; backfill and shuffle act directly, as in the reference (spec 02 §9.5).
"""

from __future__ import annotations

import functools
import random
import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from vcscheduler.config import SchedulerConfiguration
from vcscheduler.config.options import SchedulerOptions
from vcscheduler.framework.evictions import EvictionRecord, EvictionTally, NodePassedOver
from vcscheduler.framework.extension_points import ExtensionPoints, Victims, choose_victims
from vcscheduler.framework.heap import KeyedQueue, PriorityQueue, Queue, SortedQueue
from vcscheduler.framework.plugin import Event, Plugin, RunEvent
from vcscheduler.framework.points import F, Point
from vcscheduler.framework.ports import SessionCache
from vcscheduler.framework.simulation_points import SimulationPoints
from vcscheduler.framework.verdicts import Listener, Verdict, VictimQuestion
from vcscheduler.framework.victim_order import KeyedVictims, VictimKeys
from vcscheduler.model.aggregates import Aggregates
from vcscheduler.model.job import Job
from vcscheduler.model.nodes import Node, NodeConflict, NodeTable
from vcscheduler.model.queue import Queue as JobQueue
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import (
    ALLOCATED,
    BINDING,
    BOUND,
    PENDING,
    PIPELINED,
    RELEASING,
    RUNNING,
    EvictionKind,
    TaskStatus,
    Vote,
)
from vcscheduler.model.task import Task
from vcscheduler.model.topology import Topology
from vcscheduler.placement.runs import ClassStates, Runs
from vcscheduler.placement.search import Cursor, Sampling, Search


class Session(ExtensionPoints, SimulationPoints):
    """One cycle. Attributes that plugins and actions read:

    uid: fresh every cycle. now: the clock at opening. jobs, queues: what takes part, by id and name. table: the
    nodes. listers: other API objects. total: sum of allocatable over the nodes. aggregates: sums by queue at opening.
    store: what outlives the session. options: command-line settings. actions: names of the actions of this cycle.
    """

    def __init__(
        self,
        cache: SessionCache,
        configuration: SchedulerConfiguration,
        options: SchedulerOptions,
        now: datetime,
        uid: str | None = None,
    ) -> None:
        super().__init__(configuration.tiers)
        SimulationPoints.__init__(self, configuration.tiers)
        self.cache = cache
        self.configuration = configuration
        self.options = options
        self.actions = frozenset(configuration.actions)
        self.now = now
        self.uid = uid or str(uuid.uuid4())
        self.table: NodeTable = cache.table
        self.jobs = cache.jobs
        self.queues = cache.queues
        self.listers = cache.listers
        self.aggregates: Aggregates = cache.aggregates
        self.store = cache.store
        self.total: Resources = self.table.total
        self.plugins: list[Plugin] = []
        self.explaining_victims = False
        self.victim_notes: list[tuple[str, Task, Task, bool, str]] = []
        self.verdicts: list[Verdict] = []
        self._cycle_states: dict[str, dict[str, object]] = {}
        self.touched: dict[str, Job] = {}
        self._open_statements: dict[int, Iterable[Task]] = {}
        self._loose: list[Task] = []
        self._stray: list[Task] = []
        self._undone: list[Task] = []
        self._was_bound: list[Task] = []
        self._memos: list[dict[str, Any]] = []
        self._touch_log: list[str] | None = None
        #: Evictions undone so far.
        self.returned = 0
        self.evictions: list[tuple[Task, str]] = []
        self.eviction_records: list[EvictionRecord] = []
        self.eviction_tally = EvictionTally()
        self.nodes_passed_over: list[NodePassedOver] = []

    # --- reading ------------------------------------------------------------------------------------------------

    def job_of(self, task: Task) -> Job | None:
        return self.jobs.get(task.job_id)

    def queue_of(self, job: Job) -> JobQueue | None:
        return self.queues.get(job.queue)

    def node(self, name: str) -> Node | None:
        return self.table.get(name)

    def cycle_state(self, task: Task) -> dict[str, object]:
        """Notes of plugins about one task, for as long as the session lasts."""
        state = self._cycle_states.get(task.uid)
        if state is None:
            state = self._cycle_states[task.uid] = {}
        return state

    def unsettled_jobs(self) -> list[Job]:
        """Jobs whose status may have to be written: changed, not at rest, or touched by this session."""
        return list({**self.cache.unsettled, **self.touched}.values())

    @property
    def topology(self) -> Topology:
        """The network domains over the session's nodes."""
        return self.cache.topology

    @functools.cached_property
    def active_jobs(self) -> list[Job]:
        """Jobs that an action could do something for: pending ones and those with Pending tasks, by key."""
        return self.sorted_jobs(self.cache.active.values())

    @functools.cached_property
    def search(self) -> Search:
        """Filtering and scoring with this session's rules; complete once all plugins are open."""
        options = self.options
        cursor = self.store.setdefault("node cursor", Cursor())
        rng = self.store.setdefault("tie break", random.Random(options.seed) if options.tie_break == "random" else None)
        assert isinstance(cursor, Cursor)
        assert rng is None or isinstance(rng, random.Random)
        sampling = Sampling(
            options.exact_search,
            options.minimum_feasible_nodes,
            options.minimum_percentage_nodes_to_find,
            options.percentage_nodes_to_find,
        )
        return Search(self.table, self.filters, self.scorers, self.best_node_fns, sampling, cursor, rng)

    @functools.cached_property
    def runs(self) -> Runs:
        states = self.store.setdefault("class states", ClassStates())
        assert isinstance(states, ClassStates)
        return Runs(self.search, states, in_view=self.keeps_view)

    @property
    def keeps_view(self) -> bool:
        """Whether what is placed enters the Kubernetes view at once: the predicates plugin sees to that."""
        return any(p.name == "predicates" for p in self.plugins)

    def sorted_jobs(self, jobs: Iterable[Job]) -> list[Job]:
        """By job key, the order in which jobs are walked (spec 03 §1.10)."""
        return sorted(jobs, key=lambda j: j.id)

    # --- queues of things to do -----------------------------------------------------------------------------------

    def queue_heap(self) -> PriorityQueue[JobQueue]:
        return PriorityQueue(self.queue_order.less)

    def job_heap(self) -> PriorityQueue[Job]:
        """The reference's heap with live comparisons, for actions that change jobs inside it."""
        return PriorityQueue(self.job_order.less)

    def job_queue(self) -> Queue[Job]:
        """For actions that change only the job they popped: then keys inside are constant and the order is total."""
        key = self.job_order.key
        return PriorityQueue(self.job_order.less) if key is None else KeyedQueue(key)

    def task_queue(self, tasks: Iterable[Task]) -> SortedQueue[Task] | PriorityQueue[Task]:
        """Tasks of one job in order. Mixing indexed and unindexed names is no order, and then the heap's own
        sequence counts (Quirk, spec 02 §6.2)."""
        items = list(tasks)
        if len(items) == 1:
            return SortedQueue(items)
        key = self.task_order.key
        indexed = sum(t.index is not None for t in items)
        if key is None or indexed not in (0, len(items)):
            return PriorityQueue(self.task_less, items)
        if indexed:
            items.sort(key=lambda t: (key(t)[:-1], t.index, t.created, t.uid))
        else:
            items.sort(key=key)
        return SortedQueue(items)

    @functools.cached_property
    def victim_keys(self) -> VictimKeys | None:
        """None where only comparisons can order victims."""
        job_key, task_key = self.job_order.key, self.task_order.key
        if job_key is None or task_key is None:
            return None
        return VictimKeys(self.jobs, self.memo_by_job(), job_key, task_key)

    def victims_queue(self, victims: Sequence[Task], preemptor: Task) -> PriorityQueue[Task] | KeyedVictims:
        """In which order to evict (spec 02 §6.4)."""
        initiator = self.job_of(preemptor)
        initiator_queue = self.queue_of(initiator) if initiator is not None else None
        keys = self.victim_keys
        entries = keys.entries(victims) if keys is not None else None
        if keys is not None and entries is not None:
            across: Callable[[str, str], bool] | None = None
            if initiator_queue is not None and len({queue for _, queue, _ in entries}) > 1:
                queues, own = self.queues, initiator_queue
                across = lambda a, b: self.victim_queue_less(queues[a], queues[b], own)  # noqa: E731
            return KeyedVictims(keys, entries, across)

        def less(a: Task, b: Task) -> bool:
            if a.job_id == b.job_id:
                return not self.task_less(a, b)
            job_a, job_b = self.job_of(a), self.job_of(b)
            if job_a is None or job_b is None:
                if job_a is None and job_b is None:
                    return not self.task_less(a, b)
                return job_a is None
            if initiator_queue is not None and job_a.queue != job_b.queue:
                return self.victim_queue_less(self.queues[job_a.queue], self.queues[job_b.queue], initiator_queue)
            c = self.job_order.compare(job_a, job_b)
            if c != 0:
                return c > 0
            return not self.task_less(a, b)

        return PriorityQueue(less, victims)

    # --- operations that statements are made of (spec 02 §9.1) ------------------------------------------------------

    def memo_by_job(self) -> dict[str, Any]:
        """A dictionary for something that follows from a job alone, by its id; what a changed job has there goes."""
        memo: dict[str, Any] = {}
        self._memos.append(memo)
        return memo

    def touch_log(self) -> list[str]:
        """Ids of jobs in the order in which they change from now on, with repetitions; not to be changed."""
        if self._touch_log is None:
            self._touch_log = []
        return self._touch_log

    def touch(self, job: Job) -> None:
        """Something about the job changes, or may."""
        id = job.id
        self.touched[id] = job
        for memo in self._memos:
            memo.pop(id, None)
        if self._touch_log is not None:
            self._touch_log.append(id)

    def set_phase(self, job: Job, phase: str) -> None:
        job.phase = phase
        self.touch(job)

    def place(self, task: Task, node: Node | None, status: TaskStatus) -> str | None:
        """Put a task on a node under a status (Allocated or Pipelined) and tell the plugins. Every step is taken even
        after one failed; the caller undoes them all when an error text comes back."""
        error: str | None = None
        job = self.job_of(task)
        if job is None:
            error = f"job {task.job_id} is not in the session"
        else:
            self.touch(job)
            job.set_status(task, status)
        if node is None:
            error = error or f"the node of task {task.key} is not in the session"
        else:
            try:
                node.add(task)
            except NodeConflict as conflict:
                error = error or str(conflict)
            task.node_name = node.name
        return self.fire_allocate(task) or error

    def take_back(self, task: Task) -> None:
        """Undo of :meth:`place`."""
        job = self.job_of(task)
        if job is not None:
            self.touch(job)
            job.set_status(task, PENDING)
        node = self.table.by_name.get(task.node_name)
        if node is not None:
            node.remove(task)
        self.fire_deallocate(task)
        task.node_name = ""
        task.job_allocated_hyper_node = ""

    def release(self, task: Task) -> None:
        """A running task becomes Releasing, here only."""
        job = self.job_of(task)
        if job is not None:
            self.touch(job)
            job.set_status(task, RELEASING)
        else:
            task.status = RELEASING
        node = self.table.by_name.get(task.node_name)
        if node is not None:
            node.update(task)
        self._stray.append(task)
        self.fire_deallocate(task)

    def unrelease(self, task: Task, before: TaskStatus) -> None:
        """Undo of :meth:`release`. The task comes back Running whatever it was (Quirk, spec 02 §9.1)."""
        self.returned += 1
        job = self.job_of(task)
        if job is not None:
            self.touch(job)
            job.set_status(task, RUNNING)
        else:
            task.status = RUNNING
        if before is BOUND:
            self._was_bound.append(task)
        node = self.table.by_name.get(task.node_name)
        if node is not None:
            node.update(task)
        self.fire_allocate(task)

    def fire_allocate(self, task: Task) -> str | None:
        """All handlers run; the first error text is returned."""
        error, event = None, Event(task)
        for handler in self.event_handlers:
            if handler.allocate is not None:
                handler.allocate(event)
                if event.error:
                    error, event = error or event.error, Event(task)
        return error

    def fire_deallocate(self, task: Task) -> None:
        event = Event(task)
        for handler in self.event_handlers:
            if handler.deallocate is not None:
                handler.deallocate(event)

    def place_run(self, job: Job, tasks: list[Task], rows: list[int], status: TaskStatus) -> None:
        """Tasks of one class, role and sub-job were placed by a kernel, which has accounted them in the columns as
        Allocated or Pipelined; this brings everything else up to date. Cannot fail: no conflict of names, no handler
        that may refuse."""
        self.touch(job)
        job.set_status_of(tasks, status)
        self._settle_run(RunEvent([(job, len(tasks))], tasks[0].cls, tasks, rows), status)

    def _settle_run(self, event: RunEvent, status: TaskStatus) -> None:
        """Tasks that are accounted already take their places on the nodes; the plugins hear of it."""
        nodes = self.table.nodes
        for task, row in zip(event.tasks, event.rows):
            node = nodes[row]
            task.node_name = node.name
            node.tasks[task.key] = task
            task.counted = status
        for handler in self.event_handlers:
            if handler.allocate_run is not None:
                handler.allocate_run(event)
            elif handler.allocate is not None:
                for task in event.tasks:
                    handler.allocate(Event(task))

    def bind_run(self, jobs: list[Job], tasks: list[Task], rows: list[int]) -> None:
        """One task of each job was allocated by a kernel and makes its job ready: take them over as
        :meth:`place_run` does, and bind them."""
        for job, task in zip(jobs, tasks):
            self.touch(job)
            job.set_status(task, ALLOCATED)
        self._settle_run(RunEvent([(job, 1) for job in jobs], tasks[0].cls, tasks, rows), ALLOCATED)
        refused = {task.uid for task, _ in self.cache.bind_run(tasks, rows)}
        for job, task in zip(jobs, tasks):
            if task.uid in refused:
                self.take_back(task)
            else:
                job.set_status(task, BINDING)
                task.counted = BINDING

    def take_back_run(self, job: Job, tasks: list[Task], rows: list[int]) -> None:
        """Undo of :meth:`place_run`."""
        cls = tasks[0].cls
        self.touch(job)
        job.set_status_of(tasks, PENDING)
        nodes = self.table.nodes
        for task, row in zip(tasks, rows):
            nodes[row].remove(task)
        event = RunEvent([(job, len(tasks))], cls, tasks, rows)
        for handler in self.event_handlers:
            if handler.deallocate_run is not None:
                handler.deallocate_run(event)
            elif handler.deallocate is not None:
                for task in tasks:
                    handler.deallocate(Event(task))
        for task in tasks:
            task.node_name = ""
            task.job_allocated_hyper_node = ""

    @functools.cached_property
    def runs_allowed(self) -> bool:
        """Whether every handler can hear of a whole run at once. One that hears task by task may refuse one."""
        return all(h.allocate is None or h.allocate_run is not None for h in self.event_handlers)

    def commit_allocate(self, task: Task) -> str | None:
        """Hand an Allocated task to the binder; on success it is Binding (spec 02 §9.2)."""
        node = self.table.by_name.get(task.node_name)
        job = self.job_of(task)
        if node is None or job is None:
            return f"task {task.key} has no node or no job"
        error = self.cache.bind(task, node, self.bind_plan(task))
        if error is None:
            self.touch(job)
            job.set_status(task, BINDING)
            task.counted = BINDING
        return error

    # --- direct operations (spec 02 §9.5) -------------------------------------------------------------------------

    def allocate(self, task: Task, node: Node) -> str | None:
        """Allocate without a statement, as backfill does. Nothing is rolled back on error, errors of handlers do not
        count; once the job is ready, all its Allocated tasks are sent to the binder."""
        job = self.job_of(task)
        if job is None:
            return f"job {task.job_id} is not in the session"
        self._loose.append(task)
        self.touch(job)
        job.set_status(task, ALLOCATED)
        try:
            node.add(task)
        except NodeConflict as conflict:
            return str(conflict)
        self.fire_allocate(task)
        if not self.job_ready(job):
            return None
        for each in sorted(job.tasks_in(ALLOCATED), key=lambda t: t.sort_key):
            error = self.commit_allocate(each)
            if error is not None:
                return error
        return None

    def evict(self, task: Task, reason: str) -> str | None:
        """Evict without a statement: the cluster first, then the session."""
        error = self.cache.evict(task, reason)
        if error is not None:
            return error
        self.record_eviction(task, reason, None)
        self.release(task)
        return None if self.job_of(task) is not None else f"job {task.job_id} is not in the session"

    def unpipeline(self, task: Task) -> None:
        """Back to Pending, outside of any statement."""
        self.take_back(task)

    # --- bookkeeping of what must be undone at close ----------------------------------------------------------------

    def statement_opened(self, key: int, tasks: Iterable[Task]) -> None:
        self._open_statements[key] = tasks

    def statement_ended(self, key: int) -> None:
        self._open_statements.pop(key, None)

    def keep_until_close(self, tasks: Iterable[Task]) -> None:
        """Pipelined tasks whose statement was committed: planned here, unknown to the cluster."""
        self._loose.extend(tasks)

    def remember_transaction(self, task: Task) -> None:
        task.last_transaction = task.current_context()
        self._undone.append(task)

    def explain_victim(self, plugin: str, task: Task, candidate: Task, allowed: bool, why: Callable[[], str]) -> None:
        """A victim rule says what it thinks of a candidate; kept only while somebody wants to know."""
        if self.explaining_victims:
            self.victim_notes.append((plugin, task, candidate, allowed, why()))

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        if not self.explaining_victims:
            return super().preemptable(preemptor, candidates)
        question, point = VictimQuestion.PREEMPTABLE, self._preemptable
        return self._explained(question, point, preemptor, candidates, lambda f: f(preemptor, candidates))

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        if not self.explaining_victims:
            return super().reclaimable(reclaimer, candidates)
        question, point = VictimQuestion.RECLAIMABLE, self._reclaimable
        return self._explained(question, point, reclaimer, candidates, lambda f: f(reclaimer, candidates))

    def unified_evictable(self, kind: EvictionKind, job: Job, candidates: list[Task]) -> list[Task]:
        if not self.explaining_victims:
            return super().unified_evictable(kind, job, candidates)
        question, point = VictimQuestion.UNIFIED_EVICTABLE, self._unified_evictable
        return self._explained(question, point, job, candidates, lambda f: f(kind, job, candidates))

    def victim_tasks(self, tasks: list[Task], hear: Callable[[object, list[Task]], None] | None = None) -> list[Task]:
        if not self.explaining_victims:
            return super().victim_tasks(tasks, hear)
        listener = Listener(self.tiers, self._victim_tasks.named)
        victims = super().victim_tasks(tasks, lambda fns, named: listener.note(fns, named, Vote.PERMIT))
        self.verdicts.append(listener.verdict(VictimQuestion.VICTIM_TASKS, None, tasks, victims, {}))
        return victims

    def _explained(
        self,
        question: VictimQuestion,
        point: Point[F],
        preemptor: Task | Job,
        candidates: list[Task],
        ask: Callable[[F], Victims],
    ) -> list[Task]:
        """Ask for victims, and keep what each plugin answered."""
        begin = len(self.victim_notes)
        listener = Listener(self.tiers, point.named)
        victims = choose_victims(point.tiers, lambda f: listener.hear(f, ask(f)))
        notes = {(plugin, t.uid): (allowed, why) for plugin, _, t, allowed, why in self.victim_notes[begin:]}
        self.verdicts.append(listener.verdict(question, preemptor, candidates, victims, notes))
        return victims

    def explain_node(self, task: Task, action: str, node: Node, why: str) -> None:
        """An action found no way to make room for a task on a node; callers ask ``explaining_victims`` first."""
        self.nodes_passed_over.append(NodePassedOver(task, action, node.name, why))

    def record_eviction(self, victim: Task, reason: str, on_behalf: Task | None) -> None:
        """An eviction was handed to the cluster."""
        self.evictions.append((victim, reason))
        if self.explaining_victims:
            self.eviction_records.append(EvictionRecord(victim, on_behalf, reason, victim.node_name, victim.resreq))

    # --- events -----------------------------------------------------------------------------------------------------

    def record_pod_group_event(self, job: Job, type: str, reason: str, message: str) -> None:
        self.cache.record_event("PodGroup", job.namespace, job.name, type, reason, message)

    # --- the end ----------------------------------------------------------------------------------------------------

    def undo_planned(self) -> None:
        """Leave the cache with what was committed: take back what was only planned, let the Kubernetes view hold what
        is on the nodes, forget the notes of this session."""
        stray: dict[str, Task] = {t.uid: t for t in self._stray}
        planned = [*self._loose, *(t for tasks in self._open_statements.values() for t in tasks)]
        for task in planned:
            stray[task.uid] = task
            if task.status not in (ALLOCATED, PIPELINED):
                continue
            job = self.job_of(task)
            if job is not None:
                job.set_status(task, PENDING)
            node = self.table.by_name.get(task.node_name)
            if node is not None and node.tasks.get(task.key) is task:
                node.remove(task)
            task.node_name = ""
        for task in self._was_bound:
            if task.status is RUNNING:
                job = self.job_of(task)
                if job is not None:
                    job.set_status(task, BOUND)
                else:
                    task.status = BOUND
                task.counted = BOUND
        for task in (*planned, *self._undone, *self._stray):
            task.last_transaction = None
            task.eviction_occurred = False
            task.job_allocated_hyper_node = ""
        for job in self.touched.values():
            job.fit_errors = {}
            job.fit_error = ""
        if not self.keeps_view:
            for job in self.touched.values():
                stray.update(job.tasks)
        self.table.reconcile_view(stray.values())
        self._cycle_states = {}
