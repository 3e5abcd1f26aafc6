"""LiveCluster: a real cluster behind the door that the scheduler knows (cluster/interface.py).

An event loop in a thread of its own watches and writes; the thread that decides hands writes over and goes on. What
was handed over counts as done until the API server refuses it for good, which the sink then hears.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast

import msgspec

from vcscheduler.cluster.interface import Cluster, ClusterError, ErrorReason, EventSink, FanOut
from vcscheduler.cluster.live.access import ObjectAccess
from vcscheduler.cluster.live.connection import Access, Connection, ConnectionFailed
from vcscheduler.cluster.live.decoding import Decoder
from vcscheduler.cluster.live.failures import ApiFailure
from vcscheduler.cluster.live.object_writes import (
    PatchObject,
    StatusBook,
    WriteStatus,
    as_written,
    lay_over_pod_group,
    lay_over_queue,
)
from vcscheduler.cluster.live.pod_writes import Bind, Evict, SetCondition, read_pod
from vcscheduler.cluster.live.recorder import Recorder
from vcscheduler.cluster.live.reflector import Features, Reflector, WatchTiming, newer
from vcscheduler.cluster.live.resources import (
    CLAIMS,
    PODGROUPS,
    QUEUES,
    RESOURCE_CLAIMS,
    VOLUMES,
    Resource,
    Watched,
)
from vcscheduler.cluster.live.sync import NotSynced, nothing_new_in_node, sync_problems
from vcscheduler.cluster.live.writer import Gate, WriteCounts, Writer, WriterLimits
from vcscheduler.objects import (
    Condition,
    KubernetesObject,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodGroup,
    Queue,
    ResourceClaim,
    to_manifest,
)

log = logging.getLogger(__name__)

K = TypeVar("K", bound=KubernetesObject)
T = TypeVar("T")

_READ_SECONDS: Final = 3.0
"""How long the thread that decides may be kept waiting for one pod."""
_READ_PAUSE: Final = 2.0
"""After a read that failed, others fail at once for so long."""
_CREATE_ATTEMPTS: Final = 60
_TOLD_EVENTS: Final = 20_000


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """What the command line decides about a live cluster.

    scheduler_names: pods of other schedulers do not exist until they have a node (spec 07 §1.3).
    by_eviction: evict through the Eviction API, which respects disruption budgets, instead of deleting as the
        reference does.
    """

    scheduler_names: tuple[str, ...] = ("volcano",)
    watched: Watched = field(default_factory=Watched)
    timing: WatchTiming = field(default_factory=WatchTiming)
    limits: WriterLimits = field(default_factory=WriterLimits)
    by_eviction: bool = False
    request_seconds: float = 15.0

    @property
    def component(self) -> str:
        """Who events say they are from (spec 07 §4.5)."""
        return self.scheduler_names[0] if len(self.scheduler_names) == 1 else "volcano"


class LiveCluster(Cluster):
    """One cluster, from `start` to `stop`.

    Args:
        gate: whether this process may write now, that is, leads; asked before every request that writes.
        wakeup: called from the loop's thread when the sink was told something.
    """

    def __init__(
        self,
        access: Access,
        options: LiveOptions | None = None,
        gate: Gate = lambda: True,
        wakeup: Callable[[], None] = lambda: None,
    ) -> None:
        self.options = options or LiveOptions()
        self._connection = Connection(access, self.options.limits.in_flight + 8, self.options.request_seconds)
        self.access = ObjectAccess(self._connection)
        self._writer = Writer(self._connection, gate, self.options.limits)
        self._wakeup = wakeup
        self._recorder = Recorder(self.options.component, self._uid_of, self._writer.submit_event)
        self._pod_groups = StatusBook(PODGROUPS, PodGroup, lay_over_pod_group, "")
        self._queues = StatusBook(QUEUES, Queue, lay_over_queue, "status")
        self._reflectors: dict[type[KubernetesObject], Reflector[Any]] = {}
        self._features = Features()
        self._sink: EventSink | None = None
        self._listeners: list[EventSink] = []
        self._delivering = False
        self._news = False
        self._told: deque[tuple[str, str, str, str, str, str]] = deque()
        self._telling = False
        self._told_dropped = 0
        self._read_back: dict[str, tuple[str, Pod | None]] = {}
        self._reads_fail_until = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._opened = threading.Event()
        self._synced = threading.Event()
        self._open_error: Exception | None = None
        self._tasks: list[asyncio.Task[None]] = []

    # --- life ---------------------------------------------------------------------------------------------------------

    def add_listener(self, sink: EventSink) -> None:
        """Another one who is told everything, after the one that starts the cluster. To be called before that."""
        assert self._sink is None, "the cluster is started already"
        self._listeners.append(sink)

    def connect(self) -> None:
        """Connect and begin to watch, without waiting. What is found is told once there is somebody to tell."""
        assert self._thread is None, "a cluster is connected to once"
        self._thread = threading.Thread(target=self._run, name="live-cluster", daemon=True)
        self._thread.start()

    def start(self, handler: EventSink) -> None:
        """Tell from now on, having connected if that was not done; `wait_for_sync` tells when everything is known.

        Raises:
            ConnectionFailed: there is no way to reach a cluster.
        """
        assert self._sink is None, "a cluster is started once"
        if self._thread is None:
            self.connect()
        assert self._thread is not None
        self._opened.wait()
        if self._open_error is not None:
            self._thread.join()
            raise self._open_error
        assert self._loop is not None
        sink = FanOut((handler, *self._listeners)) if self._listeners else handler
        self._loop.call_soon_threadsafe(self._attach, sink)

    def _attach(self, sink: EventSink) -> None:
        self._sink = sink
        self.batch_ended()

    def wait_for_sync(self, timeout: float) -> None:
        """Wait until every resource was listed and all objects were told.

        Raises:
            NotSynced: that did not happen in time, or cannot happen; the message names what is missing.
        """
        end = time.monotonic() + timeout
        while not self._synced.wait(0.05):
            problems = sync_problems(self._reflectors.values())
            late = time.monotonic() >= end
            if late or (problems.hopeless and time.monotonic() >= end - timeout + min(5.0, timeout)):
                raise NotSynced(problems.text(self._connection.server, timeout if late else None))

    @property
    def synced(self) -> bool:
        return self._synced.is_set()

    def stop(self, drain: float = 5.0) -> None:
        """Send what was handed over, for `drain` seconds at most, and disconnect."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None or not thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(self._close(drain), loop).result(drain + 10.0)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()

    def settled(self, timeout: float) -> bool:
        """Wait until all writes but events are done or refused. False if that took too long."""
        return self._writer.settled(timeout)

    @property
    def backlog(self) -> int:
        """Writes that were handed over and are not done, events apart."""
        return self._writer.backlog

    @property
    def saturated(self) -> bool:
        """Whether so many writes wait that handing over another one would have to wait too."""
        return self._writer.saturated

    @property
    def counts(self) -> WriteCounts:
        counts = copy(self._writer.counts)
        counts.events_dropped += self._told_dropped
        return counts

    @property
    def statuses_under_way(self) -> int:
        """PodGroups and Queues whose written status the watch has not shown yet."""
        return len(self._pod_groups) + len(self._queues)

    @property
    def relists(self) -> int:
        """How often a resource was listed, first times included."""
        return sum(each.relists for each in self._reflectors.values())

    def objects(self, kind: type[K]) -> list[K]:
        """All objects of a watched kind as last seen."""
        reflector = self._reflectors.get(kind)
        return list(reflector.objects.values()) if reflector is not None else []

    def _run(self) -> None:
        loop = asyncio.new_event_loop()
        self._loop = loop
        try:
            loop.run_until_complete(self._open())
        except Exception as error:
            self._open_error = error
            loop.run_until_complete(self._connection.close())
            loop.close()
            return
        finally:
            self._opened.set()
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    async def _open(self) -> None:
        assert self._loop is not None
        await self._connection.open()
        self._writer.open(self._loop)
        served = await self._served_groups()
        options = self.options
        names = frozenset(options.scheduler_names)
        for resource in options.watched.resources(served):
            self._reflectors[resource.kind] = Reflector(
                resource,
                resource.kind,
                self._connection,
                self,
                self._features,
                options.timing,
                _pods_of(names) if resource.kind is Pod else None,
                nothing_new_in_node if resource.kind is Node else None,
            )
        for reflector in self._reflectors.values():
            self._tasks.append(asyncio.ensure_future(reflector.run()))

    async def _served_groups(self) -> list[str]:
        """Group versions that the server has. Patience for a server that is only just starting."""
        attempt = 0
        while True:
            try:
                body = await self._connection.call("GET", "/apis", timeout=5.0)
                break
            except ApiFailure as failure:
                attempt += 1
                if not failure.transient or attempt >= 10:
                    raise ConnectionFailed(f"{self._connection.server}: {failure}") from failure
                await asyncio.sleep(0.2 * attempt)
        found = msgspec.json.decode(body, type=_Groups)
        return [version.group_version for group in found.groups for version in group.versions]

    async def _close(self, drain: float) -> None:
        await self._writer.close(drain)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._connection.close()

    # --- what reflectors tell (loop) ----------------------------------------------------------------------------------

    def changed(self, old: KubernetesObject | None, new: KubernetesObject | None, /) -> None:
        if isinstance(new, PodGroup):
            new = self._pod_groups.shown(new)
        elif isinstance(new, Queue):
            new = self._queues.shown(new)
        elif new is None and isinstance(old, PodGroup):
            self._pod_groups.gone(old.key)
        elif new is None and isinstance(old, Pod):
            self._read_back.pop(old.key, None)
        elif new is None and isinstance(old, Queue):
            self._queues.gone(old.key)
        if self._delivering:
            self._deliver(old, new)

    def _deliver(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        sink = self._sink
        assert sink is not None
        self._news = True
        if new is None:
            assert old is not None
            sink.deleted(old)
        elif old is None:
            sink.added(new)
        else:
            sink.updated(old, new)

    def batch_ended(self) -> None:
        if not self._delivering:
            if self._sink is None or not all(each.synced for each in self._reflectors.values()):
                return
            # Nothing is told before everything is known, and then what others refer to first.
            self._delivering = True
            for reflector in self._reflectors.values():
                for obj in reflector.objects.values():
                    self._deliver(None, obj)
            self._news = False
            self._synced.set()
            self._wakeup()
        if self._news:
            self._news = False
            self._wakeup()

    # --- what writes tell (loop) --------------------------------------------------------------------------------------

    def known(self, kind: type[K], key: str) -> K | None:
        reflector = self._reflectors.get(kind)
        return cast(K | None, reflector.objects.get(key)) if reflector is not None else None

    def known_pod(self, key: str) -> Pod | None:
        return self.known(Pod, key)

    def pod_bound(self, pod: Pod, node_name: str) -> None:
        self._recorder.record(
            "Pod",
            pod.namespace,
            pod.name,
            "Normal",
            "Scheduled",
            f"Successfully assigned {pod.key} to {node_name}",
        )

    def pod_refused(self, pod: Pod, error: ClusterError, stored: Pod | None, known: bool) -> None:
        if known and pod.key in self._reflectors[Pod].objects:
            self._read_back[pod.key] = (pod.metadata.uid, stored)
        self._refuse(pod, error)

    def object_refused(self, obj: KubernetesObject, error: ClusterError, stored: KubernetesObject | None) -> None:
        self._refuse(obj, error)
        if stored is not None and self._sink is not None:
            self._sink.updated(obj, stored)

    def _refuse(self, obj: KubernetesObject, error: ClusterError) -> None:
        assert self._sink is not None
        self._sink.refused(obj, error)
        self._wakeup()

    def condition_failed(self, pod: Pod, failure: ApiFailure) -> None:
        if failure.status not in (404, 409):
            log.warning("condition of pod %s: %s", pod.key, failure)

    def _uid_of(self, kind: str, namespace: str, name: str) -> str:
        key = f"{namespace}/{name}" if namespace else name
        for cls, reflector in self._reflectors.items():
            obj = reflector.objects.get(key) if cls.kind == kind else None
            if obj is not None:
                return str(obj.metadata.uid)
        return ""

    # --- what the scheduler does --------------------------------------------------------------------------------------

    def read_pod(self, namespace: str, name: str) -> Pod | None:
        key = f"{namespace}/{name}"
        known = self.known_pod(key)
        read = self._read_back.pop(key, None)
        if read is not None:
            uid, stored = read
            is_later = known is not None and (known.metadata.uid != uid if stored is None else _is_later(known, stored))
            return known if is_later else stored
        if time.monotonic() < self._reads_fail_until:
            raise ClusterError(ErrorReason.UNAVAILABLE, "the API server did not answer a moment ago")
        try:
            return self.wait_for(read_pod(self.access, namespace, name), _READ_SECONDS)
        except ClusterError as error:
            if error.reason in (ErrorReason.UNAVAILABLE, ErrorReason.TIMEOUT):
                self._reads_fail_until = time.monotonic() + _READ_PAUSE
            raise

    def bind(self, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        self._writer.submit((Bind(self, pod, node_name, annotations),))

    def bind_many(self, bindings: Sequence[tuple[Pod, str]]) -> list[ClusterError | None]:
        try:
            self._writer.submit([Bind(self, pod, node_name, {}) for pod, node_name in bindings])
        except ClusterError as error:
            for pod, _ in bindings:
                # Nothing was sent, so there is nothing to ask the server about.
                self._read_back[pod.key] = (pod.metadata.uid, self.known_pod(pod.key))
            return [error] * len(bindings)
        return [None] * len(bindings)

    def evict(self, pod: Pod, reason: str) -> None:
        self._writer.submit((Evict(self, pod, reason, _now(), self.options.by_eviction),))

    def update_pod_condition(self, pod: Pod, condition: Condition, nominated_node_name: str) -> None:
        # A scheduler that has so much to write must not wait for this: the next session says it again.
        self._writer.submit((SetCondition(self, pod, condition, nominated_node_name, _now),), wait=False)

    def update_pod_group(self, pod_group: PodGroup) -> PodGroup:
        return self._write_status(self._pod_groups, as_written(pod_group))

    def update_queue_status(self, queue: Queue) -> Queue:
        metadata = copy(queue.metadata)
        metadata.resource_version = ""
        return self._write_status(self._queues, Queue(metadata=metadata, spec=queue.spec, status=queue.status))

    def _write_status(self, book: StatusBook[K], wanted: K) -> K:
        book.expect(wanted)
        try:
            self._writer.submit((WriteStatus(self, book, wanted),))
        except ClusterError:
            book.failed(wanted)
            raise
        return wanted

    def create_queue(self, queue: Queue) -> Queue:
        """Waits for the answer; a queue that exists already is as good. For starting up (spec 07 §1.2)."""
        return self.wait_for(self._create_queue(queue), _CREATE_ATTEMPTS * 2.0)

    async def _create_queue(self, queue: Queue) -> Queue:
        decoder = Decoder(Queue)
        body = msgspec.json.encode(to_manifest(queue))
        for attempt in range(1, _CREATE_ATTEMPTS + 1):
            try:
                stored = await self.access.read(QUEUES, decoder, "", queue.name)
                if stored is not None:
                    return stored
                return decoder.object(await self._connection.call("POST", QUEUES.collection(), body))
            except ApiFailure as failure:
                if failure.reason == "AlreadyExists":
                    continue
                if not failure.transient or attempt == _CREATE_ATTEMPTS:
                    raise
                await asyncio.sleep(1.0)
        raise ApiFailure(503, "", f"queue {queue.name} could not be created")

    def update_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        return self._patch(CLAIMS, claim)

    def update_volume(self, volume: PersistentVolume) -> PersistentVolume:
        return self._patch(VOLUMES, volume)

    def update_resource_claim(self, claim: ResourceClaim) -> ResourceClaim:
        return self._patch(RESOURCE_CLAIMS, claim)

    def _patch(self, resource: Resource, new: K) -> K:
        old = self.known(type(new), new.key)
        if old is None or old.metadata.uid != new.metadata.uid:
            raise ClusterError(ErrorReason.NOT_FOUND, f'{resource.label} "{new.key}" not found')
        version = new.metadata.resource_version
        if version and version != old.metadata.resource_version:
            raise ClusterError(ErrorReason.CONFLICT, f'{resource.label} "{new.key}" was changed meanwhile')
        self._writer.submit((PatchObject(self, resource, old, new),))
        return new

    def record_event(self, kind: str, namespace: str, name: str, type: str, reason: str, message: str) -> None:
        if len(self._told) >= _TOLD_EVENTS:
            self._told_dropped += 1
            return
        self._told.append((kind, namespace, name, type, reason, message))
        if not self._telling:
            self._telling = True
            if self._loop is not None and self._loop.is_running():
                self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        self._telling = False
        told = self._told
        while told:
            self._recorder.record(*told.popleft())

    def wait_for(self, work: Coroutine[Any, Any, T], timeout: float) -> T:
        """Have the loop do it, from any other thread.

        Raises:
            ClusterError: it failed, or took too long.
        """
        assert self._loop is not None, "the cluster is not started"
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout)
        except TimeoutError:
            future.cancel()
            raise ClusterError(ErrorReason.TIMEOUT, "the API server did not answer in time") from None
        except ApiFailure as failure:
            raise failure.as_cluster_error() from failure


class _GroupVersion(msgspec.Struct, rename="camel"):
    group_version: str = ""


class _Group(msgspec.Struct):
    versions: list[_GroupVersion] = []


class _Groups(msgspec.Struct):
    groups: list[_Group] = []


def _pods_of(scheduler_names: frozenset[str]) -> Callable[[Any], bool]:
    def wanted(pod: Pod) -> bool:
        return bool(pod.spec.node_name) or pod.spec.scheduler_name in scheduler_names

    return wanted


def _is_later(a: Pod, b: Pod) -> bool:
    return newer(a.metadata.resource_version, b.metadata.resource_version)


def _now() -> datetime:
    return datetime.now(UTC)
