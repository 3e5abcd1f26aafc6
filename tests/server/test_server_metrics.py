"""Names, types, labels and buckets as the reference has them, and numbers that are right."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from machine import Machine

import builders
import lab
from vcscheduler.config import SchedulerOptions
from vcscheduler.objects import Pod, PodGroup, PriorityClass, Queue
from vcscheduler.server.metrics import SchedulerMetrics
from vcscheduler.server.series import Histogram, Values, exponential, expose

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"

JOB = ("job_name", "queue", "job_namespace")
QUEUE = ("queue_name",)
SCALAR = ("queue_name", "resource")

REFERENCE = {
    "e2e_scheduling_latency_milliseconds": ("histogram", ()),
    "open_session_duration_milliseconds": ("histogram", ()),
    "e2e_job_scheduling_latency_milliseconds": ("histogram", ()),
    "e2e_job_scheduling_duration": ("gauge", JOB),
    "e2e_job_scheduling_start_time": ("gauge", JOB),
    "e2e_job_scheduling_last_time": ("gauge", JOB),
    "plugin_scheduling_latency_milliseconds": ("histogram", ("plugin", "OnSession")),
    "action_scheduling_latency_milliseconds": ("histogram", ("action",)),
    "task_scheduling_latency_milliseconds": ("histogram", ("stage",)),
    "unschedule_task_count": ("gauge", ("job_id",)),
    "unschedule_job_count": ("gauge", ()),
    "pod_preemption_victims": ("gauge", ()),
    "total_preemption_attempts": ("counter", ()),
    "eviction_transactions_total": ("counter", ("action",)),
    "job_share": ("gauge", ("job_ns", "job_id")),
    "job_retry_counts": ("counter", ("job_id",)),
    **{
        f"queue_{key}_{kind}": ("gauge", labels)
        for key in ("allocated", "request", "deserved", "capacity", "real_capacity", "inqueue")
        for kind, labels in (("milli_cpu", QUEUE), ("memory_bytes", QUEUE), ("scalar_resources", SCALAR))
    },
    "queue_share": ("gauge", QUEUE),
    "queue_weight": ("gauge", QUEUE),
    "queue_overused": ("gauge", QUEUE),
}
"""Of the reference's metrics (spec 07 §5), those that are exported."""

NOT_EXPORTED = (
    "scheduling_stage_duration_milliseconds",
    "schedule_attempts_total",
    "namespace_share",
    "namespace_weight",
    "namespace_weighted_share",
)


def measured(**how: object) -> tuple[Machine, SchedulerMetrics]:
    m = Machine(measure=True, **how)  # type: ignore[arg-type]
    metrics = SchedulerMetrics(m.cache)
    m.loop._observers = (metrics, m)
    m.add(lab.queue("q", weight=3, capability={"cpu": "3", "example.com/gpu": "1"}))
    return m.add(builders.node("n1", cpu=4, memory="64Gi", example_com__gpu=2)), metrics


def texts(metrics: SchedulerMetrics) -> dict[str, float]:
    """Every sample by its name and labels as they are exposed."""
    found = {}
    for line in expose(series.family() for series in metrics.read()).splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[name] = float(value)
    return found


def test_names_types_and_labels_are_the_references() -> None:
    _m, metrics = measured()
    exported = {s.family().name: (s.family().type, s.labels) for s in metrics.read()}
    ours = {name: found for name, found in exported.items() if name.startswith("vcscheduler_")}
    assert {name: found for name, found in exported.items() if name not in ours} == {
        f"volcano_{name}": expected for name, expected in REFERENCE.items()
    }


def test_the_document_lists_exactly_what_is_exported() -> None:
    rows = set(re.findall(r"^\| `([a-z0-9_]+)`", DOCUMENT.read_text(), re.M))
    _, metrics = measured()
    exported = {series.name for series in metrics.read()}
    api = {name for name in rows if name.startswith("vcscheduler_api_")}
    assert rows - api == exported | {f"volcano_{name}" for name in NOT_EXPORTED}
    from vcscheduler.server.live import LiveBackend

    gauges = LiveBackend(SchedulerOptions(), lambda: True).gauges()
    assert set(gauges) == api


@pytest.mark.parametrize(
    ("name", "least", "greatest", "count"),
    [
        ("e2e", 1, 5000, 20),
        ("opening", 1, 5000, 20),
        ("job_latency", 100, 120_000, 30),
        ("plugin", 0.1, 100, 15),
        ("action", 1, 2000, 20),
        ("task_latency", 50, 60_000, 30),
    ],
)
def test_buckets_are_the_references(name: str, least: float, greatest: float, count: int) -> None:
    _, metrics = measured()
    bounds = getattr(metrics, name).bounds
    assert len(bounds) == count
    assert (bounds[0], bounds[-1]) == (pytest.approx(least), pytest.approx(greatest))
    ratio = (greatest / least) ** (1 / (count - 1))
    assert all(b / a == pytest.approx(ratio) for a, b in itertools.pairwise(bounds))


def test_a_cycle_in_numbers() -> None:
    m, metrics = measured()
    m.add(lab.pod_group("a", 2, age=10), *(lab.member("a", f"a-{i}", age=8) for i in range(2)))
    m.add(lab.pod_group("b", 1, age=5), lab.member("b", "b-0", cpu=2))
    m.run(0.5)
    found = texts(metrics)
    assert found["volcano_e2e_scheduling_latency_milliseconds_count"] == 1
    assert found['volcano_action_scheduling_latency_milliseconds_count{action="allocate"}'] == 1
    assert found['volcano_plugin_scheduling_latency_milliseconds_count{plugin="gang",OnSession="OnSessionClose"}'] == 1
    job = 'job_name="a",queue="q",job_namespace="ns"'
    assert found[f"volcano_e2e_job_scheduling_duration{{{job}}}"] == pytest.approx(10_000, abs=100)
    assert found[f"volcano_e2e_job_scheduling_start_time{{{job}}}"] == lab.NOW.timestamp() - 10
    assert found["volcano_e2e_job_scheduling_latency_milliseconds_count"] == 2
    assert found['volcano_task_scheduling_latency_milliseconds_count{stage="Watched"}'] == 3
    assert found['volcano_task_scheduling_latency_milliseconds_count{stage="Assumed"}'] == 2
    assert found['volcano_unschedule_task_count{job_id="a"}'] == 0
    assert found['volcano_unschedule_task_count{job_id="b"}'] == 1
    assert found["volcano_unschedule_job_count"] == 1
    assert found['volcano_job_retry_counts{job_id="b"}'] == 1
    assert found['volcano_queue_allocated_milli_cpu{queue_name="q"}'] == 2000
    assert found['volcano_queue_request_milli_cpu{queue_name="q"}'] == 4000
    assert found['volcano_queue_capacity_milli_cpu{queue_name="q"}'] == 3000
    assert found['volcano_queue_weight{queue_name="q"}'] == 3
    assert found['volcano_queue_capacity_scalar_resources{queue_name="q",resource="example.com/gpu"}'] == 1000
    assert found['vcscheduler_pods_bound_total{queue="q"}'] == 2
    assert found['vcscheduler_tasks{queue="q",status="Binding"}'] == 2
    assert found["vcscheduler_nodes"] == 1
    m.cluster.step()
    m.run(0.1)
    assert texts(metrics)['volcano_task_scheduling_latency_milliseconds_count{stage="Bound"}'] == 2


def test_preemption_in_numbers() -> None:
    m, metrics = measured(config=lab.configuration(actions="enqueue, allocate, preempt"))
    m.add(lab.queue("q"), lab.pod_group("low", 1, phase="Running"))
    m.add(*(lab.member("low", f"low-{i}", cpu=2, node="n1") for i in range(2)))
    m.add(msgspec.convert({"metadata": {"name": "high"}, "value": 100}, PriorityClass))
    m.add(lab.pod_group("high", 1, phase="Inqueue", priority_class="high"))
    m.add(lab.member("high", "high-0", cpu=2, priority=100))
    m.run(0.5)
    found = texts(metrics)
    assert len(m.cluster.terminating()) == 1
    assert found['volcano_eviction_transactions_total{action="preempt"}'] == 1
    assert found["volcano_total_preemption_attempts"] == 1
    assert found["volcano_pod_preemption_victims"] == 1
    assert found['vcscheduler_pods_evicted_total{reason="preempt"}'] == 1


def test_series_of_what_is_gone_are_gone() -> None:
    m, metrics = measured()
    m.add(lab.pod_group("a", 1, age=10), lab.member("a", "a-0"), lab.pod_group("b", 2), lab.member("b", "b-0"))
    m.run(2)
    before = texts(metrics)
    assert any('job_name="a"' in name for name in before)
    m.cluster.delete(Pod, "ns/a-0")
    m.cluster.delete(Pod, "ns/b-0")
    m.cluster.delete(PodGroup, "ns/a")
    m.cluster.delete(PodGroup, "ns/b")
    m.cluster.delete(Queue, "q")
    m.run(5)
    left = [name for name in texts(metrics) if '"a"' in name or '"b"' in name or 'queue_name="q"' in name]
    assert left == []


def test_retries_count_reports_not_cycles() -> None:
    m, metrics = measured()
    m.add(lab.pod_group("b", 2), lab.member("b", "b-0"))
    for i in range(100):
        m.at(0.05 * i, lambda i=i: m.add(lab.pod_group(f"g{i}", 1)))  # type: ignore[misc]
    m.run(5)
    assert len(m.cycles) > 50
    assert 5 <= texts(metrics)['volcano_job_retry_counts{job_id="b"}'] <= 6


def test_without_metrics_nothing_is_kept() -> None:
    m = Machine(options=replace(SchedulerOptions(), enable_metrics=False))
    m.add(lab.queue("q"), builders.node("n1"), lab.pod_group("a", 1), lab.member("a", "a-0"))
    m.run(1)
    m.cluster.step()
    m.run(1)
    assert not m.cache.watched
    assert not m.cache.bound_after


def test_exposition_escapes_and_adds_up() -> None:
    histogram = Histogram("h", "A\nB", exponential(1, 100, 3), ("x",))
    histogram.observe(1, 'a"\\\n', times=3)
    histogram.observe(50, 'a"\\\n')
    histogram.observe(1e9, 'a"\\\n')
    label = 'x="a\\"\\\\\\n"'
    assert expose([histogram.family()]).splitlines() == [
        "# HELP h A\\nB",
        "# TYPE h histogram",
        f'h_bucket{{{label},le="1.0"}} 3.0',
        f'h_bucket{{{label},le="10.0"}} 3.0',
        f'h_bucket{{{label},le="100.0"}} 4.0',
        f'h_bucket{{{label},le="+Inf"}} 5.0',
        f"h_sum{{{label}}} 1.000000053e+09",
        f"h_count{{{label}}} 5.0",
    ]
    counter = Values("counter", "things", "Things.")
    counter.add(2)
    assert expose([counter.family()]) == "# HELP things Things.\n# TYPE things counter\nthings 2.0\n"
