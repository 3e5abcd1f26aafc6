"""`vcscheduler verify`: run conformance cases and say which do not hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcscheduler.simulator.verify import Outcome, SelectionError, collect, quiet, summary, write_junit
from vcscheduler.simulator.verify import verify as run_files


def verify(
    paths: Annotated[list[Path] | None, typer.Argument(help="Case files, or folders to search for them.")] = None,
    from_file: Annotated[
        list[Path] | None,
        typer.Option("--from-file", help="A list of case files, one a line, relative to the list's folder."),
    ] = None,
    text: Annotated[str, typer.Option("-k", help="Only cases with this text in their path.")] = "",
    processes: Annotated[int, typer.Option("--jobs", "-j", min=0, help="Processes at a time; 0: one a core.")] = 0,
    junit: Annotated[Path | None, typer.Option("--junit", help="Also write a JUnit XML report to this file.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show each entry that differs.")] = False,
) -> None:
    """Run conformance cases: one line for each that does not hold, then how many passed and failed.

    Exits with 0 if all hold, 1 if any does not, 2 if there is nothing to run.
    """
    quiet()
    outcomes: list[Outcome] = []
    try:
        for outcome in run_files(collect(paths or (), from_file or (), text), processes):
            outcomes.append(outcome)
            if not outcome.passed:
                typer.echo(str(outcome))
                for line in outcome.details() if verbose else ():
                    typer.echo(f"    {line}")
        if junit is not None:
            write_junit(outcomes, junit)
    except SelectionError as error:
        typer.echo(f"vcscheduler verify: {error}", err=True)
        raise typer.Exit(2) from None
    except OSError as error:
        typer.echo(f"vcscheduler verify: {error.filename}: cannot be written: {error.strerror}", err=True)
        raise typer.Exit(2) from None
    typer.echo(summary(outcomes))
    if any(not outcome.passed for outcome in outcomes):
        raise typer.Exit(1)
