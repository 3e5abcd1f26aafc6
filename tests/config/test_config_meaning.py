"""What `config check` says about actions and plugins together; and the table of plugins, held to the plugins."""

# ruff: noqa: E501 - the tables of inputs and messages read best with one case a line

from __future__ import annotations

from datetime import timedelta

import pytest

from vcscheduler.config import (
    PluginOption,
    SchedulerConfiguration,
    SchedulerOptions,
    Tier,
    check_configuration,
    default_text,
    parse_configuration,
)
from vcscheduler.config.arguments import Arguments
from vcscheduler.config.meaning import _POINTS, Point
from vcscheduler.framework.registry import BUILTIN_PLUGINS, Registry
from vcscheduler.framework.session import Session
from vcscheduler.objects import Manifests
from vcscheduler.simulator.simulate import Simulation

REGISTRY = Registry.default()
TABLE = {
    "_preemptable": Point.PREEMPTABLE,
    "_reclaimable": Point.RECLAIMABLE,
    "_unified_evictable": Point.UNIFIED_EVICTABLE,
    "_victim_tasks": Point.VICTIM_TASKS,
    "_job_starving": Point.JOB_STARVING,
    "_job_ready": Point.JOB_READY,
    "_job_enqueueable": Point.JOB_ENQUEUEABLE,
    "_preemptive": Point.PREEMPTIVE,
    "_filters": Point.PREDICATE,
}


def check(text: str) -> list[str]:
    parsed = parse_configuration(text, "s", known_actions=REGISTRY.action_names, known_plugins=REGISTRY.plugin_names)
    found = check_configuration(parsed, REGISTRY.action_names, REGISTRY.plugin_names, meaning=True)
    assert all(finding.level == "warning" for finding in found)
    return [f"{finding.line}:{finding.column} {finding.message}" for finding in found]


def conf(actions: str, *tiers: str, more: str = "") -> str:
    lines = [f"actions: {actions}", "tiers:", *(f"- plugins: [{tier}]" for tier in tiers)]
    return "\n".join((*lines, more))


ALL = "{name: priority}, {name: gang}, {name: conformance}, {name: proportion}, {name: predicates}"
FULL = "'enqueue, allocate, preempt, reclaim'"


@pytest.mark.parametrize(
    "text",
    [
        default_text(),
        conf(FULL, ALL),
        conf(
            "'enqueue, allocate, preempt'",
            "{name: priority}, {name: gang}",
            "{name: drf, enablePreemptable: false}, {name: predicates}, {name: proportion}",
        ),
        conf("'enqueue, allocate, shuffle'", ALL + ", {name: rescheduling}"),
        conf(
            "'enqueue, allocate, gangpreempt, gangreclaim'",
            "{name: priority}, {name: gang}, {name: capacity}, {name: predicates}",
        ),
    ],
)
def test_sound_configurations_get_no_warning(text: str) -> None:
    assert check(text) == []


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        (conf("'enqueue, preempt, allocate'", ALL), "1:10", ["preempt runs before allocate", "put it after"]),
        (conf("'allocate, enqueue'", ALL), "1:10", ["enqueue runs after allocate", "one cycle more"]),
        (conf("enqueue", ALL), "1:10", ["without allocate no job is placed"]),
        (conf("allocate", ALL), "1:10", ["without enqueue", "never come", "proportion would say", "begin the actions"]),
        (conf("'enqueue, allocate, preempt'", "{name: predicates}, {name: gang, enablePreemptable: false}"), "1:10", ["preempt never evicts anybody", "(gang would, but enablePreemptable is false)", "add one of"]),
        (conf("'enqueue, allocate, shuffle'", ALL), "1:10", ["shuffle never evicts anybody", "VictimTasks"]),
        (conf("'enqueue, allocate, preempt'", "{name: predicates}, {name: priority, enableJobStarving: false}, {name: gang, enableJobStarving: false}"), "1:10", ["preempt does nothing", "which jobs starve"]),
        (conf("'enqueue, allocate, reclaim'", "{name: predicates}, {name: priority}, {name: gang}"), "1:10", ["reclaim without proportion or capacity"]),
        (conf("'enqueue, allocate, reclaim'", "{name: priority}, {name: gang}", "{name: predicates}, {name: proportion}"), "4:", ["proportion is not asked about victims of reclaim while tiers[0] (gang) agrees", "what queues deserve", "move it into tiers[0]", "enableReclaimable"]),
        (conf("'enqueue, allocate, gangreclaim'", "{name: priority}, {name: gang}", "{name: predicates}, {name: capacity}"), "4:", ["capacity is not asked about victims of gangreclaim", "move it into tiers[0]"]),
        (conf("'enqueue, allocate, preempt'", "{name: priority}, {name: gang}, {name: predicates}, {name: conformance, enablePreemptable: false}"), "3:85", ["conformance does not protect system pods from preempt"]),
        (conf("'enqueue, allocate, preempt'", "{name: predicates}, {name: gang}"), "1:10", ["of which none compares the jobs"]),
        (conf("'enqueue, allocate, shuffle'", ALL + ", {name: pdb}"), "3:", ["shuffle evicts all of these"]),
        (conf("'enqueue, allocate'", ALL + ", {name: rescheduling}"), "3:", ["only names victims for the action shuffle"]),
        (conf("'enqueue, allocate, preempt'", ALL, more="configurations: [{name: preempt, arguments: {minCandidateNodesAbsolute: 5}}]"), "4:46", ["only for the topology-aware search"]),
        (conf("'enqueue, allocate'", "{name: gang}"), "3:1", ["no plugin looks at taints"]),
        (conf("'enqueue, allocate'", "{name: predicates}"), "3:1", ["no plugin holds gangs together"]),
    ],
)  # fmt: skip
def test_one_warning_with_why_and_what_to_do(text: str, place: str, words: list[str]) -> None:
    found = check(text)
    matching = [line for line in found if line.startswith(place) and all(word in line for word in words)]
    assert len(matching) == 1, found


def test_custom_plugins_may_do_anything() -> None:
    registry = Registry.default()
    names = [*registry.plugin_names, "mine"]
    text = conf("'enqueue, allocate, preempt, reclaim, shuffle'", "{name: mine}")
    parsed = parse_configuration(text, "s", known_actions=registry.action_names, known_plugins=names)
    assert check_configuration(parsed, registry.action_names, names, meaning=True) == []


def test_every_built_in_plugin_is_in_the_table() -> None:
    assert set(_POINTS) == set(BUILTIN_PLUGINS)


@pytest.mark.parametrize("name", sorted(BUILTIN_PLUGINS))
def test_the_table_says_what_plugins_register(name: str) -> None:
    registered: list[set[Point]] = []

    def observe(ssn: Session) -> None:
        registered.append({point for attribute, point in TABLE.items() if name in getattr(ssn, attribute)._functions})

    tiers = (Tier((PluginOption(name, Arguments({}, owner=name)),)),)
    configuration = SchedulerConfiguration(("allocate",), tiers)
    simulation = Simulation(Manifests(), configuration, SchedulerOptions(), REGISTRY)
    simulation.look(observe)
    simulation._now += timedelta(minutes=10)  # Some have a say only after a while.
    simulation.look(observe)
    assert registered[-1] == set(_POINTS[name])


def test_drf_has_a_say_in_reclaim_only_with_hierarchy() -> None:
    tiers = (
        "{name: priority}, {name: gang}, {name: predicates}",
        "{name: capacity}",
        "{name: drf%s, enablePreemptable: false}",
    )
    plain, hierarchy = (
        check(conf("'enqueue, allocate, reclaim'", *tiers[:2], tiers[2] % more))
        for more in ("", ", enableHierarchy: true")
    )
    assert not [line for line in plain if "drf is not asked" in line]
    assert [line for line in hierarchy if "drf is not asked about victims of reclaim" in line]
