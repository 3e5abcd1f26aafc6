"""What `config check` says about configurations that parse."""

# ruff: noqa: E501 - the tables of inputs and messages read best with one case a line

from typing import Any

import pytest

from vcscheduler.config import check_configuration, default_text, parse_configuration

ACTIONS = ("enqueue", "allocate", "backfill", "preempt")
PLUGINS = (
    "priority",
    "gang",
    "conformance",
    "drf",
    "predicates",
    "proportion",
    "nodeorder",
    "binpack",
    "capacity",
    "overcommit",
)
ARGUMENTS: dict[str, dict[str, Any]] = {
    "gang": {},
    "binpack": {"binpack.weight": int, "binpack.resources": str, "binpack.resources.*": int},
    "overcommit": {"overcommit-factor": float},
    "predicates": {"predicate.CacheEnable": bool, "volumes": dict[str, int]},
    "preempt": {"maxCandidateNodesAbsolute": int},
}  # fmt: skip


def check(text: str) -> list[str]:
    parsed = parse_configuration(text, "s.conf", known_actions=ACTIONS, known_plugins=PLUGINS)
    found = check_configuration(parsed, ACTIONS, PLUGINS, ARGUMENTS)
    return [f"{finding.level} {str(finding).removeprefix('s.conf:')}" for finding in found]


def tier(*lines: str) -> str:
    return "\n".join(["actions: allocate", "tiers:", "- plugins:", *("  " + line for line in lines)])


def with_gang(*lines: str) -> str:
    return "\n".join(["actions: allocate", "tiers: [{plugins: [{name: gang}]}]", *lines])


def test_the_default_is_clean() -> None:
    assert check(default_text()) == []


def test_good_arguments_are_clean() -> None:
    text = tier(
        "- name: binpack",
        "  arguments: {binpack.weight: 5, binpack.resources: a, binpack.resources.nvidia.com/gpu: 2}",
        "- name: overcommit",
        "  arguments: {overcommit-factor: 2}",
        "- name: predicates",
        "  arguments: {predicate.CacheEnable: 'true', volumes: {a: 1}}",
        "- name: drf",
        "  arguments: {nobody: knows}",
    )
    assert check(text) == []


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (tier("- name: gamg"), "error 4:11: tiers[0].plugins[0].name: unknown plugin 'gamg', it is skipped; did you mean 'gang'?"),
        (tier("- enableJobOrder: true"), "error 4:5: tiers[0].plugins[0]: a plugin without a name: it is skipped"),
        (tier("- name: gang", "  enableVictim: false"), "warning 5:5: tiers[0].plugins[0].enableVictim: unknown key, it has no effect; did you mean 'enabledVictim'?"),
        (tier("- name: gang", "- name: gang"), "warning 5:11: tiers[0].plugins[1].name: the plugin 'gang' is in this tier already: the later one answers at both places"),
        (tier("- name: gang") + "\n- plugins: [{name: gang}]", "warning 5:20: tiers[1].plugins[0].name: the plugin 'gang' is in tiers[0] already: the later one answers at both places"),
        ("actions: allocate", "warning 1:1: tiers: no tier: no plugin takes part in any decision"),
        (tier("- name: gang") + "\n- plugins: []", "warning 5:3: tiers[1]: the tier has no plugins"),
        (tier("- {name: drf, enableHierarchy: true}") + "\n- plugins: [{name: proportion}]", "warning 5:20: tiers[1].plugins[0].name: proportion beside drf with enableHierarchy: both divide the cluster between queues"),
        (tier("- name: capacity", "- name: proportion"), "warning 5:11: tiers[0].plugins[1].name: proportion beside capacity: both divide the cluster between queues, use one of them"),
        ("actions: allocate,allocate\ntiers: [{plugins: [{name: gang}]}]", "warning 1:10: actions: the action 'allocate' runs 2 times a cycle"),
        (with_gang("configurations: [{name: alocate}]"), "error 3:25: configurations[0].name: unknown action 'alocate'; did you mean 'allocate'?"),
        (with_gang("configurations: [{name: preempt}]"), "warning 3:25: configurations[0].name: the action 'preempt' is not among the actions"),
        (with_gang("configurations: [{name: allocate}, {name: allocate}]"), "warning 3:43: configurations[1].name: a second entry for 'allocate': only the first is read"),
        (with_gang("configurations: [{arguments: {}}]"), "error 3:18: configurations[0]: an entry without the name of an action"),
        (tier("- name: gang", "  arguments: {a: 1}"), "warning 5:17: tiers[0].plugins[0].arguments.a: gang reads no such argument, it has no effect"),
        (tier("- name: binpack", "  arguments: {binpack.weigth: 1}"), "warning 5:17: tiers[0].plugins[0].arguments.binpack.weigth: binpack reads no such argument, it has no effect; did you mean 'binpack.weight'?"),
        (tier("- name: binpack", "  arguments: {binpack.weight: '1'}"), "warning 5:33: tiers[0].plugins[0].arguments.binpack.weight: expected an integer, found the string '1': the default is used"),
        (tier("- name: binpack", "  arguments: {binpack.resources.a: 1.0}"), "warning 5:38: tiers[0].plugins[0].arguments.binpack.resources.a: expected an integer, found the float 1.0: the default is used"),
        (tier("- name: overcommit", "  arguments: {overcommit-factor: }"), "warning 5:36: tiers[0].plugins[0].arguments.overcommit-factor: expected a number, found null: the default is used"),
        (tier("- name: predicates", "  arguments: {predicate.CacheEnable: 1}"), "warning 5:40: tiers[0].plugins[0].arguments.predicate.CacheEnable: expected true or false, found the integer 1: the default is used"),
        (tier("- name: predicates", "  arguments: {volumes: {a: x}}"), "error 5:26: tiers[0].plugins[0].arguments.volumes: a: expected an integer, found string 'x'"),
        (with_gang("metrics: {}", "metircs: {}"), "warning 4:1: metircs: unknown key, it has no effect; did you mean 'metrics'?"),
        (with_gang("metrics: {adress: x, type: prometheus}"), "warning 3:11: metrics.adress: unknown key, it has no effect; did you mean 'address'?"),
        (with_gang("metrics: {address: x}"), "warning 3:10: metrics: without a type no load is collected"),
        (with_gang("metrics: {type: promtheus}"), "error 3:17: metrics.type: unknown type 'promtheus'; did you mean 'prometheus'?; allowed: prometheus, prometheus_adaptor, elasticsearch, file"),
        (with_gang("metrics: {type: prometheus, interval: 30}"), "warning 3:39: metrics.interval: '30' is not a duration above 0 such as 30s: 30s is used"),
    ],
)  # fmt: skip
def test_one_finding(text: str, finding: str) -> None:
    assert check(text) == [finding]


def test_findings_come_in_the_order_of_the_file() -> None:
    text = tier("- name: gang", "  arguments: {x: 1}", "- name: zzz", "- name: gang") + "\nfoo: 1\n"
    assert [finding.split(":")[0] for finding in check(text)] == ["warning 5", "error 6", "warning 7", "warning 8"]


def test_checking_arguments_writes_no_log(caplog: pytest.LogCaptureFixture) -> None:
    assert len(check(tier("- name: binpack", "  arguments: {binpack.weight: x}"))) == 1
    assert caplog.records == []
