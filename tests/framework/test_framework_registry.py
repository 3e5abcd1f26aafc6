"""Where plugins and actions come from (spec 02 §3)."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest

from vcscheduler.config import Arguments
from vcscheduler.framework.registry import BUILTIN_ACTIONS, BUILTIN_PLUGINS, PluginError, Registry

PLUGIN = """
from vcscheduler.framework.plugin import Plugin

class Mine(Plugin):
    name = "mine"

def New(arguments):
    return Mine(arguments)
"""


def test_everything_built_in_can_be_made_and_is_named_as_it_is_configured() -> None:
    registry = Registry()
    for name in BUILTIN_PLUGINS:
        assert registry.plugin(name, Arguments({}, name)).name == name
    for name in BUILTIN_ACTIONS:
        assert registry.action(name).name == name
    assert registry.plugin_names >= BUILTIN_PLUGINS.keys()
    assert registry.action_names >= BUILTIN_ACTIONS.keys()


def test_files_of_a_directory_are_plugins_by_their_name(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    (tmp_path / "notes.txt").write_text("no plugin")
    registry = Registry.default(str(tmp_path))
    assert registry.has_plugin("mine")
    assert registry.plugin("mine", Arguments({"x": 1}, "mine")).arguments.get_int("x", 0) == 1
    assert not registry.has_plugin("notes")


def test_a_later_source_replaces_an_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "gang.py").write_text(PLUGIN)
    assert type(Registry.default(str(tmp_path)).plugin("gang", Arguments({}, "gang"))).__name__ == "Mine"


def test_a_missing_directory_holds_no_plugins(tmp_path: Path) -> None:
    assert Registry.default(str(tmp_path / "nowhere")).plugin_names == Registry.default().plugin_names


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("policy.so", "", "plugins compiled from Go cannot run here"),
        ("broken.py", "import no_such_module", "broken.py: ModuleNotFoundError: No module named 'no_such_module'"),
        ("syntax.py", "def New(:", "syntax.py: SyntaxError"),
        ("empty.py", "x = 1", "empty.py: has no callable New"),
        ("leaves.py", "import sys; sys.exit(0)", "leaves.py: SystemExit: 0"),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(PluginError) as error:
        Registry.default(str(tmp_path))
    assert says in str(error.value)
    assert str(tmp_path / name) in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def New(arguments): raise ValueError('no licence')", "plugin mine cannot be made: ValueError: no licence"),
        ("def New(): pass", "plugin mine cannot be made: TypeError"),
        ("def New(arguments): return 5", "plugin mine: found int, New(arguments) must give a Plugin"),
    ],
)
def test_plugins_that_cannot_be_made_are_named(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(PluginError) as error:
        Registry.default(str(tmp_path)).plugin("mine", Arguments({}, "mine"))
    assert says in str(error.value)
    assert error.value.plugin == "mine"


def test_unknown_names_are_refused() -> None:
    with pytest.raises(PluginError, match="plugin nobody is not known"):
        Registry().plugin("nobody", Arguments({}, "nobody"))
    with pytest.raises(PluginError, match="action nothing is not known"):
        Registry().action("nothing")


def test_installed_packages_offer_plugins_and_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {
        "vcscheduler.plugins": [("theirs", "vcscheduler.plugins.gang:GangPlugin"), ("broken", "no_such_module:New")],
        "vcscheduler.actions": [("their-action", "builtins:list")],
    }

    def entry_points(*, group: str) -> Any:
        return [importlib.metadata.EntryPoint(name, value, group) for name, value in points.get(group, [])]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    registry = Registry.default()
    assert registry.plugin("theirs", Arguments({}, "theirs")).name == "gang"
    assert registry.action("their-action") == []  # type: ignore[comparison-overlap]
    # Imported at first use only, so that one broken package does not stop those that do not need it.
    with pytest.raises(PluginError, match=r"vcscheduler.plugins broken \(no_such_module:New\): No module"):
        registry.plugin("broken", Arguments({}, "broken"))


CHOOSY = """
from vcscheduler.framework.plugin import Plugin
class New(Plugin):
    name = "choosy"
    known_arguments = {arguments}
"""


def test_a_class_may_say_what_arguments_it_takes(tmp_path: Path) -> None:
    (tmp_path / "choosy.py").write_text(CHOOSY.format(arguments={"weight": "int"}))
    (tmp_path / "easy.py").write_text("from vcscheduler.framework.plugin import Plugin as New")
    known = Registry.default(str(tmp_path)).known_arguments()
    assert known["choosy"] == {"weight": "int"}
    assert "easy" not in known
    assert known["gang"] == {}


def test_kinds_of_arguments_that_do_not_exist_are_named(tmp_path: Path) -> None:
    (tmp_path / "choosy.py").write_text(CHOOSY.format(arguments={"weight": "number"}))
    with pytest.raises(PluginError, match="choosy: known_arguments: weight: found 'number', allowed are int, float"):
        Registry.default(str(tmp_path)).known_arguments()
