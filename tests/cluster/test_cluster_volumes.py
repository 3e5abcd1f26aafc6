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


def volume(name: str, size: str, storage_class: str = "fast") -> PersistentVolume:
    return PersistentVolume(
        ObjectMeta(name=name),
        PersistentVolumeSpec(
            capacity={"storage": size}, access_modes=["ReadWriteOnce"], storage_class_name=storage_class
        ),
    )


def bound_volume(*objects: KubernetesObject) -> str:
    cluster = cluster_of(*objects)
    cluster.bind_waiting_claims()
    found = cluster.get(PersistentVolumeClaim, "ns/data")
    assert found is not None
    assert (found.status.phase == "Bound") is bool(found.spec.volume_name)
    return found.spec.volume_name


def storage_class(mode: str | None, provisioner: str = "disk.example.com") -> StorageClass:
    return StorageClass(ObjectMeta(name="fast"), provisioner=provisioner, volume_binding_mode=mode)


def test_a_claim_that_waits_for_no_node_takes_the_smallest_volume_that_fits() -> None:
    volumes = (volume("large", "9Gi"), volume("fits", "2Gi"), volume("small", "1Mi"), volume("other", "1Gi", "slow"))
    assert bound_volume(claim(), storage_class("Immediate"), *volumes) == "fits"
    assert bound_volume(claim(), *volumes) == "fits"


def test_without_a_fitting_volume_the_class_makes_one_if_it_can() -> None:
    assert bound_volume(claim(), storage_class(None)) == "pvc-u1"
    assert bound_volume(claim(), storage_class(None, "kubernetes.io/no-provisioner")) == ""


def test_a_claim_that_waits_for_its_node_stays_unbound() -> None:
    assert bound_volume(claim(), storage_class("WaitForFirstConsumer"), volume("v", "9Gi")) == ""


def test_a_claim_that_names_its_volume_gets_that_one() -> None:
    named = claim()
    named.spec.volume_name = "large"
    assert bound_volume(named, volume("large", "9Gi"), volume("fits", "2Gi")) == "large"


def test_a_volume_is_bound_once() -> None:
    second = claim()
    second.metadata = ObjectMeta(name="more", namespace="ns", uid="u2")
    cluster = cluster_of(claim(), second, volume("only", "2Gi"))
    cluster.bind_waiting_claims()
    assert [each.spec.volume_name for each in cluster.objects(PersistentVolumeClaim)] == ["only", ""]
