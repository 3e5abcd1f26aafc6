"""Statement: a list of operations on one session that takes effect at once there and reaches the cluster on commit.

``discard`` undoes everything in reverse order, exactly. A committed pipeline is only a reservation: it holds its place
until the session closes (spec 02 §9, spec 03 §1.4).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vcscheduler.framework.session import Session
from vcscheduler.model.job import Job
from vcscheduler.model.nodes import Node
from vcscheduler.model.status import ALLOCATED, BINDING, PIPELINED, TaskStatus
from vcscheduler.model.task import Task


@dataclass(slots=True)
class Evict:
    """``on_behalf``: the task that needs the room, for reports."""

    task: Task
    reason: str
    before: TaskStatus
    on_behalf: Task | None = None


@dataclass(slots=True)
class Pipeline:
    task: Task
    node_name: str
    eviction_occurred: bool


@dataclass(slots=True)
class Allocate:
    task: Task
    node_name: str


@dataclass(slots=True)
class PlaceRun:
    """Tasks of one class, role and sub-job; ``rows[i]`` is the node of ``tasks[i]``. ``status``: Allocated, or
    Pipelined without evictions."""

    job: Job
    tasks: list[Task]
    rows: list[int]
    status: TaskStatus


Operation = Evict | Pipeline | Allocate | PlaceRun


class Statement:
    """A transaction on a session."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self.operations: list[Operation] = []

    def __len__(self) -> int:
        return len(self.operations)

    def __iter__(self) -> Iterator[Task]:
        """The tasks that this statement placed."""
        for op in self.operations:
            if isinstance(op, PlaceRun):
                yield from op.tasks
            elif not isinstance(op, Evict):
                yield op.task

    def _append(self, op: Operation) -> None:
        if not self.operations:
            self._ssn.statement_opened(id(self), self)
        self.operations.append(op)

    def _end(self) -> None:
        self.operations = []
        self._ssn.statement_ended(id(self))

    # --- operations -------------------------------------------------------------------------------------------------

    def evict(self, task: Task, reason: str, on_behalf: Task | None = None) -> None:
        op = Evict(task, reason, task.status, on_behalf)
        self._ssn.release(task)
        self._append(op)

    def pipeline(self, task: Task, node: Node | None, eviction_occurred: bool) -> str | None:
        """Reserve what is or becomes free on the node. Returns why not, having rolled back."""
        task.eviction_occurred = eviction_occurred
        error = self._ssn.place(task, node, PIPELINED)
        if error is not None:
            self._ssn.take_back(task)
            return error
        self._append(Pipeline(task, task.node_name, eviction_occurred))
        return None

    def allocate(self, task: Task, node: Node | None) -> str | None:
        """Take free resources of the node. Returns why not, having rolled back."""
        error = self._ssn.place(task, node, ALLOCATED)
        if error is not None:
            self._ssn.take_back(task)
            return error
        self._append(Allocate(task, task.node_name))
        return None

    def place_run(self, job: Job, tasks: list[Task], rows: list[int], status: TaskStatus) -> None:
        """Take over what a kernel placed and accounted in the columns as Allocated or Pipelined."""
        if status is PIPELINED:
            for task in tasks:
                task.eviction_occurred = False
        self._ssn.place_run(job, tasks, rows, status)
        self._append(PlaceRun(job, tasks, rows, status))

    def unpipeline(self, task: Task) -> None:
        """Undo a pipeline without touching the list; the statement is to be discarded or thrown away afterwards."""
        self._ssn.take_back(task)

    # --- endings ----------------------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Carry out in order. What the cache refuses is undone, the rest goes on: a gang may end up bound in part, as
        in the reference (spec 02 §9.2)."""
        ssn = self._ssn
        evicting = ""
        for op in self.operations:
            if isinstance(op, PlaceRun):
                for task in op.tasks:
                    task.last_transaction = None
                if op.status is PIPELINED:
                    ssn.keep_until_close(op.tasks)
                else:
                    self._commit_run(op)
                continue
            op.task.last_transaction = None
            if isinstance(op, Evict):
                evicting = op.reason
                if ssn.cache.evict(op.task, op.reason) is not None:
                    ssn.unrelease(op.task, op.before)
                else:
                    ssn.record_eviction(op.task, op.reason, op.on_behalf)
            elif isinstance(op, Pipeline):
                ssn.keep_until_close([op.task])
            elif op.task.status is ALLOCATED and ssn.commit_allocate(op.task) is not None:
                ssn.take_back(op.task)
        if evicting:
            transactions = ssn.eviction_tally.transactions
            transactions[evicting] = transactions.get(evicting, 0) + 1
        self._end()

    def _commit_run(self, op: PlaceRun) -> None:
        ssn = self._ssn
        refused = ssn.cache.bind_run(op.tasks, op.rows)
        bound = op.tasks
        if refused:
            lost = {task.uid for task, _ in refused}
            bound = [t for t in op.tasks if t.uid not in lost]
            for task, _ in refused:
                ssn.take_back(task)
        if bound:
            op.job.set_status_of(bound, BINDING)
            for task in bound:
                task.counted = BINDING

    def discard(self) -> None:
        """Undo in reverse order; each task remembers where it stood, for the conditions written at close."""
        ssn = self._ssn
        for op in reversed(self.operations):
            if isinstance(op, PlaceRun):
                for task in op.tasks:
                    ssn.remember_transaction(task)
                ssn.take_back_run(op.job, op.tasks, op.rows)
                continue
            ssn.remember_transaction(op.task)
            if isinstance(op, Evict):
                ssn.unrelease(op.task, op.before)
            else:
                ssn.take_back(op.task)
        self._end()

    def merge(self, *others: Statement) -> None:
        """Append the operations of others, which become empty; nothing is applied again."""
        for other in others:
            for op in other.operations:
                self._append(op)
            other._end()

    def save(self) -> list[Operation]:
        """What was done, to be done again by :meth:`recover` after a discard."""
        return list(self.operations)

    def recover(self, saved: list[Operation]) -> str | None:
        """Do saved operations again, in order. The first error stops; what was done until then stays."""
        table = self._ssn.table
        for op in saved:
            error = None
            if isinstance(op, Evict):
                self.evict(op.task, op.reason, op.on_behalf)
            elif isinstance(op, Pipeline):
                error = self.pipeline(op.task, table.get(op.node_name), op.eviction_occurred)
            elif isinstance(op, Allocate):
                error = self.allocate(op.task, table.get(op.node_name))
            else:
                for task, row in zip(op.tasks, op.rows):
                    node = table.nodes[row]
                    if error is None and op.status is PIPELINED:
                        error = self.pipeline(task, node, False)
                    elif error is None:
                        error = self.allocate(task, node)
            if error is not None:
                return error
        return None
