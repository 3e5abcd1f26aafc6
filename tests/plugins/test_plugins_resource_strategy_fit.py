"""resource-strategy-fit, by spec 05 §7."""

from __future__ import annotations

from typing import Any

import pytest

from builders import World, node, pod
from vcscheduler.config.arguments import ArgumentError
from vcscheduler.model.status import Code
from vcscheduler.plugins.resource_strategy_fit import ResourceStrategyFitPlugin

T4 = "nvidia.com/t4"
A10 = "nvidia.com/a10"


def session(world: World, **arguments: Any) -> Any:
    return world.session(ResourceStrategyFitPlugin, resource_strategy_fit=arguments)


def half_full() -> World:
    world = World(node("n1", cpu=4, memory="8Gi"))
    world.place(pod("old", cpu=1, memory="4Gi"), "n1")
    return world


def test_spread_by_default() -> None:
    # cpu (4 - 2) / 4, memory (8 - 5) / 8, mean of both times 1000
    assert session(half_full()).scores(pod(cpu=1, memory="1Gi")) == {"n1": pytest.approx((0.5 + 0.375) / 2 * 1000)}


def test_a_strategy_for_each_resource() -> None:
    resources = {"cpu": {"type": "MostAllocated", "weight": 3}, "mem*": {"type": "odd", "weight": -1}}
    found = session(half_full(), resources=resources, resourceStrategyFitWeight=1).scores(pod(cpu=1, memory="1Gi"))
    assert found == {"n1": pytest.approx((0.5 * 3 + 0.375) / 4 * 100)}


def test_what_does_not_fit_scores_nothing() -> None:
    assert session(half_full()).scores(pod(cpu=4, memory="1Gi")) == {"n1": 0}


def test_wildcards_that_are_none_are_left_out() -> None:
    resources = {name: {"type": "MostAllocated", "weight": 1} for name in ("*", "c*u", "cpu**")}
    assert session(half_full(), resources=resources).scores(pod(cpu=1)) == {"n1": 0}


def test_a_pod_brings_its_own_strategy() -> None:
    kind, weight = "volcano.sh/resource-strategy-scoring-type", "volcano.sh/resource-strategy-weight"

    def score(annotations: dict[str, str]) -> float:
        return float(session(half_full()).scores(pod(cpu=1, memory="1Gi", annotations=annotations))["n1"])

    assert score({kind: "MostAllocated", weight: '{"cpu": 2}'}) == pytest.approx(500)
    assert score({kind: "Other", weight: '{"cpu": 2}'}) == 0
    assert score({kind: "MostAllocated"}) == 0
    assert score({kind: "MostAllocated", weight: "cpu"}) == 0


SRA = {"enable": True, "resources": f"{T4}, {A10}", "weight": 2, "resourceWeight": {T4: 1, A10: 1}}


def test_scarce_resources_are_kept_free() -> None:
    names = {"none": {}, "t4": {T4: 1}, "both": {T4: 1, A10: 1}}
    world = World(*(node(name, **{k.replace("/", "__"): v for k, v in has.items()}) for name, has in names.items()))
    found = session(world, resourceStrategyFitWeight=0, sra=SRA)
    assert found.scores(pod(cpu=1)) == {"none": 200, "t4": 100, "both": 0}
    assert found.scores(pod("gpu", cpu=1, requests={T4: 1})) == {"none": 0, "t4": 100, "both": 0}


def test_nothing_is_registered_when_all_is_off() -> None:
    assert session(World(node("n1")), resourceStrategyFitWeight=0, sra={"enable": True}).scorers == []


GPU = "nvidia.com/gpu"
RATES = {"enable": True, "resources": GPU, "resourceProportion": {f"{GPU}.cpu": 4, f"{GPU}.memory": 4}}


@pytest.mark.parametrize(
    ("cpu", "gpus", "asked", "passes"),
    [(30, 6, {"cpu": 4, "memory": "4G"}, True), (30, 6, {"cpu": 10, "memory": "10G"}, False),
     (30, 6, {"cpu": 10, "memory": "10G", "requests": {GPU: 1}}, True), (26, 2, {"cpu": 10}, True)],
)  # fmt: skip
def test_room_is_kept_in_proportion(cpu: int, gpus: int, asked: dict[str, Any], passes: bool) -> None:
    world = World(node("n1", cpu=cpu, memory=f"{cpu}G", **{GPU.replace("/", "__"): gpus}))
    found = session(world, proportional=RATES).statuses(pod(**asked))["n1"]
    refused = [(Code.UNRESOLVABLE, f"proportional of resource {GPU} check failed")]
    assert [(s.code, s.reason) for s in found] == ([] if passes else refused)


def test_arguments_of_the_wrong_shape_are_refused() -> None:
    with pytest.raises(ArgumentError):
        session(World(node("n1")), sra={"enable": "yes"})
