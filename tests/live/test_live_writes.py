"""What LiveCluster writes, each kind of write by itself, as the API server sees it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from live import api
from live.api import wait_until
from live.place import Place
from live.sink import Notebook
from vcscheduler.cluster.interface import ClusterError, ErrorReason
from vcscheduler.cluster.live import Access, LiveCluster, LiveOptions, WriterLimits
from vcscheduler.objects import (
    Condition,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodGroup,
    PodGroupCondition,
    PodGroupStatus,
    Queue,
    QueueStatus,
)


@contextmanager
def connected(
    place: Place, access: Access | None = None, options: LiveOptions | None = None, **arguments: Any
) -> Iterator[tuple[LiveCluster, Notebook]]:
    sink = Notebook()
    cluster = LiveCluster(access or place.access(), options, **arguments)
    cluster.start(sink)
    try:
        cluster.wait_for_sync(20.0)
        yield cluster, sink
    finally:
        cluster.stop()


def pod_named(cluster: LiveCluster, name: str) -> Pod:
    wait_until(lambda: any(each.name == name for each in cluster.objects(Pod)), f"pod {name} to be seen")
    return next(each for each in cluster.objects(Pod) if each.name == name)


def condition(pod: dict[str, Any], type: str) -> dict[str, Any]:
    return next((each for each in pod["status"].get("conditions", []) if each["type"] == type), {})


def test_a_thousand_pods_are_bound_to_the_nodes_they_were_given(place: Place) -> None:
    place.nodes(20)
    place.api.create_many(place.pods_path, [api.pod(f"p{number}") for number in range(1000)])
    with connected(place) as (cluster, sink):
        given = {pod.name: f"n{number % 20:04d}" for number, pod in enumerate(cluster.objects(Pod))}
        started = time.monotonic()
        outcomes = cluster.bind_many([(pod, given[pod.name]) for pod in cluster.objects(Pod)])
        handed_over = time.monotonic() - started
        assert cluster.settled(30.0)
        assert outcomes == [None] * 1000
        assert sink.refusals == []
        assert cluster.counts.sent >= 1000
    assert place.bound() == given
    assert handed_over < 0.5


def test_annotations_are_merged_onto_the_bound_pod(place: Place) -> None:
    place.nodes(1)
    place.api.create(place.pods_path, api.pod("p", annotations={"kept": "1"}))
    with connected(place) as (cluster, _):
        cluster.bind(pod_named(cluster, "p"), "n0000", {"volcano.sh/topology-decision": '{"numa":{}}'})
        assert cluster.settled(10.0)
    stored = place.api.get(f"{place.pods_path}/p")
    assert stored["metadata"]["annotations"] == {"kept": "1", "volcano.sh/topology-decision": '{"numa":{}}'}


def test_binding_a_pod_that_somebody_else_bound_is_refused_with_what_is_stored(place: Place) -> None:
    place.nodes(2)
    place.api.create(place.pods_path, api.pod("p"))
    with connected(place) as (cluster, sink):
        pod = pod_named(cluster, "p")
        target = {"apiVersion": "v1", "kind": "Node", "name": "n0001"}
        place.api.create(
            f"{place.pods_path}/p/binding",
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": target},
        )
        cluster.bind(pod, "n0000", {})
        assert cluster.settled(10.0)
        [(refused, error)] = sink.refusals
        assert (refused.name, error.reason) == ("p", ErrorReason.CONFLICT)
        assert "already assigned to node n0001" in error.message
        stored = cluster.read_pod("default", "p")
        assert stored is not None
        assert stored.spec.node_name == "n0001"


def test_binding_twice_to_the_same_node_counts_as_done(place: Place) -> None:
    place.nodes(1)
    place.api.create(place.pods_path, api.pod("p"))
    with connected(place) as (cluster, sink):
        pod = pod_named(cluster, "p")
        cluster.bind(pod, "n0000", {})
        cluster.bind(pod, "n0000", {})
        assert cluster.settled(10.0)
        assert sink.refusals == []


def test_a_pod_that_was_deleted_and_made_anew_is_neither_bound_nor_evicted(place: Place) -> None:
    place.nodes(1)
    place.api.create(place.pods_path, api.pod("p"))
    with connected(place) as (cluster, sink):
        old = pod_named(cluster, "p")
        place.api.delete(f"{place.pods_path}/p", {"gracePeriodSeconds": 0})
        place.api.create(place.pods_path, api.pod("p"))
        cluster.bind(old, "n0000", {})
        cluster.evict(old, "preempt")
        assert cluster.settled(10.0)
        assert [(error.reason, error.message) for _, error in sink.refusals] == [
            (ErrorReason.NOT_FOUND, 'pods "default/p" not found')
        ]
        wait_until(lambda: cluster.objects(Pod)[0].metadata.uid != old.metadata.uid, "the new pod")
        story = [each for each in sink.story(Pod) if each[0] != "updated"]
        assert story == [("added", "p"), ("deleted", "p"), ("added", "p")]
    assert place.bound() == {}


@pytest.mark.parametrize("by_eviction", [False, True])
def test_eviction_says_why_and_deletes(place: Place, by_eviction: bool) -> None:
    place.nodes(1)
    place.api.create(place.pods_path, api.pod("p"))
    place.api.merge(f"{place.pods_path}/p", {"metadata": {"finalizers": ["test/hold"]}})
    with connected(place, options=LiveOptions(by_eviction=by_eviction)) as (cluster, sink):
        cluster.bind(pod_named(cluster, "p"), "n0000", {})
        assert cluster.settled(10.0)
        wait_until(lambda: pod_named(cluster, "p").status.phase == "Running", "the pod to run")
        cluster.evict(pod_named(cluster, "p"), "reclaim")
        assert cluster.settled(10.0)
        assert sink.refusals == []
    stored = place.api.get(f"{place.pods_path}/p")
    assert "deletionTimestamp" in stored["metadata"]
    ready, disrupted = condition(stored, "Ready"), condition(stored, "DisruptionTarget")
    assert (ready["status"], ready["reason"]) == ("False", "Evict")
    assert ready["message"] == "Pod is evicted, because of reclaim"
    assert disrupted["status"] == "True"
    if not by_eviction:  # The Eviction API gives a reason of its own.
        assert disrupted["reason"] == "PreemptionByScheduler"
        assert disrupted["message"] == "volcano: preempting to accommodate a higher priority pod"


def test_of_the_conditions_of_a_pod_the_latest_is_written(place: Place) -> None:
    place.api.create(place.pods_path, api.pod("p"))
    with connected(place) as (cluster, _sink):
        pod = pod_named(cluster, "p")
        for number in range(50):
            told = Condition("PodScheduled", "False", "Unschedulable", f"reason {number}")
            cluster.update_pod_condition(pod, told, "n0000" if number == 10 else "")
        assert cluster.settled(10.0)
        assert cluster.counts.sent < 10
    stored = place.api.get(f"{place.pods_path}/p")
    assert condition(stored, "PodScheduled")["message"] == "reason 49"


def test_a_nominated_node_is_written_and_not_taken_away(place: Place) -> None:
    place.api.create(place.pods_path, api.pod("p"))
    with connected(place) as (cluster, _):
        pod = pod_named(cluster, "p")
        cluster.update_pod_condition(pod, Condition("PodScheduled", "False", "Unschedulable", "a"), "n7")
        assert cluster.settled(10.0)
        cluster.update_pod_condition(pod, Condition("PodScheduled", "False", "Unschedulable", "b"), "")
        assert cluster.settled(10.0)
    status = place.api.get(f"{place.pods_path}/p")["status"]
    assert status["nominatedNodeName"] == "n7"
    assert condition({"status": status}, "PodScheduled")["message"] == "b"


def group_named(cluster: LiveCluster, name: str) -> PodGroup:
    return next(each for each in cluster.objects(PodGroup) if each.name == name)


def with_status(group: PodGroup, phase: str, transition: str = "t") -> PodGroup:
    told = PodGroupCondition("Unschedulable", "True", transition, datetime.now(UTC), "NotEnoughResources", "1/1 tasks")
    return PodGroup(metadata=group.metadata, spec=group.spec, status=PodGroupStatus(phase, [told], running=2))


def test_pod_group_status_is_written_over_the_newest_version(place: Place) -> None:
    place.api.create(place.groups_path, api.pod_group("g", 3))
    with connected(place) as (cluster, sink):
        seen = group_named(cluster, "g")
        # Somebody changes the spec; the scheduler has not heard of it when it writes.
        place.api.merge(f"{place.groups_path}/g", {"spec": {"minMember": 5}, "metadata": {"labels": {"a": "b"}}})
        written = cluster.update_pod_group(with_status(seen, "Inqueue"))
        assert written.status.phase == "Inqueue"
        assert cluster.settled(10.0)
        assert sink.refusals == []
        wait_until(lambda: cluster.statuses_under_way == 0, "the watch to show it")
    stored = place.group("g")
    assert stored["spec"]["minMember"] == 5
    assert stored["metadata"]["labels"] == {"a": "b"}
    assert stored["status"]["phase"] == "Inqueue"
    assert stored["status"]["running"] == 2
    assert stored["status"]["conditions"][0]["transitionID"] == "t"


def test_nobody_hears_of_an_earlier_status_while_a_later_one_is_under_way(place: Place) -> None:
    place.api.create(place.groups_path, api.pod_group("g", 3))
    with connected(place) as (cluster, sink):
        group = group_named(cluster, "g")
        for number in range(30):
            group = cluster.update_pod_group(with_status(group, "Inqueue" if number % 2 else "Running", str(number)))
            time.sleep(0.002)
        assert cluster.settled(10.0)
        wait_until(lambda: cluster.statuses_under_way == 0, "the watch to show it")
        told = [
            int(obj.status.conditions[0].transition_id)
            for what, obj in sink.told
            if isinstance(obj, PodGroup) and what == "updated"
        ]
        assert told == sorted(told)
        assert told[-1] == 29
        assert cluster.counts.replaced > 0


def test_a_pod_group_that_is_gone_is_refused(place: Place) -> None:
    place.api.create(place.groups_path, api.pod_group("g", 3))
    with connected(place) as (cluster, sink):
        group = group_named(cluster, "g")
        place.api.delete(f"{place.groups_path}/g")
        cluster.update_pod_group(with_status(group, "Inqueue"))
        assert cluster.settled(10.0)
        wait_until(lambda: sink.story(PodGroup)[-1] == ("deleted", "g"), "the deletion")
        assert [error.reason for _, error in sink.refusals] == [ErrorReason.NOT_FOUND]
        assert cluster.statuses_under_way == 0


def test_a_status_that_the_server_does_not_accept_is_taken_back(place: Place) -> None:
    place.api.create(place.groups_path, api.pod_group("g", 3))
    with connected(place) as (cluster, sink):
        cluster.update_pod_group(with_status(group_named(cluster, "g"), "NoSuchPhase"))
        assert cluster.settled(10.0)
        [(_, error)] = sink.refusals
        assert error.reason is ErrorReason.INVALID
        assert "NoSuchPhase" in error.message
        what, last = sink.told[-1]
        assert isinstance(last, PodGroup)
        assert (what, last.status.phase) == ("updated", "Pending")


def test_queue_status_leaves_the_state_to_its_controller(place: Place) -> None:
    with connected(place) as (cluster, sink):
        queue = next(each for each in cluster.objects(Queue) if each.name == "default")
        place.api.merge(f"{api.QUEUES}/default/status", {"status": {"state": "Closing"}})
        status = QueueStatus(state="Open", allocated={"cpu": "3", "memory": "1Gi"})
        cluster.update_queue_status(Queue(metadata=queue.metadata, spec=queue.spec, status=status))
        assert cluster.settled(10.0)
        assert sink.refusals == []
    stored = place.api.get(f"{api.QUEUES}/default")
    assert stored["status"] == {"state": "Closing", "allocated": {"cpu": "3", "memory": "1Gi"}}


def test_a_queue_is_created_once(place: Place) -> None:
    with connected(place) as (cluster, _):
        wanted = Queue()
        wanted.metadata.name = "root"
        wanted.spec.weight = 1
        wanted.spec.reclaimable = False
        first = cluster.create_queue(wanted)
        again = cluster.create_queue(wanted)
    assert first.metadata.uid == again.metadata.uid
    assert place.api.get(f"{api.QUEUES}/root")["spec"]["reclaimable"] is False


def test_a_claim_gets_what_was_changed_and_keeps_the_rest(place: Place) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "x"}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec}
    place.api.create("/api/v1/namespaces/default/persistentvolumeclaims", claim)
    with connected(place) as (cluster, sink):
        old = cluster.objects(PersistentVolumeClaim)[0]
        new = copy(old)
        new.metadata = copy(old.metadata)
        new.metadata.annotations = {**old.metadata.annotations, "volume.kubernetes.io/selected-node": "n1"}
        cluster.update_claim(new)
        assert cluster.settled(10.0)
        assert sink.refusals == []
        wait_until(
            lambda: cluster.objects(PersistentVolumeClaim)[0].metadata.annotations == new.metadata.annotations,
            "the annotation",
        )
        with pytest.raises(ClusterError, match="changed meanwhile"):
            cluster.update_claim(new)


def test_without_leadership_nothing_is_written(place: Place) -> None:
    place.nodes(1)
    place.api.create(place.pods_path, api.pod("p"))
    leads = False
    with connected(place, gate=lambda: leads) as (cluster, sink):
        cluster.bind(pod_named(cluster, "p"), "n0000", {})
        cluster.record_event("Pod", "default", "p", "Normal", "Scheduled", "it is not")
        assert cluster.settled(10.0)
        [(_, error)] = sink.refusals
        assert "not the leader" in error.message
        assert cluster.counts.sent == 0
    assert place.bound() == {}
    assert place.events() == []


def test_repeats_of_an_event_are_counted_and_floods_are_dammed(place: Place) -> None:
    place.api.create(place.groups_path, api.pod_group("g", 3))
    with connected(place) as (cluster, _):
        for _ in range(100):
            cluster.record_event("PodGroup", "default", "g", "Warning", "Unschedulable", "3/3 tasks in gang")
            time.sleep(0.001)
        wait_until(lambda: [each["count"] for each in place.events("g")] == [25], "25 in one event")
        for number in range(20):
            cluster.record_event("Pod", "default", "x", "Warning", "FailedScheduling", f"reason {number}")
        wait_until(lambda: len(place.events("x")) == 11, "ten events and one for the rest")
    [event] = place.events("g")
    assert event["involvedObject"]["uid"] == place.group("g")["metadata"]["uid"]
    assert event["involvedObject"]["apiVersion"] == "scheduling.volcano.sh/v1beta1"
    messages = sorted(each["message"] for each in place.events("x"))
    assert messages[0] == "(combined from similar events): reason 19"


def test_more_writes_than_there_is_room_for_wait_and_are_then_refused(place: Place) -> None:
    place.nodes(1)
    place.api.create_many(place.pods_path, [api.pod(f"p{number}") for number in range(30)])
    limits = WriterLimits(in_flight=1, waiting=5, patience=0.0)
    with connected(place, options=LiveOptions(limits=limits)) as (cluster, _sink):
        pods = cluster.objects(Pod)
        outcomes: list[ClusterError | None] = []
        for pod in pods:
            outcomes += cluster.bind_many([(pod, "n0000")])
        refused = [each for each in outcomes if each is not None]
        assert refused
        assert all(each.reason is ErrorReason.UNAVAILABLE for each in refused)
        assert cluster.settled(10.0)
        assert not cluster.saturated
    assert len(place.bound()) == 30 - len(refused)


def test_a_volume_is_reserved_for_a_claim_and_keeps_its_source(place: Place) -> None:
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "x",
        "nfs": {"server": "files", "path": "/a"},
    }
    volumes = "/api/v1/persistentvolumes"
    place.api.create(volumes, {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec})
    try:
        with connected(place) as (cluster, sink):
            # Other tests of the same server may have left volumes behind.
            old = next(v for v in cluster.objects(PersistentVolume) if v.name == "v")
            new = copy(old)
            new.spec = copy(old.spec)
            new.spec.claim_ref = ObjectReference(kind="PersistentVolumeClaim", namespace="default", name="c", uid="1")
            cluster.update_volume(new)
            assert cluster.settled(10.0)
            assert sink.refusals == []
        stored = place.api.get(f"{volumes}/v")["spec"]
        assert stored["claimRef"]["name"] == "c"
        assert stored["nfs"] == {"server": "files", "path": "/a"}
    finally:
        place.api.delete(f"{volumes}/v")
