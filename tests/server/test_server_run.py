"""The command line of ``vcscheduler run``: every flag of vc-scheduler, clear errors, exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from vcscheduler.cli.app import app
from vcscheduler.config import COMMAND_LINE_FLAGS

CHART = [
    "--logtostderr",
    "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf",
    "--enable-healthz=true",
    "--enable-metrics=true",
    "--leader-elect=false",
    "--kube-api-qps=2000",
    "--kube-api-burst=2000",
    "--schedule-period=1s",
    "--node-worker-threads=20",
    "-v=3",
    "2>&1",
]
"""What Volcano's chart passes (spec 07 §6.1)."""


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["run", *words])


def test_help_lists_every_flag() -> None:
    text = run("--help").output
    for name in COMMAND_LINE_FLAGS:
        assert f"  {'-' if len(name) == 1 else '--'}{name} " in text


def test_the_charts_arguments_are_taken() -> None:
    result = run(*CHART, "--version")
    assert (result.exit_code, result.output[:11]) == (0, "vcscheduler")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--schedule-perod=1s"], "unknown flag --schedule-perod; did you mean 'schedule-period'?"),
        (["--schedule-period=fast"], "--schedule-period: "),
        (["--leader-elect-lease-duration=5s"], "--leader-elect-lease-duration (5s) must exceed the renew deadline"),
        (["surplus"], "unexpected argument 'surplus': flags begin with --"),
        (["--log-format=xml"], "--log-format: expected logfmt or json, found 'xml'"),
        (["--kubeconfig=/does/not/exist", "--debug-address="], "cannot reach a cluster by /does/not/exist"),
        (["--scheduler-conf=/does/not/exist/x.conf"], "the directory /does/not/exist does not exist"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBUG_SOCKET_DIR", str(tmp_path))
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert "Traceback" not in result.output


def test_the_document_lists_every_flag_as_it_is() -> None:
    text = (Path(__file__).parents[2] / "docs" / "run.md").read_text()
    effective, _, without = text.partition("without effect:")
    for flag in COMMAND_LINE_FLAGS.values():
        name = f"`{'-' if len(flag.name) == 1 else '--'}{flag.name}`"
        default = f"`{flag.default}`" if flag.default else ""
        row = f"| {name} | {flag.type} | {default} | {flag.meaning} |"
        assert row in (effective if flag.effect else without), flag.name
