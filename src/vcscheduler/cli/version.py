"""``vcscheduler version``: which version this is."""

from __future__ import annotations

from typing import Annotated

import typer

from vcscheduler import __version__
from vcscheduler.cli.output import Format, print_data

VOLCANO_VERSION = "v1.16"


def version(
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print it.")] = Format.TABLE,
) -> None:
    """Print the version, and that of Volcano whose decisions it makes."""
    if output is Format.TABLE:
        typer.echo(f"vcscheduler {__version__} (decides as Volcano {VOLCANO_VERSION})")
    else:
        print_data({"version": __version__, "volcano": VOLCANO_VERSION}, output)
