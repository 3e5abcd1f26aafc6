"""What commands print with: formats, a console that knows its width, a line of progress."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH = 100
"""Of what is printed into files and pipes, unless COLUMNS says otherwise."""
_leaves_untidied = False


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def console() -> Console:
    """Standard output. Colours only on a terminal, and never with NO_COLOR."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else _WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)


def print_data(data: object, form: Format) -> None:
    """Plain data as JSON or YAML, keys in their order."""
    if form is Format.JSON:
        import json

        typer.echo(json.dumps(data, indent=2, ensure_ascii=False))
        return
    from vcscheduler.documents.dumping import dump_yaml

    typer.echo(dump_yaml([data]), nl=False)


def one_shot() -> None:
    """For commands that read, answer and end: the collector would only walk, again and again, what lives to the end."""
    gc.disable()


def leave_without_tidying() -> None:
    """Let the process end as soon as its output is out. To free the objects of a large cluster one by one, only for
    the process to end, takes about half a second. It is the entry point that does it: where commands are called by
    something else, such as tests, the process is not theirs to end."""
    global _leaves_untidied
    _leaves_untidied = True


def leaves_without_tidying() -> bool:
    return _leaves_untidied


@contextmanager
def progress(text: str) -> Iterator[Callable[[str], None]]:
    """A line on standard error that says what is going on, while it goes on; the function it gives changes the text.
    Nothing at all where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield lambda _text: None
        return
    from rich.console import Console

    with Console(stderr=True).status(text) as status:
        yield lambda new: status.update(new)
