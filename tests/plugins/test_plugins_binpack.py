"""binpack, by the examples of spec 05 §6."""

from __future__ import annotations

from typing import Any

import pytest

from builders import World, node, pod
from vcscheduler.plugins.binpack import BinpackPlugin

ARGUMENTS = {"binpack.weight": 10, "binpack.cpu": 2, "binpack.memory": 3}
GPU = "nvidia.com/gpu"


def score(asked: Any, used: Any = None, **arguments: Any) -> float:
    world = World(node("n1", cpu=4, memory="16Gi"))
    world.place(used or pod("old", cpu="500m", memory="6Gi"), "n1")
    return world.session(BinpackPlugin, binpack=ARGUMENTS | arguments).scores(asked)["n1"]


def test_the_worked_examples() -> None:
    assert score(pod(cpu=1, memory="2Gi")) == 450
    assert score(pod(memory="2Gi")) == 500
    diluted = {"binpack.resources": f" {GPU} ,", f"binpack.resources.{GPU}": 7}
    assert score(pod(memory="2Gi", requests={GPU: 1}), **diluted) == pytest.approx(150)


def test_a_resource_that_does_not_fit_zeroes_the_node() -> None:
    assert score(pod(cpu=4, memory="2Gi")) == 0
    assert score(pod(cpu="3500m", memory="2Gi")) == pytest.approx((2 + 1.5) / 5 * 1000)


def test_negative_weights_of_resources_become_one() -> None:
    assert score(pod(cpu=1, memory="2Gi"), **{"binpack.cpu": -4}) == pytest.approx((0.375 + 1.5) / 4 * 1000)


def test_a_resource_of_weight_zero_still_counts_for_nothing() -> None:
    assert score(pod(cpu=4, memory="2Gi"), **{"binpack.cpu": 0}) == pytest.approx(500)


def test_weight_zero_registers_nothing() -> None:
    session = World(node("n1")).session(BinpackPlugin, binpack={"binpack.weight": 0})
    assert session.scorers == []


def test_kernel_figures_in_order_of_summation() -> None:
    world = World(node("n1"))
    names = {"binpack.resources": f"{GPU},example.com/a", f"binpack.resources.{GPU}": 7}
    (scorer,) = world.session(BinpackPlugin, binpack=ARGUMENTS | names).scorers
    figures = scorer.kernel(world.task(pod(cpu=1, memory="1Gi", requests={GPU: 1, "example.com/a": 1})))
    assert figures is not None
    assert figures.binpack_weight == 1000.0
    named = [(world.table.dimensions.names[d], w) for d, w in figures.binpack]
    assert named == [("cpu", 2.0), ("memory", 3.0), ("example.com/a", 1.0), (GPU, 7.0)]
