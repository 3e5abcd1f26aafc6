"""A plugin that fails names itself; when told to, the scheduler goes on without it."""

from __future__ import annotations

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


def scheduler(options: SchedulerOptions) -> tuple[Scheduler, MemoryCluster]:
    registry = Registry()
    registry.add_plugin("brittle", Brittle)
    cluster = MemoryCluster(lambda: NOW)
    for value in (
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n1"},
            "status": {"allocatable": {"cpu": "4", "memory": "4Gi", "pods": "9"}},
        },
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
