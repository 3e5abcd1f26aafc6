"""The kinds of objects that take part, and their conversion from and to plain data."""

from __future__ import annotations

from functools import cache
from typing import Final

import msgspec

from vcscheduler.objects import apps, batch, core, pod, policy, resource_claims, scheduling, storage, topology
from vcscheduler.objects.meta import KubernetesObject

_CLASSES: Final[tuple[type[KubernetesObject], ...]] = (
    apps.DaemonSet,
    apps.Deployment,
    apps.ReplicaSet,
    apps.StatefulSet,
    batch.BatchJob,
    batch.Command,
    batch.CronJob,
    batch.VolcanoJob,
    core.ConfigMap,
    core.Event,
    core.Namespace,
    core.Node,
    core.ReplicationController,
    core.ResourceQuota,
    core.Service,
    pod.Pod,
    policy.PodDisruptionBudget,
    resource_claims.DeviceClass,
    resource_claims.ResourceClaim,
    resource_claims.ResourceClaimTemplate,
    resource_claims.ResourceSlice,
    scheduling.PodGroup,
    scheduling.PriorityClass,
    scheduling.Queue,
    storage.CSIDriver,
    storage.CSINode,
    storage.CSIStorageCapacity,
    storage.PersistentVolume,
    storage.PersistentVolumeClaim,
    storage.StorageClass,
    storage.VolumeAttachment,
    topology.HyperNode,
    topology.NodeShard,
    topology.Numatopology,
)

KINDS: Final[dict[tuple[str, str], type[KubernetesObject]]] = {(cls.api_version, cls.kind): cls for cls in _CLASSES}
"""(apiVersion, kind) -> class."""


def without_nulls(value: object) -> object:
    """A copy of plain data without fields that are null, which Go prints where it means "absent"."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


@cache
def json_decoder(cls: type[KubernetesObject]) -> msgspec.json.Decoder[KubernetesObject]:
    """The (reusable) decoder of one class."""
    return msgspec.json.Decoder(cls)


def convert(value: object, cls: type[KubernetesObject]) -> KubernetesObject:
    """Plain data -> object of the given class, taking nulls as absent.

    Raises:
        msgspec.ValidationError: a field has a wrong type; the message names the path.
    """
    try:
        return msgspec.convert(value, cls)
    except msgspec.ValidationError:
        # Nulls in places where Go prints them are rare enough to pay for them only when they occur.
        return msgspec.convert(without_nulls(value), cls)


def from_value(value: dict[str, object]) -> KubernetesObject:
    """Typed object from plain data such as a parsed manifest, unchecked apart from the types of its fields.

    Raises:
        ValueError: the kind is not one of `KINDS`, or a field has a wrong type (`msgspec.ValidationError`).
    """
    api_version, kind = value.get("apiVersion"), value.get("kind")
    cls = KINDS.get((str(api_version), str(kind)))
    if cls is None:
        raise ValueError(f"no such kind: {api_version}/{kind}")
    return convert(value, cls)


def to_manifest(obj: KubernetesObject) -> dict[str, object]:
    """Plain data of an object, as it would stand in a manifest: defaults and empty parts are left out."""
    body = msgspec.to_builtins(obj)
    assert isinstance(body, dict)
    manifest: dict[str, object] = {"apiVersion": obj.api_version, "kind": obj.kind}
    manifest.update((key, item) for key, item in body.items() if item != {} or key == "metadata")
    return manifest
