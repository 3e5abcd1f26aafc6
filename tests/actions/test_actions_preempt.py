"""preempt, on the worked examples of its spec and on what may go wrong around them."""

from __future__ import annotations

from typing import Any

import pytest

from lab import Lab, configuration
from vcscheduler.actions.dry_run import DryRunSettings
from vcscheduler.actions.preempt import Preempt, Settings
from vcscheduler.config import Arguments

CP = [
    ["priority", {"name": "gang", "enablePreemptable": False}, "conformance"],
    ["overcommit", {"name": "drf", "enablePreemptable": False}, "predicates", "proportion", "nodeorder"],
]
ACTIONS = "enqueue, allocate, preempt, backfill"
#: Without queue limits: only space decides.
FREE = [["priority", {"name": "gang", "enablePreemptable": False}, "conformance"], ["predicates", "nodeorder"]]


def lab(tiers: Any = CP, actions: str = ACTIONS, **preempt: Any) -> Lab:
    how = {"preempt": preempt} if preempt else {}
    return Lab(configuration(tiers, actions, **how))


def low_and_high(minimum: int = 1, tasks: int = 1, **high: Any) -> Lab:
    """Two low pods of 1 CPU fill n1; a job of higher priority waits."""
    return (
        lab()
        .queue("q")
        .node("n1", cpu=2)
        .job("l", 1, tasks=2, priority=10, on="n1")
        .job("h", minimum, tasks=tasks, priority=100, **high)
    )


def test_the_later_pod_of_the_lower_job_goes_and_the_preemptor_is_promised_its_place() -> None:
    cluster = low_and_high()

    first = cluster.cycle()

    assert first.evicts == ["ns/l-w-1"]
    assert first.pipelined == {"ns/h-w-0": "n1"}
    assert cluster.pod_conditions()["ns/h-w-0"] == (
        "Unschedulable",
        "Pod ns/h-w-0 can possibly be assigned to n1, once resource is released and minAvailable is satisfied",
        "n1",
    )
    cluster.cluster.step()
    second = cluster.cycle()
    assert (second.binds, second.evicts) == ({"ns/h-w-0": "n1"}, [])


def test_a_gang_that_cannot_be_completed_evicts_nobody_but_leaves_its_nominations() -> None:
    cluster = low_and_high(minimum=3, tasks=3)

    record = cluster.cycle()

    assert (record.evicts, record.pipelined) == ([], {})
    nominated = {key: node for key, (_, _, node) in cluster.pod_conditions().items()}
    assert nominated == {"ns/h-w-0": "n1", "ns/h-w-1": "n1", "ns/h-w-2": ""}


def test_a_nomination_does_not_bar_a_pod_that_its_queue_limit_keeps_from_allocate() -> None:
    cluster = low_and_high(minimum=3, tasks=3)
    cluster.cycle()
    cluster.node("n2", cpu=2).job("m", 1, tasks=2, priority=5, on="n2")

    record = cluster.cycle()

    assert record.evicts == ["ns/l-w-0", "ns/l-w-1", "ns/m-w-1"]
    assert record.pipelined == {"ns/h-w-0": "n1", "ns/h-w-1": "n1", "ns/h-w-2": "n2"}


def test_a_nominated_pod_that_allocate_looked_at_waits_for_its_node() -> None:
    cluster = low_and_high(minimum=3, tasks=3)
    cluster.cycle()
    cluster.node("n2", cpu=2).job("m", 1, tasks=2, priority=5, on="n2").node("n3", cpu=3, unschedulable=True)

    # Only H-0 reaches PrePredicate, finds no node and ends its job's turn; so it is barred and two of three are short.
    assert cluster.cycle().evicts == []


def test_an_empty_answer_of_the_first_tier_lets_the_second_decide() -> None:
    tiers = [["priority", "gang", "conformance"], ["drf", "predicates", "proportion", "nodeorder"]]
    cluster = lab(tiers).queue("q").node("n1", cpu=2)
    cluster.job("l", 2, tasks=2, priority=10, on="n1").job("h", 1, tasks=1, priority=100)

    assert cluster.cycle().evicts == ["ns/l-w-0"]


def test_with_nobody_left_to_answer_there_are_no_victims() -> None:
    tiers = [["priority", "gang", "conformance"], ["predicates", "proportion", "nodeorder"]]
    cluster = lab(tiers).queue("q").node("n1", cpu=2)
    cluster.job("l", 2, tasks=2, priority=10, on="n1").job("h", 1, tasks=1, priority=100)

    assert cluster.cycle().evicts == []


def test_inside_a_job_a_task_takes_the_place_of_a_lower_one_whatever_becomes_of_the_gang() -> None:
    cluster = lab().queue("q").node("n1", cpu=2).job("j", 2, tasks=0, phase="Running")
    cluster.pod("j", "j-w-0", cpu=2, node="n1", priority=1).pod("j", "j-w-1", cpu=2, priority=10)

    first, second = cluster.cycles(2)

    assert (first.evicts, first.pipelined) == (["ns/j-w-0"], {"ns/j-w-1": "n1"})
    assert (second.evicts, second.binds) == ([], {})


def test_what_one_node_frees_does_not_help_on_another() -> None:
    cluster = lab().queue("q", capability={"cpu": "6"}).node("n1", cpu=3).node("n2", cpu=4)
    cluster.job("l1", 0, tasks=1, priority=10, on="n1").job("l2", 0, tasks=1, priority=10, on="n2", cpu=4)
    cluster.job("h", 1, tasks=1, priority=100, cpu=3)

    record = cluster.cycle()

    assert (record.evicts, record.pipelined) == (["ns/l2-w-0"], {"ns/h-w-0": "n2"})


def test_a_queue_limit_is_made_room_under_although_the_node_is_idle() -> None:
    cluster = lab().queue("q", capability={"cpu": "4"}).node("n1", cpu=12)
    cluster.job("l", 0, tasks=1, priority=10, on="n1", cpu=3).job("h", 1, tasks=1, priority=100, cpu=3)

    record = cluster.cycle()

    assert (record.evicts, record.pipelined) == (["ns/l-w-0"], {"ns/h-w-0": "n1"})


def test_a_task_that_fits_is_pipelined_without_an_eviction() -> None:
    cluster = lab(actions="preempt").queue("q").node("n1", cpu=2)
    cluster.job("l", 1, tasks=1, priority=10, on="n1").job("h", 1, tasks=1, priority=100)

    record = cluster.cycle()

    assert (record.evicts, record.pipelined) == ([], {"ns/h-w-0": "n1"})
    assert cluster.pod_conditions()["ns/h-w-0"][2] == ""


def three_sizes(**preempt: Any) -> Lab:
    cluster = lab(FREE, **preempt).queue("q").node("n1", cpu=4)
    cluster.job("v1", 0, tasks=1, priority=1, on="n1").job("v2", 0, tasks=1, priority=2, on="n1", cpu=2)
    return cluster.job("v3", 0, tasks=1, priority=3, on="n1").job("h", 1, tasks=1, priority=100, cpu=2)


def test_normal_mode_evicts_in_order_until_the_task_fits() -> None:
    assert three_sizes().cycle().evicts == ["ns/v1-w-0", "ns/v2-w-0"]


def test_topology_aware_mode_spares_whom_it_can() -> None:
    record = three_sizes(enableTopologyAwarePreemption=True).cycle()

    assert (record.evicts, record.pipelined) == (["ns/v2-w-0"], {"ns/h-w-0": "n1"})


def test_topology_aware_mode_takes_the_node_with_the_least_important_victim() -> None:
    arguments = {"enableTopologyAwarePreemption": True, "minCandidateNodesPercentage": 100}
    cluster = lab(FREE, **arguments).queue("q").node("n1", cpu=1).node("n2", cpu=1)
    cluster.job("a", 0, tasks=0, phase="Running").pod("a", "a-w-0", node="n1", priority=7)
    cluster.pod("a", "a-w-1", node="n2", priority=3).job("h", 1, tasks=1, priority=100)

    assert cluster.cycle().evicts == ["ns/a-w-1"]


def test_topology_aware_mode_evicts_a_pod_that_keeps_the_preemptor_away() -> None:
    apart = {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "old"}}}
                ]
            }
        }
    }

    def evicted(**preempt: Any) -> list[str]:
        cluster = lab(FREE, **preempt).queue("q").node("n1", cpu=2, labels={"kubernetes.io/hostname": "n1"})
        cluster.job("l", 0, tasks=1, priority=10, on="n1", labels={"app": "old"})
        return cluster.job("h", 1, tasks=1, priority=100, **apart).cycle().evicts

    assert evicted(enableTopologyAwarePreemption=True) == ["ns/l-w-0"]
    # In normal mode the pods near by are counted before anybody is evicted.
    assert evicted() == []


def test_a_pod_that_never_preempts_does_not() -> None:
    assert low_and_high(preemptionPolicy="Never").cycle().evicts == []


@pytest.mark.parametrize(
    ("protection", "evicts"),
    [
        ({"annotations": {"volcano.sh/preemptable": "false"}}, []),
        ({"labels": {"volcano.sh/preemptable": "no"}}, []),
        ({"priorityClassName": "system-node-critical"}, []),
        ({"annotations": {"volcano.sh/preemptable": "true"}}, ["ns/l-w-1"]),
    ],
)
def test_pods_that_may_not_be_evicted_stay(protection: dict[str, Any], evicts: list[str]) -> None:
    cluster = lab().queue("q").node("n1", cpu=2).job("l", 1, tasks=2, priority=10, on="n1", **protection)

    assert cluster.job("h", 1, tasks=1, priority=100).cycle().evicts == evicts


def test_other_queues_are_left_alone() -> None:
    cluster = lab(FREE).queue("q").queue("other").node("n1", cpu=2)
    cluster.job("l", 1, tasks=2, queue="other", priority=10, on="n1").job("h", 1, tasks=1, priority=100)

    assert cluster.cycle().evicts == []


def test_nodes_that_no_eviction_opens_are_not_tried() -> None:
    cluster = lab(FREE).queue("q").node("n1", cpu=1, taints=["gpu:NoSchedule"]).node("n2", cpu=1)
    cluster.job("l1", 0, tasks=1, priority=10, on="n1").job("l2", 0, tasks=1, priority=20, on="n2")

    assert cluster.job("h", 1, tasks=1, priority=100).cycle().evicts == ["ns/l2-w-0"]


def test_settings_outlive_their_key() -> None:
    set_once = Settings().updated(Arguments({"enableTopologyAwarePreemption": "true", "minCandidateNodesAbsolute": 3}))
    later = set_once.updated(Arguments({"predicateErrorCacheEnable": False}))

    assert (later.topology_aware, later.dry_run.at_least, later.error_cache) == (True, 3, False)


@pytest.mark.parametrize(
    ("nodes", "wanted"), [(5, 1), (50, 5), (2000, 100), (0, 0)], ids=["few", "a tenth", "at most", "none"]
)
def test_how_many_candidates_are_compared(nodes: int, wanted: int) -> None:
    assert DryRunSettings().wanted(nodes) == wanted


def test_evictions_say_for_whom_and_what_they_free_while_somebody_wants_to_know() -> None:
    cluster = lab().queue("q").node("n0", cpu=2).node("n1", cpu=2)
    cluster.job("k", 1, tasks=2, priority=200, on="n0").job("l", 1, tasks=2, priority=10, on="n1")
    ssn = cluster.job("h", 1, tasks=1, priority=100).session()
    ssn.explaining_victims = True

    Preempt().execute(ssn)

    (record,) = ssn.eviction_records
    assert (record.victim.key, record.on_behalf and record.on_behalf.key) == ("ns/l-w-1", "ns/h-w-0")
    assert (record.action, record.node_name, record.frees.cpu) == ("preempt", "n1", 1000.0)
    (passed,) = ssn.nodes_passed_over
    assert (passed.task.key, passed.node_name) == ("ns/h-w-0", "n0")
    assert passed.why == "0 of 2 candidates may be evicted, which frees too little"
    cluster.close(ssn)
