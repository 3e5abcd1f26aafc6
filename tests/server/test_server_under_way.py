"""A status is not written while the pods that were bound a moment ago are about to change it."""

from __future__ import annotations

from machine import Machine

import builders
import lab
from vcscheduler.objects import PodGroup


class Counted(Machine):
    """Keeps every status of a PodGroup that was written, with the time."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[float, str, int]] = []
        store = self.cluster.update_pod_group

        def update(pod_group: PodGroup) -> PodGroup:
            self.written.append((round(self.seconds, 1), pod_group.status.phase, pod_group.status.running))
            return store(pod_group)

        self.cluster.update_pod_group = update  # type: ignore[method-assign]
        self.add(lab.queue("q"), builders.node("n1", cpu=8, memory="64Gi"))
        self.add(lab.pod_group("a", 2), lab.member("a", "a-0"), lab.member("a", "a-1"))

    def bound_without_running(self) -> None:
        for number in range(2):
            pod = lab.member("a", f"a-{number}", node="n1")
            pod.status.phase = "Pending"
            self.add(pod)

    def told(self) -> list[str]:
        return [each.reason for each in self.cluster.events() if each.kind == "PodGroup"]


def test_a_gang_that_runs_soon_is_written_once() -> None:
    m = Counted()
    m.at(0.3, m.cluster.step)
    m.run(6.0)
    assert [(phase, running) for _, phase, running in m.written] == [("Running", 2)]
    assert m.told() == ["Scheduled"]


def test_nothing_is_written_while_bindings_wait_to_be_sent() -> None:
    m = Counted()
    m.run(20.0)
    assert (m.written, m.told()) == ([], [])


def test_a_gang_whose_pods_take_their_time_to_start_is_written_after_two_reports() -> None:
    m = Counted()
    m.at(0.3, m.bound_without_running)
    m.run(6.0)
    (at, phase, running), *more = m.written
    assert (phase, running, more) == ("Running", 0, [])
    assert 2.0 <= at <= 4.0
    m.cluster.step()
    m.run(3.0)
    assert m.written[-1][1:] == ("Running", 2)
    assert set(m.told()) == {"Scheduled"}


def test_an_admission_is_written_at_once_for_a_controller_waits_for_it() -> None:
    m = Machine().add(lab.queue("q"), builders.node("n1", cpu=8, memory="64Gi"))
    group = lab.pod_group("a", 2)
    group.status.phase = "Pending"
    m.add(group)
    m.run(0.1)
    found = m.cluster.get(PodGroup, "ns/a")
    assert found is not None
    assert found.status.phase == "Inqueue"
