"""``vcscheduler verify``: run conformance cases, the reference's or one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcscheduler.cli.errors import fail, reports_mistakes
from vcscheduler.cli.output import Format, print_data, progress


@reports_mistakes
def verify(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Case files, or folders of them.", show_default=False)
    ] = None,
    from_file: Annotated[
        list[Path] | None,
        typer.Option(help="A list of case files, one path a line, from the list's own folder.", show_default=False),
    ] = None,
    text: Annotated[str, typer.Option("-k", help="Only cases with this text in their path.")] = "",
    junit: Annotated[Path | None, typer.Option(help="Write a JUnit XML report here.", show_default=False)] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=0, help="How many at a time; 0 for one a core.")] = 0,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Every value that differs.")] = False,
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print the outcome.")] = Format.TABLE,
) -> None:
    """Run cases and compare what comes out of each cycle with what they expect.

    A case is one YAML file: a scheduler configuration, objects, and the binds, evictions, phases that must come out of
    each cycle. Use it as unit tests of your own configuration. Prints one line a failure, then how many passed and
    failed. Exit code 1 if a case failed, 2 if there is nothing to run.
    """
    from vcscheduler.simulator import verify as runner

    files = runner.collect(paths or [], from_file or [], text)
    runner.quiet()
    outcomes = []
    failed = 0
    with progress(f"running {len(files)} cases") as show:
        for outcome in runner.verify(files, jobs):
            outcomes.append(outcome)
            if not outcome.passed:
                failed += 1
                if output is Format.TABLE:
                    typer.echo(str(outcome))
                    for line in outcome.details() if verbose else ():
                        typer.echo(f"    {line}")
            show(f"{len(outcomes)} of {len(files)} cases, {failed} failed")
    if junit is not None:
        try:
            runner.write_junit(outcomes, junit)
        except OSError as error:
            fail(f"{junit}: cannot be written: {error.strerror}")
    if output is Format.TABLE:
        typer.echo(runner.summary(outcomes))
    else:
        cases = [
            {
                "case": outcome.id,
                "file": outcome.file,
                "passed": outcome.passed,
                "error": outcome.error,
                "differences": outcome.details() if outcome.differences else [],
            }
            for outcome in outcomes
        ]
        print_data({"passed": len(outcomes) - failed, "failed": failed, "cases": cases}, output)
    if failed:
        raise typer.Exit(1)
