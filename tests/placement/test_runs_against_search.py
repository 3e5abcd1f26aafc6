"""Compiled runs and the NumPy search alone come to the same, to the last byte, on random clusters."""

from __future__ import annotations

import random

import pytest
from hypothesis import given

from lab import Lab, written
from profiles import MANY, SEEDS, SOME
from random_clusters import LARGE, Scene, scene
from vcscheduler.placement.runs import Runs


def everything(lab: Lab, cycles: int) -> tuple[list[bytes], object, object]:
    records = lab.cycles(cycles)
    return [written(r) for r in records], lab.pod_conditions(), lab.cluster.events()


def compare(built: Scene, cycles: int) -> None:
    with_runs = everything(built.lab(), cycles)
    with pytest.MonkeyPatch.context() as patch:
        # Read by every run before anything else, so none is placed by a kernel.
        patch.setattr(Runs, "possible", property(lambda self: False, lambda self, value: None), raising=False)
        alone = everything(built.lab(), cycles)
    assert with_runs == alone


@MANY
@given(SEEDS)
def test_small_clusters(seed: int) -> None:
    compare(scene(random.Random(seed)), 3)


@SOME
@given(SEEDS)
def test_small_clusters_with_plugins_and_actions_of_all_kinds(seed: int) -> None:
    compare(scene(random.Random(seed), wild=True), 3)


@pytest.mark.parametrize("seed", range(10))
def test_clusters_of_several_blocks(seed: int) -> None:
    compare(scene(random.Random(seed), LARGE), 2)
