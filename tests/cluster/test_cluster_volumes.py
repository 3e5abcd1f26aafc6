"""What the embedded cluster does when the scheduler binds a claim or chooses a node for it."""

from copy import copy
from datetime import UTC, datetime

from vcscheduler.cluster.memory import MemoryCluster
from vcscheduler.cluster.volumes import SELECTED_NODE
from vcscheduler.objects import (
    KubernetesObject,
    ObjectMeta,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    VolumeResourceRequirements,
)


def cluster_of(*objects: KubernetesObject) -> MemoryCluster:
    cluster = MemoryCluster(lambda: datetime(2026, 11, 29, tzinfo=UTC))
    cluster.apply_all(objects)
    return cluster


def claim() -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        ObjectMeta(name="data", namespace="ns", uid="u1"),
        PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"],
            storage_class_name="fast",
            resources=VolumeResourceRequirements(requests={"storage": "1Gi"}),
        ),
    )


def test_a_volume_reserved_for_a_claim_is_bound_to_it_at_once() -> None:
    volume = PersistentVolume(ObjectMeta(name="v"), PersistentVolumeSpec(capacity={"storage": "2Gi"}))
    cluster = cluster_of(claim(), volume)
    reserved = copy(volume)
    reserved.spec = copy(volume.spec)
    reserved.spec.claim_ref = ObjectReference(namespace="ns", name="data", uid="u1")
    assert cluster.update_volume(reserved).status.phase == "Bound"
    bound = cluster.get(PersistentVolumeClaim, "ns/data")
    assert bound is not None
    assert (bound.spec.volume_name, bound.status.phase, bound.status.capacity) == ("v", "Bound", {"storage": "2Gi"})


def test_a_volume_reserved_for_an_older_claim_of_the_same_name_is_not_bound() -> None:
    cluster = cluster_of(claim(), PersistentVolume(ObjectMeta(name="v")))
    reference = ObjectReference(namespace="ns", name="data", uid="older")
    cluster.update_volume(PersistentVolume(ObjectMeta(name="v"), PersistentVolumeSpec(claim_ref=reference)))
    unbound = cluster.get(PersistentVolumeClaim, "ns/data")
    assert unbound is not None
    assert unbound.spec.volume_name == ""


def test_a_claim_whose_node_was_chosen_gets_a_volume_there() -> None:
    cluster = cluster_of(claim(), StorageClass(ObjectMeta(name="fast"), provisioner="disk.example.com"))
    chosen = claim()
    chosen.metadata.annotations = {SELECTED_NODE: "n1"}
    bound = cluster.update_claim(chosen)
    assert (bound.spec.volume_name, bound.status.phase) == ("pvc-u1", "Bound")
    made = cluster.get(PersistentVolume, "pvc-u1")
    assert made is not None
    assert made.spec.capacity == {"storage": "1Gi"}
    assert made.spec.node_affinity is not None
    assert made.spec.node_affinity.required is not None
    assert made.spec.node_affinity.required.node_selector_terms[0].match_fields[0].values == ["n1"]


def test_a_class_without_provisioner_makes_no_volume() -> None:
    cluster = cluster_of(claim(), StorageClass(ObjectMeta(name="fast"), provisioner="kubernetes.io/no-provisioner"))
    chosen = claim()
    chosen.metadata.annotations = {SELECTED_NODE: "n1"}
    assert cluster.update_claim(chosen).spec.volume_name == ""
    assert cluster.objects(PersistentVolume) == []
