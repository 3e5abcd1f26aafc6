# ruff: noqa: RUF012 - msgspec gives every instance its own copy of an empty list or dict default.
"""Volumes of a pod: claims, disks whose sharing or attach limits matter, image volumes.

Volumes of other types (config maps, secrets, empty directories ...) keep only their name.
"""

from __future__ import annotations

from msgspec import field

from vcscheduler.objects.meta import ApiStruct, ApiValue, LabelSelector, ObjectMeta
from vcscheduler.objects.quantity import ResourceList


class VolumeResourceRequirements(ApiStruct):
    requests: ResourceList = {}
    limits: ResourceList = {}


class PersistentVolumeClaimSpec(ApiStruct):
    access_modes: list[str] = []
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = field(default_factory=VolumeResourceRequirements)
    volume_name: str = ""
    storage_class_name: str | None = None
    """None leaves the choice to the default class; the empty string asks for a volume without class."""
    volume_mode: str | None = None


class PersistentVolumeClaimTemplate(ApiStruct):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)


class PersistentVolumeClaimVolumeSource(ApiValue, frozen=True):
    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(ApiStruct):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class GCEPersistentDisk(ApiValue, frozen=True):
    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStore(ApiValue, frozen=True):
    volume_id: str = field(name="volumeID", default="")
    read_only: bool = False


class AzureDisk(ApiValue, frozen=True):
    disk_name: str = ""
    disk_uri: str = field(name="diskURI", default="")
    read_only: bool = False


class CinderVolume(ApiValue, frozen=True):
    volume_id: str = field(name="volumeID", default="")
    read_only: bool = False


class ISCSIVolume(ApiValue, frozen=True):
    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    read_only: bool = False


class RBDVolume(ApiStruct):
    monitors: list[str] = []
    image: str = ""
    pool: str = ""
    read_only: bool = False


class InlineCSIVolume(ApiValue, frozen=True):
    driver: str = ""
    read_only: bool | None = None


class ImageVolume(ApiValue, frozen=True):
    reference: str = ""


class Volume(ApiStruct):
    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: CinderVolume | None = None
    iscsi: ISCSIVolume | None = None
    rbd: RBDVolume | None = None
    csi: InlineCSIVolume | None = None
    image: ImageVolume | None = None
