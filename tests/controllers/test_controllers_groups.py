"""PodGroups for pods that come without one (spec 07 §8.6)."""

from __future__ import annotations

from typing import Any

import builders
from governed import Governed
from vcscheduler.cluster.faults import Operation
from vcscheduler.objects import BatchJob, Pod, PodGroup, ReplicaSet, StatefulSet, parse_quantity, read_manifest_text

GROUP = "scheduling.k8s.io/group-name"
WORKLOAD = """\
apiVersion: {api}
kind: {kind}
metadata: {{name: web, namespace: ns, uid: r1, annotations: {annotations}}}
spec:
  replicas: 3
  selector: {{matchLabels: {{a: b}}}}
  template: {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{{name: c}}]}}}}
"""


def pod(name: str, **more: Any) -> Pod:
    """A pod as the API server stores a new one."""
    made = builders.pod(name, **more)
    made.status.phase = "Pending"
    return made


def workload(place: Governed, kind: str = "ReplicaSet", api: str = "apps/v1", annotations: str = "{}") -> None:
    place.apply(WORKLOAD.format(kind=kind, api=api, annotations=annotations))


def owned(name: str, kind: str = "ReplicaSet", api: str = "apps/v1", **more: Any) -> Pod:
    owner = {"apiVersion": api, "kind": kind, "name": "web", "uid": "r1", "controller": True}
    return pod(name, cpu=1, owner=owner, schedulerName="volcano", **more)


def note(place: Governed, name: str) -> str:
    found = place.cluster.get(Pod, f"ns/{name}")
    assert found is not None
    return found.metadata.annotations.get(GROUP, "")


def the_group(place: Governed) -> PodGroup:
    (group,) = place.groups().values()
    return group


class TestBarePods:
    def test_each_has_a_group_of_its_own_and_runs(self) -> None:
        place = Governed()
        for name in ("a", "b"):
            place.cluster.create(pod(name, cpu=1, schedulerName="volcano"))
        place.settle(4)
        assert sorted(place.groups()) == ["podgroup-uid-ns-a", "podgroup-uid-ns-b"]
        assert place.pods() == {"a": "Running", "b": "Running"}
        group = place.groups()["podgroup-uid-ns-a"]
        assert (group.spec.min_member, group.spec.queue, group.status.phase) == (1, "default", "Running")
        (owner,) = group.metadata.owner_references
        assert (owner.kind, owner.name, owner.controller) == ("Pod", "a", True)

    def test_pods_of_other_schedulers_and_pods_with_a_group_are_left_alone(self) -> None:
        place = Governed()
        place.turn()
        place.cluster.create(pod("other", schedulerName="default-scheduler"))
        place.cluster.create(pod("member", schedulerName="volcano", annotations={GROUP: "g"}))
        place.turn()
        store = place.start_controllers()
        place.turn()
        assert (store.written, place.groups()) == (0, {})

    def test_what_the_pod_says_of_queue_and_eviction_is_taken_over(self) -> None:
        place = Governed()
        notes = {
            "scheduling.volcano.sh/queue-name": "gold",
            "volcano.sh/preemptable": "true",
            "volcano.sh/network-topology-mode": "Soft",
            "volcano.sh/network-topology-highest-tier": "2",
        }
        place.cluster.create(pod("a", cpu=1, schedulerName="volcano", annotations=notes, priorityClassName="high"))
        place.turn()
        group = the_group(place)
        assert (group.spec.queue, group.spec.priority_class_name) == ("gold", "high")
        assert group.metadata.annotations == {"volcano.sh/preemptable": "true"}
        topology = group.spec.network_topology
        assert topology is not None
        assert (topology.mode, topology.highest_tier_allowed) == ("soft", 2)


class TestWorkloads:
    def test_pods_of_a_deployment_share_one_group(self) -> None:
        """W8.4"""
        place = Governed()
        workload(place, annotations='{scheduling.volcano.sh/group-min-member: "2", volcano.sh/x: 1s, other: z}')
        for name in ("web-1", "web-2", "web-3"):
            place.cluster.create(owned(name))
        place.settle(4)
        group = the_group(place)
        assert (group.name, group.spec.min_member) == ("podgroup-r1", 2)
        assert group.metadata.annotations == {"volcano.sh/x": "1s"}
        assert group.spec.min_resources is not None
        assert parse_quantity(group.spec.min_resources["cpu"]) == 2
        assert place.pods() == {"web-1": "Running", "web-2": "Running", "web-3": "Running"}
        assert {note(place, name) for name in place.pods()} == {"podgroup-r1"}

    def test_a_batch_job_schedules_pod_by_pod(self) -> None:
        place = Governed()
        place.cluster.create(
            next(
                obj
                for obj in read_manifest_text(
                    "{apiVersion: batch/v1, kind: Job, metadata: {name: web, namespace: ns, uid: r1},"
                    " spec: {parallelism: 2, template: {spec: {restartPolicy: Never, containers: [{name: c}]}}}}"
                ).objects
                if isinstance(obj, BatchJob)
            )
        )
        for name in ("web-1", "web-2"):
            place.cluster.create(owned(name, "Job", "batch/v1"))
        place.turn()
        assert (the_group(place).name, the_group(place).spec.min_member) == ("podgroup-r1", 1)

    def test_a_pod_seen_before_its_owner_waits_for_it(self) -> None:
        place = Governed()
        place.cluster.create(owned("web-1"))
        place.turn()
        assert place.groups() == {}
        workload(place, annotations='{scheduling.volcano.sh/group-min-member: "3"}')
        place.wait(0.2)
        assert the_group(place).spec.min_member == 3

    def test_an_owner_that_never_shows_up_is_done_without(self) -> None:
        place = Governed()
        place.cluster.create(owned("web-1"))
        place.turn()
        place.wait(3)
        assert (the_group(place).spec.min_member, note(place, "web-1")) == (1, "podgroup-r1")

    def test_the_owner_of_a_custom_kind_is_not_waited_for(self) -> None:
        place = Governed()
        place.cluster.create(owned("web-1", "Workflow", "example.com/v1"))
        place.turn()
        assert note(place, "web-1") == "podgroup-r1"

    def test_scaled_to_nothing_the_group_goes(self) -> None:
        for kind in (ReplicaSet, StatefulSet):
            place = Governed()
            workload(place, kind.kind)
            place.cluster.create(owned("web-1", kind.kind))
            place.turn()
            assert list(place.groups()) == ["podgroup-r1"]
            found = place.cluster.get(kind, "ns/web")
            assert found is not None
            found.spec.replicas = 0
            place.cluster.delete(Pod, "ns/web-1")
            place.cluster.apply(found)
            place.turn()
            assert place.groups() == {}


def test_what_was_refused_is_tried_again() -> None:
    place = Governed()
    place.cluster.refuse(Operation.WRITE_OBJECT, "ns/podgroup-uid-ns-a", times=1)
    place.cluster.refuse(Operation.WRITE_OBJECT, "ns/a", times=1)
    place.cluster.create(pod("a", cpu=1, schedulerName="volcano"))
    for _ in range(3):
        place.wait(1)
    assert note(place, "a") == "podgroup-uid-ns-a"


def test_after_a_crash_between_group_and_note_the_pod_gets_its_note() -> None:
    place = Governed()
    store = place.start_controllers(1)
    place.cluster.create(pod("a", cpu=1, schedulerName="volcano"))
    try:
        place.turn()
    except Exception:  # The process is gone.
        assert store.written == 1
    assert note(place, "a") == ""
    place.start_controllers()
    place.turn()
    assert note(place, "a") == "podgroup-uid-ns-a"
    assert len(place.groups()) == 1
