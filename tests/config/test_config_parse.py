"""Reading configurations: what is taken, what is refused in which words, and what only draws a warning."""

# ruff: noqa: E501 - the tables of inputs and messages read best with one case a line

import pytest

from vcscheduler.config import (
    FLAGS,
    ConfigurationError,
    ParsedConfiguration,
    PluginOption,
    SchedulerConfiguration,
    configuration_from_value,
    default_configuration,
    default_text,
    parse_configuration,
)

ACTIONS = ("enqueue", "allocate", "backfill", "preempt", "reclaim", "gangpreempt", "gangreclaim", "shuffle")
PLUGINS = ("priority", "gang", "conformance", "drf", "predicates", "proportion", "nodeorder", "binpack", "overcommit")
ALLOWED = "allowed: allocate, backfill, enqueue, gangpreempt, gangreclaim, preempt, reclaim, shuffle"


def parse(text: str | bytes) -> ParsedConfiguration:
    return parse_configuration(text, "s.conf", known_actions=ACTIONS, known_plugins=PLUGINS)


def tier(*lines: str) -> str:
    return "\n".join(["actions: allocate", "tiers:", "- plugins:", *("  " + line for line in lines)])


def test_a_whole_configuration() -> None:
    parsed = parse("""
actions: "enqueue, allocate ,backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
- plugins:
  - name: binpack
    arguments:
      binpack.weight: 10
      binpack.resources: nvidia.com/gpu
configurations:
- name: allocate
  arguments: {predicateErrorCacheEnable: false}
metrics:
  type: prometheus
  interval: 30
""")
    configuration = parsed.configuration
    assert parsed.warnings == ()
    assert configuration.actions == ("enqueue", "allocate", "backfill")
    assert [[plugin.name for plugin in each.plugins] for each in configuration.tiers] == [
        ["priority", "gang"],
        ["binpack"],
    ]
    assert configuration.tiers[0].plugins[1].enable_preemptable is False
    assert dict(configuration.tiers[1].plugins[0].arguments) == {
        "binpack.weight": 10,
        "binpack.resources": "nvidia.com/gpu",
    }
    assert configuration.action_arguments("allocate").get_bool("predicateErrorCacheEnable", True) is False
    assert dict(configuration.action_arguments("backfill")) == {}
    assert configuration.metrics == {"type": "prometheus", "interval": "30"}


def test_every_flag_has_its_attribute_and_default() -> None:
    gang = PluginOption("gang")
    assert len(FLAGS) == 25
    assert {flag.attribute: flag.default for flag in FLAGS.values()} == {
        flag.attribute: getattr(gang, flag.attribute) for flag in FLAGS.values()
    }
    assert [key for key, flag in FLAGS.items() if not flag.default] == ["enableHierarchy", "enabledClusterOrder"]
    assert FLAGS["enabledHyperNodeOrder"].attribute == "enabled_hyper_node_order"


@pytest.mark.parametrize("key", FLAGS)
@pytest.mark.parametrize(("text", "value"), [("yes", True), ("no", False), ("true", True), ("off", False)])
def test_each_flag_takes_yaml_booleans(key: str, text: str, value: bool) -> None:
    (plugin,) = parse(tier("- name: gang", f"  {key}: {text}")).configuration.tiers[0].plugins
    assert getattr(plugin, FLAGS[key].attribute) is value
    others = [flag for flag in FLAGS.values() if flag.key != key]
    assert all(getattr(plugin, flag.attribute) is flag.default for flag in others)


@pytest.mark.parametrize("text", ["", "~", "null"])
def test_a_null_flag_keeps_its_default(text: str) -> None:
    (plugin,) = parse(tier("- name: gang", f"  enableHierarchy: {text}")).configuration.tiers[0].plugins
    assert plugin.enable_hierarchy is False


def test_string_fields_take_scalars_as_written() -> None:
    configuration = parse(
        "actions: allocate\ntiers: [{plugins: [{name: 0x10}, {name: yes}]}]\nmetrics: {a: 1_0, b: on, c: 1e3, d: ~}"
    ).configuration
    assert [plugin.name for plugin in configuration.tiers[0].plugins] == ["0x10", "yes"]
    assert configuration.metrics == {"a": "1_0", "b": "on", "c": "1e3", "d": ""}


def test_nulls_are_empty_everywhere() -> None:
    configuration = parse("actions: allocate\ntiers: [~, {plugins: ~}]\nconfigurations:\nmetrics:\n").configuration
    assert [each.plugins for each in configuration.tiers] == [(), ()]
    assert (configuration.configurations, configuration.metrics) == ((), {})


def test_white_space_around_the_text_does_not_count() -> None:
    with pytest.raises(ConfigurationError, match=r"^s.conf:3:10: actions: unknown action 'x'"):
        parse("\n\n   actions: x\n   ")
    assert parse(b"  \n  actions: allocate\n").configuration.actions == ("allocate",)


def test_actions_may_repeat_and_tiers_may_be_missing() -> None:
    assert parse("actions: allocate,allocate").configuration == SchedulerConfiguration(("allocate", "allocate"))


def test_first_of_equal_action_configurations_counts() -> None:
    text = "actions: preempt\nconfigurations: [{name: preempt, arguments: {a: 1}}, {name: preempt, arguments: {a: 2}}]"
    assert dict(parse(text).configuration.action_arguments("preempt")) == {"a": 1}


def test_the_default_text_reads_as_the_default() -> None:
    parsed = parse(default_text())
    assert parsed.warnings == ()
    assert parsed.configuration == default_configuration()
    assert parsed.configuration.actions == ("enqueue", "allocate", "backfill")
    assert [[plugin.name for plugin in each.plugins] for each in parsed.configuration.tiers] == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder"],
    ]


def test_example_5_of_the_specification() -> None:
    apart = (
        "actions: allocate\ntiers:\n- plugins: [{name: drf, enableHierarchy: true}]\n- plugins: [{name: proportion}]"
    )
    assert len(parse(apart).configuration.tiers) == 2
    off = tier("- {name: drf, enableHierarchy: false}", "- name: proportion")
    assert len(parse(off).configuration.tiers[0].plugins) == 2


BROKEN: list[tuple[str | bytes, str]] = [
    ('actions: "enqueue, alocate"', f"1:10: actions: unknown action 'alocate'; did you mean 'allocate'?; {ALLOWED}"),
    ('actions: "allocate, backfill,"', f"1:10: actions: an empty name in 'allocate, backfill,': remove the comma too many; {ALLOWED}"),
    ('actions: ",allocate"', f"1:10: actions: an empty name in ',allocate': remove the comma too many; {ALLOWED}"),
    ('actions: ""', f"1:10: actions: no action is named; {ALLOWED}"),
    ("actions:", f"1:9: actions: no action is named; {ALLOWED}"),
    ("tiers: []", f"1:1: actions: no action is named; {ALLOWED}"),
    ("actions: Allocate", f"1:10: actions: unknown action 'Allocate'; did you mean 'allocate'?; {ALLOWED}"),
    ("actions: elect", f"1:10: actions: unknown action 'elect'; {ALLOWED}"),
    ("actions: yes", f"1:10: actions: unknown action 'yes'; {ALLOWED}"),
    ("actions: [allocate]", "1:10: actions: expected a string, found a list"),
    ("actions: {allocate: 1}", "1:10: actions: expected a string, found a mapping"),
    ("actions: allocate backfill", f"1:10: actions: unknown action 'allocate backfill'; did you mean 'backfill'?; {ALLOWED}"),
    ("- actions: allocate", "1:1: expected a mapping, found a list"),
    ("allocate", "1:1: expected a mapping, found the string 'allocate'"),
    ("actions: allocate\ntiers: {plugins: []}", "2:8: tiers: expected a list, found a mapping"),
    ("actions: allocate\ntiers: gang", "2:8: tiers: expected a list, found the string 'gang'"),
    ("actions: allocate\ntiers:\n- gang", "3:3: tiers[0]: expected a mapping, found the string 'gang'"),
    ("actions: allocate\ntiers:\n- plugins: gang", "3:12: tiers[0].plugins: expected a list, found the string 'gang'"),
    ("actions: allocate\ntiers:\n- plugins: {name: gang}", "3:12: tiers[0].plugins: expected a list, found a mapping"),
    (tier("- gang"), "4:5: tiers[0].plugins[0]: expected a mapping, found the string 'gang'"),
    (tier("- name: [gang]"), "4:11: tiers[0].plugins[0].name: expected a string, found a list"),
    (tier("- name: gang", "  enablePreemptable: 'false'"), "5:24: tiers[0].plugins[0].enablePreemptable: expected true or false without quotes, found the string 'false'"),
    (tier("- name: gang", "  enableJobOrder: 1"), "5:21: tiers[0].plugins[0].enableJobOrder: expected true or false without quotes, found 1"),
    (tier("- name: gang", "  enableJobOrder: [true]"), "5:21: tiers[0].plugins[0].enableJobOrder: expected true or false without quotes, found a list"),
    (tier("- name: gang", "  enabledVictim: ja"), "5:20: tiers[0].plugins[0].enabledVictim: expected true or false without quotes, found the string 'ja'"),
    (tier("- name: gang", "  arguments: 5"), "5:16: tiers[0].plugins[0].arguments: expected a mapping, found 5"),
    (tier("- name: gang", "  arguments: [a]"), "5:16: tiers[0].plugins[0].arguments: expected a mapping, found a list"),
    (tier("- name: proportion", "- name: drf", "  enableHierarchy: true"), "6:22: tiers[0].plugins[1].enableHierarchy: drf with enableHierarchy conflicts with proportion in the same tier: remove one of them"),
    ("actions: allocate\nconfigurations: {name: allocate}", "2:17: configurations: expected a list, found a mapping"),
    ("actions: allocate\nconfigurations: [allocate]", "2:18: configurations[0]: expected a mapping, found the string 'allocate'"),
    ("actions: allocate\nconfigurations:\n- name: allocate\n  arguments: no", "4:14: configurations[0].arguments: expected a mapping, found false"),
    ("actions: allocate\nmetrics: [a]", "2:10: metrics: expected a mapping, found a list"),
    ("actions: allocate\nmetrics: {tls: {insecureSkipVerify: true}}", "2:16: metrics.tls: expected a string, found a mapping"),
    ("actions: 'allocate\ntiers: []", "1:10: this quoted string is never closed"),
    ("actions: allocate\n\ttiers: []", "2:1: a tab stands where indentation is expected: indent with spaces"),
    ("actions: allocate\ntiers: *t", "2:8: the alias '*t' has no anchor '&t' before it"),
    (b"actions: \xffallocate", "1:10: byte 0xFF is not valid UTF-8"),
    ("actions: allocate\0", "1:18: found a NUL character: this is not a YAML or JSON text"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BROKEN, ids=range(len(BROKEN)))
def test_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse(text)
    assert str(caught.value) == f"s.conf:{message}"


@pytest.mark.parametrize("text", ["", "  \n", "# nothing\n", "---\n---\nactions: allocate"])
def test_without_content_there_are_no_actions(text: str) -> None:
    with pytest.raises(ConfigurationError, match="actions: no action is named"):
        parse(text)


def test_all_type_errors_come_at_once_and_before_other_checks() -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse("tiers: 1\nmetrics: 2\nactions: x\nconfigurations: 3\n")
    assert [(finding.line, finding.field) for finding in caught.value.findings] == [
        (1, "tiers"),
        (2, "metrics"),
        (4, "configurations"),
    ]


def test_hierarchy_is_checked_before_actions() -> None:
    with pytest.raises(ConfigurationError, match="conflicts with proportion"):
        parse("actions: x\ntiers: [{plugins: [{name: drf, enableHierarchy: on}, {name: proportion}]}]")


WARNED: list[tuple[str, str]] = [
    (tier("- name: gang", "  enabledJobOrder: false"), "5:5: tiers[0].plugins[0].enabledJobOrder: unknown key, it has no effect; did you mean 'enableJobOrder'?"),
    (tier("- name: gang", "  disableJobOrder: true"), "5:5: tiers[0].plugins[0].disableJobOrder: unknown key, it has no effect; write 'enableJobOrder: false'"),
    (tier("- name: gang", "  disableVictim: true"), "5:5: tiers[0].plugins[0].disableVictim: unknown key, it has no effect; write 'enabledVictim: false'"),
    (tier("- name: gang", "  Arguments: {}"), "5:5: tiers[0].plugins[0].Arguments: unknown key, it has no effect; did you mean 'arguments'?"),
    (tier("- name: gamg"), "4:11: tiers[0].plugins[0].name: unknown plugin 'gamg', it is skipped; did you mean 'gang'?"),
    (tier("- name: zzz"), "4:11: tiers[0].plugins[0].name: unknown plugin 'zzz', it is skipped"),
    (tier("- arguments: {}"), "4:5: tiers[0].plugins[0].name: a plugin without a name, it is skipped"),
    ("actions: allocate\nconfiguration: []", "2:1: configuration: unknown key, it has no effect; did you mean 'configurations'?"),
    ("actions: allocate\ntiers:\n- plugin: []", "3:3: tiers[0].plugin: unknown key, it has no effect; did you mean 'plugins'?"),
    ("actions: allocate\nconfigurations:\n- name: allocate\n  args: {}", "4:3: configurations[0].args: unknown key, it has no effect; did you mean 'arguments'?"),
    ("actions: enqueue\nactions: allocate", "2:1: the key 'actions' was given in line 1 already: this one counts"),
    ("actions: allocate\n---\nactions: x", "3:1: only the first YAML document is read, this is not"),
    ("actions: allocate\n---\nactions: x: y", "3:1: only the first YAML document is read, this is not"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WARNED, ids=range(len(WARNED)))
def test_taken_with_a_warning(text: str, message: str) -> None:
    parsed = parse(text)
    assert parsed.configuration.actions == ("allocate",)
    assert [(finding.level, str(finding)) for finding in parsed.warnings] == [("warning", f"s.conf:{message}")]


def test_plugins_are_not_judged_without_a_list_of_them() -> None:
    assert parse_configuration(tier("- name: mine"), known_actions=ACTIONS).warnings == ()


def test_a_configuration_that_is_data_already() -> None:
    value = {
        "actions": "enqueue, allocate",
        "tiers": [{"plugins": [{"name": "gang", "enableJobOrder": False, "enabledJobOrder": 1}]}],
        "metrics": {"interval": 30, "x": True},
    }
    parsed = configuration_from_value(value, "case", known_actions=ACTIONS, known_plugins=PLUGINS)
    assert parsed.configuration.tiers[0].plugins[0].enable_job_order is False
    assert parsed.configuration.metrics == {"interval": "30", "x": "true"}
    assert [str(finding) for finding in parsed.warnings] == [
        "case: tiers[0].plugins[0].enabledJobOrder: unknown key, it has no effect; did you mean 'enableJobOrder'?"
    ]
    with pytest.raises(ConfigurationError, match=r"^case: actions: unknown action 'x'"):
        configuration_from_value({"actions": "x"}, "case", known_actions=ACTIONS)
