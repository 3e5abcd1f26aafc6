"""The documentation says what the code says: generated parts, tables of names, links, examples."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from vcscheduler.cli.app import app
from vcscheduler.config.flags import COMMAND_LINE_FLAGS
from vcscheduler.config.options import DEFAULT_FEATURE_GATES
from vcscheduler.explain.pending import Cause
from vcscheduler.framework.extension_points import ExtensionPoints
from vcscheduler.framework.plugin import Plugin
from vcscheduler.framework.registry import (
    BUILTIN_ACTIONS,
    BUILTIN_PLUGINS,
    MISSING_ACTIONS,
    MISSING_PLUGINS,
    Registry,
)
from vcscheduler.framework.session import Session
from vcscheduler.framework.simulation_points import SimulationPoints
from vcscheduler.simulator.conformance import parse_case, run_case
from vcscheduler.simulator.engine import SchedulerEngine
from vcscheduler.simulator.scenarios import SCENARIOS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    *sorted(DOCS.glob("*.md")),
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def tool() -> ModuleType:
    if "docs_tool" not in sys.modules:
        spec = importlib.util.spec_from_file_location("docs_tool", ROOT / "tools" / "docs.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules["docs_tool"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["docs_tool"])
    return sys.modules["docs_tool"]


def section(text: str, heading: str) -> str:
    """What stands under a heading, up to the next of the same or a higher level."""
    level = len(heading) - len(heading.lstrip("#"))
    after = text.split(f"\n{heading}\n", 1)[1]
    return re.split(rf"^#{{1,{level}}} ", after, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str) -> list[list[str]]:
    """The cells of all table rows, heads and lines left out."""
    found = []
    for line in text.splitlines():
        if line.startswith("|"):
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            found.append(cells)
    separators = [i for i, cells in enumerate(found) if all(set(cell) <= set("-: ") for cell in cells)]
    heads = {i - 1 for i in separators} | set(separators)
    return [cells for i, cells in enumerate(found) if i not in heads]


# --- generated --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_generated_parts_are_up_to_date(page: Path) -> None:
    text = page.read_text()
    assert text == tool().renewed(text), "run python tools/docs.py"


# --- links ------------------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", _FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in _LINK.finditer(_FENCE.sub("", page.read_text())):
        target, _, anchor = link["target"].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(link["target"])
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_name_in_code_that_links_to_a_module_is_in_that_module(page: Path) -> None:
    missing = []
    for link in _LINK.finditer(_FENCE.sub("", page.read_text())):
        name = re.fullmatch(r"`(?:\w+\.)?(\w+)`", link["text"])
        path = (page.parent / link["target"]).resolve()
        if name is None or path.suffix != ".py":
            continue
        if name[1] != path.stem and not re.search(rf"^\s*(class|def) {name[1]}\b", path.read_text(), re.MULTILINE):
            missing.append(link[0])
    assert not missing


# --- names ------------------------------------------------------------------------------------------------------------


def states(heading: str) -> dict[str, str]:
    table = rows(section((DOCS / "support.md").read_text(), heading))
    return {cells[0].strip("`"): cells[1] for cells in table}


def test_support_lists_the_actions_that_there_are() -> None:
    listed = states("## Actions")
    assert set(listed) == {*BUILTIN_ACTIONS, *MISSING_ACTIONS}
    assert {name for name, state in listed.items() if state == "missing"} == MISSING_ACTIONS


def test_support_lists_the_plugins_that_there_are() -> None:
    listed = states("## Plugins")
    assert set(listed) == {*BUILTIN_PLUGINS, *MISSING_PLUGINS}
    assert {name for name, state in listed.items() if state == "missing"} == MISSING_PLUGINS


def test_support_lists_the_feature_gates() -> None:
    assert set(DEFAULT_FEATURE_GATES) <= set(states("## Feature gates"))


def test_support_lists_the_metrics_as_they_are() -> None:
    metrics = pytest.importorskip("vcscheduler.server.metrics")
    made = {series.name.removeprefix("volcano_") for series in metrics.SchedulerMetrics(None)._all}
    listed = states("## Metrics")
    assert {name for name, state in listed.items() if state == "works"} == {
        name for name in made if not name.startswith("vcscheduler_")
    }


def test_configuration_lists_every_argument_with_its_kind() -> None:
    text = (DOCS / "configuration.md").read_text()
    for name, known in Registry().known_arguments().items():
        heading = next(
            (line for line in text.splitlines() if re.match(rf"#### (.*\b)?{re.escape(name)}(,|$)", line)), ""
        )
        listed = {cells[0].strip("`"): cells[1] for cells in rows(section(text, heading))} if heading else {}
        assert listed == known, name


def test_configuration_names_every_flag() -> None:
    text = (DOCS / "configuration.md").read_text()
    assert [name for name in COMMAND_LINE_FLAGS if f"`--{name}`" not in text] == []


def test_plugins_names_every_way_to_register() -> None:
    text = (DOCS / "plugins.md").read_text()
    methods = {
        name for owner in (ExtensionPoints, SimulationPoints, Session) for name in dir(owner) if name.startswith("add_")
    }
    assert sorted(name for name in methods if not re.search(rf"`{name}\b", text)) == []
    assert hasattr(Plugin, "on_session_open")


def test_architecture_lists_every_room() -> None:
    listed = {
        name
        for cells in rows(section((DOCS / "architecture.md").read_text(), "## Rooms"))
        for name in cells[0].split(", ")
    }
    rooms = {path.parent.name for path in (ROOT / "src" / "vcscheduler").glob("*/__init__.py")}
    assert rooms <= {name.strip("`/") for name in listed}


def test_simulate_lists_every_cause() -> None:
    listed = {cells[0].strip("`") for cells in rows(section((DOCS / "simulate.md").read_text(), "### Causes"))}
    assert listed == {cause.value for cause in Cause}


def test_benchmarks_lists_every_scenario() -> None:
    listed = [cells[0] for cells in rows(section((DOCS / "benchmarks.md").read_text(), "## Scenarios"))]
    assert listed == list(SCENARIOS)


# --- examples ---------------------------------------------------------------------------------------------------------


def test_the_case_in_conformance_passes() -> None:
    text = re.search(r"```yaml\n(.*?)```", (DOCS / "conformance.md").read_text(), re.DOTALL)
    assert text is not None
    assert run_case(parse_case(text[1], "docs/conformance.md"), SchedulerEngine) == []


OUTPUTS = [
    (page.name, *match)
    for page in PAGES
    for match in re.findall(r"<!-- output of: (.*?) -->\n```text\n(.*?)```", page.read_text(), re.DOTALL)
]


def test_there_are_outputs_to_hold() -> None:
    assert {"README.md", "simulate.md"} <= {page for page, _, _ in OUTPUTS}


@pytest.mark.parametrize(("page", "command", "text"), OUTPUTS, ids=lambda value: value.split("\n")[0][:30])
def test_outputs_shown_are_those_of_the_program(
    page: str, command: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every line but those left out stands in what is printed."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "100")
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 0, done.output
    printed = {line.rstrip() for line in done.stdout.splitlines()}
    assert [line for line in text.splitlines() if line.strip() != "…" and line.rstrip() not in printed] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_in_examples_is_python(page: Path) -> None:
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        compile(block, str(page), "exec")


def test_the_smallest_plugin_is_one(tmp_path: Path) -> None:
    block = re.search(r"```python\n(.*?)```", (DOCS / "plugins.md").read_text(), re.DOTALL)
    assert block is not None
    (tmp_path / "no-mondays.py").write_text(block[1])
    registry = Registry()
    registry.load_directory(tmp_path)
    assert "no-mondays" in registry.plugin_names
