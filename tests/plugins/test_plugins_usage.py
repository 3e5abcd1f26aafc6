"""usage: filter and score by measured load and by what is estimated on top (spec 05 §10)."""

from datetime import timedelta

import pytest
from plugin_cluster import NOW, Cluster

from vcscheduler.config import Arguments
from vcscheduler.framework.session import Session
from vcscheduler.model.status import ALLOCATED, BOUND, RELEASING, RUNNING
from vcscheduler.model.task import Task, TaskClass, TaskClasses
from vcscheduler.objects import Container, Pod
from vcscheduler.objects.pod import ContainerStatus, PodSpec, PodStatus, ResourceRequirements
from vcscheduler.plugins.usage import UsagePlugin
from vcscheduler.plugins.usage.estimate import estimate, pod_limits
from vcscheduler.plugins.usage.load import STORE_KEY, LoadCollector, NodeLoad
from vcscheduler.plugins.usage.options import Options
from vcscheduler.plugins.usage.sources import load_source

CPU_LOADED = "the CPU load of the node exceeds the upper limit."
MEMORY_LOADED = "the memory load of the node exceeds the upper limit."


def cluster(**loads: tuple[float, float]) -> Cluster:
    """Nodes of 8 cores and 16Gi with a load measured just now, in percent of CPU and memory."""
    c = Cluster()
    for name in loads:
        c.node(name, cpu=8, memory=16)
    measured(c, **loads)
    return c


def measured(c: Cluster, age: float = 0, **loads: tuple[float, float]) -> None:
    time = NOW - timedelta(seconds=age)
    found = {name: NodeLoad(cpu, memory, time) for name, (cpu, memory) in loads.items()}
    c.cache.store[STORE_KEY] = LoadCollector(load_source, found)


def scores(ssn: Session, task: Task) -> dict[str, float]:
    (rule,) = ssn.scorers
    rows = ssn.table.ready_rows
    return {ssn.table.nodes[r].name: round(s, 6) for r, s in zip(rows.tolist(), rule.scores(task, rows).tolist())}


def reasons(ssn: Session, task: Task) -> list[str]:
    (rule,) = ssn.filters
    codes = rule.codes(task, ssn.table.ready_rows).tolist()
    return [rule.statuses(task, code)[0].reason if code else "" for code in codes]


def place(ssn: Session, task: Task, node: str) -> None:
    assert ssn.place(task, ssn.node(node), ALLOCATED) is None


def test_idler_nodes_score_higher_and_a_placement_counts_at_once() -> None:
    c = cluster(n=(50, 25))
    task = c.task(c.job("j"), "t", cpu=2, memory=4)
    ssn = c.session(UsagePlugin)
    assert scores(ssn, task) == {"n": 312.5}
    place(ssn, task, "n")
    assert scores(ssn, task) == {"n": 225}
    ssn.take_back(task)
    assert scores(ssn, task) == {"n": 312.5}


def test_weights() -> None:
    c = cluster(n=(50, 25))
    task = c.task(c.job("j"), "t", cpu=2)
    only_cpu = {"usage.weight": 2, "cpu.weight": 3, "memory.weight": 0}
    assert scores(c.session(UsagePlugin, arguments=only_cpu), task) == {"n": 100}
    assert scores(c.session(UsagePlugin, arguments={"cpu.weight": 0, "memory.weight": 0}), task) == {"n": 0}
    assert scores(c.session(UsagePlugin, arguments={"usage.weight": -2}), task) == {"n": 312.5}


def test_thresholds_are_strict_and_cpu_is_named_first() -> None:
    c = cluster(at=(80, 80), cpu=(80.1, 10), memory=(10, 80.1), both=(90, 90))
    task = c.task(c.job("j"), "t", cpu=1)
    assert reasons(c.session(UsagePlugin), task) == ["", CPU_LOADED, MEMORY_LOADED, CPU_LOADED]
    given = {"thresholds": {"cpu": 85, "mem": 101}}
    assert reasons(c.session(UsagePlugin, arguments=given), task) == ["", "", MEMORY_LOADED, CPU_LOADED]


def test_a_node_without_fresh_load_passes_and_scores_nothing() -> None:
    c = Cluster()
    c.node("unmeasured", cpu=8, memory=16)
    c.node("fresh", cpu=8, memory=16)
    measured(c, age=300, fresh=(90, 90))
    task = c.task(c.job("j"), "t", cpu=1)
    ssn = c.session(UsagePlugin)
    assert reasons(ssn, task) == ["", CPU_LOADED]
    assert scores(ssn, task) == {"unmeasured": 0, "fresh": 50}
    place(ssn, task, "unmeasured")
    assert scores(ssn, task) == {"unmeasured": 0, "fresh": 50}
    measured(c, age=300.1, fresh=(90, 90))
    stale = c.session(UsagePlugin)
    assert (stale.filters, stale.scorers) == ([], [])


def test_pods_that_were_not_measured_yet_count_at_the_opening() -> None:
    c = cluster(n=(0, 0))
    job = c.job("j")

    def started(seconds: float) -> PodStatus:
        return PodStatus(phase="Running", start_time=NOW - timedelta(seconds=seconds))

    c.task(job, "measured", RUNNING, node="n", pod_status=started(30), cpu=1)
    c.task(job, "leaving", RELEASING, node="n", cpu=1)
    task = c.task(job, "t", cpu=1)
    assert scores(c.session(UsagePlugin), task) == {"n": 500}
    c.task(job, "young", RUNNING, node="n", pod_status=started(29), cpu=1)
    c.task(job, "unknown", RUNNING, node="n", cpu=1)
    c.task(job, "bound", BOUND, node="n", cpu=1)
    # Three times 700m of 8 cores.
    assert scores(c.session(UsagePlugin), task) == {"n": 434.375}
    ssn = c.session(UsagePlugin, metrics={"interval": "29s"})
    assert scores(ssn, task) == {"n": 456.25}
    ssn.release(job.tasks["ns-bound"])
    assert scores(ssn, task) == {"n": 478.125}


def test_a_loaded_node_is_expected_to_be_used_more() -> None:
    c = cluster(n=(60, 60))
    first, second = c.tasks(c.job("j"), "a b", cpu=1, memory=2)
    ssn = c.session(UsagePlugin)
    place(ssn, first, "n")
    # 0.6 + 0.7 * 1.2 / 8 of both.
    assert scores(ssn, second) == {"n": 147.5}


def classes(
    requests: dict[str, str], limits: dict[str, str] | None = None, spec: PodSpec | None = None, **status: object
) -> TaskClass:
    container = Container(name="c", resources=ResourceRequirements(requests=dict(requests), limits=dict(limits or {})))
    pod = Pod(spec=spec or PodSpec(containers=[container]), status=PodStatus(**status))  # type: ignore[arg-type]
    return TaskClasses().of(pod)


@pytest.mark.parametrize(
    ("limit", "risk", "expected"),
    [
        (None, 1.0, 1400.0),
        ("4", 1.0, 1400.0 + 2000 * 0.5),
        ("1", 1.0, 1400.0),  # a limit below the request is none
        ("4", 1.5, 3600.0),
        (None, 1.5, 2000.0),  # never above what the pod may use
    ],
)
def test_estimate(limit: str | None, risk: float, expected: float) -> None:
    options = Options.of(Arguments({"estimator": {"burst_ratio": 0.5}}))
    cls = classes({"cpu": "2"}, {"cpu": limit} if limit else {})
    assert estimate(cls, options, risk) == (expected, 0.0)


def test_estimate_of_a_pod_without_requests() -> None:
    options = Options.of(Arguments({"estimator": {"be_cpu": "100m", "be_mem": 100}}))
    assert estimate(classes({}), options, 2.0) == (200.0, 200.0 * 2**20)


def test_limits_of_init_containers_sidecars_pods_and_overhead() -> None:
    def container(name: str, cpu: str, restart: str = "") -> Container:
        limits = ResourceRequirements(limits={"cpu": cpu})
        return Container(name=name, resources=limits, restart_policy=restart or None)

    main = [container("main", "1")]
    sidecar, heavy = container("side", "500m", "Always"), container("init", "3")
    overhead = {"cpu": "100m", "memory": "1Mi"}
    assert pod_limits(classes({}, spec=PodSpec(containers=main, init_containers=[sidecar, heavy]))) == (3500, 0)
    assert pod_limits(classes({}, spec=PodSpec(containers=main, init_containers=[sidecar]))) == (1500, 0)
    assert pod_limits(classes({}, spec=PodSpec(containers=main, overhead=overhead))) == (1100, 0)
    whole = ResourceRequirements(limits={"cpu": "7"})
    assert pod_limits(classes({}, spec=PodSpec(containers=main, resources=whole))) == (7000, 0)
    resized = [ContainerStatus(name="main", resources=ResourceRequirements(limits={"cpu": "2"}))]
    assert pod_limits(classes({}, spec=PodSpec(containers=main), container_statuses=resized)) == (2000, 0)


def test_arguments_that_cannot_be_used_keep_their_defaults(caplog: pytest.LogCaptureFixture) -> None:
    wrong = Options.of(
        Arguments(
            {
                "usage.weight": "5",
                "cpu.weight": -1,
                "thresholds": {"cpu": 101, "mem": 79.5},
                "estimator": {
                    "request_ratio": 1.1,
                    "burst_ratio": "x",
                    "risk_threshold": -0.1,
                    "risk_factor": 0.9,
                    "be_cpu": "-1",
                    "be_mem": 1.5,
                },
            },
            "plugin usage",
        )
    )
    assert wrong == Options.of(Arguments({})) == Options.of(Arguments({"thresholds": [], "estimator": "x"}))
    assert "argument 'cpu' of plugin usage: thresholds: expected 0 to 100, found 101" in caplog.text


def test_arguments_are_read_once_for_all_sessions() -> None:
    c = cluster(n=(50, 50))
    c.session(UsagePlugin)
    known = c.cache.store["usage.options"]
    ssn = c.session(UsagePlugin)
    assert c.cache.store["usage.options"] is not known
    plugin = ssn.plugins[0]
    again = UsagePlugin(plugin.arguments)
    known = c.cache.store["usage.options"]
    again.on_session_open(ssn)
    assert c.cache.store["usage.options"] is known
