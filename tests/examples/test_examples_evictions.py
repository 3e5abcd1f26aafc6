"""The examples of preempt and reclaim: each eviction with its rule, each pod that stays with what kept it."""

from __future__ import annotations

from pathlib import Path

import pytest

from vcscheduler.config import SchedulerOptions, parse_configuration
from vcscheduler.explain.evictions import Eviction, Spared
from vcscheduler.framework.registry import Registry
from vcscheduler.objects import read_manifests
from vcscheduler.simulator.outcome import Outcome
from vcscheduler.simulator.report import to_plain
from vcscheduler.simulator.simulate import Simulation

EXAMPLES = Path(__file__).parents[2] / "examples"


def simulate(name: str, edit: tuple[str, str] = ("", "")) -> Outcome:
    folder = EXAMPLES / name
    registry = Registry.default()
    text = (folder / "volcano-scheduler.conf").read_text().replace(*edit)
    parsed = parse_configuration(text, known_actions=registry.action_names, known_plugins=registry.plugin_names)
    manifests = read_manifests(sorted(folder.glob("*.yaml")))
    return Simulation(manifests, parsed.configuration, SchedulerOptions(), registry, explain_victims=True).run()


def rule(eviction: Eviction) -> list[tuple[str, str]]:
    return [(each.plugin, each.why) for each in eviction.rule]


def protectors(spared: list[Spared], pod: str) -> list[tuple[int, str]]:
    [found] = [each for each in spared if each.pod == pod]
    return [(each.tier, each.plugin) for each in found.protected_by]


def test_preempt_takes_what_the_lower_job_can_spare_and_leaves_the_gang() -> None:
    outcome = simulate("preempt")
    assert [(e.pod, e.action, e.preemptor) for e in outcome.evictions] == [
        ("science/sweep-1", "preempt", "science/deadline-worker-0"),
        ("science/sweep-0", "preempt", "science/deadline-worker-1"),
    ]
    first = outcome.evictions[0]
    assert (first.question, first.tier, first.job, first.queue) == ("Preemptable", 1, "science/sweep", "lab")
    assert first.frees is not None
    assert first.frees.get("nvidia.com/gpu") == 1000
    assert rule(first) == [
        ("priority", "its job priority is 10, the preemptor's 1000"),
        ("gang", "its job has 3 ready tasks and needs 1"),
        ("conformance", "it is no system pod"),
    ]
    assert protectors(outcome.spared, "science/train-0") == [(1, "gang")]


def test_reclaim_stops_where_a_queue_would_fall_below_deserved() -> None:
    outcome = simulate("reclaim")
    assert [e.pod for e in outcome.evictions] == [
        "vision/segment-4",
        "vision/segment-3",
        "product/reports-0",
    ]
    assert [plugin for plugin, _ in rule(outcome.evictions[0])] == ["gang", "conformance", "capacity"]
    assert "queue vision holds cpu 40" in rule(outcome.evictions[0])[2][1]
    assert protectors(outcome.spared, "vision/segment-0") == [(1, "capacity")]
    assert protectors(outcome.spared, "product/ranking-0") == [(1, "gang")]
    assert not [each for each in outcome.spared if each.queue == "support"], "not even asked about"


def test_a_share_plugin_in_a_tier_below_is_not_asked() -> None:
    outcome = simulate("reclaim", ("  - name: capacity", "- plugins:\n  - name: capacity"))
    assert len(outcome.evictions) == 3
    assert {plugin for e in outcome.evictions for plugin, _ in rule(e)} == {"gang", "conformance"}
    assert all(each.tier == 1 for e in outcome.evictions for each in e.opinions)


@pytest.mark.parametrize("name", ["preempt", "reclaim"])
def test_json_has_it_whole(name: str) -> None:
    outcome = simulate(name)
    plain = to_plain(outcome, {}, [])
    evictions, spared = plain["evictions"], plain["spared"]
    assert isinstance(evictions, list)
    assert isinstance(spared, list)
    for each in evictions:
        assert all(each[key] for key in ("preemptor", "frees", "preemptorAsks"))
        assert each["rule"]["tier"] == 1
        assert each["rule"]["plugins"]
        assert all(opinion["why"] for opinion in each["opinions"])
    for each in spared:
        assert each["protectedBy"] or each["why"]
        assert all(opinion["verdict"] == "must stay" for opinion in each["protectedBy"])
