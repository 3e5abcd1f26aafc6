"""Gangs on a real API server, from PodGroup to running pods."""

from __future__ import annotations

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
    assert [(each["type"], each["reason"]) for each in status["conditions"]] == [
        ("Scheduled", "tasks in gang are ready to be scheduled")
    ]
    events = {each["involvedObject"]["name"]: each for each in place.events() if each["reason"] == "Scheduled"}
    assert events["training-7"]["message"] == f"Successfully assigned default/training-7 to {bound['training-7']}"
    assert events["training-7"]["source"]["component"] == "volcano"
    assert events["training"]["message"] == "pod group is ready"
