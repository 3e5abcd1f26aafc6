"""The backend of a real cluster: its API, and the lease of leader election on a connection of its own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from vcscheduler.cluster.interface import Cluster, EventSink
from vcscheduler.cluster.live import (
    Access,
    Connection,
    ConnectionFailed,
    LiveCluster,
    LiveOptions,
    NotSynced,
    Watched,
)
from vcscheduler.cluster.live.failures import ApiFailure
from vcscheduler.cluster.live.objects import LiveObjects
from vcscheduler.config import SchedulerOptions
from vcscheduler.server.backend import Gate, NotReady, Unreachable
from vcscheduler.server.leader import Lease, LeaseClient, LeaseConflict

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
_Time = Annotated[datetime, msgspec.Meta(tz=True)]


class LiveBackend:
    """One cluster, reached as the options say. Nothing is written before a gate was given."""

    def __init__(self, options: SchedulerOptions, gate: Gate = lambda: False) -> None:
        self._options = options
        self._gate = gate
        self._access = Access(kubeconfig=options.kubeconfig, server=options.master)
        live = LiveOptions(scheduler_names=options.scheduler_names, watched=_watched(options))
        self._cluster = LiveCluster(self._access, live, self._may_write)
        self._objects = LiveObjects(self._cluster, self._may_write)
        self._lease_connection: Connection | None = None

    def connect(self) -> None:
        """Begin to watch, without waiting; failures are told when the cluster is started."""
        self._cluster.connect()

    def gated(self, _options: SchedulerOptions, gate: Gate) -> LiveBackend:
        """A BackendMaker that makes nothing new."""
        self._gate = gate
        return self

    def _may_write(self) -> bool:
        return self._gate()

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    @property
    def objects(self) -> LiveObjects:
        return self._objects

    def add_listener(self, sink: EventSink) -> None:
        self._cluster.add_listener(sink)

    def wait_for_sync(self, timeout: float) -> None:
        try:
            self._cluster.wait_for_sync(timeout)
        except NotSynced as error:
            raise NotReady(str(error)) from error

    def settled(self, timeout: float) -> bool:
        return self._cluster.settled(timeout)

    def gauges(self) -> Mapping[str, tuple[str, float]]:
        cluster, counts = self._cluster, self._cluster.counts
        own = "vcscheduler_api_"
        return {
            own + "writes_waiting": ("Writes handed over and not done yet.", float(cluster.backlog)),
            own + "writes_saturated": ("Whether decisions wait for writes.", float(cluster.saturated)),
            own + "writes_sent_total": ("Writes that were done.", float(counts.sent)),
            own + "writes_retried_total": ("Writes that were tried again.", float(counts.retried)),
            own + "writes_failed_total": ("Writes that were given up.", float(counts.failed)),
            own + "writes_replaced_total": ("Writes that a later one made needless.", float(counts.replaced)),
            own + "writes_throttled_total": ("Writes that the server asked to send later.", float(counts.throttled)),
            own + "events_dropped_total": ("Events that there was no room for.", float(counts.events_dropped)),
            own + "lists_total": ("Complete lists of a resource, first ones included.", float(cluster.relists)),
        }

    def stop(self, drain: float) -> None:
        self._cluster.stop(drain)

    async def open_lease(self) -> LeaseClient:
        options = self._options
        self._lease_connection = Connection(self._access, limit=2, timeout=options.leader_elect_renew_deadline)
        try:
            await self._lease_connection.open()
        except ConnectionFailed as error:
            raise Unreachable(str(error)) from error
        return ApiLease(self._lease_connection, options.lease_namespace(), options.leader_elect_resource_name)

    async def close_lease(self) -> None:
        if self._lease_connection is not None:
            await self._lease_connection.close()


def _watched(options: SchedulerOptions) -> Watched:
    """What the flags let the scheduler watch (spec 07 §1.1)."""
    gates = options.feature_gates
    return Watched(
        priority_classes=options.priority_class and gates.get("PriorityClass", True),
        numatopologies=gates.get("ResourceTopology", True),
        node_shards=options.scheduler_sharding_mode in ("hard", "soft"),
        csi_storage=options.csi_storage,
        workloads=gates.get("WorkLoadSupport", True),
        disruption_budgets=gates.get("PodDisruptionBudgetsSupport", True),
        dynamic_resource_allocation=gates.get("DynamicResourceAllocation"),
        controllers=options.with_controllers,
    )


class ApiLease:
    """A coordination.k8s.io/v1 Lease. What others wrote into it and nothing here reads is kept."""

    def __init__(self, connection: Connection, namespace: str, name: str) -> None:
        self._connection = connection
        self._namespace = namespace
        self._name = name
        self._collection = _LEASES.format(namespace)
        self._document: dict[str, Any] = {}

    async def get(self) -> Lease | None:
        try:
            return self._read(await self._connection.call("GET", f"{self._collection}/{self._name}"))
        except ApiFailure as failure:
            if failure.status == 404:
                return None
            raise

    async def create(self, lease: Lease) -> Lease:
        self._document = {}
        return await self._write("POST", self._collection, lease)

    async def update(self, lease: Lease) -> Lease:
        return await self._write("PUT", f"{self._collection}/{self._name}", lease)

    async def _write(self, method: str, path: str, lease: Lease) -> Lease:
        old = self._document
        metadata = {**old.get("metadata", {}), "name": self._name, "namespace": self._namespace}
        if lease.version:
            metadata["resourceVersion"] = lease.version
        spec = {
            **old.get("spec", {}),
            "holderIdentity": lease.holder,
            "leaseDurationSeconds": lease.duration_seconds,
            "acquireTime": _micro(lease.acquired),
            "renewTime": _micro(lease.renewed),
            "leaseTransitions": lease.transitions,
        }
        document = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        try:
            return self._read(await self._connection.call(method, path, msgspec.json.encode(document)))
        except ApiFailure as failure:
            if failure.status == 409:
                raise LeaseConflict(failure.message) from failure
            raise

    def _read(self, body: bytes) -> Lease:
        self._document = msgspec.json.decode(body, type=dict[str, Any])
        found = msgspec.json.decode(body, type=_Lease)
        spec = found.spec
        return Lease(
            spec.holder_identity or "",
            spec.lease_duration_seconds or 0,
            spec.acquire_time,
            spec.renew_time,
            spec.lease_transitions or 0,
            found.metadata.resource_version,
        )


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: _Time | None = None
    renew_time: _Time | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)


def _micro(time: datetime | None) -> str | None:
    """As the API writes a MicroTime: always six digits."""
    if time is None:
        return None
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
