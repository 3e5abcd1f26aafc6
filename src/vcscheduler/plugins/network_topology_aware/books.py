"""What each network domain has, uses and has left: sums over its nodes (spec 06 §A7.2)."""

from __future__ import annotations

import numpy as np

from vcscheduler.framework.plugin import Event, EventHandler, RunEvent
from vcscheduler.model.job import SubJob
from vcscheduler.model.nodes import NodeTable
from vcscheduler.model.resources import CPU, EPSILON, MEMORY, Resources
from vcscheduler.model.status import ALLOCATED, PENDING, PIPELINED
from vcscheduler.model.task import Task
from vcscheduler.model.topology import Topology
from vcscheduler.placement.rules import BoolArray, FloatArray, IntArray


class DomainBooks:
    """Sums by domain, in the order of ``topology.names``.

    Only what is used follows the session; what is idle stays as it was at opening (Quirk, spec 06 §A7.2).
    """

    def __init__(self, table: NodeTable, topology: Topology, weights: dict[str, int]) -> None:
        self._topology = topology
        self._table = table
        self._weights = weights
        self._dims = dict(table.dimensions.index)
        self.allocatable = self._sums(table.allocatable)
        self.idle = self._sums(table.idle)
        self.future_idle = self.idle + self._sums(table.releasing) - self._sums(table.pipelined)
        self._used = self._sums(table.used)
        self._placed: dict[str, IntArray] = {}

    def _sums(self, column: FloatArray) -> FloatArray:
        return self._topology.sums(column[: len(self._dims)])

    def _of(self, sums: FloatArray, resource: str) -> FloatArray:
        d = self._dims.get(resource)
        return sums[d] if d is not None else np.zeros(sums.shape[1])

    def fits(self, need: Resources, sums: FloatArray) -> BoolArray:
        """For each domain, whether it has at least what is needed, to a tenth of a unit."""
        fits = np.ones(sums.shape[1], dtype=np.bool_)
        for resource, x in ((CPU, need.cpu), (MEMORY, need.memory), *need.scalar_items()):
            y = self._of(sums, resource)
            fits &= (x < y) | (np.abs(x - y) < EPSILON)
        return fits

    def packing(self, request: Resources) -> FloatArray:
        """For each domain, how full it is once the request is in it: weighted mean over the weighed resources, 0 where
        it does not fit. Resources of weight 0 count for fitting only."""
        score = np.zeros(len(self._topology.names))
        fits = np.ones(len(score), dtype=np.bool_)
        total = 0
        for resource, weight in self._weights.items():
            x = request.get(resource)
            if x < EPSILON:
                continue
            filled, room = self._of(self._used, resource) + x, self._of(self.allocatable, resource)
            fits &= filled <= room
            score += np.divide(filled, room, out=np.zeros_like(room), where=room > 0) * weight
            total += weight
        if total <= 0:
            return np.zeros(len(score))
        return np.where(fits, score / total, 0.0)

    def placed(self, sub_job: SubJob) -> IntArray:
        """For each domain, how many tasks of the sub-job are on a node of it, in any status."""
        counts = self._placed.get(sub_job.id)
        if counts is None:
            counts = self._placed[sub_job.id] = np.zeros(len(self._topology.names), dtype=np.int64)
            for task in sub_job.tasks.values():
                holders = self._holders(task)
                if holders is not None:
                    counts[holders] += 1
        return counts

    def _holders(self, task: Task) -> IntArray | None:
        node = self._table.get(task.node_name) if task.node_name else None
        return self._topology.holders[node.row] if node is not None else None

    # --- events -------------------------------------------------------------------------------------------------------

    def handler(self) -> EventHandler:
        return EventHandler(
            allocate=lambda event: self._changed(event, 1),
            deallocate=lambda event: self._changed(event, -1),
            allocate_run=lambda event: self._run_changed(event, 1),
            deallocate_run=lambda event: self._run_changed(event, -1),
        )

    def _changed(self, event: Event, times: int) -> None:
        task = event.task
        holders = self._holders(task)
        if holders is None:
            return
        self._add(task.resreq, holders, times)
        # An eviction leaves the task where it is.
        moved = task.status in (ALLOCATED, PIPELINED) if times > 0 else task.status is PENDING
        counts = self._placed.get(task.sub_job.id) if task.sub_job is not None else None
        if moved and counts is not None:
            counts[holders] += times

    def _run_changed(self, event: RunEvent, times: int) -> None:
        holders = [self._topology.holders[row] for row in event.rows]
        tasks_in = np.bincount(np.concatenate(holders), minlength=len(self._topology.names))
        self._add(event.cls.resreq, slice(None), times * tasks_in)
        for task, held in zip(event.tasks, holders):
            counts = self._placed.get(task.sub_job.id) if task.sub_job is not None else None
            if counts is not None:
                counts[held] += times

    def _add(self, amount: Resources, domains: IntArray | slice, times: int | IntArray) -> None:
        for resource in self._weights:
            d = self._dims.get(resource)
            x = amount.get(resource)
            if x and d is not None:
                self._used[d, domains] += times * x
