"""Kubernetes' own view of the nodes, beside Volcano's accounting, in the same rows (spec 05 §2).

Kubernetes' filters and scorers count pods, not statuses: an evicted pod leaves the view at once, a pipelined one
enters it. Listeners (the index of pods by label) learn of every pod that comes or goes.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vcscheduler.model.requests import GPU, HostPort
from vcscheduler.model.task import Task, TaskClass
from vcscheduler.objects import Node as NodeObject
from vcscheduler.objects.quantity import milli_value, value


class ViewListener(Protocol):
    def pod_added(self, task: Task, row: int) -> None: ...

    def pod_removed(self, task: Task, row: int) -> None: ...

    def rows_grown(self, rows: int) -> None: ...


class KubeView:
    """Columns over rows.

    Attributes:
        pods: int64 [rows], pods in the view. max_pods: int64 [rows], ``status.allocatable["pods"]``.
        requested, nonzero: int64 [3, rows] and [2, rows] (milli-CPU, bytes, GPUs); allocatable: int64 [3, rows].
        ports: row -> (IP, protocol, port) -> number of pods that hold it; only rows that have any.
        with_affinity: the pods that ask for affinity of any kind, in order of arrival.
    """

    def __init__(self, rows: int) -> None:
        self.pods = np.zeros(rows, dtype=np.int64)
        self.max_pods = np.zeros(rows, dtype=np.int64)
        self.requested = np.zeros((3, rows), dtype=np.int64)
        self.nonzero = np.zeros((2, rows), dtype=np.int64)
        self.allocatable = np.zeros((3, rows), dtype=np.int64)
        self.ports: dict[int, dict[HostPort, int]] = {}
        self.with_affinity: dict[Task, None] = {}
        self.listeners: list[ViewListener] = []

    def grow(self, rows: int) -> None:
        for name in ("pods", "max_pods", "requested", "nonzero", "allocatable"):
            old: NDArray[np.int64] = getattr(self, name)
            new = np.zeros((*old.shape[:-1], rows), dtype=np.int64)
            new[..., : old.shape[-1]] = old
            setattr(self, name, new)
        for listener in self.listeners:
            listener.rows_grown(rows)

    def set_node(self, row: int, obj: NodeObject) -> None:
        allocatable = obj.status.allocatable
        self.max_pods[row] = value(allocatable.get("pods", 0))
        self.allocatable[0, row] = milli_value(allocatable.get("cpu", 0))
        self.allocatable[1, row] = value(allocatable.get("memory", 0))
        self.allocatable[2, row] = value(allocatable.get(GPU, 0))

    def _account(self, row: int, cls: TaskClass, times: int) -> None:
        k = cls.kube
        self.pods[row] += times
        self.requested[0, row] += k.cpu * times
        self.requested[1, row] += k.memory * times
        if k.gpu:
            self.requested[2, row] += k.gpu * times
        self.nonzero[0, row] += k.nonzero_cpu * times
        self.nonzero[1, row] += k.nonzero_memory * times

    def add(self, task: Task, row: int) -> None:
        self._account(row, task.cls, 1)
        if task.cls.ports:
            held = self.ports.setdefault(row, {})
            for port in task.cls.ports:
                held[port] = held.get(port, 0) + 1
        if task.cls.has_affinity:
            self.with_affinity[task] = None
        task.view_row = row
        for listener in self.listeners:
            listener.pod_added(task, row)

    def added_run(self, tasks: list[Task], rows: list[int]) -> None:
        """The pods came in by a kernel that has counted them in the columns already; the class has no host ports."""
        for task, row in zip(tasks, rows):
            task.view_row = row
        if tasks[0].cls.has_affinity:
            self.with_affinity.update(dict.fromkeys(tasks))
        for listener in self.listeners:
            for task, row in zip(tasks, rows):
                listener.pod_added(task, row)

    def remove(self, task: Task) -> None:
        """Take the pod out of the row that holds it; nothing happens if none does."""
        row = task.view_row
        if row < 0:
            return
        self._account(row, task.cls, -1)
        if task.cls.ports:
            held = self.ports[row]
            for port in task.cls.ports:
                if held[port] == 1:
                    del held[port]
                else:
                    held[port] -= 1
            if not held:
                del self.ports[row]
        if task.cls.has_affinity:
            del self.with_affinity[task]
        task.view_row = -1
        for listener in self.listeners:
            listener.pod_removed(task, row)
