"""Mistakes in the input become one message on standard error and exit code 2; anything else is a bug and shows."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable
from typing import NoReturn, ParamSpec, TypeVar

import typer

P = ParamSpec("P")
R = TypeVar("R")

BAD_INPUT = 2
_MISTAKES = {
    "vcscheduler.config": ("ConfigurationError", "FlagError"),
    "vcscheduler.cluster.live": ("ConnectionFailed",),
    "vcscheduler.documents": ("DocumentError",),
    "vcscheduler.framework.registry": ("PluginError",),
    "vcscheduler.objects": ("ManifestError",),
    "vcscheduler.server.backend": ("Unreachable",),
    "vcscheduler.server.http": ("AddressError",),
    "vcscheduler.simulator.inquiry": ("UnknownObject",),
    "vcscheduler.simulator.openb": ("TraceError",),
    "vcscheduler.simulator.verify": ("SelectionError",),
}
"""Exceptions that stand for a mistake of the user, by the module that has them."""


def reports_mistakes(command: Callable[P, R]) -> Callable[P, R]:
    """For commands: exceptions that stand for a mistake in what the user gave end the command in a civil way."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        log_warnings_once()
        try:
            return command(*args, **kwargs)
        except PermissionError as error:
            # Whether a path may be looked at comes up wherever one is; only those that the user gave may not be.
            fail(f"{error.filename}: {error.strerror}")
        except Exception as error:
            if not _is_mistake(error):
                raise
            fail(str(error))

    return wrapped


def fail(message: str) -> NoReturn:
    """End the command.

    Raises:
        typer.Exit: always.
    """
    for line in message.splitlines():
        typer.echo(f"error: {line}", err=True)
    raise typer.Exit(BAD_INPUT)


def warn(message: str) -> None:
    typer.echo(f"warning: {message}", err=True)


def _is_mistake(error: Exception) -> bool:
    """A module that was never imported has raised nothing, so none is imported to find out."""
    for module, names in _MISTAKES.items():
        loaded = sys.modules.get(module)
        if loaded is not None and isinstance(error, tuple(getattr(loaded, name) for name in names)):
            return True
    return False


def log_warnings_once() -> None:
    """What the scheduler logs as a warning or worse goes to standard error, each text once."""
    logger = logging.getLogger("vcscheduler")
    logger.handlers = [_Once()]
    logger.propagate = False


class _Once(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._seen: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self._seen:
            self._seen.add(text)
            warn(text)
