# ruff: noqa: RUF012 - msgspec gives every instance its own copy of an empty list or dict default.
"""The Pod and its template: by far the most frequent object, so it carries only what scheduling reads."""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from vcscheduler.objects.affinity import Affinity, TopologySpreadConstraint
from vcscheduler.objects.meta import ApiStruct, ApiValue, Condition, KubernetesObject, ObjectMeta, Time
from vcscheduler.objects.quantity import ResourceList
from vcscheduler.objects.volumes import Volume


class ResourceClaimUse(ApiValue, frozen=True):
    """A container's reference to one of the pod's resource claims."""

    name: str = ""
    request: str = ""


class ResourceRequirements(ApiStruct):
    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: list[ResourceClaimUse] = []


class ContainerPort(ApiValue, frozen=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(name="hostIP", default="")
    protocol: str = ""
    name: str = ""


class Container(ApiStruct):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = field(default_factory=ResourceRequirements)
    ports: list[ContainerPort] = []
    restart_policy: str = ""
    """``Always`` on an init container makes it a sidecar, which runs beside the regular containers."""


class Toleration(ApiValue, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class PodSchedulingGate(ApiValue, frozen=True):
    name: str = ""


class PodResourceClaim(ApiValue, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(ApiStruct):
    containers: list[Container] = []
    init_containers: list[Container] = []
    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    volumes: list[Volume] = []
    scheduling_gates: list[PodSchedulingGate] = []
    overhead: ResourceList = {}
    resources: ResourceRequirements | None = None
    """Requests and limits of the pod as a whole."""
    resource_claims: list[PodResourceClaim] = []
    host_network: bool = False
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    hostname: str = ""
    subdomain: str = ""
    service_account_name: str = ""
    runtime_class_name: str | None = None


class ContainerStateTerminated(ApiStruct):
    exit_code: int = 0
    reason: str = ""
    started_at: Time | None = None
    finished_at: Time | None = None


class ContainerState(ApiStruct):
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(ApiStruct):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class PodResourceClaimStatus(ApiValue, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(ApiStruct):
    phase: str = ""
    conditions: list[Condition] = []
    reason: str = ""
    message: str = ""
    nominated_node_name: str = ""
    start_time: Time | None = None
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    resource_claim_statuses: list[PodResourceClaimStatus] = []
    qos_class: str = ""


class Pod(KubernetesObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "Pod"

    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)


class PodTemplateSpec(ApiStruct):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodSpec = field(default_factory=PodSpec)
