"""Evictions for people: who went, for whom, by which rule; and who might have gone and stayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from vcscheduler.cli.node_names import shortened
from vcscheduler.explain.evictions import Eviction, Opinion, Spared
from vcscheduler.model.amounts import amounts


def show_evictions(evictions: Sequence[Eviction], console: Console) -> None:
    """One line each; with its reasons where they are known."""
    for cycle, group in groupby(evictions, key=lambda eviction: eviction.cycle):
        for eviction in group:
            head = f"cycle {cycle}: {eviction.pod} from {eviction.node}: {eviction.action}"
            _line(console, head, 2)
            if eviction.frees is not None:
                _show_why(eviction, console)


def _show_why(eviction: Eviction, console: Console) -> None:
    text = f"frees {amounts(eviction.frees)}" if eviction.frees is not None else ""
    if eviction.preemptor and eviction.asks is not None:
        queue = f" (queue {eviction.preemptor_queue})" if eviction.preemptor_queue != eviction.queue else ""
        text += f", for {eviction.preemptor}{queue}, which asks {amounts(eviction.asks)}"
    _line(console, text, 6)
    if not eviction.rule:
        return
    _line(console, f"allowed by tier {eviction.tier} of {eviction.question}:", 6)
    _show_opinions(console, eviction.rule, 8)


def show_spared(spared: Sequence[Spared], jobs: Mapping[str, str], console: Console) -> None:
    """By preemptor and reason; pods that stay for the same reason together. ``jobs``: what to call a PodGroup."""
    groups: dict[tuple[str, str, str], dict[tuple[tuple[Opinion, ...], str], list[Spared]]] = {}
    for each in spared:
        whose = (each.preemptor_job, each.role, each.action)
        groups.setdefault(whose, {}).setdefault((each.protected_by, each.why), []).append(each)
    for (job, role, action), by_reason in groups.items():
        _line(console, f"for {jobs.get(job, job)}{f', task {role}' if role else ''}: {action}", 2)
        for (opinions, why), pods in by_reason.items():
            _line(console, shortened((each.pod for each in pods), limit=6, thing="pod"), 6)
            if why:
                _line(console, why, 8)
            _show_opinions(console, opinions, 8, tiers=True)


def _show_opinions(console: Console, opinions: Sequence[Opinion], indent: int, *, tiers: bool = False) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for each in opinions:
        table.add_row(f"tier {each.tier} {each.plugin}" if tiers else each.plugin, each.why)
    if table.row_count:
        console.print(Padding(table, (0, 0, 0, indent)))


def _line(console: Console, text: str, indent: int) -> None:
    console.print(Padding(Text(text), (0, 0, 0, indent), expand=False))
