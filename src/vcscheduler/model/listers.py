"""API objects that rules look up beside nodes and pods, by key. The cache fills these maps; rules only read them."""

from __future__ import annotations

from dataclasses import dataclass, field

from vcscheduler.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceQuota,
    Service,
    StatefulSet,
    StorageClass,
    VolumeAttachment,
)


@dataclass(slots=True)
class Listers:
    """Maps keyed by ``name`` for cluster-scoped kinds, by ``namespace/name`` for the others.

    ``version`` grows with every change of any map, so that what was derived from them can be kept until then.
    """

    namespaces: dict[str, Namespace] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    replication_controllers: dict[str, ReplicationController] = field(default_factory=dict)
    replica_sets: dict[str, ReplicaSet] = field(default_factory=dict)
    stateful_sets: dict[str, StatefulSet] = field(default_factory=dict)
    claims: dict[str, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    storage_classes: dict[str, StorageClass] = field(default_factory=dict)
    csi_nodes: dict[str, CSINode] = field(default_factory=dict)
    csi_drivers: dict[str, CSIDriver] = field(default_factory=dict)
    storage_capacities: dict[str, CSIStorageCapacity] = field(default_factory=dict)
    attachments: dict[str, VolumeAttachment] = field(default_factory=dict)
    quotas: dict[str, ResourceQuota] = field(default_factory=dict)
    disruption_budgets: dict[str, PodDisruptionBudget] = field(default_factory=dict)
    resource_claims: dict[str, ResourceClaim] = field(default_factory=dict)
    version: int = 0
