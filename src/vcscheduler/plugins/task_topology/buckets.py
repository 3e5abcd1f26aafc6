"""Buckets: which tasks of a job ought to share a node, and how well a node suits a bucket (spec 05 §9).

Tasks that are on a node are that node's bucket; the others join the bucket that attracts them most. While the session
places tasks, a bucket learns on which nodes its tasks are and what is left to place.
"""

from __future__ import annotations

import numpy as np

from vcscheduler.model.job import Job
from vcscheduler.model.nodes import NodeTable
from vcscheduler.model.resources import Resources
from vcscheduler.model.task import Task
from vcscheduler.placement.rules import BoolArray, FloatArray, IntArray
from vcscheduler.plugins.task_topology.roles import Roles, role_of


class Bucket:
    """Tasks that ought to be together.

    Attributes:
        index: place among the buckets of the job.
        unbound: tasks that have no node yet, by uid ascending once the job's buckets are complete.
        on_row: row -> number of the bucket's tasks there, each placement of this session counted.
        request: float64 [dimensions], what the unbound tasks ask for. ``requests``: the same task by task, [dimensions,
            tasks] in the order of ``position``; ``left``: bool [tasks], still unbound.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self.unbound: dict[str, Task] = {}
        self.bound = 0
        self.on_row: dict[int, int] = {}
        self.position: dict[str, int] = {}
        self.requests: FloatArray = np.zeros((0, 0))
        self.request: FloatArray = np.zeros(0)
        self.left: BoolArray = np.zeros(0, dtype=np.bool_)

    @property
    def size(self) -> int:
        return len(self.unbound) + self.bound

    def complete(self, table: NodeTable, dimensions: list[int]) -> None:
        self.unbound = dict(sorted(self.unbound.items()))
        self.position = {uid: i for i, uid in enumerate(self.unbound)}
        self.requests = np.zeros((len(dimensions), len(self.unbound)))
        for i, task in enumerate(self.unbound.values()):
            self.requests[:, i] = _amounts(table, task, dimensions)
        self.request = self.requests.sum(axis=1)
        self.left = np.ones(len(self.unbound), dtype=np.bool_)

    def placed(self, task: Task, row: int, amounts: FloatArray) -> None:
        """A task of the bucket was placed. One that is placed again counts, and is taken off, again (Quirk)."""
        self.on_row[row] = self.on_row.get(row, 0) + 1
        self.bound += 1
        if self.unbound.pop(task.uid, None) is not None:
            self.left[self.position[task.uid]] = False
        self.request = self.request - amounts

    def left_out(self, task: Task, free: FloatArray) -> IntArray:
        """int64 [rows]: how many other unbound tasks must stay away, by uid, until the rest of the bucket fits into
        ``free`` [dimensions, rows]; all of them where that is not enough."""
        count = np.zeros(free.shape[1], dtype=np.int64)
        short = (~_fits(self.request[:, None], free)).any(axis=0)
        if not short.any():
            return count
        others = self.left.copy()
        own = self.position.get(task.uid)
        if own is not None:
            others[own] = False
        taken = self.requests[:, others]
        # What remains never grows, so the first number that fits is found by search in each dimension.
        needed = count[short]
        for d in range(len(self.request)):
            remains = self.request[d] - np.concatenate(([0.0], np.cumsum(taken[d])))
            few = np.searchsorted(remains[::-1], free[d, short] + 0.1, side="left")
            needed = np.maximum(needed, len(remains) - few)
        count[short] = np.minimum(needed, taken.shape[1])
        return count


class JobBuckets:
    """The buckets of one job with a topology."""

    def __init__(self, job: Job, roles: Roles, table: NodeTable) -> None:
        self.roles = roles
        self.buckets: list[Bucket] = []
        self.bucket_of: dict[str, Bucket] = {}
        self.largest = 0
        #: row -> role -> number of the job's tasks that this session placed there
        self.placed_roles: dict[int, dict[str, int]] = {}
        self._table = table
        tasks = [t for t in job.tasks.values() if role_of(t) and role_of(t) in roles.priority]
        named = {d for cls in {t.cls for t in job.tasks.values()} for d, _ in table.items(cls)}
        self.dimensions = sorted(named | {0, 1})
        self._fill(tasks)
        for bucket in self.buckets:
            bucket.complete(table, self.dimensions)

    def _fill(self, tasks: list[Task]) -> None:
        """Tasks on nodes first, then those in order of role; each of these goes where it is attracted most."""
        attraction = _Attraction(self.roles, sorted({role_of(t) for t in tasks}), len(tasks))
        of_node: dict[str, Bucket] = {}
        for task in sorted((t for t in tasks if t.node_name), key=lambda t: (t.node_name, t.name)):
            bucket = of_node.get(task.node_name)
            if bucket is None:
                bucket = of_node[task.node_name] = self._new_bucket()
            node = self._table.by_name.get(task.node_name)
            if node is not None:
                bucket.on_row[node.row] = bucket.on_row.get(node.row, 0) + 1
            bucket.bound += 1
            self._join(bucket, task)
            attraction.add(bucket.index, role_of(task), 0.0)
        free = [t for t in tasks if not t.node_name]
        free.sort(key=lambda t: (self.roles.rank(role_of(t)), t.name))
        for task in free:
            index = attraction.strongest(role_of(task), len(self.buckets))
            bucket = self._new_bucket() if index is None else self.buckets[index]
            bucket.unbound[task.uid] = task
            self._join(bucket, task)
            attraction.add(bucket.index, role_of(task), _weight(task.resreq))

    def _new_bucket(self) -> Bucket:
        bucket = Bucket(len(self.buckets))
        self.buckets.append(bucket)
        return bucket

    def _join(self, bucket: Bucket, task: Task) -> None:
        self.bucket_of[task.uid] = bucket
        self.largest = max(self.largest, bucket.size)

    # --- what the plugin asks ---------------------------------------------------------------------------------

    def placed(self, task: Task) -> None:
        """A task of the job was put on a node, pipelined, or its eviction was taken back."""
        node = self._table.by_name.get(task.node_name)
        row = node.row if node is not None else -1
        role = role_of(task)
        if role:
            roles = self.placed_roles.setdefault(row, {})
            roles[role] = roles.get(role, 0) + 1
        bucket = self.bucket_of.get(task.uid)
        if bucket is not None:
            bucket.placed(task, row, _amounts(self._table, task, self.dimensions))

    def points(self, task: Task, bucket: Bucket, rows: IntArray, free: FloatArray) -> IntArray:
        """How well the rows suit a task of the bucket. ``free`` [table dimensions, rows]: what is or becomes idle."""
        points = np.full(len(rows), len(bucket.unbound), dtype=np.int64)
        for row, count in bucket.on_row.items():
            points[rows == row] += count
        role = role_of(task)
        for row, roles in self.placed_roles.items():
            repelled = sum(count for other, count in roles.items() if (role, other) in self.roles.apart)
            if repelled:
                points[rows == row] -= repelled
        return points - bucket.left_out(task, free[self.dimensions])


class _Attraction:
    """How much each bucket attracts each role, kept while buckets are filled."""

    def __init__(self, roles: Roles, names: list[str], most: int) -> None:
        self._index = {role: i for i, role in enumerate(names)}
        self._between = np.array([[roles.attraction(a, b) for b in names] for a in names], dtype=np.int64)
        self._pull = np.zeros((len(names), most), dtype=np.int64)
        self._weights = np.zeros(most)

    def add(self, bucket: int, role: str, weight: float) -> None:
        self._pull[:, bucket] += self._between[:, self._index[role]]
        self._weights[bucket] += weight

    def strongest(self, role: str, buckets: int) -> int | None:
        """The bucket that attracts most, of several the lightest, then the first; None if all of them repel."""
        if buckets == 0:
            return None
        pull = self._pull[self._index[role], :buckets]
        most = pull.max()
        if most < 0:
            return None
        equal = np.flatnonzero(pull == most)
        return int(equal[np.argmin(self._weights[equal])])


def _weight(request: Resources) -> float:
    """Milli-CPU, MiB and scalars as they are stored, added up."""
    weight = request.cpu + request.memory / 1024 / 1024
    for _, amount in sorted(request.scalar_items()):
        weight += amount
    return weight


def _amounts(table: NodeTable, task: Task, dimensions: list[int]) -> FloatArray:
    named = dict(table.items(task.cls))
    return np.array([named.get(d, 0.0) for d in dimensions])


def _fits(request: FloatArray, free: FloatArray) -> BoolArray:
    fits: BoolArray = (request < free) | (np.abs(request - free) < 0.1)
    return fits
