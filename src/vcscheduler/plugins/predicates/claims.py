"""The claims behind a pod's volumes, and the storage classes behind claims."""

from __future__ import annotations

from dataclasses import dataclass

from vcscheduler.model.listers import Listers
from vcscheduler.model.task import TaskClass
from vcscheduler.objects import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
WAIT_FOR_CONSUMER = "WaitForFirstConsumer"


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """One volume of a pod that is a claim. ``name`` is empty if the volume names none."""

    name: str
    ephemeral: bool


class ClaimProblem(Exception):
    """A claim cannot be used; the message is what the rule reports."""


def claim_uses(pod: Pod) -> list[ClaimUse]:
    """In the order of the pod's volumes."""
    uses = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            uses.append(ClaimUse(volume.persistent_volume_claim.claim_name, False))
        elif volume.ephemeral is not None:
            uses.append(ClaimUse(f"{pod.name}-{volume.name}", True))
    return uses


def has_claims(cls: TaskClass) -> bool:
    found = cls.derived.get("claims")
    if found is None:
        volumes = cls.pod.spec.volumes
        found = any(v.persistent_volume_claim is not None or v.ephemeral is not None for v in volumes)
        cls.derived["claims"] = found
    return bool(found)


def claim_not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def class_name(claim: PersistentVolumeClaim) -> str:
    return claim.metadata.annotations.get(CLASS_ANNOTATION) or claim.spec.storage_class_name or ""


def volume_class_name(volume: PersistentVolume) -> str:
    return volume.metadata.annotations.get(CLASS_ANNOTATION) or volume.spec.storage_class_name


def storage_class(claim: PersistentVolumeClaim, listers: Listers) -> StorageClass | None:
    return listers.storage_classes.get(class_name(claim))


def waits_for_consumer(claim: PersistentVolumeClaim, listers: Listers) -> bool:
    """
    Raises:
        ClaimProblem: the class does not say when its claims are bound.
    """
    found = storage_class(claim, listers)
    if found is None:
        return False
    if found.volume_binding_mode is None:
        raise ClaimProblem(f'VolumeBindingMode not set for StorageClass "{found.name}"')
    return found.volume_binding_mode == WAIT_FOR_CONSUMER


def owned_by(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    return any(o.controller and o.uid == pod.metadata.uid for o in claim.metadata.owner_references)
