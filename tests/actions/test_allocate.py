"""allocate by small examples (spec 03 §3); tests/conformance/allocate-* has those of whole cases."""

from __future__ import annotations

from lab import Lab, configuration
from vcscheduler.objects import Pod


def test_idle_comes_before_what_will_be_idle_whatever_the_score() -> None:
    lab = Lab().queue("q").node("n1", cpu=8).node("n2", cpu=2, taints=["busy:PreferNoSchedule"])
    lab.job("old").pod("old", "old-w-0", cpu=8, node="n1", deleted="2026-03-01T12:00:30Z")
    lab.job("a", tasks=2, cpu=2)
    record = lab.cycle()
    assert record.binds == {"ns/a-w-0": "n2"}
    assert record.pipelined == {"ns/a-w-1": "n1"}


def test_a_gang_that_is_only_pipelined_binds_nobody_and_keeps_its_place() -> None:
    lab = Lab().queue("q").node("n1", cpu=4).node("n2", cpu=1)
    lab.job("old").pod("old", "old-w-0", cpu=4, node="n1", deleted="2026-03-01T12:00:30Z")
    lab.job("gang", minimum=2, tasks=2, cpu=1).job("late", tasks=1, cpu=4)
    record = lab.cycle()
    assert record.binds == {}
    assert record.task_status["ns/gang"] == {"Allocated": 1, "Pipelined": 1}
    assert record.task_status["ns/late"] == {"Pending": 1}
    lab.cluster.delete(Pod, "ns/old-w-0")
    assert lab.cycle().binds == {"ns/gang-w-0": "n1", "ns/gang-w-1": "n1"}


def test_the_nominated_node_is_tried_alone_first() -> None:
    lab = Lab().queue("q").node("n1").node("n2")
    lab.job("a", minimum=1, tasks=1, nominated="n2").job("b", tasks=1, cpu=1, nominated="nowhere")
    assert lab.cycle().binds == {"ns/a-w-0": "n2", "ns/b-w-0": "n1"}


def test_gated_tasks_wait() -> None:
    lab = Lab().queue("q").node("n1")
    lab.job("a", minimum=1, tasks=1, schedulingGates=[{"name": "example.com/wait"}])
    lab.pod("a", "a-w-1")
    assert lab.cycle().binds == {"ns/a-w-1": "n1"}


def test_a_role_that_failed_is_not_tried_again_in_the_session() -> None:
    lab = Lab(configuration([["gang", "predicates"]], "allocate")).queue("q").node("n1", cpu=2)
    lab.job("a", minimum=1, group={"roles": {"big": 0}})
    for i in range(2):
        lab.pod("a", f"a-w-{i}", role="big", cpu=9)
    lab.pod("a", "a-w-2", role="small")
    assert lab.cycle().binds == {"ns/a-w-2": "n1"}
    text = "Task a-w-1 with role spec big has already predicated failed, skip"
    assert lab.pod_conditions()["ns/a-w-1"] == ("Unschedulable", text, "")


def test_equal_nodes_are_taken_by_name() -> None:
    lab = Lab().queue("q")
    for name in ("n10", "n9", "n2"):
        lab.node(name)
    assert lab.job("a", minimum=3, tasks=3).cycle().binds == {"ns/a-w-0": "n10", "ns/a-w-1": "n2", "ns/a-w-2": "n9"}


def test_a_turn_ends_when_the_sub_group_is_ready() -> None:
    """Not when the job is: its other sub-groups come first, and the rest of this one later."""
    policy = {"name": "g", "subGroupSize": 1, "minSubGroups": 2, "matchLabelKeys": ["grp"]}
    lab = Lab(configuration([["gang", "predicates"]], "allocate")).queue("q").node("n1", cpu=3)
    lab.job("a", minimum=2, group={"subGroupPolicy": [policy]})
    for name, group in (("a-w-0", "0"), ("a-w-1", "0"), ("a-w-2", "0"), ("a-w-3", "1")):
        lab.pod("a", name, labels={"grp": group})
    assert lab.cycle().binds == {"ns/a-w-0": "n1", "ns/a-w-1": "n1", "ns/a-w-3": "n1"}
