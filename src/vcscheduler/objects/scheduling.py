# ruff: noqa: RUF012 - msgspec gives every instance its own copy of an empty list or dict default.
"""Volcano's Queue and PodGroup, and the PriorityClass."""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from vcscheduler.objects.meta import ApiStruct, KubernetesObject, LabelSelector, Time
from vcscheduler.objects.quantity import ResourceList


class NetworkTopologySpec(ApiStruct):
    mode: str = ""
    """``hard`` or ``soft``; the API server defaults it to ``hard``, this struct does not."""
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""


class SubGroupPolicy(ApiStruct):
    name: str = ""
    sub_group_size: int | None = None
    min_sub_groups: int | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    network_topology: NetworkTopologySpec | None = None


class PodGroupSpec(ApiStruct):
    min_member: int = 0
    min_task_member: dict[str, int] = {}
    queue: str = ""
    priority_class_name: str = ""
    min_resources: ResourceList | None = None
    network_topology: NetworkTopologySpec | None = None
    sub_group_policy: list[SubGroupPolicy] = []


class PodGroupCondition(ApiStruct):
    type: str = ""
    status: str = ""
    transition_id: str = field(name="transitionID", default="")
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(ApiStruct):
    phase: str = ""
    conditions: list[PodGroupCondition] = []
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroup(KubernetesObject):
    api_version: ClassVar[str] = "scheduling.volcano.sh/v1beta1"
    kind: ClassVar[str] = "PodGroup"

    spec: PodGroupSpec = field(default_factory=PodGroupSpec)
    status: PodGroupStatus = field(default_factory=PodGroupStatus)


class Guarantee(ApiStruct):
    resource: ResourceList = {}


class NodeGroupAffinity(ApiStruct):
    """Node group names, required and preferred; affinity and anti-affinity have the same shape."""

    required: list[str] = field(name="requiredDuringSchedulingIgnoredDuringExecution", default_factory=list)
    preferred: list[str] = field(name="preferredDuringSchedulingIgnoredDuringExecution", default_factory=list)


class QueueAffinity(ApiStruct):
    node_group_affinity: NodeGroupAffinity | None = None
    node_group_anti_affinity: NodeGroupAffinity | None = None


class ExtendCluster(ApiStruct):
    name: str = ""
    weight: int = 0
    capacity: ResourceList = {}


class QueueSpec(ApiStruct):
    weight: int = 0
    """The API server defaults it to 1; an object that never passed one reads 0 (spec 01 §6.1)."""
    capability: ResourceList = {}
    deserved: ResourceList = {}
    guarantee: Guarantee = field(default_factory=Guarantee)
    reclaimable: bool | None = None
    priority: int = 0
    parent: str = ""
    type: str = ""
    dequeue_strategy: str = ""
    affinity: QueueAffinity | None = None
    extend_clusters: list[ExtendCluster] = []


class Reservation(ApiStruct):
    nodes: list[str] = []
    resource: ResourceList = {}


class QueueStatus(ApiStruct):
    state: str = ""
    unknown: int = 0
    pending: int = 0
    running: int = 0
    inqueue: int = 0
    completed: int = 0
    allocated: ResourceList = {}
    reservation: Reservation | None = None


class Queue(KubernetesObject):
    api_version: ClassVar[str] = "scheduling.volcano.sh/v1beta1"
    kind: ClassVar[str] = "Queue"
    namespaced: ClassVar[bool] = False

    spec: QueueSpec = field(default_factory=QueueSpec)
    status: QueueStatus = field(default_factory=QueueStatus)


class PriorityClass(KubernetesObject):
    api_version: ClassVar[str] = "scheduling.k8s.io/v1"
    kind: ClassVar[str] = "PriorityClass"
    namespaced: ClassVar[bool] = False

    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None
    description: str = ""
