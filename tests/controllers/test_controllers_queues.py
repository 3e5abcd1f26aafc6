"""The states of queues (spec 07 §8.7)."""

from __future__ import annotations

import pytest

from governed import Governed
from lab import pod_group
from vcscheduler.controllers.queues import next_state
from vcscheduler.objects import Command, PodGroup, Queue

QUEUE = "{{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {{name: {}}}, spec: {{weight: 1{}}}}}"


def governed(**parents: str) -> Governed:
    """Queues by name with their parent, "" for none."""
    place = Governed()
    for name, parent in parents.items():
        place.apply(QUEUE.format(name, f", parent: {parent}" if parent else ""))
    place.turn()
    return place


def order(place: Governed, action: str, queue: str) -> None:
    found = place.cluster.get(Queue, queue)
    assert found is not None
    place.command(action, found)
    place.turn()


@pytest.mark.parametrize(
    ("state", "action", "used", "expected"),
    [
        ("", "SyncQueue", False, "Open"),
        ("Open", "SyncQueue", True, "Open"),
        ("Closing", "SyncQueue", True, "Closing"),
        ("Closing", "SyncQueue", False, "Closed"),
        ("Closed", "SyncQueue", True, "Closed"),
        ("Unknown", "SyncQueue", True, "Unknown"),
        ("Open", "CloseQueue", True, "Closing"),
        ("Open", "CloseQueue", False, "Closed"),
        ("Closing", "CloseQueue", True, "Closing"),
        ("Closed", "CloseQueue", True, "Closed"),
        ("Unknown", "CloseQueue", False, "Closed"),
        ("Closed", "OpenQueue", True, "Open"),
        ("Closing", "OpenQueue", True, "Open"),
        ("Unknown", "OpenQueue", False, "Open"),
    ],
)
def test_which_state_follows(state: str, action: str, used: bool, expected: str) -> None:
    assert next_state(state, action, used) == expected


def test_a_new_queue_is_opened_below_the_root() -> None:
    place = governed(gold="")
    found = place.cluster.get(Queue, "gold")
    assert found is not None
    assert (found.status.state, found.spec.parent) == ("Open", "root")
    root = place.cluster.get(Queue, "root")
    assert root is not None
    assert (root.status.state, root.spec.parent) == ("Open", "")


def test_a_queue_in_use_closes_when_its_last_group_is_gone() -> None:
    """W8.6"""
    place = governed(gold="")
    place.cluster.create(pod_group("g", queue="gold"))
    order(place, "CloseQueue", "gold")
    assert place.state("gold") == "Closing"
    assert place.cluster.objects(Command) == []
    (group,) = place.cluster.objects(PodGroup)
    place.cluster.delete(PodGroup, group.key)
    place.turn()
    assert place.state("gold") == "Closed"
    order(place, "OpenQueue", "gold")
    assert place.state("gold") == "Open"


def test_children_close_and_open_with_their_parent_but_for_those_closed_before() -> None:
    place = governed(top="", a="top", b="top", deep="a")
    order(place, "CloseQueue", "b")
    order(place, "CloseQueue", "top")
    assert {name: place.state(name) for name in ("top", "a", "b", "deep")} == dict.fromkeys(
        ("top", "a", "b", "deep"), "Closed"
    )
    order(place, "OpenQueue", "top")
    assert {name: place.state(name) for name in ("top", "a", "b", "deep")} == {
        "top": "Open",
        "a": "Open",
        "b": "Closed",
        "deep": "Open",
    }


def test_what_is_refused_is_told_of() -> None:
    place = governed(top="", a="top")
    order(place, "CloseQueue", "root")
    assert place.state("root") == "Open"
    order(place, "CloseQueue", "top")
    order(place, "OpenQueue", "a")
    assert place.state("a") == "Closed"
    assert [(each.name, each.message) for each in place.cluster.events()] == [
        ("root", "queue root cannot be closed"),
        ("a", "queue a cannot be opened while its parent top is Closed"),
    ]
