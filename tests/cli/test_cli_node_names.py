"""Names in little room."""

from __future__ import annotations

from vcscheduler.cli.node_names import counted, shortened


def test_successive_numbers_become_ranges() -> None:
    assert shortened(["n3", "n1", "n2", "n0", "n7"]) == "n[0-3,7]"
    assert shortened(["n1", "n2"]) == "n[1,2]"
    assert shortened(["gpu-09", "gpu-10", "gpu-11"]) == "gpu-[09-11]"


def test_names_without_numbers_stand_alone() -> None:
    assert shortened(["b", "a"]) == "a, b"
    assert shortened(["n1"]) == "n1"


def test_equal_counts_stand_together() -> None:
    assert counted({"n1": 2, "n2": 2, "n3": 1}, 9) == "n[1,2] ×2, n3"


def test_beyond_the_limit_nodes_are_only_counted() -> None:
    assert counted({f"n{2 * i}": 1 for i in range(10)}, 3) == "n[0,2,4] and 7 more nodes"
    assert counted({"a": 1, "b": 1}, 1) == "a and 1 more node"
