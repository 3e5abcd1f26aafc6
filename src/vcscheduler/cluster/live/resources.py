"""Which resources of the API are watched, where they live, and when (spec 07 §1.1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from vcscheduler.objects import (
    BatchJob,
    Command,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DaemonSet,
    DeviceClass,
    HyperNode,
    KubernetesObject,
    Namespace,
    Node,
    NodeShard,
    Numatopology,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    PriorityClass,
    Queue,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceQuota,
    ResourceSlice,
    Service,
    StatefulSet,
    StorageClass,
    VolcanoJob,
    VolumeAttachment,
)


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object as the API serves it."""

    kind: type[KubernetesObject]
    plural: str

    @property
    def group(self) -> str:
        return self.kind.api_version.rpartition("/")[0]

    @property
    def root(self) -> str:
        """The path of the group and version."""
        version = self.kind.api_version
        return f"/apis/{version}" if "/" in version else f"/api/{version}"

    @property
    def label(self) -> str:
        """``podgroups.scheduling.volcano.sh``, as kubectl and RBAC messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def collection(self, namespace: str = "") -> str:
        inside = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        return f"{self.root}{inside}/{self.plural}"

    def item(self, namespace: str, name: str, subresource: str = "") -> str:
        path = f"{self.collection(namespace)}/{quote(name, safe='')}"
        return f"{path}/{subresource}" if subresource else path

    def path_of(self, obj: KubernetesObject, subresource: str = "") -> str:
        return self.item(obj.metadata.namespace if self.kind.namespaced else "", obj.metadata.name, subresource)


PODS: Final = Resource(Pod, "pods")
PODGROUPS: Final = Resource(PodGroup, "podgroups")
QUEUES: Final = Resource(Queue, "queues")
CLAIMS: Final = Resource(PersistentVolumeClaim, "persistentvolumeclaims")
VOLUMES: Final = Resource(PersistentVolume, "persistentvolumes")
RESOURCE_CLAIMS: Final = Resource(ResourceClaim, "resourceclaims")
_DYNAMIC: Final = (RESOURCE_CLAIMS, Resource(ResourceSlice, "resourceslices"), Resource(DeviceClass, "deviceclasses"))

_ALWAYS: Final = (
    Resource(Namespace, "namespaces"),
    Resource(Service, "services"),
    Resource(ResourceQuota, "resourcequotas"),
    CLAIMS,
    VOLUMES,
    Resource(StorageClass, "storageclasses"),
    Resource(VolumeAttachment, "volumeattachments"),
    Resource(CSINode, "csinodes"),
    QUEUES,
)
_LAST: Final = (Resource(Node, "nodes"), Resource(HyperNode, "hypernodes"), PODGROUPS, PODS)
"""Delivered last at the start, so that what they refer to is known by then."""


WORKLOADS: Final = (Resource(ReplicaSet, "replicasets"), Resource(StatefulSet, "statefulsets"))
CONTROLLED: Final = (
    Resource(DaemonSet, "daemonsets"),
    Resource(BatchJob, "jobs"),
    Resource(VolcanoJob, "jobs"),
    Resource(Command, "commands"),
)
"""What only controllers look at."""


@dataclass(frozen=True, slots=True)
class Watched:
    """The command line's say in what is watched; the defaults are the reference's.

    controllers: also what our own controllers look at.
    dynamic_resource_allocation: None watches claims and slices where the API server serves them.
    """

    priority_classes: bool = True
    numatopologies: bool = True
    node_shards: bool = False
    csi_storage: bool = True
    workloads: bool = True
    disruption_budgets: bool = True
    dynamic_resource_allocation: bool | None = None
    controllers: bool = False

    def resources(self, served_groups: Iterable[str]) -> list[Resource]:
        """All resources to watch, in the order in which their first objects are delivered.

        Args:
            served_groups: group versions that the API server serves, such as ``resource.k8s.io/v1``.
        """
        chosen = list(_ALWAYS)
        if self.priority_classes:
            chosen.append(Resource(PriorityClass, "priorityclasses"))
        if self.csi_storage:
            chosen.append(Resource(CSIDriver, "csidrivers"))
            chosen.append(Resource(CSIStorageCapacity, "csistoragecapacities"))
        if self.workloads:
            chosen.append(Resource(ReplicationController, "replicationcontrollers"))
        if self.workloads or self.controllers:
            chosen.extend(WORKLOADS)
        if self.controllers:
            chosen.extend(CONTROLLED)
        if self.disruption_budgets:
            chosen.append(Resource(PodDisruptionBudget, "poddisruptionbudgets"))
        dynamic = self.dynamic_resource_allocation
        if dynamic is None:
            dynamic = ResourceClaim.api_version in served_groups
        if dynamic:
            chosen.extend(_DYNAMIC)
        if self.node_shards:
            chosen.append(Resource(NodeShard, "nodeshards"))
        chosen.extend(_LAST[:2])
        if self.numatopologies:
            chosen.append(Resource(Numatopology, "numatopologies"))
        chosen.extend(_LAST[2:])
        return chosen
