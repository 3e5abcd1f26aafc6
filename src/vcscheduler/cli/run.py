"""``vcscheduler run``: schedule a Kubernetes cluster, in place of vc-scheduler.

The command line is read by the rules of the reference's flags (`config/flags.py`), not by typer's, so that a Deployment
written for vc-scheduler starts unchanged.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from vcscheduler.cli.errors import BAD_INPUT, fail, reports_mistakes
from vcscheduler.cli.version import VOLCANO_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from vcscheduler.config import CommandLineFlag, ConfigurationFile, SchedulerConfiguration, SchedulerOptions
    from vcscheduler.framework.registry import Registry
    from vcscheduler.server.backend import BackendMaker
    from vcscheduler.server.process import SchedulerProcess

_SHELL_LEFTOVERS = ("2>&1",)
"""What Volcano's chart passes as an argument although it was meant for a shell (spec 07 §6.1)."""

CONTEXT_SETTINGS = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
"""For typer: it is to leave the whole command line alone."""


@reports_mistakes
def run(
    ctx: typer.Context,
    arguments: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
) -> None:
    """Schedule a Kubernetes cluster, in place of vc-scheduler: takes all of its flags (--help lists them)."""
    words = [*(arguments or []), *ctx.args]
    if any(word in ("--help", "-h", "-help") for word in words):
        typer.echo(help_text())
        return
    from vcscheduler.config import parse_flags

    options = parse_flags([word for word in words if word not in _SHELL_LEFTOVERS])
    if options.version:
        from vcscheduler import __version__

        typer.echo(f"vcscheduler {__version__} (decides as Volcano {VOLCANO_VERSION})")
        return
    problems = options.problems()
    if problems:
        fail("\n".join(problems))
    raise typer.Exit(schedule(options))


def schedule(options: SchedulerOptions, connect: Callable[[SchedulerOptions], BackendMaker] | None = None) -> int:
    """Run until asked to end. Returns the exit code.

    Args:
        connect: the way to the cluster, taken as soon as the rest of the input is known to be good.

    Raises:
        ConfigurationError, PluginError, AddressError, Unreachable: what it needs cannot be had.
    """
    from vcscheduler.cli.config import custom_registry
    from vcscheduler.server.logs import set_up

    level = set_up(options.log_format, options.verbosity)
    registry = custom_registry(options.plugins_dir)
    configuration, file = _configuration(options, registry)
    make_backend = (connect or _live_backend)(options)
    # The cluster is being listed while the rest of the program is loaded, which takes about as long.
    from vcscheduler.server.process import SchedulerProcess

    process = SchedulerProcess(options, registry, configuration, file, make_backend, level)
    _handle_signals(process)
    return process.run()


def _configuration(
    options: SchedulerOptions, registry: Registry
) -> tuple[SchedulerConfiguration, ConfigurationFile | None]:
    """What is active at first. A file that cannot be used is reported, and the built-in configuration stays in force
    until it can (spec 02 §2.5)."""
    from vcscheduler.config import ConfigurationFile

    file = ConfigurationFile(
        options.scheduler_conf or None,
        known_actions=registry.action_names,
        known_plugins=registry.plugin_names,
        require_valid=options.disable_default_scheduler_config,
    )
    return file.load().configuration, file if options.scheduler_conf else None


def _live_backend(options: SchedulerOptions) -> BackendMaker:
    """The way to the cluster, which is taken at once."""
    try:
        from vcscheduler.server.live import LiveBackend
    except ModuleNotFoundError as error:
        fail(f"{error}: this command needs the optional packages: pip install 'vcscheduler[live]'")
    backend = LiveBackend(options)
    backend.connect()
    return backend.gated


def _handle_signals(process: SchedulerProcess) -> None:
    asked = False

    def end(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            os._exit(1)
        asked = True
        process.stop()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    if process.options.cache_dumper:
        signal.signal(signal.SIGUSR1, lambda _number, _frame: process.dump())
        signal.signal(signal.SIGUSR2, lambda _number, _frame: process.log_cache())


def help_text() -> str:
    """All flags: those that do something, and those that are only taken."""
    from vcscheduler.config import COMMAND_LINE_FLAGS

    flags = sorted(COMMAND_LINE_FLAGS.values(), key=lambda flag: flag.name)
    lines = [
        "Usage: vcscheduler run [FLAGS]",
        "",
        "Schedule a Kubernetes cluster, in place of vc-scheduler. Flags are spelled as there: --flag=value or",
        "--flag value, booleans also bare. Exit code 0 after SIGTERM, 1 when the lease was lost or the process",
        f"could not go on, {BAD_INPUT} for bad input.",
        "",
        "Flags:",
        *(_line(flag) for flag in flags if flag.effect),
        "",
        "Taken for compatibility, without effect:",
        *(_line(flag) for flag in flags if not flag.effect),
    ]
    return "\n".join(lines)


def _line(flag: CommandLineFlag) -> str:
    name = f"-{flag.name}" if len(flag.name) == 1 else f"--{flag.name}"
    default = f" (default {flag.default})" if flag.default not in ("", "false") else ""
    return f"  {name} {flag.type}\n        {flag.meaning}{default}"
