"""Compiled runs: what they may skip, and what they must remember (docs/architecture.md, "Placement")."""

from __future__ import annotations

from lab import NOW, Lab, configuration

PLAIN = configuration([["gang"], ["predicates", "nodeorder"]], "allocate")


def test_a_class_is_evaluated_once_and_then_only_where_something_changed() -> None:
    lab = Lab(PLAIN).queue("q")
    for i in range(100):
        lab.node(f"n{i:03}", cpu=8)
    lab.job("a", minimum=10, tasks=10)
    lab.cycle()
    states = lab.class_states
    assert (states.built, states.rows_evaluated, states.calls) == (1, 100, 1)
    lab.cluster.step()
    lab.job("b", minimum=10, tasks=10)
    lab.cycle()
    # The same class again: at most the rows that the first gang went to.
    assert (states.built, states.calls) == (1, 2)
    assert states.rows_evaluated <= 110


def test_a_hopeless_class_costs_no_row_in_the_next_cycle() -> None:
    lab = Lab(PLAIN).queue("q").node("n1").node("n2").job("a", tasks=1, cpu=99)
    lab.cycle()
    evaluated = lab.class_states.rows_evaluated
    lab.cycle()
    assert lab.class_states.rows_evaluated == evaluated


def test_runs_go_on_over_the_borders_of_blocks_first_by_name() -> None:
    lab = Lab(PLAIN).queue("q")
    names = [f"n{(i * 37) % 130:03}" for i in range(130)]
    for name in names:
        lab.node(name, cpu=1)
    record = lab.job("a", minimum=130, tasks=130).cycle()
    in_order = [record.binds[f"ns/a-w-{i}"] for i in range(130)]
    assert in_order == sorted(names)


def test_a_node_is_not_blamed_for_a_port_that_nobody_wants() -> None:
    """n3 is full with a pod that leaves and holds another port; n1 and n2 were taken by the same gang."""
    lab = Lab(PLAIN).queue("q").node("n1").node("n2").node("n3", pods=1)
    lab.job("old").pod("old", "old-w-0", node="n3", ports=[{"hostPort": 81}], deleted=NOW.isoformat())
    lab.job("a", minimum=4)
    for i, role in enumerate(("w", "w", "m", "w")):
        lab.pod("a", f"a-w-{i}", role=role, ports=[{"hostPort": 80}] if role == "w" else [])
    lab.cycle()
    assert lab.pod_conditions()["ns/a-w-3"][1] == (
        "0/3 nodes are unavailable: 1 node(s) pod number exceeded, "
        "2 node(s) didn't have free ports for the requested pod ports."
    )


def test_pods_of_a_session_without_predicates_count_in_the_next() -> None:
    """Scores look at the Kubernetes view, which only the predicates plugin keeps current within a session."""
    lab = Lab(configuration([["gang"], ["nodeorder"]], "allocate")).queue("q").node("n1").node("n2")
    lab.job("a", tasks=1)
    assert lab.cycle().binds == {"ns/a-w-0": "n1"}
    # Not even confirmed yet, and it counts.
    lab.job("b", tasks=1)
    assert lab.cycle().binds == {"ns/a-w-0": "n1", "ns/b-w-0": "n2"}
