"""proportion: the cluster divided between queues by weight, bounded by request, capability and guarantee (spec 04 §6).

Only queues with a job in the session take part. The division depends on little and rarely changes from one session to
the next, so the last one is kept and used again while its inputs are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from vcscheduler.framework.plugin import Event, EventHandler, Plugin, QueueStanding, RunEvent
from vcscheduler.framework.simulation_points import State
from vcscheduler.model.amounts import amounts
from vcscheduler.model.job import Job
from vcscheduler.model.queue import Queue
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import Vote
from vcscheduler.model.task import Task
from vcscheduler.plugins.deserved import Claim, divide
from vcscheduler.plugins.notices import refuse
from vcscheduler.plugins.shares import DominantShare, beyond, real_capability, times_within, within
from vcscheduler.plugins.simulated import SimulatedQueues

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session


class QueueAttributes:
    """A queue in this session. ``allocated`` follows the session, pipelined tasks included; ``inqueue`` only grows."""

    __slots__ = (
        "_share",
        "_share_of",
        "allocated",
        "deserved",
        "elastic",
        "inqueue",
        "queue",
        "real_capability",
    )

    def __init__(
        self,
        queue: Queue,
        allocated: Resources,
        inqueue: Resources,
        elastic: Resources,
        real: Resources,
        deserved: Resources,
    ) -> None:
        self.queue = queue
        self.allocated = allocated
        self.inqueue = inqueue
        self.elastic = elastic
        self.real_capability = real
        self.deserved = deserved
        self._share_of = DominantShare(deserved)
        self._share: float | None = None

    @property
    def name(self) -> str:
        return self.queue.name

    @property
    def share(self) -> float:
        if self._share is None:
            self._share = self._share_of(self.allocated)
        return self._share

    def change(self, request: Resources, times: int) -> None:
        self.allocated.add_times(request, times)
        self._share = None


@dataclass(slots=True)
class _Division:
    """What the last session worked out, and from what."""

    specs: object
    requests: object
    real: dict[str, Resources]
    deserved: dict[str, Resources]


class ProportionPlugin(Plugin):
    name = "proportion"

    def on_session_open(self, ssn: Session) -> None:
        self.ssn = ssn
        self.attributes = self._open_queues()
        ssn.add_queue_order_fn(self.name, self._compare, key=self._rank)
        ssn.add_reclaimable_fn(self.name, self.reclaimable)
        # Overused is "used up in every dimension"; then whatever asks for some cpu or memory is not allocatable.
        ssn.add_overused_fn(self.name, self.overused, allocatable_implies_not=True)
        ssn.add_allocatable_fn(self.name, self.allocatable, limit=self.allocatable_times)
        ssn.add_preemptive_fn(self.name, self.preemptive)
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

    def _open_queues(self) -> dict[str, QueueAttributes]:
        ssn = self.ssn
        names = [name for name in sorted(ssn.aggregates.queues()) if name in ssn.queues]
        sums = {name: s for name in names if (s := ssn.aggregates.queue(name)) is not None}
        division = self._divide({name: s.request for name, s in sums.items()})
        return {
            name: QueueAttributes(
                ssn.queues[name],
                s.allocated,
                s.inqueue,
                s.elastic,
                division.real[name],
                division.deserved[name],
            )
            for name, s in sums.items()
        }

    def _divide(self, requests: dict[str, Resources]) -> _Division:
        ssn, total = self.ssn, self.ssn.total
        # Vectors of a queue's spec compare by identity, sums by value.
        specs = (
            (total.cpu, total.memory, total.scalars),
            [(q.name, q.weight, q.capability, q.guarantee) for q in ssn.queues.values()],
        )
        wanted = [(name, r.cpu, r.memory, r.scalars) for name, r in requests.items()]
        last = ssn.store.get(self.name)
        if isinstance(last, _Division) and last.specs == specs:
            if last.requests == wanted:
                return last
            real = last.real
        else:
            guaranteed = Resources()
            for q in ssn.queues.values():
                guaranteed.add(q.guarantee)
            unreserved = total.above(guaranteed)
            real = {name: real_capability(unreserved, q) for name, q in ssn.queues.items()}
        claims = [
            Claim(ssn.queues[name].weight, request, real[name], ssn.queues[name].guarantee)
            for name, request in requests.items()
        ]
        division = _Division(specs, wanted, real, dict(zip(requests, divide(total, claims))))
        ssn.store[self.name] = division
        return division

    # --- order ------------------------------------------------------------------------------------------------

    def _compare(self, a: Queue, b: Queue) -> float:
        if a.priority != b.priority:
            return b.priority - a.priority
        return self.share(a) - self.share(b)

    def _rank(self, queue: Queue) -> tuple[int, float]:
        return -queue.priority, self.share(queue)

    def share(self, queue: Queue) -> float:
        attributes = self.attributes.get(queue.name)
        return 0.0 if attributes is None else attributes.share

    def standing(self, queue: Queue) -> QueueStanding | None:
        q = self.attributes.get(queue.name)
        if q is None:
            return None
        return QueueStanding(q.allocated, q.deserved, q.real_capability, q.deserved, q.share)

    # --- allocation -------------------------------------------------------------------------------------------

    def overused(self, queue: Queue) -> bool:
        """Used up in every dimension of deserved, ``pods`` included; nothing deserved is always used up."""
        q = self.attributes.get(queue.name)
        return q is not None and q.deserved.less_equal(q.allocated)

    def allocatable(self, queue: Queue, task: Task) -> bool:
        q = self.attributes.get(queue.name)
        return q is not None and queue.is_open and within(task.resreq, q.deserved, q.allocated)

    def allocatable_times(self, queue: Queue, task: Task, k: int) -> int:
        q = self.attributes.get(queue.name)
        if q is None or not queue.is_open:
            return 0
        return times_within(task.resreq, q.deserved, q.allocated, k)

    def preemptive(self, queue: Queue, tasks: list[Task]) -> bool:
        """A queue may reclaim only while it stays within deserved in all that is asked for."""
        q = self.attributes.get(queue.name)
        if q is None or not queue.is_open:
            return False
        request = Resources()
        for t in tasks:
            request.add(t.resreq)
        return within(request, q.deserved, q.allocated)

    # --- admission --------------------------------------------------------------------------------------------

    def job_enqueueable(self, job: Job) -> Vote:
        q = self.attributes[job.queue]
        if not q.queue.is_open:
            return Vote.REJECT
        minimum = job.min_resources
        if minimum is None:
            return Vote.PERMIT
        lacking = beyond(minimum, q.real_capability, q.allocated, q.inqueue, less=q.elastic)
        if not lacking:
            return Vote.PERMIT
        return refuse(self.ssn, job, "queue resource quota insufficient", "insufficient", lacking)

    def job_enqueued(self, job: Job) -> None:
        if job.min_resources is not None:
            self.attributes[job.queue].inqueue.add(job.without_gated(job.min_resources))

    # --- victims ----------------------------------------------------------------------------------------------

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> tuple[list[Task], Vote]:
        """Tasks of queues that exceed deserved in any dimension, also one that the task does not use.

        A queue is looked at before the task is taken from it, so its last victim may bring it below deserved.
        """
        left: dict[str, Resources] = {}
        victims = []
        for t in candidates:
            job = self.ssn.jobs.get(t.job_id)
            q = None if job is None else self.attributes.get(job.queue)
            if q is None:
                continue
            name = q.queue.name
            held = left.get(name)
            if held is None:
                held = left[name] = q.allocated.clone()
            over = held.exceeding(q.deserved)
            if self.ssn.explaining_victims:
                text = "its queue {} holds {} and deserves {}".format
                why = partial(text, name, amounts(held), amounts(q.deserved))
                self.ssn.explain_victim(self.name, reclaimer, t, bool(over), why)
            if over:
                victims.append(t)
                held.sub(t.resreq)
        return victims, Vote.PERMIT

    # --- simulation -------------------------------------------------------------------------------------------

    def pre_predicate(self, task: Task) -> None:
        self.ssn.cycle_state(task)[self.name] = SimulatedQueues()

    def simulate_allocatable(self, state: State, queue: Queue, task: Task) -> bool:
        """Unlike the real question, whether the queue is open does not matter."""
        note, q = state.get(self.name), self.attributes.get(queue.name)
        if not isinstance(note, SimulatedQueues) or q is None:
            return False
        return within(task.resreq, q.deserved, note.allocated(q))

    def simulate(self, state: State, task: Task, times: int) -> str | None:
        note, job = state.get(self.name), self.ssn.jobs.get(task.job_id)
        q = None if job is None else self.attributes.get(job.queue)
        if not isinstance(note, SimulatedQueues) or q is None:
            return f"nothing is known of task {task.key} or its queue"
        note.change(task.resreq, times, q)
        return None

    # --- events -----------------------------------------------------------------------------------------------

    def _on_event(self, event: Event, times: int) -> None:
        job = self.ssn.jobs.get(event.task.job_id)
        q = None if job is None else self.attributes.get(job.queue)
        if q is not None:
            q.change(event.task.resreq, times)

    def _on_run(self, event: RunEvent, times: int) -> None:
        q = self.attributes.get(event.queue)
        if q is not None:
            q.change(event.cls.resreq, times * len(event.tasks))
