"""The command line as upstream spells it, and the durations in it (spec 02 §1.4)."""

# ruff: noqa: E501 - the tables of inputs and messages read best with one case a line

from dataclasses import fields
from typing import Any

import pytest

from vcscheduler.config import (
    COMMAND_LINE_FLAGS,
    DurationError,
    FlagError,
    SchedulerOptions,
    parse_duration,
    parse_flags,
    parse_nanoseconds,
)


def test_no_flags_are_the_defaults() -> None:
    assert parse_flags([]) == SchedulerOptions()


def test_the_table_and_the_options_tell_the_same_defaults() -> None:
    defaults = SchedulerOptions()
    for flag in COMMAND_LINE_FLAGS.values():
        if flag.option is None or flag.default == "":
            continue
        options = parse_flags([f"--{flag.name}={flag.default}"])
        assert getattr(options, flag.option) == getattr(defaults, flag.option), flag.name
    assert {flag.option for flag in COMMAND_LINE_FLAGS.values()} - {None} == {
        field.name for field in fields(SchedulerOptions)
    }


@pytest.mark.parametrize(
    ("words", "option", "value"),
    [
        (["--schedule-period=100ms"], "schedule_period", 0.1),
        (["--schedule-period", "2s"], "schedule_period", 2.0),
        (["--schedule_period=2s"], "schedule_period", 2.0),
        (["--schedule-period=1s", "--schedule-period=3s"], "schedule_period", 3.0),
        (["--enable-metrics"], "enable_metrics", True),
        (["--leader-elect=false"], "leader_elect", False),
        (["--leader-elect=F"], "leader_elect", False),
        (["--scheduler-name=a"], "scheduler_names", ("a",)),
        (["--scheduler-name=a", "--scheduler-name", "b,c"], "scheduler_names", ("a", "b,c")),
        (["--node-selector=a:b,c:d", "--node-selector=e:f"], "node_selector", ("a:b", "c:d", "e:f")),
        (["--kube-api-qps=50.5"], "kube_api_qps", 50.5),
        (["--kube-api-burst=0x10"], "kube_api_burst", 16),
        (["-v", "3"], "verbosity", 3),
        (["-v=4"], "verbosity", 4),
        (["-v5"], "verbosity", 5),
        (["--v=2"], "verbosity", 2),
        (["--tie-break=random"], "tie_break", "random"),
        (["--seed=7"], "seed", 7),
        (["--default-queue="], "default_queue", ""),
    ],
)
def test_spellings(words: list[str], option: str, value: object) -> None:
    found: Any = getattr(parse_flags(words), option)
    assert (type(found), found) == (type(value), value)


def test_flags_without_effect_are_taken() -> None:
    words = ["--resync-period=5m", "--logtostderr", "--log_dir=/x", "--enable-pprof=true", "--node-worker-threads=3"]
    assert parse_flags(words) == SchedulerOptions()
    assert not COMMAND_LINE_FLAGS["resync-period"].effect
    assert COMMAND_LINE_FLAGS["schedule-period"].effect


def test_a_scheduler_name_leaves_the_name_of_the_lease() -> None:
    assert parse_flags(["--scheduler-name=x"]).leader_elect_resource_name == "volcano"


@pytest.mark.parametrize(
    "flag", ["minimum-feasible-nodes", "minimum-percentage-nodes-to-find", "percentage-nodes-to-find"]
)
def test_setting_a_sampling_flag_switches_sampling_on(flag: str) -> None:
    assert parse_flags([f"--{flag}=50"]).exact_search is False
    assert parse_flags([f"--{flag}=50", "--exact-search"]).exact_search is True
    assert parse_flags(["--exact-search=false"]).exact_search is False


def test_feature_gates_add_up() -> None:
    options = parse_flags(["--feature-gates=PriorityClass=false,Other=true", "--feature-gates=CSIStorage=1"])
    assert options.feature_gates == {
        **SchedulerOptions().feature_gates,
        "PriorityClass": False,
        "Other": True,
        "CSIStorage": True,
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--schedule-perod=1s"], "unknown flag --schedule-perod; did you mean 'schedule-period'?"),
        (["--zzzzzz"], "unknown flag --zzzzzz"),
        (["schedule-period"], "unexpected argument 'schedule-period': flags begin with --"),
        (["--schedule-period"], "--schedule-period: a value is missing"),
        (["--schedule-period=1"], "--schedule-period: '1' is not a duration: write numbers with units, such as 1h30m, 5s or 100ms"),
        (["--kube-api-burst=1.5"], "--kube-api-burst: expected an integer, found '1.5'"),
        (["--kube-api-burst="], "--kube-api-burst: expected an integer, found ''"),
        (["--kube-api-qps=fast"], "--kube-api-qps: expected a number, found 'fast'"),
        (["--leader-elect=yes"], "--leader-elect: expected true or false, found 'yes'"),
        (["--feature-gates=A"], "--feature-gates: expected Name=true or Name=false, found 'A'"),
        (["--feature-gates=A=on"], "--feature-gates: A: expected true or false, found 'on'"),
        (["--tie-break=last"], "--tie-break: expected first or random, found 'last'"),
    ],
)  # fmt: skip
def test_refused(words: list[str], message: str) -> None:
    with pytest.raises(FlagError) as caught:
        parse_flags(words)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("words", "problems"),
    [
        ([], ()),
        (["--leader-elect-retry-period=0s"], ("--leader-elect-retry-period must be longer than 0, found 0s",)),
        (["--leader-elect-lease-duration=5s"], ("--leader-elect-lease-duration (5s) must exceed the renew deadline (10s)",)),
        (["--leader-elect-renew-deadline=2s"], ("--leader-elect-renew-deadline (2s) must exceed 1.2 times the retry period (2s)",)),
        (["--leader-elect-resource-name="], ("--leader-elect-resource-name must not be empty",)),
        (["--leader-elect-resource-namespace="], ("--leader-elect-resource-namespace must not be empty",)),
        (["--leader-elect-resource-namespace=", "--lock-object-namespace=x"], ()),
        (["--leader-elect-retry-period=0s", "--leader-elect=false"], ()),
        (["--seed=7", "--tie-break=random"], ()),
        (["--seed=7", "--leader-elect=false"], ("--seed has no effect without --tie-break random: equal nodes go by name then",)),
    ],
)  # fmt: skip
def test_settings_must_fit_together(words: list[str], problems: tuple[str, ...]) -> None:
    assert parse_flags(words).problems() == problems


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("-0", 0),
        ("1s", 10**9),
        ("1h2m3s", 3723 * 10**9),
        ("100ms", 10**8),
        ("1.5h", 5400 * 10**9),
        (".5s", 5 * 10**8),
        ("1.s", 10**9),
        ("-1.5s", -15 * 10**8),
        ("+5m", 300 * 10**9),
        ("1us", 1000),
        ("1µs", 1000),
        ("1μs", 1000),
        ("1.9ns", 1),
        ("1s1s", 2 * 10**9),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
    ],
)
def test_durations(text: str, nanoseconds: int) -> None:
    assert parse_nanoseconds(text) == nanoseconds
    assert parse_duration(text) == nanoseconds / 1e9


@pytest.mark.parametrize(
    "text", ["", "1", "s", "1 s", " 1s", "1s ", "1d", "1S", "-", "+", ".s", "1.2.3s", "1e3s", "--1s", "1s-1s", "1h30", "300000h0"]
)  # fmt: skip
def test_texts_that_are_no_durations(text: str) -> None:
    with pytest.raises(DurationError, match="is not a duration"):
        parse_nanoseconds(text)


def test_durations_end_after_292_years() -> None:
    with pytest.raises(DurationError, match="longer than a duration can be"):
        parse_nanoseconds("9223372036854775808ns")
