"""Volumes in the predicates plugin: binding, zones, attach limits (spec 05 §4.6, §4.7, §4.9)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import StubSession, World, expressions, node, pod
from vcscheduler.model.status import Code
from vcscheduler.model.volume_plan import VolumePlan
from vcscheduler.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    VolumeAttachment,
)
from vcscheduler.plugins.predicates import PredicatesPlugin

CONFLICT = "node(s) had volume node affinity conflict"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
ZONE = "node(s) had no available volume zone"
LIMIT = "node(s) exceed max volume count"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def on(*names: str) -> dict[str, Any]:
    return {"required": {"nodeSelectorTerms": [expressions(("name", "In", list(names)))]}}


class Storage(World):
    """Nodes n1 and n2 with a label ``name``, and a class of each kind: ``late`` waits for its consumer."""

    def __init__(self, *more: Any) -> None:
        super().__init__(*(node(n, labels={"name": n}) for n in ("n1", "n2")), *more)
        self.kind("late", "WaitForFirstConsumer")
        self.kind("early", "Immediate")

    def kind(self, name: str, mode: str, provisioner: str = "kubernetes.io/no-provisioner", **other: Any) -> None:
        spec = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, **other}
        self.listers.storage_classes[name] = msgspec.convert(spec, StorageClass)

    def volume(
        self, name: str, size: str = "10Gi", nodes: dict[str, Any] | None = None, labels: Any = None, **spec: Any
    ) -> None:
        found = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "late",
            **({"nodeAffinity": nodes} if nodes else {}),
            **spec,
        }
        self.listers.volumes[name] = msgspec.convert(
            {"metadata": {"name": name, "labels": labels or {}}, "spec": found, "status": {"phase": "Available"}},
            PersistentVolume,
        )

    def claim(
        self, name: str, size: str = "5Gi", kind: str = "late", bound: str = "", metadata: Any = None, phase: str = ""
    ) -> None:
        obj = msgspec.convert(
            {
                "metadata": {
                    "name": name,
                    "namespace": "ns",
                    "annotations": BOUND if bound else {},
                    **(metadata or {}),
                },
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": kind,
                    "volumeName": bound,
                    "resources": {"requests": {"storage": size}},
                },
                "status": {"phase": phase or ("Bound" if bound else "Pending")},
            },
            PersistentVolumeClaim,
        )
        self.listers.claims[obj.key] = obj

    def open(self, **arguments: Any) -> StubSession:
        return self.session(PredicatesPlugin, predicates=arguments)


def using(*claims: str, name: str = "p") -> Pod:
    volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    return pod(name, volumes=volumes)


def failed(session: StubSession, obj: Pod) -> str:
    failure = session.pre_predicate(session.task(obj))
    assert failure is not None
    assert failure.code is Code.ERROR
    return failure.reason


def plan_of(session: StubSession, task: Any) -> VolumePlan | None:
    handler = session.event_handlers[0].allocate
    plugin = handler.__self__  # type: ignore[union-attr]
    assert isinstance(plugin, PredicatesPlugin)
    assert plugin.needs(task)
    return plugin.plan(task)


# --- PreFilter --------------------------------------------------------------------------------------------------------


def test_claims_that_cannot_be_used_fail_the_pod_before_any_node() -> None:
    world = Storage()
    world.claim("now", kind="early")
    world.claim("lost", bound="gone", phase="Lost")
    world.claim("going", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    no_zones = world.open(**{"predicate.VolumeZoneEnable": False})
    start = "plugin VolumeBinding pre-predicates failed "
    assert failed(no_zones, using("absent")) == start + 'persistentvolumeclaim "absent" not found'
    assert failed(no_zones, using("now")) == start + "pod has unbound immediate PersistentVolumeClaims"
    assert (
        failed(no_zones, using("lost"))
        == start + 'persistentvolumeclaim "lost" bound to non-existent persistentvolume "gone"'
    )
    assert failed(no_zones, using("going")) == start + 'persistentvolumeclaim "going" is being deleted'
    zones = world.open()
    assert failed(zones, using("now")) == "plugin VolumeZone pre-predicates failed PersistentVolume had no name"
    missing = 'VolumeZone pre-predicates failed persistentvolumeclaim "absent" not found'
    assert failed(zones, using("absent")).endswith(missing)


def test_ephemeral_claims_belong_to_their_pod() -> None:
    world = Storage()
    asking = pod("p", volumes=[{"name": "v", "ephemeral": {}}])
    text = failed(world.open(), asking)
    assert text.endswith('waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"')
    world.claim("p-v")
    assert "pod is not owner" in failed(world.open(), asking)
    owner = {"ownerReferences": [{"uid": "uid-ns-p", "controller": True}]}
    world.claim("p-v", metadata=owner)
    world.volume("pv", nodes=on("n2"))
    assert world.open().fitting(asking) == ["n2"]


# --- bound claims -----------------------------------------------------------------------------------------------------


def test_bound_claims_go_where_their_volume_is() -> None:
    world = Storage()
    world.volume("pv", nodes=on("n1"))
    world.claim("data", bound="pv")
    assert world.open().refusals(using("data")) == {"n1": [], "n2": [CONFLICT]}
    world.claim("dangling", bound="none")
    off = world.open(**{"predicate.VolumeZoneEnable": False})
    assert off.refusals(using("dangling")) == {"n1": [LOST], "n2": [LOST]}


def test_volume_zone() -> None:
    zones = {"a1": {"topology.kubernetes.io/zone": "a"}, "b1": {"topology.kubernetes.io/zone": "b"}}
    world = Storage(*(node(n, labels=labels) for n, labels in zones.items()))
    world.volume("pv", labels={"failure-domain.beta.kubernetes.io/zone": "a__c"})
    world.claim("data", bound="pv")
    found = world.open().statuses(using("data"))
    assert {name: [(s.code, s.reason) for s in each] for name, each in found.items()} == {
        "n1": [],
        "n2": [],
        "a1": [],
        "b1": [(Code.UNRESOLVABLE, ZONE)],
    }


# --- claims that wait -------------------------------------------------------------------------------------------------


def test_a_waiting_claim_takes_the_smallest_volume_that_fits() -> None:
    world = Storage()
    world.volume("large", "20Gi", on("n1"))
    world.volume("small", "6Gi", on("n1"))
    world.volume("tiny", "1Gi", on("n2"))
    world.claim("data")
    session = world.open()
    assert session.refusals(using("data")) == {"n1": [], "n2": [NO_VOLUME]}
    task = session.put(using("data"), "n1", prepare=True)
    assert plan_of(session, task) is None  # never filtered on that node in this attempt
    session.take_back(task)
    session.statuses(task)
    session.put(task, "n1", prepare=False)
    assert plan_of(session, task) == VolumePlan("n1", (("small", "ns/data"),), ())


def put(session: StubSession, obj: Pod, name: str, **how: Any) -> Any:
    """Filter, then allocate."""
    task = session.task(obj)
    assert name in session.fitting(task)
    return session.put(task, name, prepare=False, **how)


def test_small_claims_choose_first_and_none_takes_the_same_volume() -> None:
    world = Storage()
    world.volume("v8", "8Gi")
    world.volume("v9", "9Gi")
    world.claim("big", "8Gi")
    world.claim("mini", "1Gi")
    session = world.open()
    task = put(session, using("big", "mini"), "n1")
    assert plan_of(session, task) == VolumePlan("n1", (("v8", "ns/mini"), ("v9", "ns/big")), ())
    assert session.fitting(using("big", "mini", name="other")) == ["n1", "n2"]  # its own claims, assumed by now
    world.claim("third", "1Gi")
    assert session.refusals(using("third", name="q")) == {"n1": [NO_VOLUME], "n2": [NO_VOLUME]}
    session.take_back(task)
    assert session.fitting(using("third", name="q")) == ["n1", "n2"]


def test_assumptions_outlive_the_session_until_the_object_changes() -> None:
    world = Storage()
    world.volume("pv")
    world.claim("one")
    world.claim("two")
    put(world.open(), using("one"), "n1")
    assert world.open().fitting(using("two", name="q")) == []
    world.volume("pv")
    assert world.open().fitting(using("two", name="q")) == ["n1", "n2"]


def test_a_volume_meant_for_the_claim_wins_and_binds_it_to_its_node() -> None:
    world = Storage()
    world.volume("meant", "50Gi", on("n2"), claimRef={"namespace": "ns", "name": "data"})
    world.volume("small", "6Gi")
    world.volume("foreign", "5Gi", claimRef={"namespace": "ns", "name": "other"})
    world.claim("data")
    session = world.open()
    assert session.refusals(using("data")) == {"n1": [NO_VOLUME], "n2": []}
    task = put(session, using("data"), "n2")
    assert plan_of(session, task) == VolumePlan("n2", (("meant", "ns/data"),), ())


def test_what_no_volume_serves_is_provisioned() -> None:
    world = Storage()
    topologies = [{"matchLabelExpressions": [{"key": "name", "values": ["n2"]}]}]
    world.kind("made", "WaitForFirstConsumer", "csi.example.com", allowedTopologies=topologies)
    world.claim("data", kind="made")
    session = world.open()
    assert session.refusals(using("data")) == {"n1": [NO_VOLUME], "n2": []}
    task = put(session, using("data"), "n2")
    assert plan_of(session, task) == VolumePlan("n2", (), ("ns/data",))
    # Another pod of the same claim must follow to the node that is selected for it.
    assert session.fitting(using("data", name="q")) == ["n2"]


def test_provisioning_needs_free_storage_where_the_driver_tells() -> None:
    world = Storage()
    world.kind("made", "WaitForFirstConsumer", "csi.example.com")
    driver = {"metadata": {"name": "csi.example.com"}, "spec": {"storageCapacity": True}}
    world.listers.csi_drivers["csi.example.com"] = msgspec.convert(driver, CSIDriver)
    for name, size in (("n1", "4Gi"), ("n2", "6Gi")):
        capacity = {
            "metadata": {"name": name, "namespace": "kube-system"},
            "storageClassName": "made",
            "capacity": size,
            "nodeTopology": {"matchLabels": {"name": name}},
        }
        world.listers.storage_capacities[name] = msgspec.convert(capacity, CSIStorageCapacity)
    world.claim("data", kind="made")
    assert world.open().refusals(using("data")) == {"n1": [NO_SPACE], "n2": []}


def test_reasons_of_volume_binding_come_in_one_status() -> None:
    world = Storage()
    world.volume("pv", nodes=on("n1"))
    world.claim("there", bound="pv")
    world.claim("data", size="50Gi")
    found = world.open().statuses(using("there", "data"))
    assert [s.reason for s in found["n2"]] == [f"{CONFLICT}, {NO_VOLUME}"]


def test_pipelined_pods_reserve_nothing_unless_they_were_allocated_before() -> None:
    world = Storage()
    world.volume("pv")
    world.claim("one")
    session = world.open()
    task = put(session, using("one"), "n1", pipelined=True)
    assert plan_of(session, task) is None
    session.take_back(task)
    put(session, task, "n2")
    session.take_back(task)
    task = put(session, task, "n1", pipelined=True)
    assert plan_of(session, task) == VolumePlan("n2", (("pv", "ns/one"),), ())


def test_kernels_leave_pods_with_claims_to_the_search() -> None:
    world = Storage()
    world.volume("pv")
    world.claim("one")
    session = world.open()
    task = session.task(using("one"))
    assert session.pre_predicate(task) is None
    assert session.filters[0].kernel(task) is None


def test_the_time_that_binding_may_take_is_that_of_the_first_session() -> None:
    world = Storage()
    world.volume("pv")
    world.claim("one")
    world.open(**{"volumebinding.bindTimeoutSeconds": 5})
    session = world.open(**{"volumebinding.bindTimeoutSeconds": 7})
    task = put(session, using("one"), "n1")
    assert plan_of(session, task) == VolumePlan("n1", (("pv", "ns/one"),), (), 5)


# --- attach limits ----------------------------------------------------------------------------------------------------


@pytest.fixture
def limited() -> Storage:
    """n1 may attach two volumes of the driver."""
    world = Storage()
    world.kind("made", "WaitForFirstConsumer", "csi.example.com")
    drivers = [{"name": "csi.example.com", "allocatable": {"count": 2}}]
    world.listers.csi_nodes["n1"] = msgspec.convert({"metadata": {"name": "n1"}, "spec": {"drivers": drivers}}, CSINode)
    for i in range(3):
        world.volume(f"pv{i}", csi={"driver": "csi.example.com", "volumeHandle": f"h{i}"})
        world.claim(f"c{i}", bound=f"pv{i}")
    world.claim("new", kind="made")
    return world


def test_volumes_of_a_node_are_limited_by_driver(limited: Storage) -> None:
    limited.place(using("c0", name="a"), "n1")
    assert limited.open().fitting(using("c1")) == ["n1", "n2"]
    limited.place(using("c1", name="b"), "n1")
    session = limited.open()
    assert session.refusals(using("c2")) == {"n1": [LIMIT], "n2": []}
    assert session.refusals(using("new")) == {"n1": [LIMIT], "n2": []}
    assert session.fitting(using("c0", "c1")) == ["n1", "n2"]  # attached already


def test_attachments_count_once(limited: Storage) -> None:
    limited.place(using("c0", name="a"), "n1")
    for i in range(2):
        spec = {"attacher": "csi.example.com", "nodeName": "n1", "source": {"persistentVolumeName": f"pv{i}"}}
        found = msgspec.convert({"metadata": {"name": f"va{i}"}, "spec": spec}, VolumeAttachment)
        limited.listers.attachments[found.name] = found
    assert limited.open().refusals(using("c2")) == {"n1": [LIMIT], "n2": []}
    assert limited.open().fitting(using("c1")) == ["n1", "n2"]


def test_a_missing_claim_is_hopeless_for_the_limits(limited: Storage) -> None:
    off = {f"predicate.{r}Enable": False for r in ("VolumeZone", "VolumeBinding")}
    found = limited.open(**off).statuses(using("absent"))["n1"]
    text = 'looking up PVC ns/absent: persistentvolumeclaim "absent" not found'
    assert [(s.code, s.reason) for s in found] == [(Code.UNRESOLVABLE, text)]
