"""Mistakes of the user: one clear message on standard error, exit code 2, nothing on standard output, no traceback."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vcscheduler.cli.app import app

NODE = "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 1}}}\n"
QUEUE = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: %s}\nspec: {parent: %s}\n"
BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(20)
)

MANIFESTS = {
    "malformed YAML": ("a: [1, 2\nb: }", ":2:"),
    "tabs for indentation": ("a:\n\tb: 1\n", ":2:"),
    "a list at the top": ("- a\n- b\n", "input.yaml:1"),
    "a plain text": ("hello\n", "input.yaml:1"),
    "no kind": ("apiVersion: v1\nmetadata: {name: a}\n", "kind"),
    "a wrong type": (NODE.replace("{cpu: 1}", "[1]"), "status.allocatable"),
    "a negative quantity": (NODE.replace("cpu: 1", "cpu: -1"), "status.allocatable.cpu"),
    "an absurd quantity": (NODE.replace("cpu: 1", "cpu: lots"), "status.allocatable.cpu"),
    "a quantity of the wrong case": (NODE.replace("cpu: 1", "memory: 1gi"), "status.allocatable.memory"),
    "no name": (NODE.replace("name: n1", "labels: {}"), "metadata.name"),
    "a name in capitals": (NODE.replace("name: n1", "name: NODE"), "metadata.name"),
    "the same name twice": (f"{NODE}---\n{NODE}", "Node n1"),
    "a tag that would run code": ("a: !!python/object/apply:os.system ['true']\n", ":1:"),
    "an alias bomb": (BOMB, "alias"),
    "an unknown alias": ("a: *nothing\n", "nothing"),
    "a key twice": ("apiVersion: v1\nkind: Node\nkind: Pod\n", ":3:"),
    "a circle of queues": (QUEUE % ("a", "b") + "---\n" + QUEUE % ("b", "a"), "circle"),
    "binary junk": ("\x00\x01\x02", "input.yaml"),
    "a misspelt field": (NODE.replace("metadata: {", "spec: {unschedulabel: true}, metadata: {"), None),
}

CONFIGURATIONS = {
    "unknown action": ('actions: "enqueue, allocat"\n', "did you mean 'allocate'?"),
    "unknown plugin": ('actions: "allocate"\ntiers: [{plugins: [{name: gangg}]}]\n', "did you mean 'gang'?"),
    "no configuration": ("- 1\n- 2\n", "test.conf"),
    "malformed": ("actions: [\n", "test.conf:"),
    "a plugin of a wrong type": ('actions: "allocate"\ntiers: [{plugins: [{name: 3}]}]\n', "tiers[0].plugins[0].name"),
    "a flag of a wrong type": (
        'actions: "allocate"\ntiers: [{plugins: [{name: gang, enableJobOrder: 7}]}]\n',
        "enableJobOrder",
    ),
    "tiers of a wrong type": ('actions: "allocate"\ntiers: high\n', "tiers"),
    "binary": ("\x00\x7f\x00", "test.conf"),
}


def fails(arguments: list[str | Path], expected: str) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert expected in result.stderr
    return result.stderr


@pytest.mark.parametrize("mistake", [name for name, (_, expected) in MANIFESTS.items() if expected])
def test_a_mistake_in_a_manifest(tmp_path: Path, mistake: str) -> None:
    text, expected = MANIFESTS[mistake]
    file = tmp_path / "input.yaml"
    file.write_text(text)
    assert expected is not None
    shown = fails(["simulate", file], expected)
    assert shown.startswith(f"error: {file}")
    assert len(shown.splitlines()) == 1


def test_a_misspelt_field_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "input.yaml"
    file.write_text(MANIFESTS["a misspelt field"][0])
    result = CliRunner().invoke(app, ["simulate", str(file)])
    assert result.exit_code == 0
    assert 'did you mean "unschedulable"?' in result.stderr


@pytest.mark.parametrize("mistake", CONFIGURATIONS)
def test_a_mistake_in_a_configuration(tmp_path: Path, mistake: str) -> None:
    text, expected = CONFIGURATIONS[mistake]
    file, manifest = tmp_path / "test.conf", tmp_path / "input.yaml"
    file.write_text(text)
    manifest.write_text(NODE)
    fails(["simulate", manifest, "--config", file], expected)
    checked = CliRunner().invoke(app, ["config", "check", str(file)])
    assert checked.exit_code == 2
    assert expected in checked.stdout
    assert ": error: " in checked.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["simulate"], "nothing to simulate"),
        (["simulate", "nowhere.yaml"], "nowhere.yaml: no such file or directory"),
        (["simulate", "FOLDER"], "no manifests in this directory"),
        (["simulate", "NODE", "--config", "nowhere.conf"], "nowhere.conf: cannot be read"),
        (["simulate", "NODE", "--config", "FOLDER"], "cannot be read"),
        (["simulate", "NODE", "--plugins-dir", "nowhere"], "--plugins-dir nowhere: no such directory"),
        (["simulate", "NODE", "--nodes-csv", "a.csv"], "add --trace openb"),
        (["simulate", "--trace", "openb"], "--trace openb needs --nodes-csv"),
        (["simulate", "--trace", "openb", "--nodes-csv", "a"], "--trace openb needs --pods-csv"),
        (["simulate", "x", "--trace", "openb", "--nodes-csv", "a", "--pods-csv", "b"], "found x"),
        (["simulate", "--trace", "openb", "--nodes-csv", "a", "--pods-csv", "b"], "a: cannot be read"),
        (["simulate", "NODE", "--max-cycles", "0"], "--max-cycles"),
        (["simulate", "NODE", "-o", "xml"], "xml"),
        (["simulate", "NODE", "--tie-break", "last"], "last"),
        (["simulate", "NODE", "--no-such-option"], "--no-such-option"),
        (["verify"], "no cases were given"),
        (["verify", "nowhere"], "nowhere: no such file or folder"),
        (["verify", "FOLDER"], "no case files in this folder"),
        (["verify", "--from-file", "nowhere"], "nowhere: cannot be read"),
        (["config", "check", "nowhere.conf"], "nowhere.conf: cannot be read"),
        (["config", "check", "NODE", "--plugins-dir", "nowhere"], "no such directory"),
        (["no-such-command"], "no-such-command"),
    ],
)
def test_a_mistake_in_the_command_line(tmp_path: Path, arguments: list[str], expected: str) -> None:
    node, folder = tmp_path / "node.yaml", tmp_path / "empty"
    node.write_text(NODE)
    folder.mkdir()
    fails([{"NODE": node, "FOLDER": folder}.get(each, each) for each in arguments], expected)


@pytest.mark.parametrize("arguments", [["simulate", "NODE", "--plugins-dir", "SECRET"], ["verify", "SECRET"]])
def test_a_path_that_may_not_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    node, secret = tmp_path / "node.yaml", tmp_path / "secret"
    node.write_text(NODE)
    is_dir = Path.is_dir

    def refused(path: Path) -> bool:
        if path == secret:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", refused)
    given = {"NODE": node, "SECRET": secret}
    fails([given.get(each, each) for each in arguments], f"{secret}: Permission denied")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("broken.py", "def New(arguments:\n", "broken.py: SyntaxError"),
        ("empty.py", "x = 1\n", "has no callable New(arguments)"),
        ("raises.py", "raise RuntimeError('no licence')\n", "RuntimeError: no licence"),
        ("old.so", "", "compiled from Go cannot run here"),
    ],
)
def test_a_mistake_in_a_custom_plugin(tmp_path: Path, name: str, text: str, expected: str) -> None:
    node, plugins = tmp_path / "node.yaml", tmp_path / "plugins"
    node.write_text(NODE)
    plugins.mkdir()
    (plugins / name).write_text(text)
    fails(["simulate", node, "--plugins-dir", plugins], expected)


def test_a_plugin_that_fails_when_it_opens_is_named(tmp_path: Path) -> None:
    node, plugins, conf = tmp_path / "node.yaml", tmp_path / "plugins", tmp_path / "test.conf"
    node.write_text(NODE)
    plugins.mkdir()
    (plugins / "touchy.py").write_text(
        "from vcscheduler.framework.plugin import Plugin\n"
        "class New(Plugin):\n"
        "    name = 'touchy'\n"
        "    def on_session_open(self, ssn):\n"
        "        raise ValueError('not today')\n"
    )
    conf.write_text('actions: "allocate"\ntiers: [{plugins: [{name: touchy}]}]\n')
    expected = "plugin touchy failed to open: ValueError: not today"
    fails(["simulate", node, "--plugins-dir", plugins, "--config", conf], expected)
