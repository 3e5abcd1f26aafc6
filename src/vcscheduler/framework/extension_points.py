"""The points at which plugins take part in a session, and how their answers are combined (spec 02 §5-7).

Functions are kept by plugin name; a point walks the tiers in the order of the configuration and asks each plugin whose
enable flag for the point is on. What a point does with the answers is in the method of its name: ``job_ready`` and so
on. The walk is put together at the first call and kept for the session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vcscheduler.config import PluginOption, Tier
from vcscheduler.framework.plugin import EventHandler, PreBinder, QueueStanding
from vcscheduler.framework.points import Compare, F, Order, Point, T, check_takes
from vcscheduler.model.fit import Status
from vcscheduler.model.job import Job, SubJob
from vcscheduler.model.nodes import Node
from vcscheduler.model.queue import Queue
from vcscheduler.model.status import EvictionKind, Vote
from vcscheduler.model.task import Task
from vcscheduler.model.topology import GradientPurpose
from vcscheduler.model.volume_plan import VolumePlan
from vcscheduler.placement.adapters import BatchScorer, PerNodeFilter, PerNodeScorer
from vcscheduler.placement.rules import NodeFilter, NodeScorer

Victims = tuple[list[Task], Vote]
VictimFn = Callable[[Task, list[Task]], Victims]
#: Domains by name, in groups to be tried one after another.
Gradients = list[list[str]]


def _unindexed_key(task: Task) -> tuple[float, str]:
    return (task.created, task.uid)


class ExtensionPoints:
    """Registration (``add_*_fn``) and evaluation of all extension points of a session."""

    def __init__(self, tiers: Sequence[Tier]) -> None:
        self.tiers = tuple(tiers)
        t = self.tiers
        self.job_order: Order[Job] = Order(t, "enable_job_order", lambda j: (j.created, j.id))
        self.queue_order: Order[Queue] = Order(t, "enable_queue_order", lambda q: (q.created, q.name))
        self.sub_job_order: Order[SubJob] = Order(t, "enabled_sub_job_order", lambda s: (s.match_index, s.id))
        self.task_order: Order[Task] = Order(t, "enable_task_order", _unindexed_key)
        self._victim_queue_order: Point[Callable[[Queue, Queue, Queue], float]] = Point(t, None, takes=3)
        self._job_valid: Point[Callable[[Job], tuple[str, str] | None]] = Point(t, None, takes=1)
        self._job_ready: Point[Callable[[Job], bool]] = Point(t, "enable_job_ready", takes=1)
        self._job_ready_after: dict[str, Callable[[Job, Task], int | None]] = {}
        self._sub_job_ready: Point[Callable[[SubJob], bool]] = Point(t, "enabled_sub_job_ready", takes=1)
        self._job_pipelined: Point[Callable[[Job], Vote]] = Point(t, "enable_job_pipelined", takes=1)
        self._sub_job_pipelined: Point[Callable[[SubJob], Vote]] = Point(t, "enabled_sub_job_pipelined", takes=1)
        self._job_starving: Point[Callable[[Job], bool]] = Point(t, "enable_job_starving", takes=1)
        self._job_enqueueable: Point[Callable[[Job], Vote]] = Point(t, "enable_job_enqueued", takes=1)
        self._job_enqueued: Point[Callable[[Job], None]] = Point(t, "enable_job_enqueued", takes=1)
        self._overused: Point[Callable[[Queue], bool]] = Point(t, "enabled_overused", takes=1)
        self._overused_follows: dict[str, bool] = {}
        self._by_job: set[VictimFn] = set()
        self._preemptive: Point[Callable[[Queue, list[Task]], bool]] = Point(t, "enable_preemptive", takes=2)
        self._allocatable: Point[Callable[[Queue, Task], bool]] = Point(t, "enabled_allocatable", takes=2)
        self._allocatable_limits: dict[str, Callable[[Queue, Task, int], int]] = {}
        self._preemptable: Point[Callable[[Task, list[Task]], Victims]] = Point(t, "enable_preemptable", takes=2)
        self._reclaimable: Point[Callable[[Task, list[Task]], Victims]] = Point(t, "enable_reclaimable", takes=2)
        self._unified_evictable: Point[Callable[[EvictionKind, Job, list[Task]], Victims]] = Point(t, None, takes=3)
        self._victim_tasks: Point[list[Callable[[list[Task]], list[Task]]]] = Point(t, "enabled_victim")
        self._pre_predicate: Point[Callable[[Task], Status | None]] = Point(t, "enable_predicate", takes=1)
        self._pre_predicate_runs: dict[str, Callable[[list[Task]], None]] = {}
        self._filters: Point[NodeFilter] = Point(t, "enable_predicate")
        self._scorers: Point[list[NodeScorer]] = Point(t, "enable_node_order")
        self._best_node: Point[Callable[[Task, dict[float, list[Node]]], Node | None]] = Point(
            t, "enable_best_node", takes=2
        )
        self._job_gradients: Point[Callable[[Job, str, GradientPurpose], Gradients]] = Point(
            t, "enabled_hyper_node_gradient", takes=3
        )
        self._sub_job_gradients: Point[Callable[[SubJob, str, GradientPurpose], Gradients]] = Point(
            t, "enabled_hyper_node_gradient", takes=3
        )
        self._hyper_node_order: Point[Callable[[SubJob, list[str]], dict[str, float]]] = Point(
            t, "enabled_hyper_node_order", takes=2
        )
        self._hyper_node_order_alone: dict[str, Callable[[SubJob, list[str]], dict[str, float]]] = {}
        self._queue_report: Point[Callable[[Queue], QueueStanding | None]] = Point(t, None, takes=1)
        self.event_handlers: list[EventHandler] = []
        self._binders: dict[str, PreBinder] = {}

    # --- orders (spec 02 §6) ----------------------------------------------------------------------------------

    def add_job_order_fn(self, name: str, compare: Compare[Job], key: Callable[[Job], Any] | None = None) -> None:
        """``key``: orders exactly like ``compare``, smaller first; lets the session use cheaper queues."""
        self.job_order.add(name, compare, key)

    def add_queue_order_fn(self, name: str, compare: Compare[Queue], key: Callable[[Queue], Any] | None = None) -> None:
        self.queue_order.add(name, compare, key)

    def add_sub_job_order_fn(
        self, name: str, compare: Compare[SubJob], key: Callable[[SubJob], Any] | None = None
    ) -> None:
        self.sub_job_order.add(name, compare, key)

    def add_task_order_fn(self, name: str, compare: Compare[Task], key: Callable[[Task], Any] | None = None) -> None:
        self.task_order.add(name, compare, key)

    def add_victim_queue_order_fn(self, name: str, fn: Callable[[Queue, Queue, Queue], float]) -> None:
        self._victim_queue_order.add(name, fn)

    def task_less(self, a: Task, b: Task) -> bool:
        """Plugins, then the index in the pod's name if both have one, then creation and UID (spec 02 §6.2)."""
        c = self.task_order.compare(a, b)
        if c != 0:
            return c < 0
        if a.index is not None and b.index is not None and a.index != b.index:
            return a.index < b.index
        return _unindexed_key(a) < _unindexed_key(b)

    def victim_queue_less(self, a: Queue, b: Queue, preemptor_queue: Queue) -> bool:
        """Without a deciding plugin the later queue comes first."""
        for f in self._victim_queue_order.all:
            c = f(a, b, preemptor_queue)
            if c != 0:
                return c < 0
        return not self.queue_order.less(a, b)

    # --- jobs ---------------------------------------------------------------------------------------------------

    def add_job_valid_fn(self, name: str, fn: Callable[[Job], tuple[str, str] | None]) -> None:
        """``fn``: None if the job may be considered, else (reason, message)."""
        self._job_valid.add(name, fn)

    def job_valid(self, job: Job) -> tuple[str, str] | None:
        for f in self._job_valid.all:
            failure = f(job)
            if failure is not None:
                return failure
        return None

    def add_job_ready_fn(
        self, name: str, fn: Callable[[Job], bool], after: Callable[[Job, Task], int | None] | None = None
    ) -> None:
        """``after(job, task)``: how many further tasks of the task's role must become Allocated until the job is
        ready; None if that alone cannot make it so. Lets a whole run be placed at once."""
        self._job_ready.add(name, fn)
        if after is not None:
            self._job_ready_after[name] = after
        else:
            self._job_ready_after.pop(name, None)

    def job_ready(self, job: Job) -> bool:
        for f in self._job_ready.all:
            if not f(job):
                return False
        return True

    def placements_until_ready(self, job: Job, task: Task, limit: int) -> int:
        """How many tasks alike may be placed in one go before somebody has to look whether the job is ready; at least
        1, at most ``limit``."""
        most = 1
        for name, _ in self._job_ready.named:
            after = self._job_ready_after.get(name)
            if after is None:
                return 1
            n = after(job, task)
            if n is None:
                return limit
            most = max(most, n)
        return min(most, limit)

    def ready_after_one(self, job: Job, task: Task) -> bool:
        """Whether placing this one task is known to make the job ready."""
        for name, _ in self._job_ready.named:
            after = self._job_ready_after.get(name)
            n = None if after is None else after(job, task)
            if n is None or n > 1:
                return False
        return True

    def add_sub_job_ready_fn(self, name: str, fn: Callable[[SubJob], bool]) -> None:
        self._sub_job_ready.add(name, fn)

    def sub_job_ready(self, sub_job: SubJob) -> bool:
        if not sub_job.job.has_policies:
            return self.job_ready(sub_job.job)
        return all(f(sub_job) for f in self._sub_job_ready.all)

    def add_job_pipelined_fn(self, name: str, fn: Callable[[Job], Vote]) -> None:
        self._job_pipelined.add(name, fn)

    def job_pipelined(self, job: Job) -> bool:
        return _voted(self._job_pipelined.tiers, job)

    def add_sub_job_pipelined_fn(self, name: str, fn: Callable[[SubJob], Vote]) -> None:
        self._sub_job_pipelined.add(name, fn)

    def sub_job_pipelined(self, sub_job: SubJob) -> bool:
        if not sub_job.job.has_policies:
            return self.job_pipelined(sub_job.job)
        return _voted(self._sub_job_pipelined.tiers, sub_job)

    def add_job_starving_fn(self, name: str, fn: Callable[[Job], bool]) -> None:
        self._job_starving.add(name, fn)

    def job_starving(self, job: Job) -> bool:
        """The first tier that has any say decides; with none, no job is starving."""
        for tier in self._job_starving.tiers:
            for f in tier:
                if not f(job):
                    return False
            return True
        return False

    def add_job_enqueueable_fn(self, name: str, fn: Callable[[Job], Vote]) -> None:
        self._job_enqueueable.add(name, fn)

    def job_enqueueable(self, job: Job) -> bool:
        return _voted(self._job_enqueueable.tiers, job)

    def add_job_enqueued_fn(self, name: str, fn: Callable[[Job], None]) -> None:
        self._job_enqueued.add(name, fn)

    def job_enqueued(self, job: Job) -> None:
        for f in self._job_enqueued.all:
            f(job)

    # --- queues -------------------------------------------------------------------------------------------------

    def add_overused_fn(self, name: str, fn: Callable[[Queue], bool], *, allocatable_implies_not: bool = False) -> None:
        """``allocatable_implies_not``: a queue for which this plugin finds a task allocatable is not overused."""
        self._overused.add(name, fn)
        self._overused_follows[name] = allocatable_implies_not

    @property
    def overused_follows(self) -> bool:
        """Whether asking :meth:`allocatable` makes asking :meth:`overused` needless."""
        asked = {name for name, _ in self._allocatable.named}
        return all(self._overused_follows[name] and name in asked for name, _ in self._overused.named)

    def overused(self, queue: Queue) -> bool:
        for f in self._overused.all:
            if f(queue):
                return True
        return False

    def add_preemptive_fn(self, name: str, fn: Callable[[Queue, list[Task]], bool]) -> None:
        self._preemptive.add(name, fn)

    def preemptive(self, queue: Queue, tasks: list[Task]) -> bool:
        for f in self._preemptive.all:
            if not f(queue, tasks):
                return False
        return True

    def add_allocatable_fn(
        self,
        name: str,
        fn: Callable[[Queue, Task], bool],
        limit: Callable[[Queue, Task, int], int] | None = None,
    ) -> None:
        """``limit(queue, task, k)``: how many of k tasks of the task's class would be allowed one after another."""
        self._allocatable.add(name, fn)
        if limit is not None:
            self._allocatable_limits[name] = limit
        else:
            self._allocatable_limits.pop(name, None)

    def allocatable(self, queue: Queue, task: Task) -> bool:
        for f in self._allocatable.all:
            if not f(queue, task):
                return False
        return True

    def allocatable_count(self, queue: Queue, task: Task, k: int) -> int:
        """How many of the next k tasks alike may be placed without asking again; the first is known to be allowed."""
        for name, _ in self._allocatable.named:
            limit = self._allocatable_limits.get(name)
            k = 1 if limit is None else limit(queue, task, k)
            if k <= 1:
                return 1
        return k

    # --- victims (spec 02 §5.2) ---------------------------------------------------------------------------------

    def add_preemptable_fn(self, name: str, fn: Callable[[Task, list[Task]], Victims], *, by_job: bool = False) -> None:
        """``by_job``: what the function says of a candidate follows from the job of the candidate, the priority of
        preemptor and candidate, and how many candidates of the same job come before it; other candidates do not
        matter. It is asked less often then."""
        self._preemptable.add(name, fn)
        self._note_by_job(fn, by_job)

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        return choose_victims(self._preemptable.tiers, lambda f: f(preemptor, candidates))

    def preemptable_by_job(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        """What :meth:`preemptable` gives, where functions that go by job agree on it; else nothing."""
        return self._agreed_by_job(self._preemptable, lambda f: f(preemptor, candidates))

    def add_reclaimable_fn(self, name: str, fn: Callable[[Task, list[Task]], Victims], *, by_job: bool = False) -> None:
        """``by_job``: as for :meth:`add_preemptable_fn`."""
        self._reclaimable.add(name, fn)
        self._note_by_job(fn, by_job)

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        return choose_victims(self._reclaimable.tiers, lambda f: f(reclaimer, candidates))

    def reclaimable_by_job(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        """What :meth:`reclaimable` gives, where functions that go by job agree on it; else nothing."""
        return self._agreed_by_job(self._reclaimable, lambda f: f(reclaimer, candidates))

    def _note_by_job(self, fn: VictimFn, by_job: bool) -> None:
        if by_job:
            self._by_job.add(fn)
        else:
            self._by_job.discard(fn)

    def _agreed_by_job(self, point: Point[VictimFn], ask: Callable[[VictimFn], Victims]) -> list[Task]:
        """What the first tier agrees on if all in it go by job and vote. Nothing also where an empty answer or an empty
        intersection made :func:`choose_victims` go on: it might not once a victim is gone."""
        agreed: list[Task] | None = None
        for f in point.tiers[0] if point.tiers else ():
            if f not in self._by_job:
                return []
            chosen, vote = ask(f)
            if vote == 0:
                return []
            agreed = chosen if agreed is None else _common(agreed, chosen)
            if not agreed:
                return []
        return agreed or []

    def add_unified_evictable_fn(self, name: str, fn: Callable[[EvictionKind, Job, list[Task]], Victims]) -> None:
        self._unified_evictable.add(name, fn)

    def unified_evictable(self, kind: EvictionKind, job: Job, candidates: list[Task]) -> list[Task]:
        return choose_victims(self._unified_evictable.tiers, lambda f: f(kind, job, candidates))

    def add_victim_tasks_fn(self, name: str, fns: list[Callable[[list[Task]], list[Task]]]) -> None:
        self._victim_tasks.add(name, fns)

    @property
    def names_victims(self) -> bool:
        """Whether any plugin has a say in :meth:`victim_tasks`."""
        return bool(self._victim_tasks.all)

    def victim_tasks(self, tasks: list[Task], hear: Callable[[object, list[Task]], None] | None = None) -> list[Task]:
        """The union of what the plugins of a tier name; the first tier that names any decides. ``hear`` is told what
        the functions of each plugin name."""
        for tier in self._victim_tasks.tiers:
            union: dict[str, Task] = {}
            for fns in tier:
                named = [t for f in fns for t in f(tasks)]
                union.update((t.uid, t) for t in named)
                if hear is not None:
                    hear(fns, named)
            if union:
                return list(union.values())
        return []

    # --- nodes --------------------------------------------------------------------------------------------------

    def add_pre_predicate_fn(
        self,
        name: str,
        fn: Callable[[Task], Status | None],
        run: Callable[[list[Task]], None] | None = None,
    ) -> None:
        """``fn``: None if the task may be tried on nodes, else why not. ``run(tasks)``: note that the tasks, of one
        class, were looked at with the outcome of the first of them."""
        self._pre_predicate.add(name, fn)
        if run is not None:
            self._pre_predicate_runs[name] = run

    def pre_predicate(self, task: Task) -> Status | None:
        for f in self._pre_predicate.all:
            failure = f(task)
            if failure is not None:
                return failure
        return None

    @property
    def pre_predicates_run(self) -> bool:
        """Whether every pre-predicate can speak for a whole run of equal tasks."""
        return all(name in self._pre_predicate_runs for name, _ in self._pre_predicate.named)

    def pre_predicate_run(self, tasks: list[Task]) -> None:
        for name, _ in self._pre_predicate.named:
            self._pre_predicate_runs[name](tasks)

    def add_filter(self, name: str, rule: NodeFilter) -> None:
        """A vectorised predicate."""
        self._filters.add(name, rule)

    def add_predicate_fn(self, name: str, fn: Callable[[Task, Node], None]) -> None:
        """A predicate of one node: returns if the task fits, raises FitFailure (or anything else) if not."""
        check_takes(fn, 2)
        self._filters.add(name, PerNodeFilter(self, name, fn))

    @property
    def filters(self) -> list[NodeFilter]:
        return self._filters.all

    def add_scorer(self, name: str, *rules: NodeScorer) -> None:
        """Vectorised node orders, all of this plugin's at once."""
        self._add_scorers(name, rules)

    def add_node_order_fn(self, name: str, fn: Callable[[Task, Node], float]) -> None:
        check_takes(fn, 2)
        self._add_scorers(name, (PerNodeScorer(self, name, fn),))

    def add_batch_node_order_fn(self, name: str, fn: Callable[[Task, list[Node]], dict[str, float]]) -> None:
        check_takes(fn, 2)
        self._add_scorers(name, (BatchScorer(self, name, fn),))

    def _add_scorers(self, name: str, rules: Sequence[NodeScorer]) -> None:
        # A plugin has one node order and one batch node order; registering again replaces that one.
        kinds = {r.batch for r in rules}
        kept = [r for r in self._scorers._functions.get(name, []) if r.batch not in kinds]
        self._scorers.add(name, [*kept, *rules])

    @property
    def scorers(self) -> list[NodeScorer]:
        return [r for rules in self._scorers.all for r in rules]

    @property
    def scorers_by_plugin(self) -> list[tuple[str, list[NodeScorer]]]:
        """For reports: the scorers with the plugins that they are of."""
        return self._scorers.named

    def add_best_node_fn(self, name: str, fn: Callable[[Task, dict[float, list[Node]]], Node | None]) -> None:
        self._best_node.add(name, fn)

    @property
    def best_node_fns(self) -> list[Callable[[Task, dict[float, list[Node]]], Node | None]]:
        return self._best_node.all

    # --- network domains (spec 06 §A7) --------------------------------------------------------------------------

    def add_hyper_node_gradient_for_job_fn(
        self, name: str, fn: Callable[[Job, str, GradientPurpose], Gradients]
    ) -> None:
        """``fn(job, start, purpose)``: which domains inside ``start`` to try, in which groups."""
        self._job_gradients.add(name, fn)

    def hyper_node_gradients_for_job(self, job: Job, start: str, purpose: GradientPurpose) -> Gradients:
        """By the first plugin that has a say; the start alone if none has."""
        for f in self._job_gradients.all:
            return f(job, start, purpose)
        return [[start]]

    def add_hyper_node_gradient_for_sub_job_fn(
        self, name: str, fn: Callable[[SubJob, str, GradientPurpose], Gradients]
    ) -> None:
        self._sub_job_gradients.add(name, fn)

    def hyper_node_gradients_for_sub_job(self, sub_job: SubJob, start: str, purpose: GradientPurpose) -> Gradients:
        for f in self._sub_job_gradients.all:
            return f(sub_job, start, purpose)
        return [[start]]

    def add_hyper_node_order_fn(
        self,
        name: str,
        fn: Callable[[SubJob, list[str]], dict[str, float]],
        alone: Callable[[SubJob, list[str]], dict[str, float]] | None = None,
    ) -> None:
        """``fn(sub_job, domains)``: a score for each domain that could take the sub-job. ``alone``: what ``fn`` gives
        each of the domains when asked for that one only; to be offered only if it gives the same among others, except
        that it may add to those that share the highest score. Lets allocate try fewer domains."""
        self._hyper_node_order.add(name, fn)
        if alone is not None:
            self._hyper_node_order_alone[name] = alone
        else:
            self._hyper_node_order_alone.pop(name, None)

    def hyper_node_scores(self, sub_job: SubJob, domains: list[str]) -> dict[str, float]:
        scores = dict.fromkeys(domains, 0.0)
        for f in self._hyper_node_order.all:
            for name, score in f(sub_job, domains).items():
                scores[name] += score
        return scores

    def hyper_node_scores_alone(self, sub_job: SubJob, domains: list[str]) -> dict[str, float] | None:
        """Each domain's score as if it were the only one; None where that says nothing about their order."""
        named = self._hyper_node_order.named
        if not named:
            return dict.fromkeys(domains, 0.0)
        alone = self._hyper_node_order_alone.get(named[0][0]) if len(named) == 1 else None
        return alone(sub_job, domains) if alone is not None else None

    # --- the rest -----------------------------------------------------------------------------------------------

    def add_event_handler(self, handler: EventHandler) -> None:
        self.event_handlers.append(handler)

    def add_binder(self, name: str, binder: PreBinder) -> None:
        """For plugins that must write something before a pod can be bound."""
        self._binders[name] = binder

    def bind_plan(self, task: Task) -> VolumePlan | None:
        for binder in self._binders.values():
            if binder.needs(task):
                return binder.plan(task)
        return None

    def add_queue_report(self, name: str, fn: Callable[[Queue], QueueStanding | None]) -> None:
        """For plugins that divide the cluster between queues. Asked only when somebody reports."""
        self._queue_report.add(name, fn)

    def queue_standing(self, queue: Queue) -> QueueStanding | None:
        """By the first plugin that knows the queue; None if no plugin gives it anything."""
        return next((found for f in self._queue_report.all if (found := f(queue)) is not None), None)

    def plugin_option(self, name: str) -> PluginOption | None:
        """The first entry of the configuration with that plugin name."""
        return next((p for tier in self.tiers for p in tier.plugins if p.name == name), None)


def _voted(tiers: list[list[Callable[[T], Vote]]], subject: T) -> bool:
    """A rejection ends it; a tier that permits decides; nobody against it is enough (spec 02 §5.1)."""
    for tier in tiers:
        permitted = False
        for f in tier:
            vote = f(subject)
            if vote < 0:
                return False
            permitted = permitted or vote > 0
        if permitted:
            return True
    return True


def _common(a: list[Task], b: list[Task]) -> list[Task]:
    if a == b:
        return a
    uids = {t.uid for t in b}
    return [t for t in a if t.uid in uids]


def choose_victims(tiers: list[list[F]], ask: Callable[[F], Victims]) -> list[Task]:
    """The first tier whose plugins agree on any victims decides. An empty answer does not veto: it ends its tier, and
    an intersection that became empty starts anew with the next plugin (Quirks, spec 02 §5.2)."""
    victims: list[Task] | None = None
    for tier in tiers:
        for f in tier:
            chosen, vote = ask(f)
            if vote == 0:
                continue
            if not chosen:
                victims = None
                break
            if victims is None:
                victims = chosen
            else:
                victims = _common(victims, chosen) or None
        if victims is not None:
            return victims
    return []
