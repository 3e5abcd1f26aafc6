"""``vcscheduler config``: look at scheduler configurations before they are used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vcscheduler.cli.errors import BAD_INPUT, fail, reports_mistakes
from vcscheduler.cli.output import Format, print_data

if TYPE_CHECKING:
    from vcscheduler.config import Finding, ParsedConfiguration
    from vcscheduler.framework.registry import Registry

app = typer.Typer(help="Check scheduler configurations.", no_args_is_help=True)


@app.callback()
def _config() -> None:
    """Check scheduler configurations."""


@app.command("check")
@reports_mistakes
def check(
    file: Annotated[Path, typer.Argument(help="A volcano-scheduler.conf; - is standard input.")],
    with_: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="PATH",
            help="Manifests or a dump whose queues and jobs the configuration is for; repeatable.",
            show_default=False,
        ),
    ] = None,
    plugins_dir: Annotated[str, typer.Option(help="Directory of custom plugins, whose names are then known.")] = "",
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print the findings.")] = Format.TABLE,
) -> None:
    """Say what in a configuration will not do what its author thinks.

    Prints one finding a line: FILE:LINE:COLUMN: level: what is wrong, why that matters and what to do. With --with also
    what does not add up in the queues of a cluster. Exit code 0 if there are only warnings or nothing, 2 if there are
    errors or the file is no configuration at all.
    """
    from vcscheduler.config import ConfigurationError, check_configuration

    registry = custom_registry(plugins_dir)
    try:
        parsed = parse(file, registry)
        findings = check_configuration(
            parsed, registry.action_names, registry.plugin_names, _arguments(registry), meaning=True
        )
    except ConfigurationError as error:
        findings = list(error.findings)
    else:
        if with_:
            findings += _about_queues(with_, parsed)
    if output is not Format.TABLE:
        print_data(
            [
                {
                    "level": each.level,
                    "file": each.source,
                    "line": each.line,
                    "column": each.column,
                    "field": each.field,
                    "message": each.message,
                }
                for each in findings
            ],
            output,
        )
    else:
        for each in findings:
            place = f"{each.source}:{each.line}:{each.column}" if each.line else each.source
            message = f"{each.field}: {each.message}" if each.field else each.message
            typer.echo(f"{place}: {each.level}: {message}")
        errors = sum(each.level == "error" for each in findings)
        typer.echo(f"{_count(errors, 'error')}, {_count(len(findings) - errors, 'warning')}")
    if any(each.level == "error" for each in findings):
        raise typer.Exit(BAD_INPUT)


def _about_queues(paths: list[str], parsed: ParsedConfiguration) -> list[Finding]:
    """What does not add up in the queues of the manifests."""
    from vcscheduler.cli.positions import position
    from vcscheduler.config import Finding
    from vcscheduler.explain.queue_specs import check_queues
    from vcscheduler.objects import describe, read_manifests
    from vcscheduler.objects.errors import show_path

    manifests = read_manifests(paths, stdin=typer.get_binary_stream("stdin"))
    findings = []
    for each in check_queues(manifests, parsed.configuration):
        origin, obj = each.manifest.origin, each.manifest.obj
        line, column = position(origin, each.path)
        field = f"{describe(obj)}: {show_path(each.path)}"
        findings.append(Finding("warning", origin.source, line, column, field, each.message))
    return findings


def _arguments(registry: Registry) -> dict[str, dict[str, object]]:
    """What readers of arguments want, as types."""
    from vcscheduler.framework.registry import ARGUMENT_KINDS

    return {
        name: {key: ARGUMENT_KINDS[kind] for key, kind in known.items()}
        for name, known in registry.known_arguments().items()
    }


def _count(n: int, thing: str) -> str:
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


def custom_registry(plugins_dir: str) -> Registry:
    """Everything built in or installed, and what is in the directory of custom plugins, if one is given.

    Raises:
        PluginError: a file of the directory is no plugin.
        typer.Exit: there is no such directory.
    """
    from vcscheduler.framework.registry import Registry

    if plugins_dir and not Path(plugins_dir).is_dir():
        fail(f"--plugins-dir {plugins_dir}: no such directory")
    return Registry.default(plugins_dir)


def parse(file: Path, registry: Registry) -> ParsedConfiguration:
    """Read a configuration file, or standard input for ``-``.

    Raises:
        ConfigurationError: it is no configuration.
        typer.Exit: it cannot be read.
    """
    from vcscheduler.config import parse_configuration

    try:
        text = typer.get_binary_stream("stdin").read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        fail(f"{file}: cannot be read: {error.strerror}")
    source = "<stdin>" if str(file) == "-" else str(file)
    return parse_configuration(text, source, known_actions=registry.action_names, known_plugins=registry.plugin_names)
