# ruff: noqa: RUF012 - msgspec gives every instance its own copy of an empty list or dict default.
"""Dynamic resource allocation (resource.k8s.io): claims, device classes, slices of devices."""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from vcscheduler.objects.affinity import NodeSelector
from vcscheduler.objects.core import Taint
from vcscheduler.objects.meta import ApiStruct, ApiValue, KubernetesObject, ObjectMeta
from vcscheduler.objects.pod import Toleration
from vcscheduler.objects.quantity import QuantityLike, ResourceList


class CELDeviceSelector(ApiValue, frozen=True):
    expression: str = ""


class DeviceSelector(ApiStruct):
    cel: CELDeviceSelector | None = None


class DeviceCapacityRequest(ApiStruct):
    requests: ResourceList = {}


class ExactDeviceRequest(ApiStruct):
    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: list[Toleration] = []
    capacity: DeviceCapacityRequest | None = None


class DeviceSubRequest(ApiStruct):
    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    allocation_mode: str = ""
    count: int = 0
    tolerations: list[Toleration] = []
    capacity: DeviceCapacityRequest | None = None


class DeviceRequest(ApiStruct):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] = []


class DeviceConstraint(ApiStruct):
    requests: list[str] = []
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(ApiStruct):
    requests: list[DeviceRequest] = []
    constraints: list[DeviceConstraint] = []


class ResourceClaimSpec(ApiStruct):
    devices: DeviceClaim = field(default_factory=DeviceClaim)


class DeviceRequestAllocationResult(ApiStruct):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    share_id: str | None = field(name="shareID", default=None)
    consumed_capacity: ResourceList = {}


class DeviceAllocationResult(ApiStruct):
    results: list[DeviceRequestAllocationResult] = []


class AllocationResult(ApiStruct):
    devices: DeviceAllocationResult = field(default_factory=DeviceAllocationResult)
    node_selector: NodeSelector | None = None


class ResourceClaimConsumer(ApiValue, frozen=True):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(ApiStruct):
    allocation: AllocationResult | None = None
    reserved_for: list[ResourceClaimConsumer] = []


class ResourceClaim(KubernetesObject):
    api_version: ClassVar[str] = "resource.k8s.io/v1"
    kind: ClassVar[str] = "ResourceClaim"

    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = field(default_factory=ResourceClaimStatus)


class ResourceClaimTemplateSpec(ApiStruct):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)


class ResourceClaimTemplate(KubernetesObject):
    api_version: ClassVar[str] = "resource.k8s.io/v1"
    kind: ClassVar[str] = "ResourceClaimTemplate"

    spec: ResourceClaimTemplateSpec = field(default_factory=ResourceClaimTemplateSpec)


class DeviceClassSpec(ApiStruct):
    selectors: list[DeviceSelector] = []
    extended_resource_name: str | None = None


class DeviceClass(KubernetesObject):
    api_version: ClassVar[str] = "resource.k8s.io/v1"
    kind: ClassVar[str] = "DeviceClass"
    namespaced: ClassVar[bool] = False

    spec: DeviceClassSpec = field(default_factory=DeviceClassSpec)


class ResourcePool(ApiValue, frozen=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class DeviceAttribute(ApiValue, frozen=True):
    """Exactly one of the values is set."""

    int_value: int | None = field(name="int", default=None)
    bool_value: bool | None = field(name="bool", default=None)
    string_value: str | None = field(name="string", default=None)
    version_value: str | None = field(name="version", default=None)


class CapacityValidRange(ApiValue, frozen=True):
    min: QuantityLike | None = None
    max: QuantityLike | None = None
    step: QuantityLike | None = None


class CapacityRequestPolicy(ApiStruct):
    default: QuantityLike | None = None
    valid_values: list[QuantityLike] = []
    valid_range: CapacityValidRange | None = None


class DeviceCapacity(ApiStruct):
    value: QuantityLike = 0
    request_policy: CapacityRequestPolicy | None = None


class Counter(ApiValue, frozen=True):
    value: QuantityLike = 0


class DeviceCounterConsumption(ApiStruct):
    counter_set: str = ""
    counters: dict[str, Counter] = {}


class CounterSet(ApiStruct):
    name: str = ""
    counters: dict[str, Counter] = {}


class Device(ApiStruct):
    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: list[DeviceCounterConsumption] = []
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: list[Taint] = []
    binds_to_node: bool | None = None
    binding_conditions: list[str] = []
    binding_failure_conditions: list[str] = []
    allow_multiple_allocations: bool | None = None


class ResourceSliceSpec(ApiStruct):
    driver: str = ""
    pool: ResourcePool = field(default_factory=ResourcePool)
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[Device] = []
    shared_counters: list[CounterSet] = []


class ResourceSlice(KubernetesObject):
    api_version: ClassVar[str] = "resource.k8s.io/v1"
    kind: ClassVar[str] = "ResourceSlice"
    namespaced: ClassVar[bool] = False

    spec: ResourceSliceSpec = field(default_factory=ResourceSliceSpec)
