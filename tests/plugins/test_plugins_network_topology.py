"""network-topology-aware: gradients, scores of domains, scores of nodes (spec 06 §A7)."""

from __future__ import annotations

from typing import Any

import pytest

from topology import PLUGIN, SOFT, hard, hyper_node, lab_t
from vcscheduler.framework.session import Session
from vcscheduler.model.job import Job
from vcscheduler.model.task import Task
from vcscheduler.model.topology import TOP, GradientPurpose

ALLOCATE, EVICT = GradientPurpose.ALLOCATE, GradientPurpose.EVICT
#: Idle CPU of the racks as in spec 06 §A7.6: A 2, B 8, C 5.
FILLED = {"a1": 4, "a2": 2, "c1": 3}


def opened(
    group: dict[str, Any], filled: dict[str, int] | None = None, arguments: dict[str, Any] | None = None, **job: Any
) -> tuple[Session, Job]:
    """A session over cluster T and the job ``j`` in it; other pods hold some CPUs of some nodes."""
    lab = lab_t(arguments=arguments)
    for node, cpu in (filled or {}).items():
        lab.job(f"on-{node}", tasks=1, on=node, cpu=cpu, memory=0)
    ssn = lab.job("j", group=group, **{"tasks": 1, **job}).session()
    return ssn, ssn.jobs["ns/j"]


# --- gradients --------------------------------------------------------------------------------------------------------


def test_domains_with_room_lowest_tier_first() -> None:
    ssn, job = opened({"min_resources": {"cpu": 6}, **hard(2)}, FILLED)
    assert ssn.hyper_node_gradients_for_job(job, TOP, ALLOCATE) == [["B"], ["P"]]


def test_for_eviction_widest_first_and_not_too_many() -> None:
    group = {"min_resources": {"cpu": 6}, **hard(2)}
    ssn, job = opened(group, FILLED)
    assert ssn.hyper_node_gradients_for_job(job, TOP, EVICT) == [["P", "Q"], ["A", "B", "C"]]
    ssn, job = opened(group, FILLED, {"hypernode.gradient.evict.max-hypernodes": 3})
    assert ssn.hyper_node_gradients_for_job(job, TOP, EVICT) == [["P", "Q"], ["C"]]


@pytest.mark.parametrize(
    ("tier", "start", "found"),
    [
        (2, TOP, [["A", "B"], ["P"]]),
        (2, "B", [["B"]]),
        (1, TOP, [["A"]]),
        (1, "B", []),
        (0, TOP, []),
    ],
)
def test_a_home_bounds_the_search_and_room_no_longer_counts(tier: int, start: str, found: list[list[str]]) -> None:
    ssn, job = opened({"min_resources": {"cpu": 600}, **hard(tier)}, FILLED)
    job.allocated_hyper_node = "A"
    assert ssn.hyper_node_gradients_for_job(job, start, ALLOCATE) == found


def test_without_a_limit_the_start_is_all() -> None:
    ssn, job = opened({"networkTopology": {"mode": "hard"}})
    assert ssn.hyper_node_gradients_for_job(job, "P", ALLOCATE) == [["P"]]


def test_without_the_plugin_nothing_is_limited() -> None:
    lab = lab_t()
    lab.scheduler.configuration = lab.scheduler.configuration.__class__(
        actions=lab.scheduler.configuration.actions, tiers=()
    )
    ssn = lab.job("j", group=hard(1), tasks=1).session()
    assert ssn.hyper_node_gradients_for_job(ssn.jobs["ns/j"], TOP, ALLOCATE) == [[TOP]]


def test_a_sub_job_needs_room_for_all_that_is_pending() -> None:
    ssn, job = opened(hard(1), FILLED, tasks=2, cpu=3)
    sub_job = job.default_sub_job
    assert ssn.hyper_node_gradients_for_sub_job(sub_job, TOP, ALLOCATE) == [["B"]]
    ssn, job = opened(hard(1), FILLED, tasks=3, cpu=3)
    assert ssn.hyper_node_gradients_for_sub_job(job.default_sub_job, TOP, ALLOCATE) == []


def test_what_is_leaving_counts_as_room_what_was_placed_since_opening_does_not() -> None:
    lab = lab_t()
    lab.job("x", tasks=2, cpu=4, on="a1").job("j", group={"min_resources": {"cpu": 6}, **hard(1)}, tasks=1)
    ssn = lab.session()
    job = ssn.jobs["ns/j"]
    before = [["B", "C"]]
    assert ssn.hyper_node_gradients_for_job(job, TOP, ALLOCATE) == before
    task = next(iter(job.tasks.values()))
    assert ssn.allocate(task, ssn.table.by_name["b1"]) is None
    assert ssn.hyper_node_gradients_for_job(job, TOP, ALLOCATE) == before


# --- domains ----------------------------------------------------------------------------------------------------------


def test_fuller_domains_score_higher() -> None:
    lab = lab_t().job("x", tasks=1, cpu=4, memory="4Gi", on="a1").job("j", tasks=2, cpu=1, memory="2Gi", group=hard(1))
    ssn = lab.session()
    sub_job = ssn.jobs["ns/j"].default_sub_job
    assert ssn.hyper_node_scores(sub_job, ["A", "B"]) == {"A": 62.5, "B": 25.0}


def test_a_domain_that_would_overflow_scores_nothing() -> None:
    ssn, job = opened(hard(1), {"a1": 4}, tasks=2, cpu=3)
    assert ssn.hyper_node_scores(job.default_sub_job, ["A", "B"]) == {"A": 0.0, "B": 43.75}


def test_among_equals_counts_where_the_sub_job_runs() -> None:
    lab = lab_t().job("j", tasks=1, cpu=4, memory=0, on="a1", group=hard(3))
    lab.job("x", tasks=1, cpu=4, memory=0, on="b1").pod("j", "j-new", cpu=4, memory=0)
    ssn = lab.session()
    sub_job = ssn.jobs["ns/j"].default_sub_job
    # Used and asked for: 12 of 8 CPUs in both, which is too much.
    assert ssn.hyper_node_scores(sub_job, ["A", "B"]) == {"A": 50.0, "B": 0.0}
    assert ssn.hyper_node_scores(sub_job, ["A"]) == {"A": 0.0}


def test_listed_resources_and_weights() -> None:
    arguments = {
        "weight": 2,
        "hypernode.binpack.cpu": 3,
        "hypernode.binpack.memory": 0,
        "hypernode.binpack.resources": " example.com/gpu, ",
        "hypernode.binpack.resources.example.com/gpu": 1,
    }
    lab = lab_t(arguments=arguments)
    for name in ("g1", "g2"):
        lab.node(name, cpu=4, memory="8Gi", **{"example.com/gpu": 4})
    lab.add(hyper_node("G", 1, "node/g1", "node/g2"))
    lab.job("j", tasks=1, cpu=2, memory="1Gi", group=hard(1), requests={"example.com/gpu": 4})
    ssn = lab.session()
    scores = ssn.hyper_node_scores(ssn.jobs["ns/j"].default_sub_job, ["A", "G"])
    assert scores == {"A": 0.0, "G": 200 * (3 * 2 / 8 + 4 / 8) / 4}


# --- nodes ------------------------------------------------------------------------------------------------------------


def node_scores(ssn: Session, task: Task, *names: str) -> dict[str, float]:
    rows = [ssn.table.by_name[name].row for name in names]
    scores = ssn.search.scores(task, ssn.search.all_rows[[ssn.search.all_rows.tolist().index(r) for r in rows]])
    assert scores is not None
    return dict(zip(names, (round(s, 3) for s in scores.tolist())))


def test_nodes_near_the_gang_score_higher() -> None:
    lab = lab_t().job("j", tasks=1, on="a1", group=hard(3), cpu=1)
    for i in range(3):
        lab.pod("j", f"j-new-{i}", cpu=1)
    ssn = lab.session()
    task = next(t for t in ssn.jobs["ns/j"].tasks.values() if not t.node_name)
    assert set(node_scores(ssn, task, "a1", "b1").values()) == {0.0}
    task.job_allocated_hyper_node = "A"
    found = node_scores(ssn, task, "a1", "a2", "b1", "b2", "c1", "c2")
    assert found == {"a1": 125.0, "a2": 125.0, "b1": 66.667, "b2": 66.667, "c1": 33.333, "c2": 33.333}
    assert node_scores(ssn, task, "a2", "b1") == {"a2": 100.0, "b1": 66.667}


def test_nodes_whose_domains_all_lie_higher_count_as_far_away() -> None:
    lab = lab_t().node("d1").add(hyper_node("D", 2, "node/d1")).job("j", tasks=2, group=hard(3))
    ssn = lab.session()
    task = next(iter(ssn.jobs["ns/j"].tasks.values()))
    task.job_allocated_hyper_node = "D"
    assert node_scores(ssn, task, "d1", "a1") == {"d1": 0.0, "a1": 0.0}
    task.job_allocated_hyper_node = "P"
    assert node_scores(ssn, task, "d1", "a1") == {"d1": 0.0, "a1": 66.667}


def test_other_pods_leave_whole_domains_free() -> None:
    lab = lab_t().job("x", tasks=1, cpu=4, memory="4Gi", on="a1").job("j", tasks=1, cpu=1, memory="2Gi")
    ssn = lab.node("alone").session()
    task = next(iter(ssn.jobs["ns/j"].tasks.values()))
    found = node_scores(ssn, task, "a1", "a2", "b1", "c1")
    # The top holds "alone" too, so its share differs from that of the spec's example.
    top = 512 / 2952 * 100 * ((5 / 28 + 6 / 112) / 2 - (5 / 24 + 6 / 48) / 2)
    wanted = {"a1": 30.22, "a2": 30.22, "b1": 17.51, "c1": 14.13}
    assert found == pytest.approx({name: score + top for name, score in wanted.items()}, abs=0.01)
    assert node_scores(ssn, task, "alone", "a1")["alone"] > 80


@pytest.mark.parametrize(
    "arguments",
    [{"hypernode.binpack.normal-pod.enable": False}, {"hypernode.binpack.normal-pod.enable": "false"}, {"weight": 0}],
)
def test_other_pods_are_left_alone_when_told_so(arguments: dict[str, Any]) -> None:
    ssn, job = opened({}, {"a1": 4}, arguments)
    task = next(iter(job.tasks.values()))
    assert set(node_scores(ssn, task, "a2", "b1").values()) == {0.0}


def test_what_is_placed_counts_at_once_and_undoing_takes_it_back() -> None:
    ssn, job = opened({}, None, None, tasks=2, cpu=4)
    first, second = job.tasks.values()
    before = node_scores(ssn, second, "a1", "b1", "c1")
    ssn.place(first, ssn.table.by_name["b2"], type(first.status).ALLOCATED)
    after = node_scores(ssn, second, "a1", "b1", "c1")
    assert max(after, key=lambda n: after[n]) == "b1"
    ssn.take_back(first)
    assert node_scores(ssn, second, "a1", "b1", "c1") == before


def test_the_plugin_is_registered_under_its_name() -> None:
    ssn, _ = opened(SOFT)
    assert [p.name for p in ssn.plugins if p.name == PLUGIN] == [PLUGIN]
