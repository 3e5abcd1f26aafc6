"""The embedded cluster: objects in memory, moved on one step at a time. What simulations and tests run on.

It plays the API server (resource versions, conflicts, watch events) and, in `step`, as much of the kubelet as
scheduling needs: bound pods run, evicted pods go. Everything happens in the caller's thread, in a defined
order. Stored objects are never changed in place: whoever holds one keeps what was seen.

A binding is only noted down until the next step, so that binding a million pods in one cycle costs about a
dictionary entry each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, TypeAlias, TypeVar, cast

from vcscheduler.cluster.faults import Choice, Faults, Operation
from vcscheduler.cluster.interface import Cluster, ClusterError, ErrorReason, EventSink, FanOut
from vcscheduler.cluster.object_store import (
    Annotate,
    Create,
    Delete,
    ObjectStore,
    Outcome,
    Update,
    UpdateStatus,
    Write,
    object_of,
)
from vcscheduler.cluster.pod_conditions import eviction_conditions, with_condition
from vcscheduler.cluster.volumes import VolumeController
from vcscheduler.objects import (
    Condition,
    HyperNode,
    KubernetesObject,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodGroup,
    Queue,
    ResourceClaim,
)

_T = TypeVar("_T", bound=KubernetesObject)
Clock: TypeAlias = Callable[[], datetime]

_DELIVERED_LAST: Final = (Node, HyperNode, PodGroup, Pod)
_DEFAULT_GRACE_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event about an object and how often it was recorded."""

    kind: str
    namespace: str
    name: str
    type: str
    reason: str
    message: str
    count: int
    first: datetime
    last: datetime


class MemoryCluster(Cluster, ObjectStore):
    """A cluster without machines.

    Args:
        clock: what time it is; read for deletion times, condition times and events.
        termination_steps: after how many steps a deleted pod that was bound is gone.
        keep_pod_conditions: whether conditions and nominations that the scheduler writes to pods are kept.
        max_events: how many different events are remembered; beyond that the oldest are forgotten.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        termination_steps: int = 1,
        keep_pod_conditions: bool = True,
        max_events: int = 100_000,
    ) -> None:
        self._clock = clock
        self._termination_steps = termination_steps
        self._keep_pod_conditions = keep_pod_conditions
        self._max_events = max_events
        self._faults = Faults()
        self._objects: dict[type[KubernetesObject], dict[str, KubernetesObject]] = {}
        self._sink: EventSink | None = None
        self._listeners: list[EventSink] = []
        self._version = 0
        self._steps = 0
        self._bound: dict[str, tuple[Pod, str]] = {}
        self._bound_annotations: dict[str, Mapping[str, str]] = {}
        self._bound_late: dict[str, int] = {}
        self._terminating: dict[str, int] = {}
        self._late_updates: dict[tuple[type[KubernetesObject], str], tuple[int, KubernetesObject]] = {}
        self._events: dict[tuple[str, str, str, str, str, str], tuple[int, datetime, datetime]] = {}
        self._volumes = VolumeController(self)

    # What is in the cluster

    def objects(self, kind: type[_T]) -> list[_T]:
        """All objects of a kind, in the order they came."""
        return cast(list[_T], list(self._objects.get(kind, {}).values()))

    def get(self, kind: type[_T], key: str) -> _T | None:
        """One object by ``namespace/name``, or by name for kinds without a namespace."""
        return cast(_T | None, self._objects.get(kind, {}).get(key))

    def create(self, obj: _T) -> _T:
        """Add an object as an API server does: with a UID and its time of creation. Returns it as stored.

        Raises:
            ClusterError: AlreadyExists.
        """
        if self.get(type(obj), obj.key) is not None:
            raise ClusterError(ErrorReason.ALREADY_EXISTS, f"{obj.kind} {obj.key} already exists")
        stored = self._copy(obj)
        stored.metadata.uid = stored.metadata.uid or self._new_uid(obj)
        stored.metadata.creation_timestamp = stored.metadata.creation_timestamp or self._clock()
        return self._store(None, stored)

    def apply(self, obj: _T) -> _T:
        """Create or replace an object as it stands; only its resourceVersion is the cluster's. Returns it as stored.

        A pod without UID gets one, since nothing but the UID tells it from a later pod of the same name.
        """
        old = self.get(type(obj), obj.key)
        stored = self._copy(obj)
        if not stored.metadata.uid and isinstance(obj, Pod):
            stored.metadata.uid = old.metadata.uid if old is not None else self._new_uid(obj)
        return self._store(old, stored)

    def apply_all(self, objects: Iterable[KubernetesObject]) -> None:
        for obj in objects:
            self.apply(obj)

    def delete(self, kind: type[KubernetesObject], key: str) -> None:
        """Remove an object at once.

        Raises:
            ClusterError: NotFound.
        """
        obj = self._objects.get(kind, {}).pop(key, None)
        if obj is None:
            raise ClusterError(ErrorReason.NOT_FOUND, f"{kind.kind} {key} not found")
        self._late_updates.pop((kind, key), None)
        if kind is Pod:
            for notes in (self._bound, self._bound_annotations, self._bound_late, self._terminating):
                notes.pop(key, None)
        if self._sink is not None:
            self._sink.deleted(obj)

    def bindings(self) -> dict[str, str]:
        """Pods that were bound since the last step and do not run yet: ``namespace/name`` -> node."""
        return {key: node_name for key, (_, node_name) in self._bound.items()}

    def terminating(self) -> list[str]:
        """Evicted pods that are not gone yet, as ``namespace/name`` in order."""
        return sorted(self._terminating)

    def events(self) -> list[RecordedEvent]:
        """What was recorded, the oldest first."""
        return [RecordedEvent(*key, *seen) for key, seen in self._events.items()]

    # Faults

    def refuse(
        self,
        operation: Operation,
        when: Choice = None,
        times: int | None = None,
        error: ClusterError | None = None,
    ) -> None:
        """Let an operation fail for the objects chosen, `times` times (None: always)."""
        self._faults.refuse(operation, when, times, error)

    def delay(self, operation: Operation, steps: int, when: Choice = None) -> None:
        """Let the watch show the effect of an operation that many steps later than usual."""
        self._faults.delay(operation, steps, when)

    def clear_faults(self) -> None:
        self._faults.clear()

    # The world moves on

    def step(self) -> None:
        """One move of the world: bound pods run on their node, evicted pods are gone, late events arrive."""
        self._steps += 1
        self._start_bound_pods()
        for key in [key for key, due in self._terminating.items() if due <= self._steps]:
            self.delete(Pod, key)
        for kind, key in [place for place, (due, _) in self._late_updates.items() if due <= self._steps]:
            _, old = self._late_updates.pop((kind, key))
            if self._sink is not None:
                self._sink.updated(old, self._objects[kind][key])

    def bind_waiting_claims(self) -> None:
        """Let the volume controller bind the claims that do not wait for a node. Not a part of `step`."""
        self._volumes.bind_waiting()

    def _start_bound_pods(self) -> None:
        pods = self._objects.get(Pod, {})
        nodes = self._objects.get(Node, {})
        annotations, waiting = self._bound_annotations, self._bound_late
        still_bound: dict[str, tuple[Pod, str]] = {}
        for key, binding in self._bound.items():
            if waiting and waiting.get(key, 0) > self._steps:
                still_bound[key] = binding
                continue
            old = cast(Pod, pods[key])
            if old.metadata.uid != binding[0].metadata.uid:
                continue
            node_name = binding[1]
            new = copy(old)
            new.spec = copy(old.spec)
            new.spec.node_name = node_name
            if node_name in nodes:
                # Without the node there is no kubelet to start the pod: it stays bound.
                new.status = copy(old.status)
                new.status.phase = "Running"
            new.metadata = copy(old.metadata)
            if annotations and key in annotations:
                new.metadata.annotations = {**old.metadata.annotations, **annotations[key]}
            self._store(old, new)
        self._bound = still_bound
        self._bound_annotations = {key: value for key, value in annotations.items() if key in still_bound}
        self._bound_late = {key: due for key, due in waiting.items() if key in still_bound}

    # Cluster: what the scheduler does

    def add_listener(self, sink: EventSink) -> None:
        """Another one who is told everything, after the one that starts the cluster. To be called before that."""
        assert self._sink is None, "the cluster is started already"
        self._listeners.append(sink)

    def start(self, handler: EventSink) -> None:
        if self._listeners:
            handler = FanOut((handler, *self._listeners))
        self._sink = handler
        kinds = [kind for kind in self._objects if kind not in _DELIVERED_LAST]
        kinds.extend(_DELIVERED_LAST)
        for kind in kinds:
            for obj in list(self._objects.get(kind, {}).values()):
                handler.added(obj)

    def read_pod(self, namespace: str, name: str) -> Pod | None:
        pod = self.get(Pod, f"{namespace}/{name}")
        if pod is not None:
            self._faults.check(Operation.READ_POD, pod)
        return pod

    def bind(self, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        error = self._note_binding(pod, (pod, node_name))
        if error is not None:
            raise error
        if annotations:
            self._bound_annotations[pod.key] = annotations

    def bind_many(self, bindings: Sequence[tuple[Pod, str]]) -> list[ClusterError | None]:
        if not self._faults.none:
            return [self._note_binding(binding[0], binding) for binding in bindings]
        pods, bound = self._objects.get(Pod, {}), self._bound
        outcomes: list[ClusterError | None] = [None] * len(bindings)
        for index, binding in enumerate(bindings):
            pod = binding[0]
            metadata = pod.metadata
            key = f"{metadata.namespace}/{metadata.name}"
            stored = pods.get(key)
            if stored is pod and key not in bound and not pod.spec.node_name and metadata.deletion_timestamp is None:
                bound[key] = binding
            else:
                outcomes[index] = self._note_binding(pod, binding)
        return outcomes

    def _note_binding(self, pod: Pod, binding: tuple[Pod, str]) -> ClusterError | None:
        key = pod.key
        stored = self.get(Pod, key)
        if stored is None or stored.metadata.uid != pod.metadata.uid:
            return ClusterError(ErrorReason.NOT_FOUND, f"Pod {key} not found")
        error = self._faults.refusal(Operation.BIND, pod)
        if error is not None:
            return error
        taken = stored.spec.node_name or (self._bound[key][1] if key in self._bound else "")
        if taken:
            return ClusterError(ErrorReason.CONFLICT, f"Pod {key} is already assigned to node {taken}")
        if stored.metadata.deletion_timestamp is not None:
            return ClusterError(ErrorReason.CONFLICT, f"Pod {key} is being deleted, it cannot be assigned to a node")
        self._bound[key] = binding
        late = self._faults.delay_of(Operation.BIND, pod)
        if late:
            self._bound_late[key] = self._steps + 1 + late
        return None

    def evict(self, pod: Pod, reason: str) -> None:
        old = self._current(Operation.EVICT, pod)
        key, now = old.key, self._clock()
        if not old.spec.node_name and key not in self._bound:
            self.delete(Pod, key)
            return
        new = self._copy(old)
        new.status = copy(old.status)
        new.status.conditions = eviction_conditions(old, reason, now)
        self._terminate(old, new, self._faults.delay_of(Operation.EVICT, pod))

    def _terminate(self, old: Pod, new: Pod, late: int = 0) -> None:
        """Let a pod that was bound go, its grace period from now."""
        grace = old.spec.termination_grace_period_seconds
        grace = _DEFAULT_GRACE_SECONDS if grace is None else grace
        new.metadata.deletion_grace_period_seconds = grace
        new.metadata.deletion_timestamp = self._clock() + timedelta(seconds=grace)
        self._store(old, new, late)
        self._terminating.setdefault(old.key, self._steps + self._termination_steps + late)

    def update_pod_condition(self, pod: Pod, condition: Condition, nominated_node_name: str) -> None:
        old = self._current(Operation.UPDATE_POD_CONDITION, pod)
        if not self._keep_pod_conditions:
            return
        new = self._copy(old)
        new.status = copy(old.status)
        new.status.conditions = with_condition(old.status.conditions, condition, self._clock())
        new.status.nominated_node_name = nominated_node_name or old.status.nominated_node_name
        self._store(old, new, self._faults.delay_of(Operation.UPDATE_POD_CONDITION, pod))

    def update_pod_group(self, pod_group: PodGroup) -> PodGroup:
        return self._update(Operation.UPDATE_POD_GROUP, pod_group)

    def update_queue_status(self, queue: Queue) -> Queue:
        old = self._current(Operation.UPDATE_QUEUE_STATUS, queue)
        new = self._copy(old)
        new.status = queue.status
        return self._store(old, new, self._faults.delay_of(Operation.UPDATE_QUEUE_STATUS, queue))

    def create_queue(self, queue: Queue) -> Queue:
        self._faults.check(Operation.CREATE_QUEUE, queue)
        return self.create(queue)

    def update_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        stored = self._update(Operation.UPDATE_CLAIM, claim)
        self._volumes.claim_changed(stored)
        return self.get(PersistentVolumeClaim, stored.key) or stored

    def update_volume(self, volume: PersistentVolume) -> PersistentVolume:
        stored = self._update(Operation.UPDATE_VOLUME, volume)
        self._volumes.volume_changed(stored)
        return self.get(PersistentVolume, stored.key) or stored

    def update_resource_claim(self, claim: ResourceClaim) -> ResourceClaim:
        return self._update(Operation.UPDATE_RESOURCE_CLAIM, claim)

    def record_event(self, kind: str, namespace: str, name: str, type: str, reason: str, message: str) -> None:
        key = (kind, namespace, name, type, reason, message)
        now = self._clock()
        seen = self._events.get(key)
        self._events[key] = (1, now, now) if seen is None else (seen[0] + 1, seen[1], now)
        if len(self._events) > self._max_events:
            for oldest in list(islice(self._events, max(1, self._max_events // 4))):
                del self._events[oldest]

    # ObjectStore: what controllers do

    def write(self, writes: Sequence[Write]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for write in writes:
            try:
                self._faults.check(Operation.WRITE_OBJECT, object_of(write))
                outcomes.append(self._written(write))
            except ClusterError as error:
                outcomes.append(error)
        return outcomes

    def _written(self, write: Write) -> KubernetesObject:
        match write:
            case Create(obj=obj):
                return self.create(obj)
            case Update(old=old, new=new):
                stored = self._meant(old, checked=True)
                changed = self._copy(new)
                if hasattr(stored, "status"):
                    changed.status = stored.status  # type: ignore[attr-defined]
                return self._store(stored, changed)
            case UpdateStatus(old=old, new=new, checked=checked):
                return self._write_status(self._meant(old, checked), old, new)
            case Annotate(obj=obj, annotations=annotations):
                stored = self._meant(obj)
                changed = self._copy(stored)
                changed.metadata.annotations = {**stored.metadata.annotations, **annotations}
                return self._store(stored, changed)
            case Delete(obj=obj):
                stored = self._meant(obj)
                self._delete_as_asked(stored)
                return stored

    def _meant(self, obj: KubernetesObject, checked: bool = False) -> KubernetesObject:
        """The stored version of the very object that a controller means."""
        stored = self.get(type(obj), obj.key)
        if stored is None or stored.metadata.uid != obj.metadata.uid:
            raise ClusterError(ErrorReason.NOT_FOUND, f"{obj.kind} {obj.key} not found")
        if checked and stored.metadata.resource_version != obj.metadata.resource_version:
            raise ClusterError(ErrorReason.CONFLICT, f"{obj.kind} {obj.key} was changed meanwhile")
        return stored

    def _write_status(self, stored: KubernetesObject, old: KubernetesObject, new: KubernetesObject) -> KubernetesObject:
        changed = self._copy(stored)
        before, after, status = (copy(getattr(each, "status")) for each in (old, new, stored))  # noqa: B009
        for name in status.__struct_fields__:
            if getattr(before, name) != getattr(after, name):
                setattr(status, name, getattr(after, name))
        changed.status = status  # type: ignore[attr-defined]
        return self._store(stored, changed)

    def _delete_as_asked(self, obj: KubernetesObject) -> None:
        """As the API server and the garbage collector do: a pod that was bound takes its time; what else an object
        owns goes with it."""
        if isinstance(obj, Pod):
            if not obj.spec.node_name and obj.key not in self._bound:
                self.delete(Pod, obj.key)
            elif obj.metadata.deletion_timestamp is None:
                self._terminate(obj, self._copy(obj))
            return
        self.delete(type(obj), obj.key)
        uid = obj.metadata.uid
        owned = [
            each
            for of_kind in self._objects.values()
            for each in of_kind.values()
            if any(owner.uid == uid for owner in each.metadata.owner_references)
        ]
        for each in owned:
            if self.get(type(each), each.key) is each:
                self._delete_as_asked(each)

    # Storing

    def _update(self, operation: Operation, obj: _T) -> _T:
        old = self._current(operation, obj)
        return self._store(old, self._copy(obj), self._faults.delay_of(operation, obj))

    def _current(self, operation: Operation, obj: _T) -> _T:
        """The stored version of an object that the scheduler is about to write."""
        stored = self.get(type(obj), obj.key)
        if stored is None or (isinstance(obj, Pod) and stored.metadata.uid != obj.metadata.uid):
            raise ClusterError(ErrorReason.NOT_FOUND, f"{obj.kind} {obj.key} not found")
        self._faults.check(operation, obj)
        seen = obj.metadata.resource_version
        # The scheduler's writes to pods name no version: they touch only what is the scheduler's own.
        if not isinstance(obj, Pod) and seen and seen != stored.metadata.resource_version:
            raise ClusterError(
                ErrorReason.CONFLICT,
                f"{obj.kind} {obj.key} was changed meanwhile: "
                f"resourceVersion {seen} was written, {stored.metadata.resource_version} is stored",
            )
        return stored

    def _copy(self, obj: _T) -> _T:
        new = copy(obj)
        new.metadata = copy(obj.metadata)
        return new

    def _store(self, old: _T | None, new: _T, late: int = 0) -> _T:
        """Store an object that nobody else holds yet, and tell the watcher, `late` steps from now."""
        self._version += 1
        new.metadata.resource_version = str(self._version)
        kind = type(new)
        of_kind = self._objects.get(kind)
        if of_kind is None:
            of_kind = self._objects[kind] = {}
        of_kind[new.key] = new
        if self._sink is None:
            return new
        if old is None:
            self._sink.added(new)
        elif late or self._late_updates:
            self._update_late(old, new, late)
        else:
            self._sink.updated(old, new)
        return new

    def _update_late(self, old: KubernetesObject, new: KubernetesObject, late: int) -> None:
        """Tell of a change, but never before an earlier one of the same object: those then arrive as one."""
        place = (type(new), new.key)
        waiting = self._late_updates.get(place)
        if waiting is not None:
            self._late_updates[place] = (max(waiting[0], self._steps + late), waiting[1])
        elif late:
            self._late_updates[place] = (self._steps + late, old)
        elif self._sink is not None:
            self._sink.updated(old, new)

    def _new_uid(self, obj: KubernetesObject) -> str:
        return f"{obj.metadata.name}-{self._version + 1}"
