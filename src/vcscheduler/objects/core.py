# ruff: noqa: RUF012 - msgspec gives every instance its own copy of an empty list or dict default.
"""Core (v1) objects apart from pods: nodes, namespaces, quotas, services, config maps, events."""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from vcscheduler.objects.meta import ApiStruct, ApiValue, Condition, KubernetesObject, Time
from vcscheduler.objects.pod import PodTemplateSpec
from vcscheduler.objects.quantity import ResourceList


class Taint(ApiValue, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: Time | None = None


class NodeSpec(ApiStruct):
    unschedulable: bool = False
    taints: list[Taint] = []
    provider_id: str = field(name="providerID", default="")


class ContainerImage(ApiStruct):
    names: list[str] = []
    size_bytes: int = 0


class NodeStatus(ApiStruct):
    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: list[Condition] = []
    images: list[ContainerImage] = []


class Node(KubernetesObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "Node"
    namespaced: ClassVar[bool] = False

    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)


class NamespaceStatus(ApiStruct):
    phase: str = ""


class Namespace(KubernetesObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "Namespace"
    namespaced: ClassVar[bool] = False

    status: NamespaceStatus = field(default_factory=NamespaceStatus)


class ResourceQuotaSpec(ApiStruct):
    hard: ResourceList = {}
    scopes: list[str] = []


class ResourceQuotaStatus(ApiStruct):
    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(KubernetesObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "ResourceQuota"

    spec: ResourceQuotaSpec = field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus = field(default_factory=ResourceQuotaStatus)


class ServiceSpec(ApiStruct):
    selector: dict[str, str] = {}


class Service(KubernetesObject):
    """Its selector feeds the default pod topology spread (spec 05 §5.8)."""

    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "Service"

    spec: ServiceSpec = field(default_factory=ServiceSpec)


class ReplicationControllerSpec(ApiStruct):
    replicas: int | None = None
    selector: dict[str, str] = {}
    template: PodTemplateSpec | None = None


class ReplicationController(KubernetesObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "ReplicationController"

    spec: ReplicationControllerSpec = field(default_factory=ReplicationControllerSpec)


class ConfigMap(KubernetesObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "ConfigMap"

    data: dict[str, str] = {}


class ObjectReference(ApiStruct):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class EventSource(ApiStruct):
    component: str = ""
    host: str = ""


class Event(KubernetesObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "Event"

    involved_object: ObjectReference = field(default_factory=ObjectReference)
    type: str = ""
    reason: str = ""
    action: str = ""
    message: str = ""
    count: int = 0
    first_timestamp: Time | None = None
    last_timestamp: Time | None = None
    event_time: Time | None = None
    source: EventSource = field(default_factory=EventSource)
    reporting_component: str = ""
    reporting_instance: str = ""
