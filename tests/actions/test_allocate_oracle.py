"""allocate places exactly as the plain serial loop of the specs does (``tests/oracle.py``)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given

from lab import Lab, written
from oracle import OracleAllocate
from profiles import MANY, SEEDS
from random_clusters import LARGE, Scene, scene


def outcome(lab: Lab, cycles: int) -> list[bytes | object]:
    """Binds, pipelined tasks, phases, counts and the text of conditions of every cycle, then the pods' conditions."""
    return [*(written(r) for r in lab.cycles(cycles)), lab.pod_conditions()]


def compare(built: Scene, cycles: int) -> None:
    expected = outcome(built.lab().replace_action(OracleAllocate()), cycles)
    assert outcome(built.lab(), cycles) == expected


@MANY
@given(SEEDS)
def test_small_clusters(seed: int) -> None:
    compare(scene(random.Random(seed)), 3)


@pytest.mark.parametrize("seed", range(1000, 1004))
def test_clusters_of_several_blocks(seed: int) -> None:
    compare(scene(random.Random(seed), LARGE), 2)
