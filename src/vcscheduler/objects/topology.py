# ruff: noqa: RUF012 - msgspec gives every instance its own copy of an empty list or dict default.
"""Volcano's views of the hardware: HyperNode (network), Numatopology (cores of a node), NodeShard."""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from vcscheduler.objects.meta import ApiStruct, ApiValue, KubernetesObject, LabelSelector, Time


class ExactMatch(ApiValue, frozen=True):
    name: str = ""


class RegexMatch(ApiValue, frozen=True):
    pattern: str = ""


class MemberSelector(ApiStruct):
    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None


class MemberSpec(ApiStruct):
    type: str = ""
    selector: MemberSelector = field(default_factory=MemberSelector)


class HyperNodeSpec(ApiStruct):
    tier: int = 0
    tier_name: str = ""
    members: list[MemberSpec] = []


class HyperNodeStatus(ApiStruct):
    node_count: int = 0


class HyperNode(KubernetesObject):
    api_version: ClassVar[str] = "topology.volcano.sh/v1alpha1"
    kind: ClassVar[str] = "HyperNode"
    namespaced: ClassVar[bool] = False

    spec: HyperNodeSpec = field(default_factory=HyperNodeSpec)
    status: HyperNodeStatus = field(default_factory=HyperNodeStatus)


class NumaResource(ApiValue, frozen=True):
    allocatable: str = ""
    """CPU set such as ``0-3,8``."""
    capacity: int = 0


class CpuLocation(ApiValue, frozen=True):
    numa: int = 0
    socket: int = 0
    core: int = 0


class ContainerAllocation(ApiStruct):
    name: str = ""
    allocations: dict[str, str] = {}


class PodAllocation(ApiStruct):
    uid: str = ""
    name: str = ""
    namespace: str = ""
    container_allocations: list[ContainerAllocation] = []


class NumatopologySpec(ApiStruct):
    policies: dict[str, str] = {}
    res_reserved: dict[str, str] = {}
    numares: dict[str, NumaResource] = {}
    cpu_detail: dict[str, CpuLocation] = {}
    pod_allocations: list[PodAllocation] = []


class Numatopology(KubernetesObject):
    api_version: ClassVar[str] = "nodeinfo.volcano.sh/v1alpha1"
    kind: ClassVar[str] = "Numatopology"
    namespaced: ClassVar[bool] = False

    spec: NumatopologySpec = field(default_factory=NumatopologySpec)


class NodeShardSpec(ApiStruct):
    nodes_desired: list[str] = []


class NodeShardStatus(ApiStruct):
    nodes_in_use: list[str] = []
    nodes_to_add: list[str] = []
    nodes_to_remove: list[str] = []
    last_update_time: Time | None = None


class NodeShard(KubernetesObject):
    api_version: ClassVar[str] = "shard.volcano.sh/v1alpha1"
    kind: ClassVar[str] = "NodeShard"
    namespaced: ClassVar[bool] = False

    spec: NodeShardSpec = field(default_factory=NodeShardSpec)
    status: NodeShardStatus = field(default_factory=NodeShardStatus)
