"""What is active while the configuration file appears, changes, breaks and goes away (spec 02 §2.5)."""

import os
from pathlib import Path

import pytest

from vcscheduler.config import ConfigurationError, ConfigurationFile, default_configuration

ACTIONS = ("enqueue", "allocate", "backfill")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scheduler.conf"


def configuration_file(path: Path | None, *, require_valid: bool = False) -> ConfigurationFile:
    return ConfigurationFile(path, known_actions=ACTIONS, known_plugins=["gang"], require_valid=require_valid)


def write(path: Path, actions: str) -> None:
    path.write_text(f"actions: {actions}\n")


def test_without_a_path_the_default_is_active_for_good() -> None:
    file = configuration_file(None)
    result = file.load()
    assert (result.configuration, result.error) == (default_configuration(), None)
    assert file.reload_if_changed() is None


def test_without_a_path_and_default_there_is_nothing_to_run() -> None:
    with pytest.raises(ConfigurationError) as caught:
        configuration_file(None, require_valid=True)
    assert str(caught.value) == "--scheduler-conf: a file is needed: the default is switched off"


def test_a_missing_directory_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"the directory .*nowhere does not exist$"):
        configuration_file(tmp_path / "nowhere" / "s.conf")


def test_a_missing_file_leaves_the_default(path: Path) -> None:
    file = configuration_file(path)
    result = file.load()
    assert result.configuration == default_configuration()
    assert str(result.error) == f"{path}: the file cannot be read: No such file or directory"
    write(path, "allocate")
    again = file.reload_if_changed()
    assert again is not None
    assert again.configuration.actions == file.active.actions == ("allocate",)


def test_a_bad_file_leaves_what_was_active(path: Path) -> None:
    write(path, "allocate")
    file = configuration_file(path)
    assert file.load().error is None
    write(path, "enqueue, alocate")
    result = file.reload_if_changed()
    assert result is not None
    assert str(result.error).startswith(f"{path}:1:10: actions: unknown action 'alocate'")
    assert result.configuration.actions == file.active.actions == ("allocate",)
    write(path, "enqueue, allocate")
    repaired = file.reload_if_changed()
    assert repaired is not None
    assert repaired.configuration.actions == ("enqueue", "allocate")


def test_warnings_come_with_the_result(path: Path) -> None:
    path.write_text("actions: allocate\ntiers: [{plugins: [{name: gamg}]}]")
    (warning,) = configuration_file(path).load().warnings
    assert warning.message == "unknown plugin 'gamg', it is skipped; did you mean 'gang'?"


def test_nothing_changed_nothing_read(path: Path) -> None:
    write(path, "allocate")
    file = configuration_file(path)
    file.load()
    assert [file.reload_if_changed() for _ in range(3)] == [None, None, None]


def test_any_entry_beside_the_file_triggers_a_reload(path: Path) -> None:
    write(path, "allocate")
    file = configuration_file(path)
    file.load()
    (path.parent / "other").write_text("x")
    assert file.reload_if_changed() is not None
    assert file.reload_if_changed() is None
    (path.parent / "folder").mkdir()
    assert file.reload_if_changed() is not None
    (path.parent / "folder" / "inside").write_text("x")
    assert file.reload_if_changed() is None


def test_removals_and_modes_alone_do_nothing(path: Path) -> None:
    write(path, "allocate")
    other = path.parent / "other"
    other.write_text("x")
    file = configuration_file(path)
    file.load()
    other.unlink()
    os.chmod(path, 0o600)
    assert file.reload_if_changed() is None
    path.unlink()
    assert file.reload_if_changed() is None
    assert file.active.actions == ("allocate",)
    write(path, "backfill")
    assert file.reload_if_changed() is not None
    assert file.active.actions == ("backfill",)


def test_a_config_map_update_swaps_a_link(path: Path) -> None:
    folder = path.parent
    for version, actions in (("..v1", "allocate"), ("..v2", "backfill")):
        (folder / version).mkdir()
        write(folder / version / path.name, actions)
    (folder / "..data").symlink_to("..v1")
    path.symlink_to(Path("..data") / path.name)
    file = configuration_file(path)
    assert file.load().configuration.actions == ("allocate",)
    (folder / "..data_tmp").symlink_to("..v2")
    (folder / "..data_tmp").rename(folder / "..data")
    assert file.reload_if_changed() is not None
    assert file.active.actions == ("backfill",)


def test_a_file_behind_a_link_elsewhere_is_watched_too(path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    target = tmp_path_factory.mktemp("elsewhere") / "real.conf"
    write(target, "allocate")
    path.symlink_to(target)
    file = configuration_file(path)
    file.load()
    write(target, "backfill, allocate")
    assert file.reload_if_changed() is not None
    assert file.active.actions == ("backfill", "allocate")


def test_a_directory_that_goes_away_keeps_what_is_active(path: Path) -> None:
    write(path, "allocate")
    file = configuration_file(path)
    file.load()
    path.unlink()
    path.parent.rmdir()
    assert file.reload_if_changed() is None
    assert file.active.actions == ("allocate",)


def test_with_the_default_off_every_bad_file_is_fatal(path: Path) -> None:
    file = configuration_file(path, require_valid=True)
    with pytest.raises(RuntimeError, match="load"):
        _ = file.active
    with pytest.raises(ConfigurationError, match="cannot be read"):
        file.load()
    write(path, "allocate")
    assert file.load().configuration.actions == ("allocate",)
    write(path, "alocate")
    with pytest.raises(ConfigurationError, match="unknown action"):
        file.reload_if_changed()
