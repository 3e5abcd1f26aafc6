"""Which changes of the cluster ask for a scheduling cycle, and how soon.

The reference runs a cycle a second after the last one, whatever happened. Here a change that can lead to a decision
starts one at once; what only has to be written down (a pod that runs now) may wait for the rhythm of the schedule
period; and most of what a cluster tells all day (heartbeats, conditions, the echo of our own writes) asks for none.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from enum import IntEnum
from typing import TypeVar

from vcscheduler.objects import (
    BatchJob,
    Command,
    DaemonSet,
    KubernetesObject,
    Node,
    Pod,
    PodGroup,
    Queue,
    VolcanoJob,
)
from vcscheduler.objects.scheduling import PodGroupStatus

_GROUP = "scheduling.k8s.io/group-name"
_FINISHED = ("Succeeded", "Failed")
_OF_CONTROLLERS = (VolcanoJob, Command, BatchJob, DaemonSet)
"""Kinds that only our own controllers look at."""
T = TypeVar("T")


class Urgency(IntEnum):
    """What a change asks for."""

    NONE = 0
    NOTED = 1
    """To be taken in some time; it changes no decision and nothing that is written."""
    STATUS = 2
    """A cycle within the schedule period: something has to be written, or no longer fits."""
    ROOM = 3
    """A cycle at once if anything waits, for it may fit now; else as STATUS."""
    WORK = 4
    """A cycle at once: there is something new to place."""


def urgency_of(old: KubernetesObject | None, new: KubernetesObject | None, scheduler_names: Collection[str]) -> Urgency:
    """How urgent one event is: only `new` = added, both = updated, only `old` = deleted."""
    some = new if new is not None else old
    if isinstance(some, _OF_CONTROLLERS):
        return Urgency.NOTED
    if isinstance(some, Pod):
        return _of_pod(old, new, scheduler_names)
    if isinstance(some, PodGroup):
        if old is None:
            return Urgency.WORK
        return Urgency.STATUS if new is None else _of_pod_group(old, new)
    if new is None:
        return Urgency.ROOM if not isinstance(old, Node | Queue) else Urgency.STATUS
    if old is None:
        return Urgency.ROOM
    return Urgency.ROOM if _says_more(old, new) else Urgency.NOTED


def _of_pod(old: KubernetesObject | None, new: KubernetesObject | None, scheduler_names: Collection[str]) -> Urgency:
    before, pod = (each if isinstance(each, Pod) else None for each in (old, new))
    if pod is None:
        assert before is not None
        if before.spec.node_name:
            return Urgency.NOTED if before.status.phase in _FINISHED else Urgency.ROOM
        return Urgency.STATUS if before.spec.scheduler_name in scheduler_names else Urgency.NOTED
    if not pod.spec.node_name:
        if pod.spec.scheduler_name not in scheduler_names or _GROUP not in pod.metadata.annotations:
            return Urgency.NOTED
        if before is not None and pod.spec == before.spec and _same_notes(before, pod):
            # Mostly the echo of a condition that we wrote. Finished or deleted before it ever ran: no gang any more.
            return Urgency.NOTED if _stage(before) == _stage(pod) else Urgency.STATUS
        return Urgency.STATUS if pod.spec.scheduling_gates else Urgency.WORK
    if before is None:
        return Urgency.STATUS
    if before.spec.node_name and pod.status.phase in _FINISHED and before.status.phase not in _FINISHED:
        return Urgency.ROOM
    if _stage(before) != _stage(pod) or not before.spec.node_name:
        return Urgency.STATUS
    if before.metadata.labels != pod.metadata.labels or before.spec != pod.spec:
        return Urgency.ROOM
    return Urgency.NOTED


def _stage(pod: Pod) -> tuple[str, bool]:
    return pod.status.phase, pod.metadata.deletion_timestamp is not None


def _of_pod_group(old: KubernetesObject, new: KubernetesObject) -> Urgency:
    assert isinstance(old, PodGroup)
    assert isinstance(new, PodGroup)
    if old.spec != new.spec or not _same_notes(old, new):
        return Urgency.WORK
    return Urgency.NOTED if same_status(old.status, new.status) else Urgency.STATUS


def same_status(a: PodGroupStatus, b: PodGroupStatus) -> bool:
    """Whether two statuses tell the same. Times and transition ids are no news, and an API server keeps whole seconds
    only."""
    if (a.phase, a.running, a.succeeded, a.failed) != (b.phase, b.running, b.succeeded, b.failed):
        return False
    return [(c.type, c.status, c.reason, c.message) for c in a.conditions] == [
        (c.type, c.status, c.reason, c.message) for c in b.conditions
    ]


def _same_notes(old: KubernetesObject, new: KubernetesObject) -> bool:
    return old.metadata.labels == new.metadata.labels and old.metadata.annotations == new.metadata.annotations


def _says_more(old: KubernetesObject, new: KubernetesObject) -> bool:
    """Whether an update of something that rules look up could change what they say."""
    if old.metadata.labels != new.metadata.labels:
        return True
    if isinstance(old, Node) and isinstance(new, Node):
        # Annotations of nodes and their status change all the time; the ones that count are Volcano's.
        return (
            old.spec != new.spec
            or old.status.allocatable != new.status.allocatable
            or old.status.capacity != new.status.capacity
            or _volcano(old) != _volcano(new)
        )
    if old.metadata.annotations != new.metadata.annotations:
        return True
    if isinstance(old, Queue) and isinstance(new, Queue):
        return old.spec != new.spec or old.status.state != new.status.state
    return any(getattr(old, name) != getattr(new, name) for name in old.__struct_fields__ if name != "metadata")


def _volcano(node: Node) -> dict[str, str]:
    return {key: value for key, value in node.metadata.annotations.items() if "volcano.sh/" in key}


class Bell:
    """What the decision thread sleeps on. Any thread may ring it; ringing costs next to nothing once it has rung.

    It must be silenced (:meth:`take`) before the events are taken in that it rang for: what comes later rings again.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._awake = threading.Condition()
        self._calls: list[Callable[[], None]] = []
        self.urgency = Urgency.NONE
        self.since = 0.0
        self.closed = False

    def ring(self, urgency: Urgency) -> None:
        if urgency <= self.urgency:
            return
        with self._awake:
            if urgency > self.urgency:
                self.urgency = urgency
                self.since = self._clock()
                self._awake.notify()

    def take(self) -> Urgency:
        """How urgent it is; from now on it is silent."""
        with self._awake:
            urgency, self.urgency = self.urgency, Urgency.NONE
            return urgency

    def call(self, function: Callable[[], T]) -> Future[T]:
        """Have a function run by the decision thread between two cycles, where nothing changes meanwhile."""
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(function())
            except Exception as error:
                future.set_exception(error)

        with self._awake:
            if self.closed:
                future.cancel()
            else:
                self._calls.append(run)
                self._awake.notify()
        return future

    def answer_calls(self) -> None:
        with self._awake:
            calls, self._calls = self._calls, []
        for run in calls:
            run()

    def close(self) -> None:
        """Wake whoever waits, for good."""
        with self._awake:
            self.closed = True
            self._awake.notify_all()

    def wait(self, seen: Urgency, timeout: float | None) -> None:
        """Until it rings for more than `seen`, somebody calls, or it is closed; at most `timeout` seconds."""
        with self._awake:
            if self.urgency <= seen and not self._calls and not self.closed:
                self._awake.wait(timeout)
