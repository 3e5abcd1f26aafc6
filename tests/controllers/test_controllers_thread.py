"""Controllers in a thread of their own."""

from __future__ import annotations

import time
from collections.abc import Callable

import builders
from governed import Governed
from vcscheduler.controllers import ControllerManager
from vcscheduler.objects import Pod


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def has_group(place: Governed, name: str) -> bool:
    pod = place.cluster.get(Pod, f"ns/{name}")
    return pod is not None and "scheduling.k8s.io/group-name" in pod.metadata.annotations


def test_they_act_as_soon_as_something_happens_and_stop_when_told() -> None:
    place = Governed()
    place.turn()
    place.manager.start()
    place.cluster.create(builders.pod("a", schedulerName="volcano"))
    wait_until(lambda: has_group(place, "a"))
    place.manager.stop()
    place.cluster.create(builders.pod("b", schedulerName="volcano"))
    assert not has_group(place, "b")


def test_an_error_in_one_turn_is_survived() -> None:
    place = Governed()
    place.turn()
    failures = [RuntimeError("a mistake")]
    write = place.cluster.write

    def broken(writes):  # type: ignore[no-untyped-def]
        if failures:
            raise failures.pop()
        return write(writes)

    place.cluster.write = broken  # type: ignore[method-assign]
    manager: ControllerManager = place.manager
    manager.start()
    place.cluster.create(builders.pod("a", schedulerName="volcano"))
    wait_until(lambda: has_group(place, "a"))
    manager.stop()
    assert failures == []
