"""The embedded cluster: what it stores, what its watcher hears, what a step does, which faults it can have."""

import gc
from datetime import UTC, datetime, timedelta
from time import process_time

import pytest

from vcscheduler.cluster.faults import Operation
from vcscheduler.cluster.interface import ClusterError, ErrorReason
from vcscheduler.cluster.memory import MemoryCluster
from vcscheduler.objects import (
    Condition,
    HyperNode,
    KubernetesObject,
    Node,
    ObjectMeta,
    Pod,
    PodGroup,
    PodGroupSpec,
    PodGroupStatus,
    PodSpec,
    PodStatus,
    Queue,
    QueueSpec,
    QueueStatus,
)

NOW = datetime(2026, 11, 29, 16, 15, tzinfo=UTC)


class Watcher:
    """Writes down what it hears, in words."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.pairs: list[tuple[KubernetesObject, KubernetesObject]] = []

    def added(self, obj: KubernetesObject) -> None:
        self.heard.append(f"+{obj.kind} {obj.key}")

    def updated(self, old: KubernetesObject, new: KubernetesObject) -> None:
        self.heard.append(f"~{new.kind} {new.key}")
        self.pairs.append((old, new))

    def deleted(self, obj: KubernetesObject) -> None:
        self.heard.append(f"-{obj.kind} {obj.key}")

    def take(self) -> list[str]:
        heard, self.heard = self.heard, []
        return heard


def pod(name: str, node: str = "", *, uid: str = "", phase: str = "Pending", grace: int | None = None) -> Pod:
    return Pod(
        ObjectMeta(name=name, namespace="ns", uid=uid or f"uid-{name}"),
        PodSpec(node_name=node, scheduler_name="volcano", termination_grace_period_seconds=grace),
        PodStatus(phase=phase),
    )


def node(name: str) -> Node:
    return Node(ObjectMeta(name=name))


def pod_group(name: str) -> PodGroup:
    return PodGroup(ObjectMeta(name=name, namespace="ns"), PodGroupSpec(min_member=1))


def cluster_of(*objects: KubernetesObject, **settings: object) -> tuple[MemoryCluster, Watcher]:
    """A started cluster; the watcher has already heard of the objects."""
    cluster = MemoryCluster(lambda: NOW, **settings)  # type: ignore[arg-type]
    cluster.apply_all(objects)
    watcher = Watcher()
    cluster.start(watcher)
    watcher.take()
    return cluster, watcher


def stored_pod(cluster: MemoryCluster, name: str) -> Pod:
    found = cluster.get(Pod, f"ns/{name}")
    assert found is not None
    return found


class TestStoring:
    def test_start_delivers_what_is_there_pods_last(self) -> None:
        cluster = MemoryCluster(lambda: NOW)
        cluster.apply_all(
            [pod("p"), pod_group("g"), HyperNode(ObjectMeta(name="h")), node("n"), Queue(ObjectMeta(name="q"))]
        )
        watcher = Watcher()
        cluster.start(watcher)
        assert watcher.heard == ["+Queue q", "+Node n", "+HyperNode h", "+PodGroup ns/g", "+Pod ns/p"]

    def test_changes_after_the_start_are_delivered_at_once(self) -> None:
        cluster, watcher = cluster_of(node("n"))
        cluster.apply(node("n"))
        cluster.apply(pod("p"))
        cluster.delete(Node, "n")
        assert watcher.heard == ["~Node n", "+Pod ns/p", "-Node n"]

    def test_objects_handed_in_stay_as_they_were(self) -> None:
        given = pod_group("g")
        cluster, _ = cluster_of(given)
        stored = cluster.get(PodGroup, "ns/g")
        assert stored is not None
        assert given.metadata.resource_version == ""
        assert stored.metadata.resource_version != ""

    def test_apply_takes_objects_as_they_stand_but_for_the_uid_of_a_pod(self) -> None:
        cluster, _ = cluster_of(Pod(ObjectMeta(name="p", namespace="ns")), Queue(ObjectMeta(name="q")))
        queue = cluster.get(Queue, "q")
        assert queue is not None
        assert (queue.metadata.uid, queue.metadata.creation_timestamp) == ("", None)
        uid = stored_pod(cluster, "p").metadata.uid
        assert uid != ""
        cluster.apply(Pod(ObjectMeta(name="p", namespace="ns", labels={"a": "b"})))
        assert stored_pod(cluster, "p").metadata.uid == uid

    def test_create_gives_uid_and_time_and_refuses_what_exists(self) -> None:
        cluster, _ = cluster_of()
        queue = cluster.create(Queue(ObjectMeta(name="q")))
        assert queue.metadata.uid != ""
        assert queue.metadata.creation_timestamp == NOW
        with pytest.raises(ClusterError, match="Queue q already exists") as caught:
            cluster.create_queue(Queue(ObjectMeta(name="q")))
        assert caught.value.reason is ErrorReason.ALREADY_EXISTS

    def test_deleting_what_is_not_there_fails(self) -> None:
        cluster, _ = cluster_of()
        with pytest.raises(ClusterError, match="Pod ns/p not found"):
            cluster.delete(Pod, "ns/p")


class TestBinding:
    def test_a_bound_pod_runs_on_its_node_after_the_next_step(self) -> None:
        cluster, watcher = cluster_of(node("n"), pod("p"))
        before = stored_pod(cluster, "p")
        cluster.bind(before, "n", {"volcano.sh/x": "1"})
        assert stored_pod(cluster, "p") is before
        assert watcher.heard == []
        cluster.step()
        after = stored_pod(cluster, "p")
        assert watcher.heard == ["~Pod ns/p"]
        assert (after.spec.node_name, after.status.phase) == ("n", "Running")
        assert after.metadata.annotations == {"volcano.sh/x": "1"}
        assert (before.spec.node_name, before.status.phase, before.metadata.annotations) == ("", "Pending", {})
        cluster.step()
        assert watcher.heard == ["~Pod ns/p"]

    def test_without_the_node_a_pod_is_bound_but_does_not_run(self) -> None:
        cluster, _ = cluster_of(pod("p"))
        cluster.bind(stored_pod(cluster, "p"), "gone", {})
        cluster.step()
        assert stored_pod(cluster, "p").spec.node_name == "gone"
        assert stored_pod(cluster, "p").status.phase == "Pending"

    def test_bulk_binding_answers_for_each_pod(self) -> None:
        cluster, _ = cluster_of(node("n"), pod("a"), pod("b", "n"), pod("c"))
        leaving = pod("d")
        leaving.metadata.deletion_timestamp = NOW
        cluster.apply(leaving)
        outcomes = cluster.bind_many(
            [
                (stored_pod(cluster, "a"), "n"),
                (stored_pod(cluster, "b"), "n"),
                (pod("missing"), "n"),
                (pod("c", uid="older"), "n"),
                (stored_pod(cluster, "a"), "n"),
                (stored_pod(cluster, "d"), "n"),
            ]
        )
        assert [outcome and outcome.reason for outcome in outcomes] == [
            None,
            ErrorReason.CONFLICT,
            ErrorReason.NOT_FOUND,
            ErrorReason.NOT_FOUND,
            ErrorReason.CONFLICT,
            ErrorReason.CONFLICT,
        ]

    def test_a_pod_deleted_before_the_step_stays_deleted(self) -> None:
        cluster, watcher = cluster_of(node("n"), pod("p"))
        cluster.bind(stored_pod(cluster, "p"), "n", {})
        cluster.delete(Pod, "ns/p")
        cluster.step()
        assert watcher.heard == ["-Pod ns/p"]

    def test_binding_costs_little_more_than_a_dictionary_entry(self) -> None:
        cluster, _ = cluster_of(node("n"), *(pod(f"p{index}") for index in range(20_000)))
        bindings = [(each, "n") for each in cluster.objects(Pod)]
        gc.disable()  # as in a cycle
        try:
            start = process_time()
            outcomes = cluster.bind_many(bindings)
            took = process_time() - start
        finally:
            gc.enable()
        assert not any(outcomes)
        assert took / len(bindings) < 10e-6  # about 0.4 µs on an idle machine

    def test_read_pod_tells_what_is_stored(self) -> None:
        cluster, _ = cluster_of(pod("p"))
        assert cluster.read_pod("ns", "p") is stored_pod(cluster, "p")
        assert cluster.read_pod("ns", "q") is None


class TestEviction:
    def test_an_evicted_pod_says_why_and_is_gone_after_the_next_step(self) -> None:
        cluster, watcher = cluster_of(node("n"), pod("p", "n", phase="Running", grace=5))
        cluster.evict(stored_pod(cluster, "p"), "preempt")
        leaving = stored_pod(cluster, "p")
        assert leaving.metadata.deletion_timestamp == NOW + timedelta(seconds=5)
        assert [(c.type, c.status, c.reason, c.message) for c in leaving.status.conditions] == [
            ("Ready", "False", "Evict", "Pod is evicted, because of preempt"),
            (
                "DisruptionTarget",
                "True",
                "PreemptionByScheduler",
                "volcano: preempting to accommodate a higher priority pod",
            ),
        ]
        cluster.step()
        assert watcher.heard == ["~Pod ns/p", "-Pod ns/p"]

    def test_termination_can_take_several_steps(self) -> None:
        cluster, watcher = cluster_of(pod("p", "n"), termination_steps=3)
        cluster.evict(stored_pod(cluster, "p"), "reclaim")
        watcher.take()
        cluster.step()
        cluster.evict(stored_pod(cluster, "p"), "reclaim")
        watcher.take()
        cluster.step()
        assert watcher.heard == []
        cluster.step()
        assert watcher.heard == ["-Pod ns/p"]

    def test_a_pod_that_never_started_is_gone_at_once(self) -> None:
        cluster, watcher = cluster_of(pod("p"))
        cluster.evict(stored_pod(cluster, "p"), "shuffle")
        assert watcher.heard == ["-Pod ns/p"]

    def test_a_pod_can_be_evicted_between_binding_and_running(self) -> None:
        cluster, watcher = cluster_of(node("n"), pod("p"))
        cluster.bind(stored_pod(cluster, "p"), "n", {})
        cluster.evict(stored_pod(cluster, "p"), "shuffle")
        cluster.step()
        assert watcher.heard[-1] == "-Pod ns/p"
        assert cluster.objects(Pod) == []


class TestStatusWrites:
    def test_a_pod_group_comes_back_with_a_new_version(self) -> None:
        cluster, watcher = cluster_of(pod_group("g"))
        seen = cluster.get(PodGroup, "ns/g")
        assert seen is not None
        written = PodGroup(seen.metadata, seen.spec, PodGroupStatus(phase="Inqueue"))
        returned = cluster.update_pod_group(written)
        assert returned.status.phase == "Inqueue"
        assert int(returned.metadata.resource_version) > int(seen.metadata.resource_version)
        assert watcher.pairs == [(seen, returned)]

    def test_a_stale_version_is_a_conflict(self) -> None:
        cluster, _ = cluster_of(pod_group("g"))
        seen = cluster.get(PodGroup, "ns/g")
        assert seen is not None
        cluster.apply(pod_group("g"))
        with pytest.raises(ClusterError, match="PodGroup ns/g was changed meanwhile") as caught:
            cluster.update_pod_group(seen)
        assert caught.value.reason is ErrorReason.CONFLICT

    def test_a_queue_status_write_leaves_the_spec(self) -> None:
        cluster, _ = cluster_of(Queue(ObjectMeta(name="q"), QueueSpec(weight=3)))
        written = Queue(ObjectMeta(name="q"), QueueSpec(weight=9), QueueStatus(allocated={"cpu": "2"}))
        returned = cluster.update_queue_status(written)
        assert (returned.spec.weight, returned.status.allocated) == (3, {"cpu": "2"})

    def test_a_pod_condition_replaces_the_one_of_its_type(self) -> None:
        cluster, _ = cluster_of(pod("p"))
        first = Condition("PodScheduled", "False", "Unschedulable", "no room")
        cluster.update_pod_condition(stored_pod(cluster, "p"), first, "n1")
        second = Condition("PodScheduled", "False", "Schedulable", "soon")
        cluster.update_pod_condition(stored_pod(cluster, "p"), second, "")
        status = stored_pod(cluster, "p").status
        assert [(c.reason, c.message, c.last_transition_time) for c in status.conditions] == [
            ("Schedulable", "soon", NOW)
        ]
        assert status.nominated_node_name == "n1"

    def test_pod_conditions_can_be_left_out(self) -> None:
        cluster, watcher = cluster_of(pod("p"), keep_pod_conditions=False)
        cluster.update_pod_condition(stored_pod(cluster, "p"), Condition("PodScheduled", "False"), "n1")
        assert watcher.heard == []
        assert stored_pod(cluster, "p").status.nominated_node_name == ""


class TestEvents:
    def test_repeats_are_counted(self) -> None:
        cluster, _ = cluster_of()
        for _ in range(3):
            cluster.record_event("Pod", "ns", "p", "Warning", "FailedScheduling", "no room")
        cluster.record_event("Pod", "ns", "p", "Normal", "Scheduled", "on n")
        assert [(event.reason, event.count) for event in cluster.events()] == [
            ("FailedScheduling", 3),
            ("Scheduled", 1),
        ]

    def test_only_so_many_are_remembered(self) -> None:
        cluster, _ = cluster_of(max_events=8)
        for index in range(20):
            cluster.record_event("Pod", "ns", f"p{index}", "Normal", "Scheduled", "on n")
        names = [event.name for event in cluster.events()]
        assert len(names) <= 8
        assert names[-1] == "p19"


class TestFaults:
    def test_a_refused_binding_fails_as_often_as_asked(self) -> None:
        cluster, _ = cluster_of(node("n"), pod("a"), pod("b"))
        error = ClusterError(ErrorReason.TIMEOUT, "too slow")
        cluster.refuse(Operation.BIND, "ns/a", times=1, error=error)
        bindings = [(stored_pod(cluster, name), "n") for name in ("a", "b")]
        assert cluster.bind_many(bindings) == [error, None]
        assert cluster.bind_many(bindings[:1]) == [None]

    def test_single_writes_raise(self) -> None:
        cluster, _ = cluster_of(pod("a", "n"), pod_group("g"), Queue(ObjectMeta(name="q")))
        for operation in Operation:
            cluster.refuse(operation)
        group, queue = cluster.get(PodGroup, "ns/g"), cluster.get(Queue, "q")
        assert group is not None
        assert queue is not None
        writes = (
            lambda: cluster.bind(pod("a"), "n", {}),
            lambda: cluster.evict(pod("a"), "preempt"),
            lambda: cluster.update_pod_condition(pod("a"), Condition("PodScheduled", "False"), ""),
            lambda: cluster.read_pod("ns", "a"),
            lambda: cluster.update_pod_group(group),
            lambda: cluster.update_queue_status(queue),
            lambda: cluster.create_queue(Queue(ObjectMeta(name="new"))),
        )
        for write in writes:
            with pytest.raises(ClusterError, match="refused on request"):
                write()
        cluster.clear_faults()
        cluster.update_pod_group(group)

    def test_a_function_can_choose_the_objects(self) -> None:
        cluster, _ = cluster_of(pod("a", "n"), pod("b", "n"))
        cluster.refuse(Operation.EVICT, lambda obj: obj.name == "b")
        cluster.evict(stored_pod(cluster, "a"), "preempt")
        with pytest.raises(ClusterError, match="evict: refused"):
            cluster.evict(stored_pod(cluster, "b"), "preempt")

    def test_a_late_binding_shows_later(self) -> None:
        cluster, _ = cluster_of(node("n"), pod("p"))
        cluster.delay(Operation.BIND, 2)
        cluster.bind(stored_pod(cluster, "p"), "n", {})
        shown = []
        for _ in range(4):
            cluster.step()
            shown.append(stored_pod(cluster, "p").spec.node_name)
        assert shown == ["", "", "n", "n"]

    def test_late_updates_of_one_object_arrive_together_and_in_order(self) -> None:
        cluster, watcher = cluster_of(pod_group("g"), pod_group("h"))
        cluster.delay(Operation.UPDATE_POD_GROUP, 1)
        first = cluster.get(PodGroup, "ns/g")
        assert first is not None
        cluster.update_pod_group(first)
        last = cluster.apply(pod_group("g"))
        cluster.apply(pod_group("h"))
        assert watcher.heard == ["~PodGroup ns/h"]
        cluster.step()
        assert watcher.pairs[-1] == (first, last)
        cluster.step()
        assert watcher.heard == ["~PodGroup ns/h", "~PodGroup ns/g"]

    def test_a_late_eviction_leaves_later(self) -> None:
        cluster, watcher = cluster_of(pod("p", "n"))
        cluster.delay(Operation.EVICT, 1)
        cluster.evict(stored_pod(cluster, "p"), "preempt")
        assert watcher.heard == []
        cluster.step()
        assert watcher.take() == ["~Pod ns/p"]
        cluster.step()
        assert watcher.take() == ["-Pod ns/p"]

    def test_a_creation_cannot_be_late(self) -> None:
        cluster, _ = cluster_of()
        with pytest.raises(ValueError, match="create queue cannot be delayed"):
            cluster.delay(Operation.CREATE_QUEUE, 1)
