"""rescheduling: when it acts, and whom it names (spec 05 §11)."""

from datetime import timedelta

import pytest
from plugin_cluster import Cluster, names

from vcscheduler.config.arguments import ArgumentError
from vcscheduler.framework.session import Session
from vcscheduler.model.status import RUNNING
from vcscheduler.model.task import Task
from vcscheduler.objects.pod import PodStatus, ResourceRequirements
from vcscheduler.plugins.rescheduling import ReschedulingPlugin, quality_of_service
from vcscheduler.plugins.usage.load import STORE_KEY, LoadCollector, NodeLoad
from vcscheduler.plugins.usage.sources import load_source


def cluster(**loads: tuple[float, float]) -> Cluster:
    """Nodes of 10 cores and 10Gi with their load in percent."""
    c = Cluster()
    for name in loads:
        c.node(name, cpu=10, memory=10)
    found = {name: NodeLoad(cpu, memory, c.now) for name, (cpu, memory) in loads.items()}
    c.cache.store[STORE_KEY] = LoadCollector(load_source, found)
    return c


def strategy(threshold: float, target: float) -> dict[str, object]:
    params = {
        "thresholds": {"cpu": threshold, "memory": threshold, "pods": 1},
        "targetThresholds": {"cpu": target, "memory": target},
        "nodeFit": True,
    }
    return {"metricsPeriod": "10m", "strategies": [{"name": "lowNodeUtilization", "params": params}]}


def due(c: Cluster, arguments: dict[str, object]) -> Session:
    """A session late enough for the plugin to act."""
    c.session(ReschedulingPlugin, arguments=arguments)
    c.now += timedelta(hours=1)
    return c.session(ReschedulingPlugin, arguments=arguments)


def victims(ssn: Session) -> list[str]:
    running = [t for job in ssn.jobs.values() for t in job.tasks.values() if t.status is RUNNING]
    return names(ssn.victim_tasks(running))


def test_pods_leave_a_busy_node_until_it_or_the_budget_is_done() -> None:
    c = cluster(n1=(10, 10), n2=(80, 40))
    job = c.job("j")
    for name, priority in (("c", 9), ("b", 5), ("a", 1)):
        c.task(job, name, RUNNING, node="n2", priority=priority, cpu=2, memory=1)
    assert victims(due(c, strategy(20, 50))) == ["a", "b"]


def test_a_node_at_its_target_gives_no_more() -> None:
    c = cluster(n1=(0, 0), n2=(80, 10))
    c.tasks(c.job("j"), "a b c", RUNNING, node="n2", cpu=2, memory=1)
    assert victims(due(c, strategy(20, 70))) == ["a"]


def test_budget_that_runs_below_nothing_ends_nothing() -> None:
    c = cluster(n1=(10, 10), n2=(99, 10))
    c.tasks(c.job("j"), "a b c d", RUNNING, node="n2", cpu=1.5, memory=1)
    # 4 cores are free up to the target, the third pod takes half a core too much; the fourth may go too.
    assert victims(due(c, strategy(20, 50))) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "loads",
    [
        {"n1": (10, 10), "n2": (15, 15)},  # all low
        {"n1": (30, 30), "n2": (80, 80)},  # none low
        {"n1": (10, 10), "n2": (50, 50)},  # none above the target
    ],
)
def test_nobody_is_named(loads: dict[str, tuple[float, float]]) -> None:
    c = cluster(**loads)
    c.task(c.job("j"), "a", RUNNING, node="n2", cpu=2)
    assert victims(due(c, strategy(20, 50))) == []


def test_a_cordoned_node_is_not_low() -> None:
    c = cluster(n1=(10, 10), n2=(80, 80))
    c.task(c.job("j"), "a", RUNNING, node="n2", cpu=2)
    c.cache.table.by_name["n1"].unschedulable = True
    assert victims(due(c, strategy(20, 50))) == []


def test_the_busiest_node_gives_first_and_names_decide_between_namespaces() -> None:
    c = cluster(n1=(10, 10), n2=(60, 60), n3=(90, 90))
    first = c.task(c.job("j"), "a", RUNNING, node="n2", cpu=1, memory=1)
    c.task(c.job("k", namespace="other"), "b", RUNNING, node="n2", cpu=1, memory=1)
    c.task(c.job("l", namespace="other"), "a", RUNNING, node="n3", cpu=1, memory=1)
    c.task(c.job("m", namespace="other"), "z", RUNNING, node="n3", cpu=1, memory=1)
    ssn = due(c, strategy(20, 50))
    found = ssn.victim_tasks([t for job in ssn.jobs.values() for t in job.tasks.values()])
    # The pod a of n3 is taken for the one of n2.
    assert found[0] is first
    assert names(found) == ["a", "z", "b"]


def test_other_periods_have_no_load(caplog: pytest.LogCaptureFixture) -> None:
    c = cluster(n1=(10, 10), n2=(80, 80))
    c.task(c.job("j"), "a", RUNNING, node="n2", cpu=2)
    assert victims(due(c, {**strategy(20, 50), "metricsPeriod": "5m"})) == []
    assert "metricsPeriod 10m only, not for 5m" in caplog.text


@pytest.mark.parametrize(("interval", "acting"), [("5m", [301, 602]), ("1m", [61, 300, 602]), ("soon", [301, 602])])
def test_acts_once_an_interval(interval: str, acting: list[int]) -> None:
    c = cluster(n1=(10, 10), n2=(80, 80))
    c.task(c.job("j"), "a", RUNNING, node="n2", cpu=2)
    start = c.now
    found = []
    for seconds in (0, 60, 61, 300, 301, 602, 603):
        c.now = start + timedelta(seconds=seconds)
        ssn = c.session(ReschedulingPlugin, arguments={**strategy(20, 50), "interval": interval})
        if victims(ssn):
            found.append(seconds)
    assert found == acting


@pytest.mark.parametrize(
    "arguments",
    [
        {"interval": 5},
        {"strategies": "lowNodeUtilization"},
        {"strategies": [{"name": "lowNodeUtilization", "params": {"thresholds": {"cpu": "20"}}}]},
    ],
)
def test_arguments_that_cannot_be(arguments: dict[str, object]) -> None:
    with pytest.raises(ArgumentError):
        due(cluster(n1=(1, 1)), arguments)


def test_unknown_strategies_have_no_effect(caplog: pytest.LogCaptureFixture) -> None:
    c = cluster(n1=(10, 10), n2=(80, 80))
    c.task(c.job("j"), "a", RUNNING, node="n2", cpu=2)
    assert victims(due(c, {"metricsPeriod": "10m", "strategies": [{"name": "removeDuplicates"}]})) == []
    assert "strategy 'removeDuplicates' is not known" in caplog.text


def test_quality_of_service() -> None:
    c = Cluster()
    job = c.job("j")

    def of(task: Task, limits: dict[str, str] | None = None) -> int:
        requests = task.pod.spec.containers[0].resources.requests
        task.pod.spec.containers[0].resources = ResourceRequirements(requests=requests, limits=dict(limits or {}))
        return quality_of_service(task)

    both = {"cpu": "1", "memory": "1Gi"}
    assert of(c.task(job, "best-effort")) == 0
    assert of(c.task(job, "burstable", cpu=1)) == 1
    assert of(c.task(job, "half", cpu=1, memory=1), {"cpu": "1"}) == 1
    assert of(c.task(job, "guaranteed", cpu=1, memory=1), both) == 2
    assert of(c.task(job, "defaulted"), both) == 2
    assert quality_of_service(c.task(job, "told", pod_status=PodStatus(qos_class="Guaranteed"))) == 2
