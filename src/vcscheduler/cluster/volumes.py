"""The volume controller of the embedded cluster: finishes what the scheduler's writes to volumes and claims ask for.

The scheduler names a claim in a volume, or writes the chosen node onto a claim, and then waits for both to be
bound. Here that happens at once, so there is nothing to wait for (spec 05 §4.9).
"""

from __future__ import annotations

from copy import copy
from typing import Final, Protocol, TypeVar

from vcscheduler.objects import (
    KubernetesObject,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    VolumeNodeAffinity,
    label_selector_matches,
    value,
)

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"

_T = TypeVar("_T", bound=KubernetesObject)


class ObjectStore(Protocol):
    """As much of the cluster as the controller uses."""

    def get(self, kind: type[_T], key: str) -> _T | None: ...

    def objects(self, kind: type[_T]) -> list[_T]: ...

    def apply(self, obj: _T) -> _T: ...


class VolumeController:
    """Binds claims to the volumes reserved for them, and makes volumes for claims whose node was chosen."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def volume_changed(self, volume: PersistentVolume) -> None:
        """Bind the claim that the volume is now reserved for, unless it has another volume."""
        reference = volume.spec.claim_ref
        if reference is None:
            return
        claim = self._store.get(PersistentVolumeClaim, f"{reference.namespace}/{reference.name}")
        if claim is None or (reference.uid and reference.uid != claim.metadata.uid):
            return
        if claim.spec.volume_name in ("", volume.name) and not (claim.status.phase == volume.status.phase == "Bound"):
            self._bind(claim, volume)

    def claim_changed(self, claim: PersistentVolumeClaim) -> None:
        """Make a volume for a claim that waited for its node, if its class says how."""
        if claim.spec.volume_name or SELECTED_NODE not in claim.metadata.annotations:
            return
        storage_class = self._store.get(StorageClass, claim.spec.storage_class_name or "")
        if storage_class is not None and storage_class.provisioner not in ("", _NO_PROVISIONER):
            self._bind(claim, _provisioned(claim, storage_class))

    def bind_waiting(self) -> None:
        """Bind all claims that do not wait for a node: to the volume they name, else to the smallest that fits, else
        to a new one where the class can make it."""
        classes = {each.name: each for each in self._store.objects(StorageClass)}
        for claim in self._store.objects(PersistentVolumeClaim):
            if claim.status.phase in ("Bound", "Lost"):
                continue
            storage_class = classes.get(claim.spec.storage_class_name or "")
            if claim.spec.volume_name:
                named = self._store.get(PersistentVolume, claim.spec.volume_name)
                if named is not None and _is_free_for(named, claim):
                    self._bind(claim, named)
            elif storage_class is None or storage_class.volume_binding_mode != "WaitForFirstConsumer":
                fitting = [each for each in self._store.objects(PersistentVolume) if _fits(each, claim)]
                if fitting:
                    self._bind(claim, min(fitting, key=_size))
                elif storage_class is not None and storage_class.provisioner not in ("", _NO_PROVISIONER):
                    self._bind(claim, _provisioned(claim, storage_class))

    def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        volume = copy(volume)
        volume.spec = copy(volume.spec)
        volume.spec.claim_ref = ObjectReference(
            api_version="v1", kind=claim.kind, namespace=claim.namespace, name=claim.name, uid=claim.metadata.uid
        )
        volume.status = PersistentVolumeStatus(phase="Bound")
        claim = copy(claim)
        claim.metadata = copy(claim.metadata)
        claim.metadata.annotations = {**claim.metadata.annotations, BIND_COMPLETED: "yes"}
        claim.spec = copy(claim.spec)
        claim.spec.volume_name = volume.name
        claim.status = copy(claim.status)
        claim.status.phase = "Bound"
        claim.status.access_modes = volume.spec.access_modes
        claim.status.capacity = volume.spec.capacity
        self._store.apply(volume)
        self._store.apply(claim)


def _is_free_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    reference = volume.spec.claim_ref
    if reference is not None:
        return (reference.namespace, reference.name) == (claim.namespace, claim.name) and (
            reference.uid in ("", claim.metadata.uid)
        )
    return volume.status.phase in ("", "Available")


def _fits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    spec, wanted = volume.spec, claim.spec
    return (
        _is_free_for(volume, claim)
        and spec.storage_class_name == (wanted.storage_class_name or "")
        and set(wanted.access_modes) <= set(spec.access_modes)
        and (spec.volume_mode or "Filesystem") == (wanted.volume_mode or "Filesystem")
        and (wanted.selector is None or label_selector_matches(wanted.selector, volume.metadata.labels))
        and _size(volume) >= value(wanted.resources.requests.get("storage", 0))
    )


def _size(volume: PersistentVolume) -> int:
    return value(volume.spec.capacity.get("storage", 0))


def _provisioned(claim: PersistentVolumeClaim, storage_class: StorageClass) -> PersistentVolume:
    """A volume as the class's provisioner would make it, reachable from the chosen node if one was chosen."""
    affinity = None
    node_name = claim.metadata.annotations.get(SELECTED_NODE)
    if node_name is not None:
        at_node = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node_name])
        term = NodeSelectorTerm(match_fields=[at_node])
        affinity = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=[term]))
    return PersistentVolume(
        metadata=ObjectMeta(
            name=f"pvc-{claim.metadata.uid or f'{claim.namespace}-{claim.name}'}",
            annotations={_PROVISIONED_BY: storage_class.provisioner},
        ),
        spec=PersistentVolumeSpec(
            capacity=claim.spec.resources.requests,
            access_modes=claim.spec.access_modes,
            persistent_volume_reclaim_policy=storage_class.reclaim_policy or "Delete",
            storage_class_name=storage_class.name,
            volume_mode=claim.spec.volume_mode,
            node_affinity=affinity,
        ),
    )
