"""``vcscheduler queues``: the queue tree in one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vcscheduler.cli.errors import fail, reports_mistakes, warn
from vcscheduler.cli.output import Format, console, one_shot, print_data, progress

if TYPE_CHECKING:
    from rich.table import Table

    from vcscheduler.explain.queues import QueueRow, QueueTable

_WIDEST = 250
"""Lines are not folded: a table of figures that is folded cannot be read."""


@reports_mistakes
def queues(
    paths: Annotated[
        list[str],
        typer.Argument(help="Manifests or a dump: files, directories, JSON lists; - is standard input."),
    ],
    config: Annotated[
        Path | None, typer.Option(help="A volcano-scheduler.conf; the built-in one otherwise.", show_default=False)
    ] = None,
    wide: Annotated[bool, typer.Option("--wide", help="A line a resource instead of a line a queue.")] = False,
    after: Annotated[
        bool, typer.Option("--after", help="After scheduling until nothing changes, instead of as given.")
    ] = False,
    plugins_dir: Annotated[str, typer.Option(help="Directory of custom plugins.")] = "",
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print the queues.")] = Format.TABLE,
) -> None:
    """Show the queue tree: what each queue has, is owed, asks for, deserves and may have at most.

    As the configured share plugin (proportion or capacity) sees it when a cycle begins. A line shows the resource that
    decides the queue's share; --wide shows all.
    """
    from vcscheduler.cli.reading import configuration_of, manifests_of, registry_of
    from vcscheduler.config import SchedulerOptions
    from vcscheduler.explain.queues import queue_table

    one_shot()
    registry = registry_of(plugins_dir)
    configuration = configuration_of(config, registry)
    found: list[QueueTable] = []
    with progress("reading") as show:
        manifests = manifests_of(paths)
        show("preparing the cluster")
        from vcscheduler.simulator.simulate import Simulation

        simulation = Simulation(manifests, configuration, SchedulerOptions(plugins_dir=plugins_dir), registry)
        if after:
            show("scheduling")
            if not simulation.run().settled:
                warn("stopped while things still changed: the figures are those of a moment")
        simulation.look(lambda ssn: found.append(queue_table(ssn)))
    for refusal in simulation.expansion.refusals:
        if refusal.obj.startswith("Queue "):
            warn(f"left out, a cluster would refuse it: {refusal}")
    table = found[0]
    if not table.rows:
        fail("there are no queues")
    if output is not Format.TABLE:
        print_data(_plain(table), output)
        return
    shown = _table(table, wide)
    out = console()
    out.width = max(out.width, _WIDEST)
    with out.capture() as captured:
        out.print(shown)
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))
    typer.echo(_footnote(table, wide))


def _table(table: QueueTable, wide: bool) -> Table:
    from rich import box
    from rich.table import Table

    weighted = table.plugin != "capacity"
    shown = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="", padding=(0, 1, 0, 0))
    columns = ["Queue", *(["Weight"] if weighted else []), "Jobs", "Resource", "Guarantee", "Deserved", "Capability"]
    for heading in (*columns, "Real\ncapability", "Allocated", "In\nqueue", "Request", "Share"):
        left = heading in ("Queue", "Resource")
        shown.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for row in table.rows:
        head = [_name(row), *([str(row.weight)] if weighted else []), str(row.jobs or "")]
        for name in (row.resources or [row.shown]) if wide else [row.shown]:
            shown.add_row(*head, name, *_figures(row, name))
            head = [""] * len(head)
    return shown


def _name(row: QueueRow) -> str:
    state = "" if row.state == "Open" else f" ({row.state or 'no state'})"
    return "  " * row.depth + row.name + state


def _figures(row: QueueRow, name: str) -> list[str]:
    from vcscheduler.model.amounts import amount
    from vcscheduler.model.resources import CPU, MEMORY

    capability = row.capability.get(name) if row.capability is not None else 0.0
    # A scalar that is not listed is not bounded.
    listed = row.real_capability is not None and (
        name in (CPU, MEMORY) or name in dict(row.real_capability.scalar_items())
    )
    return [
        amount(name, row.guarantee.get(name)) if row.guarantee.get(name) else "-",
        "-" if row.deserved is None else amount(name, row.deserved.get(name)),
        amount(name, capability) if capability else "-",
        "-" if row.real_capability is None else amount(name, row.real_capability.get(name)) if listed else "∞",
        amount(name, row.allocated.get(name)),
        amount(name, row.inqueue.get(name)),
        amount(name, row.request.get(name)),
        _share(row, name),
    ]


def _share(row: QueueRow, name: str) -> str:
    """Of the deciding resource the share by which queues are ordered, of others the part of deserved in use."""
    if row.share is None or row.deserved is None:
        return "-"
    if name == row.deciding or not row.deciding:
        return f"{row.share:.0%}"
    whole = row.deserved.get(name)
    return f"({row.allocated.get(name) / whole:.0%})" if whole else ""


def _footnote(table: QueueTable, wide: bool) -> str:
    from vcscheduler.model.amounts import amounts

    if table.tree:
        who = "Shares by capacity, along the tree: the figures of a queue include all queues below it."
    elif table.plugin == "capacity":
        who = "Shares by capacity."
    elif table.plugin == "proportion":
        who = "Shares by proportion: deserved follows from weights and requests; without jobs there is none."
    else:
        who = "No plugin shares out the cluster (proportion or capacity), so nothing is deserved."
    which = "Each line shows the resource that decides the share; --wide shows all."
    if wide:
        which = "Share: of the resource that decides it; in parentheses, of the others."
    return f"\n{who}\n{which}\nCluster: {amounts(table.total)}."


def _plain(table: QueueTable) -> dict[str, object]:
    from vcscheduler.simulator.report import resources

    return {
        "sharedBy": table.plugin,
        "tree": table.tree,
        "allocatable": resources(table.total),
        "queues": [
            {
                "queue": row.name,
                "parent": row.parent,
                "depth": row.depth,
                "state": row.state,
                "weight": row.weight,
                "priority": row.priority,
                "reclaimable": row.reclaimable,
                "jobs": row.jobs,
                "guarantee": resources(row.guarantee),
                "specDeserved": resources(row.asked_deserved),
                "deserved": None if row.deserved is None else resources(row.deserved),
                "capability": None if row.capability is None else resources(row.capability),
                "realCapability": None if row.real_capability is None else resources(row.real_capability),
                "allocated": resources(row.allocated),
                "inqueue": resources(row.inqueue),
                "request": resources(row.request),
                "share": None if row.share is None else round(row.share, 6),
                "decidingResource": row.deciding,
            }
            for row in table.rows
        ],
    }
