"""The cache: what it takes in, what it believes while the cluster has not answered (spec 01 §2.7, §5, §6)."""

from __future__ import annotations

import msgspec
import pytest

import builders
import digests
from lab import NOW, Lab, configuration, member, pod_group, queue
from vcscheduler.cache.cache import SchedulerCache
from vcscheduler.cluster.faults import Operation
from vcscheduler.cluster.memory import MemoryCluster
from vcscheduler.model.status import BINDING, RELEASING
from vcscheduler.model.task import Task
from vcscheduler.objects import CSINode, Node, Pod, PodGroup, Queue

BARE = configuration([["gang"]], "allocate")


def task(lab: Lab, name: str) -> Task:
    return next(t for t in lab.cache._tasks.values() if t.name == name)


def taken(lab: Lab) -> list[str]:
    lab.cache.begin_session()
    return sorted(t.name for t in lab.cache._tasks.values())


def test_pods_of_other_schedulers_count_once_they_are_on_a_node() -> None:
    lab = Lab(BARE).node("n1")
    foreign, placed = builders.pod("waits", cpu=1), builders.pod("placed", cpu=1, nodeName="n1")
    assert taken(lab.add(foreign, placed)) == ["placed"]
    foreign = msgspec.structs.replace(foreign, spec=msgspec.structs.replace(foreign.spec, node_name="n1"))
    assert taken(lab.add(foreign)) == ["placed", "waits"]
    assert digests.nodes(lab.cache.table)["n1"]["used"]["cpu"] == 2000


def test_sessions_see_jobs_with_a_group_and_a_queue_only() -> None:
    lab = Lab(BARE).job("a", queue="q", tasks=1).pod("bare", "bare-0")
    lab.cache.begin_session()
    assert lab.cache.jobs == {}
    lab.queue("q").cache.begin_session()
    assert list(lab.cache.jobs) == ["ns/a"]
    lab.cluster.delete(Queue, "q")
    lab.cache.begin_session()
    assert (lab.cache.jobs, list(lab.cache.aggregates.queues())) == ({}, [])


def test_a_group_that_moves_to_another_queue_takes_its_sums_along() -> None:
    lab = Lab(BARE).queue("q").queue("r").node("n1").job("a", tasks=1, on="n1")
    lab.cache.begin_session()
    assert list(lab.cache.aggregates.queues()) == ["q"]
    lab.add(pod_group("a", queue="r", phase="Running")).cache.begin_session()
    assert list(lab.cache.aggregates.queues()) == ["r"]


def test_priority_classes_come_late_and_change() -> None:
    lab = Lab(BARE).queue("q").job("a", group={"priority_class": "high"}).job("b")

    def priorities() -> list[int]:
        lab.cache.begin_session()
        return [lab.cache.jobs[id].priority for id in ("ns/a", "ns/b")]

    assert priorities() == [0, 0]
    lab.priority_class("high", 5)
    assert priorities() == [5, 0]
    lab.priority_class("high", 7)
    default = msgspec.convert({"metadata": {"name": "std"}, "value": 3, "globalDefault": True}, type(_class(lab)))
    assert (lab.add(default), priorities())[1] == [7, 3]


def _class(lab: Lab) -> object:
    from vcscheduler.objects import PriorityClass

    return lab.cluster.objects(PriorityClass)[0]


def test_a_bind_stays_assumed_until_the_cluster_shows_it() -> None:
    lab = Lab(BARE).queue("q").node("n1").job("a", tasks=1)
    lab.cluster.delay(Operation.BIND, 2)
    assert lab.cycle().binds == {"ns/a-w-0": "n1"}
    # A change of the pod from before the bind does not undo it.
    changed = member("a", "a-w-0", labels={"new": "label"})
    lab.add(changed).cache.begin_session()
    assert (task(lab, "a-w-0").status, task(lab, "a-w-0").node_name) == (BINDING, "n1")
    for _ in range(3):
        lab.cluster.step()
    lab.cache.begin_session()
    assert digests.cache(lab.cache) == digests.cache(digests.rebuilt(lab))
    assert task(lab, "a-w-0").status.text == "Running"


@pytest.mark.parametrize("gone", [False, True])
def test_a_refused_bind_is_forgotten_whether_the_pod_is_still_there_or_not(gone: bool) -> None:
    lab = Lab(BARE).queue("q").node("n1").job("a", tasks=2)
    lab.cluster.refuse(Operation.BIND, "ns/a-w-0", times=1)
    assert lab.cycle().binds == {"ns/a-w-1": "n1"}
    assert lab.pod_conditions()["ns/a-w-0"][0] == "SchedulerError"
    if gone:
        lab.cluster.delete(Pod, "ns/a-w-0")
    lab.cluster.step()
    lab.cache.begin_session()
    assert digests.cache(lab.cache) == digests.cache(digests.rebuilt(lab))


def test_our_own_eviction_is_not_taken_back_by_the_news_of_its_condition() -> None:
    lab = Lab(BARE).queue("q").node("n1").job("a", tasks=1, on="n1")
    ssn = lab.session()
    assert ssn.evict(task(lab, "a-w-0"), "shuffle") is None
    lab.close(ssn)
    running = member("a", "a-w-0", node="n1")
    lab.cache.updated(running, running)
    lab.cache.begin_session()
    assert task(lab, "a-w-0").status is RELEASING
    lab.cluster.step()
    assert taken(lab) == []


def test_an_eviction_that_the_cluster_refuses_is_forgotten() -> None:
    lab = Lab(BARE).queue("q").node("n1").job("a", tasks=1, on="n1")
    lab.cluster.refuse(Operation.EVICT, times=1)
    ssn = lab.session()
    assert ssn.evict(task(lab, "a-w-0"), "shuffle") is None
    assert task(lab, "a-w-0").status is RELEASING
    lab.close(ssn)
    lab.cache.begin_session()
    assert task(lab, "a-w-0").status.text == "Running"
    assert digests.cache(lab.cache) == digests.cache(digests.rebuilt(lab))


def test_a_node_that_goes_leaves_its_pods_homeless_until_they_are_heard_of_again() -> None:
    lab = Lab(BARE).queue("q").node("n1").job("a", tasks=1, on="n1")
    lab.cache.begin_session()
    lab.cluster.delete(Node, "n1")
    lab.cache.begin_session()
    assert (lab.cache.table.get("n1"), lab.cache.table.total.cpu) == (None, 0)
    lab.add(member("a", "a-w-0", node="n1", labels={"heard": "again"})).node("n1").cache.begin_session()
    assert digests.cache(lab.cache) == digests.cache(digests.rebuilt(lab))
    assert lab.cache.table.by_name["n1"].idle.cpu == 3000


def test_only_selected_nodes_are_taken() -> None:
    cluster = MemoryCluster(lambda: NOW)
    cache = SchedulerCache(cluster, lambda: NOW, node_selector=("disk:ssd", "zone:a", "broken"))
    for name, labels in (("n1", {"disk": "ssd"}), ("n2", {"zone": "a"}), ("n3", {"disk": "hdd"}), ("n4", {})):
        cluster.apply(builders.node(name, labels=labels))
    cache.apply_events()
    assert [n.name for n in cache.table] == ["n1", "n2"]


def test_attach_limits_are_room_on_the_node() -> None:
    lab = Lab(BARE).node("n1")
    drivers = [{"name": "x.io/d", "nodeID": "n1", "allocatable": {"count": 3}}, {"name": "y", "nodeID": "n1"}]
    lab.add(msgspec.convert({"metadata": {"name": "n1"}, "spec": {"drivers": drivers}}, CSINode))
    lab.cache.begin_session()
    allocatable = lab.cache.table.by_name["n1"].allocatable
    assert allocatable.get("attachable-volumes-csi-x.io-d") == 3
    assert allocatable.get("attachable-volumes-csi-y") == 2147483647


def test_a_status_that_cannot_be_written_is_tried_again() -> None:
    lab = Lab(BARE).queue("q").node("n1").job("a", tasks=1, on="n1", phase="Pending")
    lab.add(pod_group("a", phase="Inqueue"))
    lab.cluster.refuse(Operation.UPDATE_POD_GROUP, times=1)
    lab.cluster.refuse(Operation.UPDATE_QUEUE_STATUS, times=1)

    def written() -> tuple[str, object]:
        group, found = lab.cluster.get(PodGroup, "ns/a"), lab.cluster.get(Queue, "q")
        assert group is not None
        assert found is not None
        return group.status.phase, found.status.allocated.get("cpu")

    lab.cycle()
    assert written() == ("Inqueue", None)
    lab.cycle()
    assert written() == ("Running", "1")


def test_two_pods_of_one_name_do_not_both_count() -> None:
    lab = Lab(BARE).queue("q").node("n1")
    first = builders.pod("twin", cpu=1, nodeName="n1")
    second = builders.pod("twin", cpu=2, nodeName="n1")
    second.metadata.uid = "another"
    first.status.phase = second.status.phase = "Running"
    lab.cache.added(first)
    lab.cache.added(second)
    lab.cache.begin_session()
    assert lab.cache.table.by_name["n1"].table.n == 1
    lab.node("n1").cache.begin_session()
    assert lab.cache.table.by_name["n1"].used.cpu == 1000


def test_a_queue_that_changes_is_known_by_its_new_spec() -> None:
    lab = Lab(BARE).queue("q").job("a")
    lab.cache.begin_session()
    lab.add(queue("q", weight=7)).cache.begin_session()
    assert lab.cache.queues["q"].weight == 7
    assert list(lab.cache.jobs) == ["ns/a"]
