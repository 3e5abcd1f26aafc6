"""Amounts as people read them."""

from __future__ import annotations

import pytest

from vcscheduler.explain.standing import deciding_resource
from vcscheduler.model.amounts import amount, amounts
from vcscheduler.model.resources import MAX_FLOAT, Resources


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("cpu", 1500, "1.5"),
        ("cpu", 96000, "96"),
        ("cpu", 1234567000, "1,234,567"),
        ("memory", 0, "0"),
        ("memory", 2**30 * 1.5, "1.5Gi"),
        ("memory", 1000, "1,000"),
        ("ephemeral-storage", 2**20 * 1000, "1Mi"),
        ("nvidia.com/gpu", 8000, "8"),
        ("pods", 110, "110"),
        ("cpu", MAX_FLOAT, "∞"),
    ],
)
def test_one_amount(name: str, value: float, text: str) -> None:
    assert amount(name, value) == text


def test_a_vector_leaves_out_what_it_has_nothing_of() -> None:
    assert amounts(Resources(1000, 0, {"nvidia.com/gpu": 2000, "pods": 3})) == "cpu 1, nvidia.com/gpu 2"
    assert amounts(Resources()) == "nothing"


def test_the_largest_part_of_deserved_decides() -> None:
    deserved = Resources(4000, 100, {"nvidia.com/gpu": 8000})
    assert deciding_resource(Resources(1000, 10, {"nvidia.com/gpu": 4000}), deserved) == "nvidia.com/gpu"
    assert deciding_resource(Resources(4000, 100), deserved) == "cpu"
    assert deciding_resource(Resources(), deserved) == ""
