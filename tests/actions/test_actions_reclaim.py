"""reclaim, on the worked examples of its spec and on its quirks."""

from __future__ import annotations

from typing import Any

from lab import Lab, configuration

CR = [["priority", "gang", "conformance", "proportion", "predicates", "nodeorder"]]
ACTIONS = "enqueue, allocate, reclaim, backfill"


def lab(tiers: Any = CR, actions: str = ACTIONS) -> Lab:
    return Lab(configuration(tiers, actions))


def test_a_queue_under_its_due_takes_back_what_another_has_beyond_its_own() -> None:
    cluster = lab().queue("q1").queue("q2").node("n1", cpu=3)
    cluster.job("a", 1, queue="q1", phase="Running")
    for i, preemptable in enumerate(("false", "true", "false")):
        cluster.pod("a", f"a-w-{i}", node="n1", annotations={"volcano.sh/preemptable": preemptable})
    cluster.job("b", 1, tasks=1, queue="q2")

    first, second = cluster.cycles(2)

    assert (first.evicts, first.pipelined) == (["ns/a-w-1"], {"ns/b-w-0": "n1"})
    assert (second.evicts, second.binds) == ([], {"ns/b-w-0": "n1"})


def test_a_queue_reclaims_job_by_job_until_it_has_its_due() -> None:
    cluster = lab().queue("q1").queue("q2").node("n1", cpu=4).job("a", 1, tasks=4, queue="q1", on="n1")
    for name in ("b1", "b2", "b3"):
        cluster.job(name, 1, tasks=1, queue="q2")

    record = cluster.cycle()

    assert record.evicts == ["ns/a-w-0", "ns/a-w-1"]
    assert record.pipelined == {"ns/b1-w-0": "n1", "ns/b2-w-0": "n1"}


def test_queues_that_are_not_reclaimable_keep_what_they_have() -> None:
    def evicts(b_reclaimable: bool) -> list[str]:
        cluster = lab().queue("qa", reclaimable=False).queue("qb", reclaimable=b_reclaimable).queue("qc")
        cluster.node("n1", cpu=4).job("a", 1, tasks=2, queue="qa", on="n1")
        return cluster.job("b", 1, tasks=2, queue="qb", on="n1").job("c", 1, tasks=1, queue="qc").cycle().evicts

    assert evicts(b_reclaimable=True) == ["ns/b-w-0"]
    assert evicts(b_reclaimable=False) == []


def test_where_the_queue_plugin_stands_in_a_later_tier_it_protects_nobody() -> None:
    def evicts(tiers: Any) -> list[str]:
        cluster = lab(tiers).queue("q1").queue("q2").queue("q3").node("n1", cpu=2).node("n2", cpu=4)
        cluster.job("a", 1, tasks=2, queue="q1", on="n1").job("b", 1, tasks=4, queue="q2", on="n2")
        return cluster.job("c", 1, tasks=1, queue="q3").cycle().evicts

    assert evicts(CR) == ["ns/b-w-0"]
    assert evicts([["gang", "conformance"], ["proportion", "predicates", "nodeorder"]]) == ["ns/a-w-0"]


def test_a_gang_that_cannot_be_completed_evicts_nobody_but_leaves_its_nomination() -> None:
    cluster = lab().queue("q1").queue("q2").node("n1", cpu=4)
    cluster.job("a", 3, tasks=4, queue="q1", on="n1").job("b", 2, tasks=2, queue="q2")

    assert cluster.cycle().evicts == []
    assert cluster.pod_conditions()["ns/b-w-0"][2] == "n1"


def test_a_pod_that_never_preempts_leaves_it_to_the_others_of_its_job() -> None:
    cluster = lab().queue("q1").queue("q2").node("n1", cpu=2).job("a", 1, tasks=2, queue="q1", on="n1")
    cluster.job("b", 1, queue="q2").pod("b", "b-w-0", preemptionPolicy="Never").pod("b", "b-w-1")

    record = cluster.cycle()

    assert (record.evicts, record.pipelined) == (["ns/a-w-0"], {"ns/b-w-1": "n1"})


def test_nodes_are_taken_as_they_come_without_scores() -> None:
    cluster = lab().queue("q1").queue("q2").node("n2", cpu=2).node("n1", cpu=8)
    cluster.job("a", 1, tasks=2, queue="q1", on="n2").job("a2", 1, tasks=8, queue="q1", on="n1")

    # n2 came first, and of its pods q1 has one beyond its due.
    assert cluster.job("b", 1, tasks=1, queue="q2").cycle().evicts == ["ns/a-w-0"]


def test_a_node_without_anybody_to_evict_is_skipped_even_if_the_task_fits() -> None:
    cluster = lab(actions="reclaim").queue("q1").queue("q2").node("n0", cpu=4).node("n1", cpu=2)
    cluster.job("a", 1, tasks=2, queue="q1", on="n1").job("b", 1, tasks=1, queue="q2")

    record = cluster.cycle()

    # Both queues deserve what they ask for, so nothing is taken; but neither is the idle node.
    assert (record.evicts, record.pipelined) == ([], {})


def test_pods_that_are_bound_but_do_not_run_yet_are_no_victims() -> None:
    cluster = lab().queue("q1").queue("q2").node("n1", cpu=3)
    cluster.job("a", 1, queue="q1", phase="Running")
    cluster.pod("a", "a-w-0", node="n1", phase="Pending")
    cluster.pod("a", "a-w-1", node="n1").pod("a", "a-w-2", node="n1")

    # q1 has one beyond its due, and pods are looked at by name.
    assert cluster.job("b", 1, tasks=1, queue="q2").cycle().evicts == ["ns/a-w-1"]


def test_several_queues_give_in_the_order_of_their_share() -> None:
    cluster = lab([["gang", "proportion", "predicates", "nodeorder"]])
    for name in ("q1", "q2", "q3"):
        cluster.queue(name)
    cluster.node("n1", cpu=9).job("a", 1, tasks=4, queue="q1", on="n1").job("b", 1, tasks=5, queue="q2", on="n1")

    record = cluster.job("c", 2, tasks=2, queue="q3").cycle()

    # Both deserve 3.5. For the first pod q2 has the larger share, for the second it is the later name.
    assert record.evicts == ["ns/b-w-0", "ns/b-w-1"]
