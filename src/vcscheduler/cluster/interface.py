"""The door between the scheduler and the cluster it schedules, live or embedded.

The cache hears of objects through an `EventSink` and writes through a `Cluster`; it cannot tell which
implementation stands behind. Objects that pass this door are shared, not copied: neither side changes one it
has handed over or received, a change makes a new object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from vcscheduler.objects import (
    Condition,
    KubernetesObject,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodGroup,
    Queue,
    ResourceClaim,
)


class ErrorReason(StrEnum):
    """Why a write failed, in the words of the Kubernetes API (`Status.reason`)."""

    NOT_FOUND = "NotFound"
    ALREADY_EXISTS = "AlreadyExists"
    CONFLICT = "Conflict"
    """The object was changed since the resourceVersion that the write names."""
    INVALID = "Invalid"
    FORBIDDEN = "Forbidden"
    TIMEOUT = "Timeout"
    UNAVAILABLE = "ServiceUnavailable"
    INTERNAL = "InternalError"


class ClusterError(Exception):
    """A write that the cluster refused or could not carry out; `str()` is the message."""

    def __init__(self, reason: ErrorReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class EventSink(Protocol):
    """Hears of every change, in order. Must return quickly: it queues, it does not schedule."""

    def added(self, obj: KubernetesObject, /) -> None: ...

    def updated(self, old: KubernetesObject, new: KubernetesObject, /) -> None: ...

    def deleted(self, obj: KubernetesObject, /) -> None: ...

    def refused(self, obj: KubernetesObject, error: ClusterError, /) -> None:
        """A write to this object that was accepted at first has failed for good. For a PodGroup or a Queue, its stored
        state follows as an update."""


class FanOut(EventSink):
    """Tells several sinks, in order."""

    def __init__(self, sinks: Sequence[EventSink]) -> None:
        self._sinks = tuple(sinks)

    def added(self, obj: KubernetesObject, /) -> None:
        for sink in self._sinks:
            sink.added(obj)

    def updated(self, old: KubernetesObject, new: KubernetesObject, /) -> None:
        for sink in self._sinks:
            sink.updated(old, new)

    def deleted(self, obj: KubernetesObject, /) -> None:
        for sink in self._sinks:
            sink.deleted(obj)

    def refused(self, obj: KubernetesObject, error: ClusterError, /) -> None:
        for sink in self._sinks:
            sink.refused(obj, error)


class Cluster(Protocol):
    """What the scheduler does to a cluster. Every write may raise `ClusterError`."""

    def start(self, handler: EventSink) -> None:
        """Deliver all current objects as added, then every change.

        The embedded cluster delivers synchronously, from within the call that makes the change.
        """

    def read_pod(self, namespace: str, name: str) -> Pod | None:
        """The pod as stored now, None if it is gone: what settles a failed bind or eviction (spec 07 §3.4)."""

    def bind(self, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        """Bind the pod to the node and merge the annotations onto it."""

    def bind_many(self, bindings: Sequence[tuple[Pod, str]]) -> list[ClusterError | None]:
        """Bind pods without further annotations: the outcome of each, in order. Raises nothing."""

    def evict(self, pod: Pod, reason: str) -> None:
        """Set the conditions Ready and DisruptionTarget that tell of it, then delete the pod (spec 02 §9.2)."""

    def update_pod_condition(self, pod: Pod, condition: Condition, nominated_node_name: str) -> None:
        """Set one condition in the pod's status, and its nominated node unless that is empty."""

    def update_pod_group(self, pod_group: PodGroup) -> PodGroup:
        """Write the whole PodGroup, status included. Returns it as stored, with its new resourceVersion."""

    def update_queue_status(self, queue: Queue) -> Queue:
        """Write the queue's status only. Returns the queue as stored."""

    def create_queue(self, queue: Queue) -> Queue: ...

    def update_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim: ...

    def update_volume(self, volume: PersistentVolume) -> PersistentVolume: ...

    def update_resource_claim(self, claim: ResourceClaim) -> ResourceClaim: ...

    def record_event(self, kind: str, namespace: str, name: str, type: str, reason: str, message: str) -> None:
        """Tell of something about an object, for people. Never fails, never waits; repeats are counted."""
