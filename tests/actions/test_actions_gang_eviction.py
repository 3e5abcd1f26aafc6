"""gangpreempt and gangreclaim: bundles, their order, and what a whole job costs others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lab import C0, Lab, configuration
from vcscheduler.actions.bundles import split
from vcscheduler.objects.topology import HyperNode

PREEMPT = "enqueue, allocate, gangpreempt, backfill"
RECLAIM = "enqueue, allocate, gangreclaim, backfill"


def lab(tiers: Any = C0, actions: str = PREEMPT, **arguments: Any) -> Lab:
    return Lab(configuration(tiers, actions, **{"gangpreempt": arguments} if arguments else {}))


def two_nodes_of_a_gang(*on: str, high: dict[str, Any], **arguments: Any) -> Lab:
    """A low gang with minimum 2 and a pod of 2 CPU on each of the nodes named; n1 and n2 have 4 CPU."""
    cluster = lab(**arguments).queue("q").node("n1").node("n2").job("l", 2, tasks=0, phase="Running", priority=10)
    for i, node in enumerate(on):
        cluster.pod("l", f"l-w-{i}", cpu=2, node=node)
    return cluster.job("h", priority=100, cpu=4, **high)


def test_what_a_gang_can_spare_goes_first_then_the_whole_of_it() -> None:
    cluster = two_nodes_of_a_gang("n1", "n1", "n2", "n2", high={"minimum": 2, "tasks": 2})

    record = cluster.cycle()

    assert record.evicts == ["ns/l-w-0", "ns/l-w-1", "ns/l-w-2", "ns/l-w-3"]
    assert record.pipelined == {"ns/h-w-0": "n1", "ns/h-w-1": "n2"}
    assert {node for _, _, node in cluster.pod_conditions().values()} == {"n1", "n2"}


def test_without_whole_bundles_a_gang_is_not_broken() -> None:
    cluster = two_nodes_of_a_gang("n1", "n1", "n2", "n2", high={"minimum": 2, "tasks": 2}, allowWholeBundle=False)

    assert cluster.cycle().evicts == []


def test_bundles_are_not_minimised() -> None:
    cluster = two_nodes_of_a_gang("n1", "n2", "n1", "n2", high={"minimum": 1, "tasks": 1})

    record = cluster.cycle()

    assert record.evicts == ["ns/l-w-0", "ns/l-w-1", "ns/l-w-2", "ns/l-w-3"]
    assert list(record.pipelined) == ["ns/h-w-0"]


def test_jobs_of_the_same_priority_or_that_refuse_are_no_victims() -> None:
    def evicts(**group: Any) -> list[str]:
        cluster = lab().queue("q").node("n1").job("l", 1, tasks=4, on="n1", **group)
        return cluster.job("h", 1, tasks=1, priority=100).cycle().evicts

    assert evicts(priority=100) == []
    assert evicts(priority=10) == ["ns/l-w-0", "ns/l-w-1", "ns/l-w-2"]


def test_the_later_job_pays_first() -> None:
    cluster = lab().queue("q").node("n1")
    cluster.job("mid", 0, tasks=2, priority=20, on="n1").job("low", 0, tasks=2, priority=10, on="n1")

    assert cluster.job("h", 2, tasks=2, priority=100).cycle().evicts == ["ns/low-w-0", "ns/low-w-1"]


def test_gangreclaim_takes_from_other_queues_only() -> None:
    tiers = [["priority", "gang", "conformance"], ["predicates", "nodeorder"]]
    cluster = lab(tiers, RECLAIM).queue("q1").queue("q2").queue("q3", reclaimable=False).node("n1", cpu=6)
    for name in ("q1", "q2", "q3"):
        cluster.job(f"j{name}", 0, tasks=2, queue=name, on="n1")

    record = cluster.job("w", 2, tasks=2, queue="q1").cycle()

    assert record.evicts == ["ns/jq2-w-0", "ns/jq2-w-1"]
    assert record.pipelined == {"ns/w-w-0": "n1", "ns/w-w-1": "n1"}


@pytest.mark.parametrize(
    ("minimum", "bundles"),
    [
        (0, [(True, 4)]),
        (3, [(True, 1), (False, 3)]),
        (4, [(False, 4)]),
        (5, [(True, 4)]),
    ],
    ids=["no gang", "one to spare", "none to spare", "broken already"],
)
def test_how_a_job_is_split(minimum: int, bundles: list[tuple[bool, int]]) -> None:
    cluster = lab().queue("q").node("n1").job("l", minimum, tasks=4, on="n1")
    ssn = cluster.session()
    job = ssn.jobs["ns/l"]

    found = split(job, job.tasks.values())

    assert [(b.safe, len(b.tasks)) for b in found] == bundles
    cluster.close(ssn)


def test_roles_keep_their_minimum() -> None:
    cluster = lab().queue("q").node("n1").job("l", 3, phase="Running", group={"roles": {"ps": 1, "worker": 2}})
    for name, role in (("a", "ps"), ("b", "worker"), ("c", "worker"), ("d", "worker")):
        cluster.pod("l", f"l-{name}", role=role, node="n1")
    ssn = cluster.session()
    job = ssn.jobs["ns/l"]

    safe, rest = split(job, job.tasks.values())

    # One may go, and the only parameter server is not it.
    assert [t.name for t in safe.tasks] == ["l-b"]
    assert [t.name for t in rest.tasks] == ["l-a", "l-c", "l-d"]
    cluster.close(ssn)


def test_groups_keep_their_minimum() -> None:
    policy = {
        "name": "g",
        "subGroupSize": 2,
        "minSubGroups": 1,
        "matchLabelKeys": ["part"],
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    cluster = lab().queue("q").node("n1").job("l", 2, phase="Running", group={"subGroupPolicy": [policy]})
    for i in range(4):
        cluster.pod("l", f"l-w-{i}", node="n1", labels={"part": str(i // 2), "app": "x"})
    ssn = cluster.session()
    job = ssn.jobs["ns/l"]

    safe, rest = split(job, job.tasks.values())

    assert [t.name for t in safe.tasks] == ["l-w-0", "l-w-1"]
    assert [t.name for t in rest.tasks] == ["l-w-2", "l-w-3"]
    cluster.close(ssn)


def racks(high: dict[str, Any]) -> Lab:
    """Two racks of two nodes with 2 CPU each. Lowest are the pods on n2 and n3, one in either rack."""
    tiers = [["priority", "gang", "conformance"], ["predicates", "nodeorder", "network-topology-aware"]]
    cluster = lab(tiers).queue("q")
    for rack, members in (("r1", ("n1", "n2")), ("r2", ("n3", "n4"))):
        chosen = [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in members]
        cluster.add(msgspec.convert({"metadata": {"name": rack}, "spec": {"tier": 1, "members": chosen}}, HyperNode))
    cluster.job("mid", 0, priority=20, phase="Running").job("low", 0, priority=10, phase="Running")
    for job, node in (("mid", "n1"), ("low", "n2"), ("low", "n3"), ("mid", "n4")):
        cluster.node(node, cpu=2).pod(job, f"{job}-w-{node[1:]}", cpu=2, node=node)
    return cluster.job("h", 2, tasks=2, priority=100, cpu=2, group=high)


def test_a_job_bound_to_one_domain_has_others_evicted_there_only() -> None:
    hard = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}

    bound = racks(hard).cycle()

    assert bound.evicts == ["ns/low-w-2", "ns/mid-w-1"]
    assert bound.pipelined == {"ns/h-w-0": "n1", "ns/h-w-1": "n2"}
    assert racks({}).cycle().evicts == ["ns/low-w-2", "ns/low-w-3"]


def test_a_useless_number_of_domains_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    cluster = two_nodes_of_a_gang("n1", "n1", high={"minimum": 1, "tasks": 1}, maxDomains=0)

    assert cluster.cycle().binds == {"ns/h-w-0": "n2"}
    cluster.cycle()

    assert caplog.messages.count("gangpreempt: maxDomains must be at least 1, found 0; 8 is used") == 1
