"""A gang whose pods are still being created: what is said of it would be out of date with the next pod."""

from __future__ import annotations

from machine import Machine

import builders
import lab
from vcscheduler.cluster.memory import RecordedEvent
from vcscheduler.objects import Pod


def machine() -> Machine:
    return Machine().add(lab.queue("q"), builders.node("n1", cpu=64, memory="640Gi", pods=100))


def told(m: Machine) -> list[RecordedEvent]:
    return [each for each in m.cluster.events() if each.reason in ("FailedScheduling", "Unschedulable")]


def conditions(m: Machine) -> int:
    return sum(bool(pod.status.conditions) for pod in m.cluster.objects(Pod))


def arriving(m: Machine, pods: int, every: float) -> Machine:
    for number in range(pods):
        m.at(number * every, lambda number=number: m.add(lab.member("a", f"a-{number}")))
    return m


def test_nothing_is_written_to_pods_of_a_gang_that_still_arrives() -> None:
    m = arriving(machine().add(lab.pod_group("a", 30)), 20, 0.2)
    m.run(4.0)
    assert (told(m), conditions(m)) == ([], 0)
    assert len(m.cycles) > 10


def test_a_gang_that_stays_incomplete_is_told_of_once_no_more_pods_come() -> None:
    m = arriving(machine().add(lab.pod_group("a", 30)), 20, 0.2)
    m.run(8.0)
    assert conditions(m) == 20
    assert [each.count for each in told(m) if each.reason == "FailedScheduling"] == [1] * 20
    assert {each.message.partition(":")[0] for each in told(m) if each.kind == "PodGroup"} == {
        "20/20 tasks in gang unschedulable"
    }


def test_a_gang_that_never_stops_arriving_is_told_of_at_last() -> None:
    m = arriving(machine().add(lab.pod_group("a", 90)), 60, 0.5)
    m.run(8.0)
    assert conditions(m) == 0
    m.run(8.0)
    assert conditions(m) > 20


def test_a_whole_gang_without_room_is_told_of_at_once() -> None:
    m = machine().add(lab.pod_group("a", 3), *(lab.member("a", f"a-{number}", cpu=40) for number in range(3)))
    m.run(0.5)
    assert conditions(m) == 3
