"""The capacity plugin: order of queues, what may be admitted and allocated, who may reclaim what (spec 04 §7)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from vcscheduler.framework.plugin import Event, EventHandler, Plugin, QueueStanding, RunEvent
from vcscheduler.framework.simulation_points import State
from vcscheduler.model.amounts import amounts
from vcscheduler.model.job import Job
from vcscheduler.model.queue import Queue
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import PENDING, EvictionKind, Vote
from vcscheduler.model.task import Task
from vcscheduler.plugins.capacity.accounts import QueueAccount, asks_for_reservation, common_depth
from vcscheduler.plugins.capacity.devices import EXCEEDED, DeviceQuotas
from vcscheduler.plugins.capacity.limits import NotReady, QueueLimits, flat_limits, tree_limits
from vcscheduler.plugins.capacity.reclaim import Reclaim, any_ancestor_below_deserved
from vcscheduler.plugins.notices import nothing_to_say, refuse, say_once
from vcscheduler.plugins.shares import beyond, times_within, within
from vcscheduler.plugins.simulated import SimulatedQueues

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

ANCESTOR_RECLAIM_LEVEL = "ancestorReclaimLevel"
DEVICES = "capacity.DynamicResourceAllocationEnable"
CONSUMABLE = "capacity.DRAConsumableCapacityEnable"
ADMISSION_GATE = "SchedulingGatesQueueAdmission"


@dataclass(slots=True)
class _Kept:
    """Limits, or why there are none, and what they were worked out from."""

    inputs: object
    limits: dict[str, QueueLimits]
    problem: str


class CapacityPlugin(Plugin):
    name = "capacity"
    known_arguments: ClassVar[dict[str, str]] = {
        ANCESTOR_RECLAIM_LEVEL: "int",
        DEVICES: "bool",
        CONSUMABLE: "bool",
    }

    def on_session_open(self, ssn: Session) -> None:
        self.ssn = ssn
        option = ssn.plugin_option(self.name)
        self.tree = option is not None and option.enable_hierarchy
        self.level = max(0, self.arguments.get_int(ANCESTOR_RECLAIM_LEVEL, 0)) if self.tree else 0
        self.reserving = ssn.options.feature_gates.get(ADMISSION_GATE, False)
        self.accounts: dict[str, QueueAccount] = {}
        self.devices: DeviceQuotas | None = None
        problem = self._open_accounts()
        self.ready = not problem
        if problem:
            say_once(ssn, self.name, f"nothing is admitted or allocated: {problem}", logging.ERROR)
        else:
            nothing_to_say(ssn, self.name)
            self._register_orders(ssn)
        ssn.add_reclaimable_fn(self.name, self.reclaimable)
        ssn.add_unified_evictable_fn(self.name, self.unified_evictable)
        ssn.add_preemptive_fn(self.name, self.preemptive)
        # Reservations and claims differ from task to task, so runs are asked for task by task then.
        by_task = self.reserving or self.devices is not None
        ssn.add_allocatable_fn(self.name, self.allocatable, limit=None if by_task else self.allocatable_times)
        ssn.add_job_enqueueable_fn(self.name, self.job_enqueueable)
        ssn.add_job_enqueued_fn(self.name, self.job_enqueued)
        ssn.add_queue_report(self.name, self.standing)
        # Notes of placed tasks are of no use to anybody, so runs need none.
        ssn.add_pre_predicate_fn(self.name, self.pre_predicate, run=lambda tasks: None)
        ssn.add_simulate_allocatable_fn(self.name, self.simulate_allocatable)
        ssn.add_simulate_remove_task_fn(self.name, lambda state, task, gone, node: self.simulate(state, gone, -1))
        ssn.add_simulate_add_task_fn(self.name, lambda state, task, back, node: self.simulate(state, back, 1))
        ssn.add_event_handler(
            EventHandler(
                lambda event: self._on_event(event, 1),
                lambda event: self._on_event(event, -1),
                lambda event: self._on_run(event, 1),
                lambda event: self._on_run(event, -1),
            )
        )

    # --- opening ------------------------------------------------------------------------------------------------

    def _open_accounts(self) -> str:
        """Fill ``accounts``; returns why that cannot be done, if so."""
        ssn = self.ssn
        kept = self._limits()
        if kept.problem:
            return kept.problem
        if self.tree:
            names = list(ssn.queues)
        else:
            names = [name for name in ssn.aggregates.queues() if name in ssn.queues]
        accounts = {name: QueueAccount(ssn.queues[name], kept.limits[name]) for name in sorted(names)}
        for account in accounts.values():
            account.join(tuple(accounts[name] for name in account.limits.ancestors))
        for name in sorted(ssn.aggregates.queues()):
            own, sums = accounts.get(name), ssn.aggregates.queue(name)
            if own is None or sums is None:
                continue
            if not own.limits.leaf:
                return f"queue {name} has jobs although other queues are below it"
            own.open(sums)
        for account in accounts.values():
            if not account.limits.leaf:
                account.fix_share()
        self.accounts = accounts
        if self.reserving:
            self._open_reservations()
        gates = ssn.options.feature_gates
        if self.arguments.get_bool(DEVICES, gates.get("DynamicResourceAllocation", True)):
            consumable = self.arguments.get_bool(CONSUMABLE, gates.get("DRAConsumableCapacity", True))
            quotas = DeviceQuotas(accounts, ssn.listers.resource_claims, consumable=consumable)
            if quotas:
                quotas.open(ssn.jobs.values(), accounts)
                self.devices = quotas
        return ""

    def _limits(self) -> _Kept:
        ssn, total = self.ssn, self.ssn.total
        # Vectors of a queue's spec compare by identity, the total by value.
        inputs = (
            self.tree,
            (total.cpu, total.memory, total.scalars),
            [(q.name, q.parent, q.capability, q.deserved, q.guarantee) for q in ssn.queues.values()],
        )
        kept = ssn.store.get(self.name)
        if not isinstance(kept, _Kept) or kept.inputs != inputs:
            try:
                limits = (tree_limits if self.tree else flat_limits)(ssn.queues, total)
                kept = _Kept(inputs, limits, "")
            except NotReady as problem:
                kept = _Kept(inputs, {}, str(problem))
            ssn.store[self.name] = kept
        return kept

    def _open_reservations(self) -> None:
        for job in self.ssn.jobs.values():
            account = self.accounts.get(job.queue)
            if account is not None and job.counts[PENDING]:
                for task in job.tasks_in(PENDING):
                    if not task.gated and asks_for_reservation(task):
                        account.reserve(task)

    def account_of(self, task: Task) -> QueueAccount | None:
        job = self.ssn.jobs.get(task.job_id)
        return None if job is None else self.accounts.get(job.queue)

    def standing(self, queue: Queue) -> QueueStanding | None:
        a = self.accounts.get(queue.name)
        if a is None:
            return None
        real = a.limits.real_capability
        return QueueStanding(a.allocated, a.limits.deserved, real, real, a.share)

    # --- orders ---------------------------------------------------------------------------------------------------

    def _register_orders(self, ssn: Session) -> None:
        if self.tree:
            ssn.add_queue_order_fn(self.name, self._compare_in_tree)
            ssn.add_victim_queue_order_fn(self.name, self._compare_victim_queues)
        else:
            ssn.add_queue_order_fn(self.name, self._compare_flat, key=self._rank)

    def _rank(self, queue: Queue) -> tuple[int, float, bool]:
        account = self.accounts.get(queue.name)
        share, best_effort = (0.0, False) if account is None else account.standing
        return -queue.priority, share, best_effort

    def _compare_flat(self, a: Queue, b: Queue) -> int:
        return _sign(self._rank(a), self._rank(b))

    def _compare_in_tree(self, a: Queue, b: Queue) -> int:
        """Leaves first. Two leaves are compared where their paths part: the ancestors just below the deepest common
        one, or the queues themselves."""
        if a.priority != b.priority:
            return b.priority - a.priority
        x, y = self.accounts[a.name], self.accounts[b.name]
        if x.limits.leaf != y.limits.leaf:
            return -1 if x.limits.leaf else 1
        if x.limits.leaf:
            k = common_depth(x, y) + 1
            x = x.ancestors[k] if k < len(x.ancestors) else x
            y = y.ancestors[k] if k < len(y.ancestors) else y
        return _sign(x.standing, y.standing)

    def _compare_victim_queues(self, a: Queue, b: Queue, preemptor_queue: Queue) -> int:
        """Victims from queues closer to the preemptor's first."""
        own = self.accounts[preemptor_queue.name]
        return common_depth(self.accounts[b.name], own) - common_depth(self.accounts[a.name], own)

    # --- allocation -----------------------------------------------------------------------------------------------

    def allocatable(self, queue: Queue, task: Task) -> bool:
        """The queue and all queues above it stay within what they may hold; what is deserved does not matter."""
        account = self._placing(queue)
        if account is None:
            return False
        request = task.resreq
        if self.reserving:
            reserved = account.reserved_for_others(task)
            if beyond(request, account.limits.real_capability, account.allocated, reserved):
                return False
            chain = account.chain[1:]
        else:
            chain = account.chain
        for a in chain:
            if not within(request, a.limits.real_capability, a.allocated):
                return False
        if self.devices is not None and not all(self.devices.allows(a, task) for a in account.chain):
            return False
        if self.reserving and asks_for_reservation(task):
            account.reserve(task)
        return True

    def allocatable_times(self, queue: Queue, task: Task, k: int) -> int:
        account = self._placing(queue)
        if account is None:
            return 0
        for a in account.chain:
            k = times_within(task.resreq, a.limits.real_capability, a.allocated, k)
        return k

    def _placing(self, queue: Queue) -> QueueAccount | None:
        """The account of a queue that tasks may be placed for."""
        account = self.accounts.get(queue.name)
        return account if account is not None and queue.is_open and account.limits.leaf else None

    def preemptive(self, queue: Queue, tasks: list[Task]) -> bool:
        """Whether the queue may reclaim: within what it may hold, and in one thing it asks for within what it, or one
        of its nearest ancestors, deserves."""
        account = self.accounts.get(queue.name)
        if account is None or not queue.is_open:
            return False
        request = Resources()
        for t in tasks:
            request.add(t.resreq)
        if not within(request, account.limits.real_capability, account.allocated):
            return False
        future = account.allocated.clone().add(request)
        if future.within_where_set(account.limits.deserved, request):
            return True
        return any_ancestor_below_deserved(account, request, self.level)

    # --- admission ------------------------------------------------------------------------------------------------

    def job_enqueueable(self, job: Job) -> Vote:
        account = self.accounts.get(job.queue)
        if account is None or not account.limits.leaf or not account.queue.is_open:
            return Vote.REJECT
        devices = {} if self.devices is None else self.devices.minimum(job)
        if job.min_resources is None and not devices:
            return Vote.PERMIT
        minimum = job.minimum
        for a in account.chain:
            lacking = beyond(minimum, a.limits.real_capability, a.allocated, a.inqueue, less=a.elastic)
            if not lacking and self.devices is not None and not self.devices.admits(a, devices):
                lacking = [EXCEEDED]
            if lacking:
                return refuse(self.ssn, job, "queue resource quota insufficient", "insufficient", lacking)
        return Vote.PERMIT

    def job_enqueued(self, job: Job) -> None:
        account = self.accounts.get(job.queue)
        if account is None:
            return
        if job.min_resources is not None:
            amount = job.without_gated(job.min_resources)
            for a in account.chain:
                a.inqueue.add(amount)
        if self.devices is not None:
            self.devices.admitted(account.chain, job)

    # --- victims --------------------------------------------------------------------------------------------------

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> tuple[list[Task], Vote]:
        """Looked at in the order in which they would be evicted."""
        own = self.account_of(reclaimer)
        if own is None:
            return [], Vote.REJECT
        search = Reclaim(self.level)
        heap = self.ssn.victims_queue(candidates, reclaimer)
        victims = []
        while (task := heap.pop()) is not None:
            account = self.account_of(task)
            if account is None:
                continue
            reason, above = search.judge(task, account, reclaimer, own)
            if self.ssn.explaining_victims:
                why = partial(_because, reason, account, search.left(account).clone())
                self.ssn.explain_victim(self.name, reclaimer, task, not reason, why)
            if not reason:
                search.take(task, account, *above)
                victims.append(task)
        return victims, Vote.PERMIT

    def unified_evictable(self, kind: EvictionKind, job: Job, candidates: list[Task]) -> tuple[list[Task], Vote]:
        if kind is not EvictionKind.GANG_RECLAIM:
            return candidates, Vote.PERMIT
        if not self.ready:
            return [], Vote.REJECT
        search = Reclaim()
        victims = []
        for task in candidates:
            account = self.account_of(task)
            if account is not None and not search.spares(task, account):
                search.take(task, account)
                victims.append(task)
        return victims, Vote.PERMIT

    # --- simulation -----------------------------------------------------------------------------------------------

    def pre_predicate(self, task: Task) -> None:
        self.ssn.cycle_state(task)[self.name] = SimulatedQueues()

    def simulate_allocatable(self, state: State, queue: Queue, task: Task) -> bool:
        """Unlike the real question, neither devices nor whether the queue is open matter."""
        note, account = state.get(self.name), self.accounts.get(queue.name)
        if not isinstance(note, SimulatedQueues) or account is None or not account.limits.leaf:
            return False
        for a in account.chain:
            reserved = account.reserved_for_others(task) if a is account else Resources()
            if beyond(task.resreq, a.limits.real_capability, note.allocated(a), reserved):
                return False
        return True

    def simulate(self, state: State, task: Task, times: int) -> str | None:
        note, account = state.get(self.name), self.account_of(task)
        if not isinstance(note, SimulatedQueues) or account is None:
            return f"nothing is known of task {task.key} or its queue"
        note.change(task.resreq, times, *account.chain)
        return None

    # --- events ---------------------------------------------------------------------------------------------------

    def _on_event(self, event: Event, times: int) -> None:
        account = self.account_of(event.task)
        if account is not None:
            account.change(event.task.resreq, times)
            self._follow(account, [event.task], times)

    def _on_run(self, event: RunEvent, times: int) -> None:
        account = self.accounts.get(event.queue)
        if account is not None:
            account.change(event.cls.resreq, times * len(event.tasks))
            self._follow(account, event.tasks, times)

    def _follow(self, account: QueueAccount, tasks: list[Task], times: int) -> None:
        """Devices and reservations. A placed task needs no reservation; one taken back, or evicted, has one again
        (Quirk, spec 04 §7.6)."""
        if self.devices is not None:
            self.devices.changed(account.chain, tasks, times)
        if not self.reserving:
            return
        for task in tasks:
            if times > 0:
                account.release(task)
            elif asks_for_reservation(task):
                account.reserve(task)


def _because(reason: str, account: QueueAccount, held: Resources) -> str:
    """Why a task may be reclaimed, or may not, with the figures of its queue."""
    limits = account.limits
    guaranteed = f", is guaranteed {amounts(limits.guarantee)}" if not limits.guarantee.is_empty() else ""
    figures = f"queue {account.name} holds {amounts(held)} and deserves {amounts(limits.deserved)}{guaranteed}"
    return f"{reason or 'its queue exceeds deserved'} ({figures})"


def _sign(a: tuple[float, ...], b: tuple[float, ...]) -> int:
    return (a > b) - (a < b)
