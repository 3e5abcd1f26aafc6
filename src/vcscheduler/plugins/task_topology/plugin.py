"""The plugin: order of tasks by bucket, score of nodes for a task and its bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from vcscheduler.framework.plugin import Event, EventHandler, Plugin, RunEvent
from vcscheduler.model.nodes import Node, NodeTable
from vcscheduler.model.status import PENDING
from vcscheduler.model.task import Task
from vcscheduler.placement.rules import BoolArray, FloatArray, IntArray, KernelScores, NodeScorer
from vcscheduler.plugins.task_topology.buckets import JobBuckets
from vcscheduler.plugins.task_topology.roles import Roles, role_of

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session


class TaskTopologyPlugin(Plugin):
    name = "task-topology"
    known_arguments: ClassVar[dict[str, str]] = {"task-topology.weight": "int"}

    def on_session_open(self, ssn: Session) -> None:
        self.jobs: dict[str, JobBuckets] = {}
        for job in ssn.active_jobs:
            roles = Roles.of(job) if job.counts[PENDING] else None
            if roles is not None:
                self.jobs[job.id] = JobBuckets(job, roles, ssn.table)
        if not self.jobs:
            # Nothing to order or to score: the search then keeps its fast ways.
            return
        weight = self.arguments.get_int("task-topology.weight", 1)
        # The order changes with every placement, so there is no key for it.
        ssn.add_task_order_fn(self.name, self.compare)
        ssn.add_scorer(self.name, TaskTopologyScorer(ssn.table, self.jobs, weight))
        ssn.add_event_handler(EventHandler(allocate=self._placed, allocate_run=self._placed_run))

    def compare(self, a: Task, b: Task) -> int:
        """Tasks in buckets before others, those of the bucket with most left to place first."""
        of_a, of_b = self.jobs.get(a.job_id), self.jobs.get(b.job_id)
        if of_a is None or of_b is None:
            return 0
        in_a, in_b = of_a.bucket_of.get(a.uid), of_b.bucket_of.get(b.uid)
        if (in_a is None) != (in_b is None):
            return 1 if in_a is None else -1
        if in_a is None or in_b is None or of_a is not of_b:
            return 0
        left: tuple[int, ...] = (-len(in_a.unbound), in_a.index)
        right: tuple[int, ...] = (-len(in_b.unbound), in_b.index)
        if in_a is in_b:
            left, right = of_a.roles.rank(role_of(a)), of_a.roles.rank(role_of(b))
        return (left > right) - (left < right)

    def _placed(self, event: Event) -> None:
        # Nothing is taken back when a placement is undone (Quirk, spec 05 §9).
        buckets = self.jobs.get(event.task.job_id)
        if buckets is not None:
            buckets.placed(event.task)

    def _placed_run(self, event: RunEvent) -> None:
        for task in event.tasks:
            buckets = self.jobs.get(task.job_id)
            if buckets is not None:
                buckets.placed(task)


class TaskTopologyScorer(NodeScorer):
    def __init__(self, table: NodeTable, jobs: dict[str, JobBuckets], weight: int) -> None:
        self._table = table
        self._jobs = jobs
        self._weight = weight

    def scores(self, task: Task, rows: IntArray) -> FloatArray:
        job = self._jobs.get(task.job_id)
        bucket = job.bucket_of.get(task.uid) if job is not None else None
        if job is None or bucket is None:
            return np.zeros(len(rows))
        table = self._table
        free = table.idle[:, rows] + table.releasing[:, rows]
        points = job.points(task, bucket, rows, free)
        scores = (points * self._weight).astype(np.float64) * 100 / job.largest
        scores[self._short(task, rows, free)] = 0.0
        return scores

    def _short(self, task: Task, rows: IntArray, free: FloatArray) -> BoolArray:
        """Rows that the task does not fit even when what is leaving has left, strictly; being overcommitted in
        anything is enough, and so is not knowing a resource that is named, be it with 0."""
        short: BoolArray = np.any(free < 0, axis=0)
        for d, amount in self._table.items(task.cls):
            short |= free[d] < amount
            if d > 1 and amount == 0:
                name = self._table.dimensions.names[d]
                nodes = (self._table.nodes[row] for row in rows.tolist())
                short |= np.array([not _knows(node, name) for node in nodes], dtype=np.bool_)
        return short

    def kernel(self, task: Task) -> KernelScores | None:
        return None if task.job_id in self._jobs else KernelScores()


def _knows(node: Node, name: str) -> bool:
    """Whether the node declares the resource, or holds a task that names it."""
    declared = node.object is not None and name in node.object.status.allocatable
    return declared or any(name in (t.resreq.scalars or {}) for t in node.tasks.values())
