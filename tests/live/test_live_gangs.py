"""Gangs on a real API server, from PodGroup to running pods."""

from __future__ import annotations

from collections import Counter

from live.place import Place


def test_a_gang_of_50_is_bound_whole(place: Place) -> None:
    place.nodes(10)
    with place.connected() as conductor:
        conductor.sync()
        place.gang("training", 50)
        conductor.cycles_until(lambda: place.status("training").get("running") == 50, "the gang to run")
    bound = place.bound()
    assert len(bound) == 50
    assert set(bound.values()) <= {f"n{number:04d}" for number in range(10)}
    status = place.status("training")
    assert status["phase"] == "Running"
    told = {each["type"]: each["reason"] for each in status["conditions"]}
    assert told["Scheduled"] == "tasks in gang are ready to be scheduled"
    events = {each["involvedObject"]["name"]: each for each in place.events() if each["reason"] == "Scheduled"}
    assert events["training-7"]["message"] == f"Successfully assigned default/training-7 to {bound['training-7']}"
    assert events["training-7"]["source"]["component"] == "volcano"
    assert events["training"]["message"] == "pod group is ready"


def test_a_gang_of_1000_is_bound_whole_or_not_at_all(place: Place) -> None:
    place.nodes(20, pods=60)
    with place.connected() as conductor:
        conductor.sync()
        place.gang("large", 1000)
        place.gang("too-large", 300)
        conductor.cycles_until(lambda: place.status("large").get("running") == 1000, "the gang to run", timeout=60.0)
        assert conductor.cluster.settled(10.0)
        assert conductor.cluster.counts.failed == 0
    bound = place.bound()
    assert len(bound) == 1000
    assert all(name.startswith("large-") for name in bound)
    assert max(Counter(bound.values()).values()) <= 60
    message = place.status("too-large")["conditions"][0]["message"]
    assert "tasks in gang unschedulable: pod group is not ready" in message
