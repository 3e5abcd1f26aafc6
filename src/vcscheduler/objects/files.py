"""From the paths of a command line to the texts behind them: files, directories, standard input."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from vcscheduler.objects.errors import ManifestError, did_you_mean

STDIN: Final = "<stdin>"
_SUFFIXES: Final = (".yaml", ".yml", ".json")


def read_texts(paths: Sequence[str | Path], stdin: BinaryIO | None) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each file, one at a time. ``-`` is standard input.

    Raises:
        ManifestError: a path does not exist, cannot be read, or is a directory without manifests.
    """
    for path in paths:
        if str(path) == "-":
            if stdin is None:
                raise ManifestError(STDIN, "there is no standard input to read from")
            yield STDIN, stdin.read()
            continue
        for file in _files(Path(path)):
            try:
                yield str(file), file.read_bytes()
            except OSError as error:
                raise _unreadable(file, error) from None


def _files(path: Path) -> list[Path]:
    try:
        if not path.is_dir():
            if not path.exists():
                raise ManifestError(str(path), f"no such file or directory{_near_name(path)}")
            return [path]
    except OSError as error:
        raise _unreadable(path, error) from None

    def stop(error: OSError) -> None:
        raise _unreadable(error.filename, error) from None

    found = []
    # What is in a directory that cannot be listed would be missing without a word.
    for folder, folders, names in os.walk(path, onerror=stop):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(folder, name) for name in names if name.endswith(_SUFFIXES) and not name.startswith(".")]
    if not found:
        raise ManifestError(str(path), f"no manifests in this directory; they end in {', '.join(_SUFFIXES)}")
    return sorted(found)


def _unreadable(path: Path | str, error: OSError) -> ManifestError:
    return ManifestError(str(path), f"cannot be read: {error.strerror}")


def _near_name(path: Path) -> str:
    try:
        return did_you_mean(path.name, os.listdir(path.parent))
    except OSError:
        return ""
