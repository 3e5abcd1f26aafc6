"""Gangs kept inside network domains, from manifests to binds (spec 06 §A4-A6, §A8, §A9)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from lab import NOW, Lab, configuration, written
from topology import PLUGIN, SOFT, hard, hyper_node, lab_t
from vcscheduler.framework.extension_points import ExtensionPoints
from vcscheduler.model.topology import TOP
from vcscheduler.objects import HyperNode, Node

RACK = {"a1": "A", "a2": "A", "b1": "B", "b2": "B", "c1": "C", "c2": "C"}


def policy(name: str, size: int, minimum: int = 0, **topology: Any) -> dict[str, Any]:
    return {"name": name, "matchLabelKeys": ["part"], "subGroupSize": size, "minSubGroups": minimum, **topology}


def racks(binds: dict[str, str]) -> dict[str, str]:
    return {pod.removeprefix("ns/"): RACK[node] for pod, node in binds.items()}


# --- allocate ---------------------------------------------------------------------------------------------------------


def test_a_soft_gang_takes_the_smallest_domain_that_holds_it_and_stays_close() -> None:
    lab = lab_t().job("j", 3, tasks=3, cpu=4, group=SOFT)
    binds = lab.cycle().binds
    assert sorted(racks(binds).values()) in (["A", "A", "B"], ["A", "B", "B"])
    job = lab.cache.jobs["ns/j"]
    assert (job.allocated_hyper_node, job.default_sub_job.allocated_hyper_node) == ("P", "P")


def test_a_gang_of_two_levels() -> None:
    group = {
        "min_resources": {"cpu": 16},
        "subGroupPolicy": [policy("p", 2, 2, **hard(1))],
        **hard(2),
    }
    lab = lab_t().job("j", 4, group=group)
    for part in ("0", "1"):
        for i in range(2):
            lab.pod("j", f"j-{part}-{i}", cpu=4, labels={"part": part})
    assert racks(lab.cycle().binds) == {"j-0-0": "A", "j-0-1": "A", "j-1-0": "B", "j-1-1": "B"}
    job = lab.cache.jobs["ns/j"]
    assert job.allocated_hyper_node == "P"
    assert {s.id: s.allocated_hyper_node for s in job.sub_jobs.values()} == {"ns/j/p-0": "A", "ns/j/p-1": "B"}


def test_small_sub_groups_fill_small_domains() -> None:
    lab = Lab(configuration([["priority", "gang"], [PLUGIN]], "allocate")).queue("q")
    for i in range(5):
        lab.node(f"n{i}", cpu=2, memory="4Gi")
    lab.add(hyper_node("s0", 1, "node/n0", "node/n1"), hyper_node("s1", 1, "node/n2", "node/n3"))
    lab.add(hyper_node("s2", 1, "node/n4"), hyper_node("s3", 2, "hyper/s0", "hyper/s1", "hyper/s2"))
    groups = {"master": 1, "worker": 2, "worker2": 2}
    policies = [
        {
            "name": name,
            "labelSelector": {"matchLabels": {"kind": name}},
            "matchLabelKeys": ["kind"],
            "subGroupSize": size,
            **hard(1),
        }
        for name, size in groups.items()
    ]
    lab.job("j", 5, group={"subGroupPolicy": policies, **hard(2)})
    for name, size in groups.items():
        for i in range(size):
            lab.pod("j", f"{name}-{i}", cpu=2, memory="4Gi", labels={"kind": name})
    binds = lab.cycle().binds
    assert binds["ns/master-0"] == "n4"
    assert {binds["ns/worker-0"], binds["ns/worker-1"]} == {"n0", "n1"}
    assert {binds["ns/worker2-0"], binds["ns/worker2-1"]} == {"n2", "n3"}


def test_more_pods_than_a_domain_holds_keep_an_elastic_gang_out() -> None:
    """Quirk of spec 06 §A7.3: the minimum would fit."""
    group = {"min_resources": {"cpu": 8}, **hard(1)}
    assert lab_t().job("j", 2, tasks=4, cpu=4, group=group).cycle().binds == {}
    assert len(lab_t().job("j", 2, tasks=2, cpu=4, group=group).cycle().binds) == 2


def test_a_full_home_is_not_left() -> None:
    lab = lab_t().job("j", 2, group=hard(1)).pod("j", "j-0", cpu=4, node="a1").pod("j", "j-1", cpu=4, node="a2")
    record = lab.pod("j", "j-2", cpu=4).cycle()
    assert record.binds == {}
    assert lab.cache.jobs["ns/j"].allocated_hyper_node == "A"


def test_the_text_of_a_failure_names_the_domain() -> None:
    lab = lab_t(plugins=["predicates"]).job("j", 1, tasks=1, cpu=4, group=hard(1))
    for name in RACK:
        lab.job(f"x-{name}", tasks=1, cpu=1, memory=0, on=name)
    # One task of 4 CPUs passes the sums of every rack, and fits no node.
    message = lab.cycle().conditions["ns/j"][0]["message"]
    assert message.endswith("Origin reason is j-w-0: In hyperNode C: 0/2 nodes are unavailable: 2 Insufficient cpu.")


@pytest.mark.parametrize(
    "topology", [{"mode": "hard"}, {"mode": "hard", "highestTierName": "moon"}, {"highestTierAllowed": 1}]
)
def test_no_tier_or_no_mode_is_no_limit(topology: dict[str, Any]) -> None:
    """Quirk of spec 06 §A5.4."""
    lab = lab_t().job("j", 3, tasks=3, cpu=4, group={"networkTopology": topology})
    assert len(lab.cycle().binds) == 3
    assert lab.cache.jobs["ns/j"].allocated_hyper_node == ""


def test_without_the_plugin_a_limit_is_not_enforced() -> None:
    lab = lab_t()
    lab.scheduler.configuration = Lab(configuration([["gang"]], "allocate")).scheduler.configuration
    assert len(lab.job("j", 3, tasks=3, cpu=4, group=hard(1)).cycle().binds) == 3


def test_jobs_that_ask_for_a_topology_wait_while_it_is_broken() -> None:
    lab = lab_t().add(hyper_node("Z", 2, "hyper/A"))
    lab.job("near", 1, tasks=1, group=hard(2)).job("any", 1, tasks=1)
    first, second = lab.cycles(2)
    assert (list(first.binds), list(second.binds)) == (["ns/any-w-0"], [])
    lab.cluster.delete(HyperNode, "Z")
    assert list(lab.cycle().binds) == ["ns/near-w-0"]


def test_without_hyper_nodes_the_whole_cluster_is_one_domain() -> None:
    lab = Lab(configuration([["gang"], [PLUGIN]], "allocate")).queue("q").node("n0").node("n1")
    assert len(lab.job("j", 2, tasks=2, cpu=3, group=hard(1)).cycle().binds) == 2
    assert lab.cache.jobs["ns/j"].allocated_hyper_node == TOP


def test_a_session_leaves_limits_and_domains_of_what_it_only_tried() -> None:
    lab = lab_t().job("j", 3, tasks=3, cpu=4, group=hard(1))
    assert lab.cycle().binds == {}
    job = lab.cache.jobs["ns/j"]
    assert (job.allocated_hyper_node, job.default_sub_job.allocated_hyper_node) == ("", "")
    assert not job.counts[1]


# --- when a session opens ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "sub", "job_tier", "sub_tier"),
    [
        (SOFT, {}, 4, None),
        (SOFT, SOFT, 4, 4),
        (hard(2), SOFT, 2, 2),
        ({}, SOFT, None, 4),
        (hard(2), hard(1), 2, 1),
        ({"networkTopology": {"mode": "hard", "highestTierName": "moon"}}, SOFT, None, 4),
        ({"networkTopology": {"mode": "hard", "highestTierName": "row"}}, SOFT, 2, 2),
        ({"networkTopology": {"mode": "soft", "highestTierAllowed": 1}}, {}, 4, None),
    ],
)
def test_soft_becomes_hard(job: Any, sub: Any, job_tier: int | None, sub_tier: int | None) -> None:
    lab = lab_t().job("j", group={"subGroupPolicy": [policy("p", 1, **sub)], **job})
    lab.pod("j", "j-0", labels={"part": "0"})
    found = lab.session().jobs["ns/j"]
    assert (found.hard_tier, found.sub_jobs["ns/j/p-0"].hard_tier) == (job_tier, sub_tier)


def test_a_new_topology_moves_the_limits() -> None:
    lab = lab_t().job("j", tasks=1, cpu=40, group=SOFT)
    assert lab.session().jobs["ns/j"].hard_tier == 4
    lab.add(hyper_node("W", 9, "hyper/R"))
    assert lab.session().jobs["ns/j"].hard_tier == 10


@pytest.mark.parametrize(("nodes", "domain"), [(("a1", "a2"), "A"), (("a1", "b1"), "P"), (("a1", "lone"), TOP)])
def test_where_a_gang_runs_is_found_after_a_restart(nodes: tuple[str, ...], domain: str) -> None:
    lab = lab_t().node("lone").job("j", group=hard(3))
    for i, node in enumerate(nodes):
        lab.pod("j", f"j-{i}", node=node)
    job = lab.session().jobs["ns/j"]
    assert (job.default_sub_job.allocated_hyper_node, job.allocated_hyper_node) == (domain, domain)


def test_a_task_on_a_node_that_is_gone_leaves_the_domain_open() -> None:
    lab = lab_t().job("j", group=hard(3)).pod("j", "j-0", node="a1").pod("j", "j-1", node="gone")
    assert lab.session().jobs["ns/j"].allocated_hyper_node == ""


def test_a_domain_is_forgotten_when_nothing_runs_there_or_it_is_gone() -> None:
    lab = lab_t().job("j", 2, tasks=2, cpu=4, group=hard(1))
    lab.cycle()
    lab.cluster.step()
    assert lab.session().jobs["ns/j"].allocated_hyper_node == "A"
    lab.cluster.delete(HyperNode, "A")
    # Its nodes went out of P and R with it.
    assert lab.session().jobs["ns/j"].allocated_hyper_node == TOP


def test_nodes_that_leave_or_come_change_the_domains() -> None:
    lab = lab_t()
    assert len(lab.session().topology.rows("A")) == 2
    lab.cluster.delete(Node, "a1")
    assert len(lab.session().topology.rows("A")) == 1
    topology = lab.node("a1").session().topology
    assert len(topology.rows("A")) == 2
    assert lab.session().topology is topology


def test_common_domains() -> None:
    topology = lab_t().session().topology
    pairs = [("A", "B"), ("A", "C"), ("A", "P"), ("A", ""), ("", "B"), ("A", "unknown"), ("Q", "C")]
    assert [topology.common(a, b) for a, b in pairs] == ["P", "R", "P", "A", "B", "", "Q"]
    assert topology.tiers == [1, 2, 3, 4]
    assert topology.tier_names == {"rack": 1, "row": 2, "hall": 3}


# --- the shorter way --------------------------------------------------------------------------------------------------


def random_lab(seed: int) -> Lab:
    """A tree of random racks, partly filled and in part about to be left, and gangs of several sizes and kinds."""
    rng = random.Random(seed)
    plugins = [{"name": PLUGIN}, "predicates", "proportion", *(["binpack"] if seed % 2 else [])]
    lab = Lab(configuration([["priority", "gang"], plugins], "allocate")).queue("q")
    racks = rng.randint(3, 6)
    for r in range(racks):
        names = [f"n{r}{i}" for i in range(rng.randint(1, 3))]
        for name in names:
            lab.node(name, cpu=rng.randint(2, 6), pods=rng.choice([2, 110]))
            if rng.random() < 0.4:
                deleted = NOW.isoformat() if rng.random() < 0.5 else None
                lab.job(f"on-{name}", tasks=1, on=name, cpu=rng.randint(1, 2), deleted=deleted)
        lab.add(hyper_node(f"r{r}", 1, *(f"node/{name}" for name in names)))
    lab.add(hyper_node("row0", 2, *(f"hyper/r{r}" for r in range(racks // 2))))
    lab.add(hyper_node("row1", 2, *(f"hyper/r{r}" for r in range(racks // 2, racks))))
    for j in range(rng.randint(2, 5)):
        size = rng.randint(1, 6)
        group = dict(rng.choice([SOFT, hard(1), hard(2)]))
        if rng.random() < 0.5:
            inner = rng.choice([SOFT, hard(1), hard(2)])
            group["subGroupPolicy"] = [policy("p", rng.randint(1, 3), rng.randint(0, 2), **inner)]
        lab.job(f"j{j}", rng.randint(1, size), group=group)
        for i in range(size):
            where = rng.choice([f"n{rng.randrange(racks)}0", *[""] * 7])
            labels = {"part": str(rng.randrange(3))}
            cpu = 1 if where else rng.randint(1, 3)
            lab.pod(f"j{j}", f"j{j}-{i}", cpu=cpu, node=where, labels=labels, role=rng.choice(["", "a", "b"]))
    return lab


@pytest.mark.parametrize("seed", range(60))
def test_domains_that_need_no_try_change_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    short = [written(record) for record in random_lab(seed).cycles(2)]
    monkeypatch.setattr(ExtensionPoints, "hyper_node_scores_alone", lambda *_: None)
    assert short == [written(record) for record in random_lab(seed).cycles(2)]
