"""A plugin that fails names itself; when told to, the scheduler goes on without it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from vcscheduler.cache.cache import SchedulerCache
from vcscheduler.cluster.memory import MemoryCluster
from vcscheduler.config import parse_configuration
from vcscheduler.config.options import SchedulerOptions
from vcscheduler.framework.plugin import Plugin
from vcscheduler.framework.registry import PluginError, Registry
from vcscheduler.framework.scheduler import Scheduler
from vcscheduler.framework.session import Session
from vcscheduler.objects import from_value

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONFIGURATION = """\
actions: "allocate"
tiers:
- plugins:
  - name: gang
  - name: brittle
  - name: predicates
"""


class Brittle(Plugin):
    name = "brittle"

    def on_session_open(self, ssn: Session) -> None:
        ssn.add_overused_fn(self.name, lambda queue: bool(1 // 0))


class Leaving(Plugin):
    name = "brittle"

    def on_session_open(self, ssn: Session) -> None:
        raise SystemExit(0)


def scored(answer: Callable[[], float]) -> type[Plugin]:
    class Scored(Plugin):
        name = "brittle"

        def on_session_open(self, ssn: Session) -> None:
            ssn.add_node_order_fn(self.name, lambda task, node: answer())

    return Scored


def scheduler(options: SchedulerOptions, plugin: type[Plugin] = Brittle) -> tuple[Scheduler, MemoryCluster]:
    registry = Registry()
    registry.add_plugin("brittle", plugin)
    cluster = MemoryCluster(lambda: NOW)
    for value in (
        *(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name},
                "status": {"allocatable": {"cpu": "4", "memory": "4Gi", "pods": "9"}},
            }
            for name in ("n1", "n2")
        ),
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "q"},
            "spec": {"weight": 1},
            "status": {"state": "Open"},
        },
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "g", "namespace": "ns"},
            "spec": {"minMember": 1, "queue": "q"},
            "status": {"phase": "Inqueue"},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "p",
                "namespace": "ns",
                "uid": "p",
                "annotations": {"scheduling.k8s.io/group-name": "g"},
            },
            "spec": {
                "schedulerName": "volcano",
                "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
            },
            "status": {"phase": "Pending"},
        },
    ):
        cluster.apply(from_value(value))
    parsed = parse_configuration(CONFIGURATION, "test", known_actions=registry.action_names)
    cache = SchedulerCache(cluster, lambda: NOW)
    return Scheduler(cache, parsed.configuration, options, registry, lambda: NOW), cluster


def test_a_failing_plugin_is_named_and_nothing_is_bound() -> None:
    subject, cluster = scheduler(SchedulerOptions())
    with pytest.raises(PluginError, match=r"^plugin brittle failed in action allocate: ZeroDivisionError") as caught:
        subject.run_once()
    assert caught.value.plugin == "brittle"
    assert cluster.bindings() == {}


def test_a_failing_plugin_may_be_left_out_of_the_cycle() -> None:
    subject, cluster = scheduler(SchedulerOptions(disable_failing_plugins=True))
    subject.run_once()
    assert cluster.bindings() == {"ns/p": "n1"}


def test_a_plugin_that_ends_the_process_is_a_failing_one() -> None:
    subject, _ = scheduler(SchedulerOptions(), Leaving)
    with pytest.raises(PluginError, match=r"^plugin brittle failed to open: SystemExit: 0$"):
        subject.run_once()


def test_a_node_order_function_that_fails_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    subject, cluster = scheduler(SchedulerOptions(), scored(lambda: {}["x"]))
    subject.run_once()
    assert cluster.bindings() == {"ns/p": "n1"}
    assert caplog.messages == [
        "plugin brittle: its node order function failed: KeyError: 'x'; its nodes get no node-order score"
    ]


def test_a_score_that_is_no_number_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    subject, cluster = scheduler(SchedulerOptions(), scored(lambda: float("nan")))
    subject.run_once()
    assert cluster.bindings() == {}
    assert caplog.messages == [
        "plugin brittle: its node order function gives NaN for node n1; such a node is never chosen"
    ]


@pytest.mark.parametrize(
    ("register", "says"),
    [
        (lambda ssn: ssn.add_overused_fn("brittle", lambda: True), "with 1 arguments: too many positional"),
        (lambda ssn: ssn.add_job_order_fn("brittle", lambda job: 0), "with 2 arguments: too many positional"),
        (lambda ssn: ssn.add_predicate_fn("brittle", lambda task, node, state: None), "with 2 arguments: missing"),
        (lambda ssn: ssn.add_node_order_fn("brittle", lambda task: 0.0), "with 2 arguments: too many positional"),
    ],
)
def test_a_function_that_cannot_be_called_as_it_will_be_is_refused(
    register: Callable[[Session], None], says: str
) -> None:
    class Wrong(Plugin):
        name = "brittle"

        def on_session_open(self, ssn: Session) -> None:
            register(ssn)

    subject, _ = scheduler(SchedulerOptions(), Wrong)
    with pytest.raises(PluginError, match=f"^plugin brittle failed to open: TypeError: .*{says}"):
        subject.run_once()


def test_a_function_with_more_defaults_than_are_needed_is_taken() -> None:
    class Fine(Plugin):
        name = "brittle"

        def on_session_open(self, ssn: Session) -> None:
            ssn.add_overused_fn(self.name, lambda queue, limit=1: False)

    subject, cluster = scheduler(SchedulerOptions(), Fine)
    subject.run_once()
    assert cluster.bindings() == {"ns/p": "n1"}
