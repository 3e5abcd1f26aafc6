"""What HyperNodes come to: nodes inside, parents, readiness (spec 06 §A2, §A3)."""

from __future__ import annotations

from typing import Any

import pytest

from topology import hyper_node
from vcscheduler.model.hypernodes import HyperNodes
from vcscheduler.objects import HyperNode


def known(*names: str, **labelled: str) -> HyperNodes:
    """Nodes without labels, and ``name=rack`` with one."""
    hyper_nodes = HyperNodes()
    for name in names:
        hyper_nodes.put_node(name, {})
    for name, rack in labelled.items():
        hyper_nodes.put_node(name, {"rack": rack})
    return hyper_nodes


def upsert(hyper_nodes: HyperNodes, *objects: HyperNode) -> None:
    """One after the other, each settled before the next comes."""
    for obj in objects:
        hyper_nodes.put(obj)
        hyper_nodes.settle()


def is_ready(hyper_nodes: HyperNodes) -> bool:
    return hyper_nodes.ready


def expression(requirement: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Node", "selector": {"labelMatch": {"matchExpressions": [requirement]}}}


def parents(hyper_nodes: HyperNodes) -> dict[str, str]:
    return {name: entry.parent for name, entry in hyper_nodes.entries.items() if entry.parent}


def test_a_parent_seen_first_makes_placeholders_that_are_in_no_tier() -> None:
    h = known()
    upsert(h, hyper_node("s2", 2, "hyper/s0", "hyper/s1"))
    assert parents(h) == {"s0": "s2", "s1": "s2"}
    assert h.nodes == {"s2": set()}
    assert h.by_tier == {2: {"s2"}}
    assert is_ready(h)
    upsert(h, hyper_node("s0", 1, "node/node-0", "node/node-1"), hyper_node("s1", 1, "node/node-2", "node/node-3"))
    assert h.nodes["s2"] == {"node-0", "node-1", "node-2", "node-3"}
    assert h.by_tier == {1: {"s0", "s1"}, 2: {"s2"}}


def test_a_cycle_is_not_ready_until_a_change_breaks_it() -> None:
    h = known()
    upsert(h, hyper_node("s2", 3, "hyper/s1"), hyper_node("s0", 1, "node/n0"))
    upsert(h, hyper_node("s1", 2, "hyper/s0", "hyper/s3"))
    assert is_ready(h)
    upsert(h, hyper_node("s3", 4, "hyper/s2"))
    assert not is_ready(h)
    upsert(h, hyper_node("s1", 2, "hyper/s0"))
    assert is_ready(h)
    assert parents(h) == {"s0": "s1", "s1": "s2", "s2": "s3"}
    assert h.nodes["s3"] == {"n0"}


def test_two_parents_of_one_child_are_not_ready() -> None:
    h = known()
    upsert(h, hyper_node("s0", 1, "node/n0"), hyper_node("s1", 2, "hyper/s0"))
    assert is_ready(h)
    upsert(h, hyper_node("s2", 3, "hyper/s0"))
    assert not is_ready(h)
    upsert(h, hyper_node("s2", 3, "hyper/s1"))
    assert is_ready(h)
    assert parents(h) == {"s0": "s1", "s1": "s2"}


def test_any_change_that_succeeds_makes_ready_again() -> None:
    """Quirk of spec 06 §A3.7: also one that has nothing to do with what is broken."""
    h = known()
    upsert(h, hyper_node("s0", 1, "node/n0"), hyper_node("s1", 2, "hyper/s0"), hyper_node("s2", 3, "hyper/s0"))
    assert not is_ready(h)
    upsert(h, hyper_node("other", 1, "node/n9"))
    assert is_ready(h)


def test_a_changed_tier_moves_the_name_and_builds_nothing() -> None:
    h = known()
    upsert(h, hyper_node("s0", 1, "node/n0"), hyper_node("s1", 2, "hyper/s0"), hyper_node("s2", 3, "hyper/s0"))
    upsert(h, hyper_node("s0", 2, "node/n0"))
    assert h.by_tier == {2: {"s0", "s1"}, 3: {"s2"}}
    assert not is_ready(h)


def test_a_placeholder_of_tier_zero_is_never_listed() -> None:
    h = known()
    upsert(h, hyper_node("top", 1, "hyper/zero"), hyper_node("zero", 0, "node/n0"))
    assert h.by_tier == {1: {"top"}}
    assert h.nodes["top"] == {"n0"}


@pytest.mark.parametrize(
    ("member", "nodes"),
    [
        ("node/gone", {"gone"}),
        ("regex/node-1", {"node-1", "node-10", "xnode-1"}),
        ("regex/^node-1$", {"node-1"}),
        ("regex/[", set()),
        ("label/rack=r1", {"labelled"}),
        ({"type": "Node", "selector": {"labelMatch": {}}}, set()),
        ({"type": "Node", "selector": {"exactMatch": {"name": ""}}}, set()),
        (expression({"key": "rack", "operator": "Near", "values": ["r1"]}), set()),
        (expression({"key": "rack", "operator": "DoesNotExist"}), {"node-1", "node-10", "xnode-1", "node-2"}),
    ],
)
def test_members_that_select_nodes(member: str | dict[str, Any], nodes: set[str]) -> None:
    h = known("node-1", "node-10", "xnode-1", "node-2", labelled="r1")
    upsert(h, hyper_node("s", 1, member))
    assert h.nodes["s"] == nodes


def test_members_that_select_hyper_nodes_count_for_nothing() -> None:
    h = known("node-1")
    upsert(h, hyper_node("s", 1, "node/node-1"))
    upsert(h, hyper_node("t", 2, {"type": "HyperNode", "selector": {"regexMatch": {"pattern": "s"}}}))
    assert "t" not in h.nodes
    assert parents(h) == {}


def test_new_nodes_are_found_by_selectors() -> None:
    h = known("node-1")
    upsert(h, hyper_node("s", 1, "regex/^node"), hyper_node("t", 2, "hyper/s"), hyper_node("u", 1, "label/rack=r1"))
    h.put_node("node-2", {})
    h.put_node("other", {"rack": "r1"})
    h.settle()
    assert h.nodes == {"s": {"node-1", "node-2"}, "t": {"node-1", "node-2"}, "u": {"other"}}


def test_a_node_that_is_no_longer_selected_stays_until_something_else_changes() -> None:
    """Quirk of spec 06 §A3.7."""
    h = known(n1="r1")
    upsert(h, hyper_node("s", 1, "label/rack=r1"))
    h.put_node("n1", {"rack": "r2"})
    h.settle()
    assert h.nodes["s"] == {"n1"}
    h.put_node("n2", {"rack": "r1"})
    h.settle()
    assert h.nodes["s"] == {"n2"}


def test_a_mixed_hyper_node_does_not_follow_nodes() -> None:
    h = known("n1")
    upsert(h, hyper_node("t", 2, "hyper/s", "regex/^n"))
    h.put_node("n2", {})
    h.settle()
    assert h.nodes["t"] == {"n1"}


def test_a_removed_hyper_node_leaves_its_parent_without_its_nodes() -> None:
    h = known()
    upsert(h, hyper_node("s0", 1, "node/n0"), hyper_node("s1", 1, "node/n1"))
    upsert(h, hyper_node("t", 2, "hyper/s0", "hyper/s1"))
    h.drop("s0")
    h.settle()
    assert h.nodes == {"s1": {"n1"}, "t": {"n1"}}
    assert h.by_tier == {1: {"s1"}, 2: {"t"}}
    assert h.entries["t"].children == {"s0", "s1"}
    upsert(h, hyper_node("s0", 1, "node/n5"))
    assert h.nodes["t"] == {"n1", "n5"}


def test_what_failed_and_selects_nodes_fails_again_until_it_is_mended() -> None:
    h = known("n1")
    upsert(h, hyper_node("s0", 1, "node/n0"), hyper_node("s1", 2, "hyper/s0"))
    upsert(h, hyper_node("s2", 3, "hyper/s0", "regex/^n"))
    upsert(h, hyper_node("other", 1, "node/n9"))
    assert not is_ready(h)
    upsert(h, hyper_node("s2", 3, "hyper/s1", "regex/^n"))
    assert is_ready(h)
