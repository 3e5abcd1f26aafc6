"""``vcscheduler snapshot``: a dump of a cluster that ``simulate`` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcscheduler.cli.errors import fail, reports_mistakes, warn
from vcscheduler.cli.output import one_shot, progress

_LIVE = "Live cluster"
_ANONYMOUS = "Anonymous"
_SUFFIXES = (".json", ".yaml", ".yml")


@reports_mistakes
def snapshot(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write, .json or .yaml; - is standard output, as JSON.")
    ],
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Manifests or dumps: files, directories, JSON lists; - is standard input."),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Read the cluster that kubectl would.", rich_help_panel=_LIVE)
    ] = False,
    kubeconfig: Annotated[str, typer.Option(help="A kubeconfig file.", rich_help_panel=_LIVE, show_default=False)] = "",
    context: Annotated[
        str, typer.Option(help="A context of that file.", rich_help_panel=_LIVE, show_default=False)
    ] = "",
    anonymise: Annotated[
        bool, typer.Option("--anonymise", help="Replace names by hashes.", rich_help_panel=_ANONYMOUS)
    ] = False,
    anonymise_labels: Annotated[
        bool,
        typer.Option("--anonymise-labels", help="Replace labels as well.", rich_help_panel=_ANONYMOUS),
    ] = False,
    salt: Annotated[
        str,
        typer.Option(
            help="The same salt gives the same hashes; drawn at random if not given.",
            rich_help_panel=_ANONYMOUS,
            show_default=False,
        ),
    ] = "",
) -> None:
    """Write everything that plays a part in scheduling into one file, to simulate it or to hand it on.

    Secrets and config maps are never read; environment, commands and images are not kept.
    """
    from vcscheduler.cli.live import live_manifests
    from vcscheduler.cli.reading import manifests_of
    from vcscheduler.objects import to_json, to_yaml
    from vcscheduler.simulator.snapshot import Anonymiser
    from vcscheduler.simulator.snapshot import snapshot as chosen

    one_shot()
    to_stdout = str(output) == "-"
    if not to_stdout and output.suffix not in _SUFFIXES:
        fail(f"-o {output}: found the suffix {output.suffix!r}, allowed are {', '.join(_SUFFIXES)}")
    if live and paths:
        fail(f"found {paths[0]}: with --live the cluster is read, no files")
    if not live and not paths:
        fail("nothing to write: give files or directories of manifests, - for standard input, or --live")
    if salt and not (anonymise or anonymise_labels):
        fail("--salt belongs to --anonymise")
    with progress("reading") as show:
        manifests = live_manifests(kubeconfig, context) if live else manifests_of(paths or [])
        show("writing")
        anonymiser = None
        if anonymise or anonymise_labels:
            import secrets

            anonymiser = Anonymiser(salt or secrets.token_hex(16), labels=anonymise_labels)
        objects = chosen(manifests.objects, anonymiser)
        text = to_yaml(objects) if output.suffix in (".yaml", ".yml") else to_json(objects, indent=1)
        try:
            if to_stdout:
                typer.echo(text, nl=False)
            else:
                output.write_text(text, encoding="utf-8")
        except OSError as error:
            fail(f"{output}: cannot be written: {error.strerror}")
    for warning in manifests.warnings:
        warn(warning)
    typer.echo(f"{len(objects)} objects written to {output}", err=True)
