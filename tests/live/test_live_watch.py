"""Listing and watching on a real API server: in pages, through cuts, with objects that mean no good."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from live import api
from live.api import wait_until
from live.place import Place
from live.proxy import FaultProxy
from live.sink import Notebook
from vcscheduler.cluster.live import LiveCluster, LiveOptions, WatchTiming
from vcscheduler.objects import Node, Pod, PodGroup, Queue

QUICK = WatchTiming(shortest=1.0, longest=2.0, audit=1800.0, first_retry=0.02, last_retry=0.2)


@contextmanager
def watching(
    place: Place, server: str = "", timing: WatchTiming = QUICK, streaming: bool = True
) -> Iterator[tuple[LiveCluster, Notebook]]:
    sink = Notebook()
    cluster = LiveCluster(place.access(server=server), LiveOptions(timing=timing))
    cluster._features.streaming_lists = streaming
    cluster.start(sink)
    try:
        cluster.wait_for_sync(30.0)
        yield cluster, sink
    finally:
        cluster.stop()


@pytest.mark.parametrize("streaming", [True, False])
def test_everything_is_told_before_the_first_decision_and_in_order(place: Place, streaming: bool) -> None:
    place.nodes(30)
    place.api.create_many(place.groups_path, [api.pod_group(f"g{number:04d}", 1) for number in range(1100)])
    place.api.create_many(place.pods_path, [api.pod(f"p{number}", f"g{number:04d}") for number in range(20)])
    with watching(place, streaming=streaming) as (cluster, sink):
        assert [what for what, _ in sink.told] == ["added"] * len(sink.told)
        kinds = [type(obj) for _, obj in sink.told]
        assert (kinds.count(Node), kinds.count(PodGroup), kinds.count(Pod)) == (30, 1100, 20)
        assert kinds.index(Queue) < kinds.index(Node) < kinds.index(PodGroup) < kinds.index(Pod)
        names = [obj.name for _, obj in sink.told if isinstance(obj, PodGroup)]
        assert names == sorted(names)
        place.api.delete(f"{place.groups_path}/g0007")
        place.api.create(place.groups_path, api.pod_group("late", 1))
        wait_until(lambda: sink.story(PodGroup)[1100:] == [("deleted", "g0007"), ("added", "late")], "the changes")
        assert cluster.relists == len(cluster._reflectors)


def test_watches_are_renewed_without_anything_told_twice(place: Place) -> None:
    with watching(place) as (cluster, sink):
        lists = cluster.relists
        for number in range(40):
            place.api.create(place.groups_path, api.pod_group(f"g{number}", 1))
            if number % 10 == 0:
                wait_until(lambda: len(sink.story(PodGroup)) == number + 1, "the group", timeout=5.0)  # noqa: B023
        wait_until(lambda: len(sink.story(PodGroup)) == 40, "all groups")
        assert sink.story(PodGroup) == [("added", f"g{number}") for number in range(40)]
        assert cluster.relists == lists


def test_what_was_missed_is_told_after_a_version_that_is_too_old(place: Place) -> None:
    proxy = FaultProxy(place.plane.url, place.plane.ca, seed=1)
    proxy.start()
    try:
        place.api.create_many(place.groups_path, [api.pod_group(f"g{number}", 1) for number in range(5)])
        with watching(place, server=proxy.url) as (cluster, sink):
            lists = cluster.relists
            proxy.hold()
            place.api.delete(f"{place.groups_path}/g1")
            place.api.merge(f"{place.groups_path}/g2", {"spec": {"minMember": 7}})
            place.api.create(place.groups_path, api.pod_group("g9", 1))
            proxy.release(expired=True)
            wait_until(lambda: len(sink.story(PodGroup)) == 8, "the difference")
            assert sink.story(PodGroup)[5:] == [("deleted", "g1"), ("updated", "g2"), ("added", "g9")]
            assert cluster.relists > lists
            group = next(each for each in cluster.objects(PodGroup) if each.name == "g2")
            assert group.spec.min_member == 7
    finally:
        proxy.stop()


def test_heartbeats_of_nodes_are_not_told(place: Place) -> None:
    place.nodes(1)
    with watching(place) as (cluster, sink):
        wait_until(lambda: bool(cluster.objects(Node)[0].status.conditions), "kwok to make the node ready")
        told = len(sink.story(Node))
        status = place.api.get("/api/v1/nodes/n0000")["status"]
        for second in range(10, 20):
            status["conditions"][0]["lastHeartbeatTime"] = f"2026-11-29T00:00:{second}Z"
            place.api.merge("/api/v1/nodes/n0000/status", {"status": {"conditions": status["conditions"]}})
        place.api.merge("/api/v1/nodes/n0000", {"spec": {"unschedulable": True}})
        wait_until(lambda: cluster.objects(Node)[0].spec.unschedulable, "the cordon")
        assert len(sink.story(Node)) == told + 1


def test_objects_that_mean_no_good_change_nothing_but_themselves(place: Place) -> None:
    place.nodes(2)
    long = "x" * 63
    hostile = [
        api.pod("-".join(["a" * 60] * 4), "good", labels={"a": long, f"{long}.example.com/{long}": ""}),
        api.pod("big", "good", annotations={"a": "\u202e\n\t\"'`$(id)" + "\U0001f600" * 40_000}),
        api.pod("odd-group", "../../../etc/passwd"),
        api.pod("huge-group", "g" * 100_000),
        api.pod("priority", "good", annotations={"volcano.sh/task-priority": "9" * 400}),
        api.pod("index", "good", annotations={"volcano.sh/task-index": "-1e999", "volcano.sh/task-spec": "{{.}}"}),
        api.pod("0", "good", nodeSelector={"kubernetes.io/hostname": "n0001"}),
        api.pod("gated", "good", schedulingGates=[{"name": "example.com/never"}]),
    ]
    with place.connected() as conductor:
        conductor.sync()
        place.api.create(place.groups_path, api.pod_group("good", 5))
        place.api.create_many(place.pods_path, hostile)
        place.gang("plain", 10)
        conductor.cycles_until(lambda: len(place.bound()) == 15, "all that can run to run")
        assert conductor.cluster.counts.failed == 0
    assert {"odd-group", "huge-group", "gated"}.isdisjoint(place.bound())
    assert place.bound()["0"] == "n0001"
