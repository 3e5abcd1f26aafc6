"""``vcscheduler bench``: measure cycles of scenarios, in process, over the embedded cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vcscheduler.cli.errors import fail, reports_mistakes
from vcscheduler.cli.output import Format, console, print_data, progress

if TYPE_CHECKING:
    from vcscheduler.simulator.bench import Result


@reports_mistakes
def bench(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(help="Which to run; all but the large ones if none is named.", metavar="[SCENARIO]..."),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each; the middle one counts.")] = 3,
    output: Annotated[Format, typer.Option("-o", "--output", help="How to print.")] = Format.TABLE,
) -> None:
    """Measure how long a scheduling cycle takes in a few scenarios (docs/benchmarks.md).

    Exits with 1 if a scenario does not come out as it must.
    """
    from vcscheduler.simulator.bench import BenchmarkFailed, measure
    from vcscheduler.simulator.scenarios import SCENARIOS

    names = scenarios or [name for name, s in SCENARIOS.items() if not s.large]
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        fail(f"no scenario {unknown[0]!r}; there are {', '.join(SCENARIOS)}")
    results: list[Result] = []
    failures: list[str] = []
    with progress("measuring") as say:
        for name in names:
            say(f"{name}: {SCENARIOS[name].about}")
            try:
                results.append(measure(name, runs))
            except BenchmarkFailed as failure:
                failures.append(str(failure))
    if output is Format.TABLE:
        _print_table(results)
    else:
        print_data([r.as_data() for r in results], output)
    for each in failures:
        typer.echo(f"error: {each}", err=True)
    if failures:
        raise typer.Exit(1)


def _print_table(results: list[Result]) -> None:
    from rich.table import Table

    table = Table("", "Scenario", box=None, header_style="bold")
    for title in ("Pods/s", "Cycle ms", "Spread", "Peak MiB"):
        table.add_column(title, justify="right")
    table.add_column("Phases (ms)")
    for r in results:
        cycles = sorted(run.cycle * 1000 for run in r.runs)
        table.add_row(
            r.scenario,
            r.about,
            f"{r.pods_per_second:,.0f}" if r.pods_per_second else "-",
            f"{r.cycle_ms:,.1f}",
            f"{cycles[0]:,.1f}-{cycles[-1]:,.1f}",
            f"{r.peak_mib:,.0f}",
            ", ".join(f"{phase} {ms:.1f}" for phase, ms in r.phases.items() if ms >= 0.05),
        )
    console().print(table)
