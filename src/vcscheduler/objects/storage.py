# ruff: noqa: RUF012 - msgspec gives every instance its own copy of an empty list or dict default.
"""Persistent volumes, claims, storage classes and what CSI drivers say about nodes."""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from vcscheduler.objects.affinity import NodeSelector
from vcscheduler.objects.core import ObjectReference
from vcscheduler.objects.meta import ApiStruct, ApiValue, KubernetesObject, LabelSelector
from vcscheduler.objects.quantity import QuantityLike, ResourceList
from vcscheduler.objects.volumes import (
    AWSElasticBlockStore,
    AzureDisk,
    CinderVolume,
    GCEPersistentDisk,
    PersistentVolumeClaimSpec,
)


class CSIPersistentVolumeSource(ApiValue, frozen=True):
    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False


class LocalVolumeSource(ApiValue, frozen=True):
    path: str = ""


class VolumeNodeAffinity(ApiStruct):
    required: NodeSelector | None = None


class PersistentVolumeSpec(ApiStruct):
    capacity: ResourceList = {}
    access_modes: list[str] = []
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: CinderVolume | None = None


class PersistentVolumeStatus(ApiStruct):
    phase: str = ""


class PersistentVolume(KubernetesObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "PersistentVolume"
    namespaced: ClassVar[bool] = False

    spec: PersistentVolumeSpec = field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = field(default_factory=PersistentVolumeStatus)


class PersistentVolumeClaimStatus(ApiStruct):
    phase: str = ""
    access_modes: list[str] = []
    capacity: ResourceList = {}


class PersistentVolumeClaim(KubernetesObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "PersistentVolumeClaim"

    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = field(default_factory=PersistentVolumeClaimStatus)


class TopologySelectorLabelRequirement(ApiStruct):
    key: str = ""
    values: list[str] = []


class TopologySelectorTerm(ApiStruct):
    match_label_expressions: list[TopologySelectorLabelRequirement] = []


class StorageClass(KubernetesObject):
    api_version: ClassVar[str] = "storage.k8s.io/v1"
    kind: ClassVar[str] = "StorageClass"
    namespaced: ClassVar[bool] = False

    provisioner: str = ""
    parameters: dict[str, str] = {}
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] = []


class VolumeNodeResources(ApiValue, frozen=True):
    count: int | None = None


class CSINodeDriver(ApiStruct):
    name: str = ""
    node_id: str = field(name="nodeID", default="")
    topology_keys: list[str] = []
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(ApiStruct):
    drivers: list[CSINodeDriver] = []


class CSINode(KubernetesObject):
    api_version: ClassVar[str] = "storage.k8s.io/v1"
    kind: ClassVar[str] = "CSINode"
    namespaced: ClassVar[bool] = False

    spec: CSINodeSpec = field(default_factory=CSINodeSpec)


class CSIDriverSpec(ApiStruct):
    attach_required: bool | None = None
    storage_capacity: bool | None = None


class CSIDriver(KubernetesObject):
    api_version: ClassVar[str] = "storage.k8s.io/v1"
    kind: ClassVar[str] = "CSIDriver"
    namespaced: ClassVar[bool] = False

    spec: CSIDriverSpec = field(default_factory=CSIDriverSpec)


class CSIStorageCapacity(KubernetesObject):
    api_version: ClassVar[str] = "storage.k8s.io/v1"
    kind: ClassVar[str] = "CSIStorageCapacity"

    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: QuantityLike | None = None
    maximum_volume_size: QuantityLike | None = None


class VolumeAttachmentSource(ApiValue, frozen=True):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(ApiStruct):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = field(default_factory=VolumeAttachmentSource)


class VolumeAttachment(KubernetesObject):
    api_version: ClassVar[str] = "storage.k8s.io/v1"
    kind: ClassVar[str] = "VolumeAttachment"
    namespaced: ClassVar[bool] = False

    spec: VolumeAttachmentSpec = field(default_factory=VolumeAttachmentSpec)
