"""When cycles run: at once for what can be decided, in the rhythm of the period for the rest, else never."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from pathlib import Path

import msgspec
import pytest
from machine import Machine

import builders
import lab
from vcscheduler.cluster.faults import Operation
from vcscheduler.config import Arguments, ConfigurationFile, SchedulerOptions
from vcscheduler.framework.plugin import Plugin
from vcscheduler.framework.registry import Registry
from vcscheduler.framework.session import Session
from vcscheduler.objects import Node, Pod, PodGroup
from vcscheduler.server.wakeups import Urgency


def machine(**how: object) -> Machine:
    """With a queue and a node of 4 cores."""
    return Machine(**how).add(lab.queue("q"), builders.node("n1", cpu=4, memory="64Gi"))  # type: ignore[arg-type]


def with_job(m: Machine, name: str = "a", tasks: int = 1, cpu: object = 1, minimum: int | None = None) -> Machine:
    m.add(lab.pod_group(name, tasks if minimum is None else minimum))
    return m.add(*(lab.member(name, f"{name}-{i}", cpu=cpu) for i in range(tasks)))


def running(m: Machine) -> Machine:
    """A job whose pods run, and everything written that there is to write."""
    with_job(m)
    m.run(0.5)
    m.cluster.step()
    m.run(5)
    assert [pod.status.phase for pod in m.cluster.objects(Pod)] == ["Running"]
    return m


def test_a_new_pod_is_bound_within_milliseconds() -> None:
    m = running(machine())
    m.at(m.seconds + 10, lambda: with_job(m, "b"))
    began = m.run(10.1)
    assert began[0] == pytest.approx(m.seconds - 0.1 + 0.005, abs=0.002)
    assert "ns/b-0" in m.cluster.bindings()


def test_nothing_to_do_costs_nothing() -> None:
    m = running(machine())
    turns = m.turns
    assert m.run(3600) == []
    assert m.turns - turns <= 2


def test_what_waits_is_tried_again_every_period() -> None:
    m = with_job(machine(), cpu=8)
    began = m.run(10)
    assert 9 <= len(began) <= 11
    assert m.cluster.bindings() == {}


def test_a_pod_that_ends_makes_room_at_once_for_what_waits() -> None:
    m = running(machine())
    with_job(m, "b", cpu=4)
    m.run(0.1)
    pod = m.cluster.get(Pod, "ns/a-0")
    assert pod is not None
    done = msgspec.convert(msgspec.to_builtins(pod), Pod)
    done.status.phase = "Succeeded"
    at = m.seconds + 0.4
    m.at(at, lambda: m.add(done))
    began = m.run(0.5)
    assert began[0] == pytest.approx(at + 0.005, abs=0.002)
    assert "ns/b-0" in m.cluster.bindings()


def test_the_same_pod_ending_is_only_written_down_when_nothing_waits() -> None:
    m = running(machine())
    done = msgspec.convert(msgspec.to_builtins(m.cluster.get(Pod, "ns/a-0")), Pod)
    done.status.phase = "Succeeded"
    m.at(m.seconds + 10.3, lambda: m.add(done))
    began = m.run(20)
    assert len(began) <= 2
    group = m.cluster.get(PodGroup, "ns/a")
    assert group is not None
    assert group.status.phase == "Completed"


def test_heartbeats_of_nodes_ask_for_no_cycle() -> None:
    m = running(machine())
    node = m.cluster.get(Node, "n1")
    for beat in range(100):
        renewed = msgspec.convert(msgspec.to_builtins(node), Node)
        renewed.metadata.annotations = {"example.com/beat": str(beat)}
        m.at(m.seconds + beat * 10, lambda renewed=renewed: m.add(renewed))  # type: ignore[misc]
    assert m.run(1000) == []
    assert m.cache.events_waiting <= 1, "they are taken in all the same"


def test_pods_that_come_together_are_decided_together() -> None:
    m = running(machine())
    start = m.seconds + 1
    m.at(start, lambda: m.add(lab.pod_group("g", 3)))
    for i in range(3):
        m.at(start + 0.001 * i, lambda i=i: m.add(lab.member("g", f"g-{i}")))  # type: ignore[misc]
    began = m.run(1.05)
    assert len(began) == 1
    assert len(m.cluster.bindings()) == 3


def test_a_long_cycle_is_followed_by_a_rest() -> None:
    m = machine(cycle_seconds=0.4)
    for i in range(400):
        m.at(0.01 * i, lambda i=i: m.add(lab.pod_group(f"g{i}", 1)))  # type: ignore[misc]
    began = m.run(4)
    gaps = [b - a for a, b in itertools.pairwise(began)]
    assert min(gaps) >= 0.5 - 1e-9


def test_what_waits_is_written_about_once_a_period_however_many_cycles_run() -> None:
    m = with_job(machine(), cpu=8)
    for i in range(200):
        m.at(0.05 * i, lambda i=i: m.add(lab.pod_group(f"g{i}", 1, queue="q")))  # type: ignore[misc]
    began = m.run(10)
    assert len(began) > 100
    told = [e for e in m.cluster.events() if e.reason == "Unschedulable" and e.name == "a"]
    assert sum(e.count for e in told) <= 11
    assert sum(cycle.reported for cycle in m.cycles) <= 11


def test_the_last_state_is_written_even_if_it_came_between_two_reports() -> None:
    m = running(machine())
    m.at(m.seconds + 2.0, lambda: with_job(m, "b", cpu=8))
    m.at(m.seconds + 2.2, lambda: with_job(m, "c", tasks=2))
    m.at(m.seconds + 2.4, m.cluster.step)
    m.run(10)
    group = m.cluster.get(PodGroup, "ns/c")
    assert group is not None
    assert (group.status.phase, group.status.running) == ("Running", 2)
    stored = m.cluster.get(type(lab.queue("q")), "q")
    assert stored is not None
    assert stored.status.allocated["cpu"] == "3"


def test_an_admitted_group_without_pods_is_written_at_once() -> None:
    m = with_job(machine(), cpu=8)
    m.run(0.5)
    at = m.seconds + 0.1
    m.at(at, lambda: m.add(lab.pod_group("later", 1, min_resources={"cpu": 1})))
    began = m.run(0.2)
    assert not m.cycles[-1].reported
    assert began
    group = m.cluster.get(PodGroup, "ns/later")
    assert group is not None
    assert group.status.phase == "Inqueue"


def test_a_refused_binding_is_tried_again_with_the_period_not_in_a_loop() -> None:
    m = machine()
    m.cluster.refuse(Operation.BIND)
    with_job(m)
    began = m.run(5)
    assert 4 <= len(began) <= 7
    m.cluster.clear_faults()
    m.run(2)
    assert "ns/a-0" in m.cluster.bindings()


def test_a_failed_status_write_is_repeated_with_the_period() -> None:
    m = machine()
    m.cluster.refuse(Operation.UPDATE_POD_GROUP, times=3)
    with_job(m)
    m.run(0.5)
    m.cluster.step()
    m.run(10)
    group = m.cluster.get(PodGroup, "ns/a")
    assert group is not None
    assert group.status.phase == "Running"


@pytest.mark.parametrize("plugin", ["tdm", "rescheduling"])
def test_plugins_that_follow_the_clock_run_every_period(plugin: str) -> None:
    m = machine(config=lab.configuration([["priority", "gang"], ["predicates", plugin, "proportion"]]))
    m.run(0.1)
    assert 9 <= len(m.run(10)) <= 11


def test_a_replica_that_does_not_lead_takes_in_but_decides_nothing() -> None:
    m = machine(deciding=False)
    with_job(m)
    assert m.run(10) == []
    assert m.cache.events_waiting == 0
    assert len(m.cache.jobs) == 1
    m.loop.decide()
    m.run(0.1)
    assert "ns/a-0" in m.cluster.bindings()


# --- errors -----------------------------------------------------------------------------------------------------------


class _Broken(Plugin):
    """Fails at one of three places while told to."""

    name = "broken"
    where = ""

    def on_session_open(self, ssn: Session) -> None:
        if self.where == "open":
            raise ValueError("cannot open")
        ssn.add_job_order_fn(self.name, self.order)
        ssn.add_predicate_fn(self.name, self.order)

    def order(self, left: object, right: object) -> int:
        if self.where == "order":
            raise ValueError("cannot order")
        return 0

    def on_session_close(self, ssn: Session) -> None:
        if self.where == "close":
            raise ValueError("cannot close")


def broken_machine() -> Machine:
    registry = Registry.default()
    registry.add_plugin("broken", lambda arguments: _Broken(Arguments()))
    m = machine(registry=registry, config=lab.configuration([["broken", "gang"], ["predicates", "proportion"]]))
    m.add(lab.pod_group("a", 1), lab.pod_group("b", 1))
    return m.add(lab.member("a", "a-0"), lab.member("b", "b-0"))


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("open", "plugin broken failed to open: ValueError: cannot open"),
        ("order", "plugin broken failed in action enqueue: ValueError: cannot order"),
        ("close", "plugin broken failed to close: ValueError: cannot close"),
    ],
)
def test_an_error_is_told_with_its_plugin_and_the_loop_goes_on(
    where: str, told: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_Broken, "where", where)
    m = broken_machine()
    with caplog.at_level(logging.INFO, "vcscheduler"):
        m.run(60)
        errors = [record for record in caplog.records if "cycle failed" in record.getMessage()]
        assert 5 <= len(errors) <= 8, "back-off: 1, 2, 4 ... seconds"
        assert all(told in record.getMessage() for record in errors)
        assert [record.exc_info is not None for record in errors[:3]] == [True, False, False]
        monkeypatch.setattr(_Broken, "where", "")
        m.run(60)
        assert any("cycles work again" in record.getMessage() for record in caplog.records)
    assert sorted(m.cluster.bindings()) == ["ns/a-0", "ns/b-0"]


def test_nothing_planned_stays_behind_when_a_plugin_fails_to_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Broken, "where", "close")
    m = broken_machine().add(lab.pod_group("big", 2), lab.member("big", "big-0", cpu=3), lab.member("big", "big-1"))
    m.run(30)
    node = m.cache.table.get("n1")
    assert node is not None
    assert node.used.cpu == 2000
    assert m.cache.jobs["ns/big"].counts[0] == 2


# --- configuration ----------------------------------------------------------------------------------------------------

GOOD = 'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: proportion}]}]\n'


def test_a_changed_file_is_used_and_a_bad_one_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "volcano-scheduler.conf"
    path.write_text(GOOD)
    registry = Registry.default()
    file = ConfigurationFile(path, known_actions=registry.action_names, known_plugins=registry.plugin_names)
    m = running(machine(file=file))
    assert m.scheduler.configuration.actions == ("enqueue", "allocate")
    path.write_text(GOOD.replace("allocate", "alocate"))
    m.run(10)
    path.write_text(GOOD.replace("enqueue, allocate", "enqueue, allocate, backfill"))
    began = m.run(10)
    assert m.scheduler.configuration.actions == ("enqueue", "allocate", "backfill")
    assert began, "a new configuration may decide otherwise"
    bad = [record for record in caplog.records if "stays as it was" in record.getMessage()]
    assert len(bad) == 1
    assert "alocate" in bad[0].getMessage()
    assert m.readings == [False, True]


def test_a_file_that_names_what_cannot_run_is_not_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "volcano-scheduler.conf"
    path.write_text(GOOD)
    registry = Registry.default()
    registry.add_plugin("odd", _cannot_be_built)
    file = ConfigurationFile(path, known_actions=registry.action_names, known_plugins=registry.plugin_names)
    m = running(machine(file=file, registry=registry))
    path.write_text(GOOD.replace("name: gang", "name: odd"))
    m.run(5)
    assert next(p.name for p in m.scheduler.configuration.plugins()) == "gang"
    assert m.readings == [False]
    assert "plugin odd: needs an argument" in caplog.text


def _cannot_be_built(arguments: Arguments) -> Plugin:
    from vcscheduler.framework.registry import PluginError

    raise PluginError("plugin odd: needs an argument")


# --- threads ----------------------------------------------------------------------------------------------------------


def test_in_real_time_a_ring_wakes_the_loop_and_stop_ends_it() -> None:
    from vcscheduler.framework.scheduler import Scheduler
    from vcscheduler.server.cache import LiveCache
    from vcscheduler.server.loop import SchedulingLoop
    from vcscheduler.server.wakeups import Bell

    m = machine()
    bell = Bell()
    options = SchedulerOptions(leader_elect=False)
    cache = LiveCache(m.cluster, m.now, options, bell, measure=False)
    loop = SchedulingLoop(Scheduler(cache, m.scheduler.configuration, options, clock=m.now), cache, bell)
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    try:
        assert bell.call(lambda: threading.current_thread()).result(10) is thread
        assert loop.inspect(lambda ssn: len(ssn.queues)).result(10) == 1
        before = loop.cycles
        time.sleep(0.3)
        assert loop.cycles - before <= 1, "idle"
        m.add(lab.pod_group("a", 1), lab.member("a", "a-0"))
        due = time.monotonic() + 10
        while "ns/a-0" not in m.cluster.bindings() and time.monotonic() < due:
            time.sleep(0.01)
        assert "ns/a-0" in m.cluster.bindings()
    finally:
        loop.stop()
        thread.join(10)
    assert not thread.is_alive()
    assert bell.call(lambda: 1).cancelled()


def test_a_bell_that_was_silenced_rings_again() -> None:
    m = machine()
    m.run(1)
    assert m.bell.urgency is Urgency.NONE
    m.bell.ring(Urgency.NOTED)
    m.bell.ring(Urgency.WORK)
    m.bell.ring(Urgency.STATUS)
    assert m.bell.take() is Urgency.WORK
    assert m.bell.take() is Urgency.NONE
