"""The cache of a running process: what it makes of echoes, and that what it holds back does not get lost."""

from __future__ import annotations

from copy import copy

import msgspec
import pytest
from machine import Machine

import builders
import lab
from vcscheduler.objects import KubernetesObject, Node, Pod, PodGroup
from vcscheduler.server.wakeups import Urgency, urgency_of

NAMES = ("volcano",)


def machine() -> Machine:
    return Machine().add(lab.queue("q"), builders.node("n1", cpu=4, memory="64Gi"))


def stored(m: Machine, name: str) -> PodGroup:
    found = m.cluster.get(PodGroup, f"ns/{name}")
    assert found is not None
    return found


def changed(obj: KubernetesObject, change: str) -> KubernetesObject:
    """A copy with one thing changed, as ``path=value``."""
    plain = msgspec.to_builtins(obj)
    path, _, value = change.partition("=")
    *way, last = path.split("/")
    at = plain
    for step in way:
        at = at.setdefault(step, {})
    at[last] = msgspec.json.decode(value) if value else {}
    return msgspec.convert(plain, type(obj))


PENDING = lab.member("a", "a-0")
RUNNING = lab.member("a", "a-0", node="n1")
FOREIGN = changed(PENDING, 'spec/schedulerName="default-scheduler"')
GROUP = lab.pod_group("a", 2)
NODE = builders.node("n1")
QUEUE = lab.queue("q")


@pytest.mark.parametrize(
    ("old", "new", "urgency"),
    [
        (None, PENDING, Urgency.WORK),
        (None, FOREIGN, Urgency.NOTED),
        (None, lab.member("", "alone"), Urgency.NOTED),
        (lab.member("", "a-0"), PENDING, Urgency.WORK),
        (None, changed(PENDING, 'spec/schedulingGates=[{"name":"g"}]'), Urgency.STATUS),
        (changed(PENDING, 'spec/schedulingGates=[{"name":"g"}]'), PENDING, Urgency.WORK),
        (PENDING, changed(PENDING, 'status/conditions=[{"type":"PodScheduled"}]'), Urgency.NOTED),
        (PENDING, changed(PENDING, 'metadata/labels={"a":"b"}'), Urgency.WORK),
        (PENDING, changed(PENDING, 'metadata/deletionTimestamp="2026-03-01T12:00:00Z"'), Urgency.STATUS),
        (PENDING, RUNNING, Urgency.STATUS),
        (None, RUNNING, Urgency.STATUS),
        (RUNNING, changed(RUNNING, 'status/conditions=[{"type":"Ready"}]'), Urgency.NOTED),
        (RUNNING, changed(RUNNING, 'metadata/labels={"a":"b"}'), Urgency.ROOM),
        (RUNNING, changed(RUNNING, 'metadata/deletionTimestamp="2026-03-01T12:00:00Z"'), Urgency.STATUS),
        (RUNNING, changed(RUNNING, 'status/phase="Failed"'), Urgency.ROOM),
        (RUNNING, None, Urgency.ROOM),
        (changed(RUNNING, 'status/phase="Succeeded"'), None, Urgency.NOTED),
        (PENDING, None, Urgency.STATUS),
        (None, GROUP, Urgency.WORK),
        (GROUP, None, Urgency.STATUS),
        (GROUP, changed(GROUP, "spec/minMember=3"), Urgency.WORK),
        (GROUP, changed(GROUP, 'metadata/annotations={"a":"b"}'), Urgency.WORK),
        (GROUP, changed(GROUP, 'status/phase="Inqueue"'), Urgency.STATUS),
        (GROUP, changed(GROUP, 'metadata/resourceVersion="7"'), Urgency.NOTED),
        (None, NODE, Urgency.ROOM),
        (NODE, None, Urgency.STATUS),
        (NODE, changed(NODE, 'metadata/annotations={"a":"b"}'), Urgency.NOTED),
        (NODE, changed(NODE, 'metadata/annotations={"volcano.sh/a":"b"}'), Urgency.ROOM),
        (NODE, changed(NODE, 'status/conditions=[{"type":"Ready"}]'), Urgency.NOTED),
        (NODE, changed(NODE, 'status/allocatable={"cpu":"9"}'), Urgency.ROOM),
        (NODE, changed(NODE, "spec/unschedulable=true"), Urgency.ROOM),
        (None, QUEUE, Urgency.ROOM),
        (QUEUE, changed(QUEUE, 'status/allocated={"cpu":"1"}'), Urgency.NOTED),
        (QUEUE, changed(QUEUE, 'status/state="Closed"'), Urgency.ROOM),
        (QUEUE, changed(QUEUE, "spec/weight=5"), Urgency.ROOM),
    ],
)
def test_what_a_change_asks_for(old: KubernetesObject | None, new: KubernetesObject | None, urgency: Urgency) -> None:
    assert urgency_of(old, new, NAMES) is urgency


def test_the_echo_of_our_own_status_asks_for_nothing_although_its_times_are_cut() -> None:
    m = machine().add(lab.pod_group("a", 2), lab.member("a", "a-0"))
    m.run(0.5)
    ours = stored(m, "a")
    assert ours.status.conditions, "its gang cannot run"
    echo = copy(ours)
    echo.status = copy(ours.status)
    echo.status.conditions = [copy(c) for c in ours.status.conditions]
    for condition in echo.status.conditions:
        condition.last_transition_time = None
        condition.transition_id = "another"
    echo.metadata = copy(ours.metadata)
    echo.metadata.resource_version = "12345"
    m.bell.take()
    m.cache.updated(ours, echo)
    assert m.bell.urgency <= Urgency.NOTED
    m.cache.apply_events()
    known = m.cache.jobs["ns/a"].pod_group
    assert known is not None
    assert known.metadata.resource_version == "12345"
    assert known.status.conditions[0].message == ours.status.conditions[0].message


def test_the_echo_of_an_earlier_write_does_not_undo_what_was_worked_out_since() -> None:
    m = machine().add(lab.pod_group("a", 2), lab.member("a", "a-0"))
    m.run(0.5)
    earlier = stored(m, "a")
    m.at(m.seconds + 0.1, lambda: m.add(lab.member("a", "a-1")))
    m.run(0.2)
    assert not m.cycles[-1].reported
    job = m.cache.jobs["ns/a"]
    assert job.counts[0] == 0, "it is bound"
    worked_out = job.phase, job.pod_group
    assert stored(m, "a") is earlier, "not written yet"
    m.cache.updated(earlier, changed(earlier, "metadata/generation=9"))
    m.cache.apply_events()
    assert job.pod_group is not None
    assert job.phase == worked_out[0]
    assert job.pod_group.metadata.generation == 9
    m.cluster.step()
    m.run(5)
    assert (stored(m, "a").status.phase, stored(m, "a").status.running) == ("Running", 2)


def test_somebody_elses_change_wins_over_what_was_held_back() -> None:
    m = machine().add(lab.pod_group("a", 1), lab.member("a", "a-0"))
    m.run(0.5)
    m.at(m.seconds + 0.1, lambda: m.add(lab.pod_group("b", 1), lab.member("b", "b-0")))
    m.run(0.2)
    m.add(changed(stored(m, "b"), "spec/minMember=2"))
    m.run(3)
    assert m.cache.jobs["ns/b"].min_available == 2
    assert stored(m, "b").spec.min_member == 2
    assert not m.cache.held_back


def test_a_group_that_is_deleted_leaves_nothing_to_be_written() -> None:
    m = machine().add(lab.pod_group("a", 1), lab.member("a", "a-0"))
    m.run(0.5)
    m.at(m.seconds + 0.1, lambda: m.add(lab.pod_group("b", 1), lab.member("b", "b-0")))
    m.run(0.2)
    m.cluster.delete(PodGroup, "ns/b")
    m.cluster.delete(Pod, "ns/b-0")
    m.run(5)
    assert m.cluster.get(PodGroup, "ns/b") is None
    assert "ns/b" not in m.cache._unwritten
    assert "ns/b" not in m.cache._sent


def test_a_node_that_goes_is_no_reason_to_hurry() -> None:
    m = machine()
    m.run(1)
    m.at(m.seconds + 3, lambda: m.cluster.delete(Node, "n1"))
    assert len(m.run(10)) <= 1
