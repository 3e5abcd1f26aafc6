"""``vcscheduler simulate``: schedule manifests, a dump of a cluster or a trace on a cluster in memory."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vcscheduler.cli.errors import fail, reports_mistakes, warn
from vcscheduler.cli.output import Format, console, leave_without_tidying, one_shot, print_data, progress

if TYPE_CHECKING:
    from vcscheduler.objects import Manifests
    from vcscheduler.simulator.simulate import Progress

_SAMPLING = "Sampling of nodes"
_MANY = 5000
"""Objects from which on it takes noticeably long to free them."""


class TieBreak(StrEnum):
    """Which of equally good nodes to take."""

    FIRST = "first"
    RANDOM = "random"


class TraceKind(StrEnum):
    """Traces that can be read."""

    OPENB = "openb"


@reports_mistakes
def simulate(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Manifests: files, directories, JSON lists as kubectl prints them; - is standard input.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="A volcano-scheduler.conf; the built-in one otherwise.", show_default=False)
    ] = None,
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option(help="schedulerName of the pods that are ours; repeatable.", show_default="volcano"),
    ] = None,
    max_cycles: Annotated[int, typer.Option(min=1, help="Stop after so many cycles.")] = 1000,
    explain: Annotated[bool, typer.Option("--explain", help="Name the nodes that each rule refused.")] = False,
    why_evicted: Annotated[
        bool, typer.Option("--why-evicted", help="For each eviction, what each victim rule thought of it.")
    ] = False,
    plugins_dir: Annotated[str, typer.Option(help="Directory of custom plugins.")] = "",
    tie_break: Annotated[TieBreak, typer.Option(help="Among equal nodes the first by name, or any.")] = TieBreak.FIRST,
    seed: Annotated[
        int | None, typer.Option(help="Seed of --tie-break random; 0 if not given.", show_default=False)
    ] = None,
    minimum_feasible_nodes: Annotated[
        int | None,
        typer.Option(min=0, help="Feasible nodes to find at least.", rich_help_panel=_SAMPLING, show_default=False),
    ] = None,
    minimum_percentage_nodes_to_find: Annotated[
        int | None,
        typer.Option(min=0, help="Lowest adaptive percentage of nodes.", rich_help_panel=_SAMPLING, show_default=False),
    ] = None,
    percentage_nodes_to_find: Annotated[
        int | None,
        typer.Option(min=0, help="Percentage of nodes; 0: adaptive.", rich_help_panel=_SAMPLING, show_default=False),
    ] = None,
    trace: Annotated[
        TraceKind | None, typer.Option(help="Read a trace instead of manifests.", show_default=False)
    ] = None,
    nodes_csv: Annotated[Path | None, typer.Option(help="The nodes of the trace.", show_default=False)] = None,
    pods_csv: Annotated[Path | None, typer.Option(help="The pods of the trace.", show_default=False)] = None,
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print the outcome.")] = Format.TABLE,
) -> None:
    """Schedule on a cluster that exists only in memory, and say what went where, what waits and why.

    Runs cycles until nothing changes any more; in between, bound pods run and evicted ones are gone. By default each
    search looks at all nodes; any flag of the sampling switches the reference's sampling on. Pods that wait are no
    error: the exit code is 0. Bad input ends with exit code 2.
    """
    from vcscheduler.cli.reading import configuration_of, registry_of
    from vcscheduler.config import SchedulerOptions

    one_shot()

    sampling = (minimum_feasible_nodes, minimum_percentage_nodes_to_find, percentage_nodes_to_find)
    standard = SchedulerOptions()
    options = SchedulerOptions(
        scheduler_names=tuple(scheduler_name or ("volcano",)),
        plugins_dir=plugins_dir,
        tie_break="random" if tie_break is TieBreak.RANDOM else "first",
        # Without a seed a run with random ties could not be repeated.
        seed=0 if seed is None and tie_break is TieBreak.RANDOM else seed,
        exact_search=all(value is None for value in sampling),
        minimum_feasible_nodes=_given(minimum_feasible_nodes, standard.minimum_feasible_nodes),
        minimum_percentage_nodes_to_find=_given(
            minimum_percentage_nodes_to_find, standard.minimum_percentage_nodes_to_find
        ),
        percentage_nodes_to_find=_given(percentage_nodes_to_find, standard.percentage_nodes_to_find),
    )
    if problems := options.problems():
        fail("\n".join(problems))
    registry = registry_of(plugins_dir)
    configuration = configuration_of(config, registry)
    notes: list[str] = []
    with progress("reading") as show:
        manifests = _read(paths or [], trace, nodes_csv, pods_csv, options.scheduler_names[0], notes)
        show("preparing the cluster")
        from vcscheduler.simulator.simulate import Simulation

        simulation = Simulation(
            manifests, configuration, options, registry, explain_victims=why_evicted, name_nodes=explain
        )
        warnings = [*manifests.warnings, *simulation.expansion.warnings]
        show("cycle 1")
        outcome = simulation.run(max_cycles, lambda done: show(_progress(done)))
    if not outcome.nodes:
        warnings.append("there are no nodes, so nothing can be placed")
    for warning in dict.fromkeys(warnings):
        warn(warning)
    if trace is not None:
        typer.echo(f"decided in {outcome.seconds:.2f} s ({outcome.cycles} cycles)", err=True)
    if not outcome.settled:
        cycles = "1 cycle" if outcome.cycles == 1 else f"{outcome.cycles} cycles"
        warn(f"stopped after {cycles} while things still changed; --max-cycles allows more")
    if output is Format.TABLE:
        from vcscheduler.cli.simulate_view import show as show_outcome

        show_outcome(outcome, console(), notes, manifests.ignored)
    else:
        from vcscheduler.simulator.report import to_plain

        plain = to_plain(outcome, manifests.ignored, list(dict.fromkeys(warnings)))
        plain["notes"] = notes
        print_data(plain, output)
    if len(manifests) > _MANY:
        leave_without_tidying()


def _given(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _progress(done: Progress) -> str:
    return f"cycle {done.cycle}: {done.bound} bound, {done.evicted} evicted, {done.waiting} pods wait"


def _read(
    paths: list[str],
    trace: TraceKind | None,
    nodes_csv: Path | None,
    pods_csv: Path | None,
    scheduler_name: str,
    notes: list[str],
) -> Manifests:
    """What the command line names, as objects; things worth saying about it go to `notes`."""
    from vcscheduler.cli.reading import manifests_of
    from vcscheduler.objects import Manifest, Manifests, Origin

    if trace is None:
        if nodes_csv is not None or pods_csv is not None:
            fail("--nodes-csv and --pods-csv belong to a trace: add --trace openb")
        if not paths:
            fail("nothing to simulate: give files or directories of manifests, - for standard input, or --trace")
        return manifests_of(paths)
    if paths:
        fail(f"found {paths[0]}: a trace is read from --nodes-csv and --pods-csv alone")
    if nodes_csv is None or pods_csv is None:
        fail(f"--trace {trace.value} needs {'--nodes-csv' if nodes_csv is None else '--pods-csv'}")
    from vcscheduler.simulator.openb import read_openb

    read = read_openb(nodes_csv, pods_csv, scheduler_name)
    if read.fractional:
        notes.append(
            f"{read.fractional:,} of {len(read.pods):,} pods ask for a part of one GPU; "
            "each was given a whole one, since GPUs are not shared yet."
        )
    origins = {id(obj): Origin(str(nodes_csv)) for obj in read.nodes}
    return Manifests([Manifest(obj, origins.get(id(obj), Origin(str(pods_csv)))) for obj in read.objects])
