"""The outcome of a simulation for people: what went where, what waits and why, what each queue got."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from vcscheduler.cli.evictions_view import show_evictions, show_spared
from vcscheduler.cli.node_names import counted, shortened
from vcscheduler.explain.pending import NoNode, Refusal
from vcscheduler.explain.standing import QueueReport
from vcscheduler.model.amounts import amount, names
from vcscheduler.model.resources import PODS, Resources
from vcscheduler.simulator.outcome import JobOutcome, Outcome

_MANY = 60
"""With more jobs than this, those whose names differ only in numbers are shown as one; more nodes are only counted."""
_NODES_SHOWN = 6
_DIGITS = re.compile(r"\d+")


def show(outcome: Outcome, console: Console, notes: Sequence[str], ignored: dict[str, int]) -> None:
    """Print everything; `notes` and `ignored` are about the input."""
    with console.capture() as captured:
        _show(outcome, console, notes, ignored)
    # Tables pad their lines to full width, which is of no use to anybody who copies or compares them.
    console.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def _show(outcome: Outcome, console: Console, notes: Sequence[str], ignored: dict[str, int]) -> None:
    placed = [job for job in outcome.jobs if job.placed or job.running]
    if placed:
        _title(console, "Placed")
        console.print(_placements(placed))
    if outcome.waiting:
        _title(console, "Waiting")
        _show_waiting(outcome.waiting, console)
    if outcome.refused:
        _title(console, "Refused: a cluster would not have accepted these objects")
        for refusal in outcome.refused:
            place = f" ({refusal.origin})" if refusal.origin else ""
            _item(console, f"{refusal.obj}{place}: {refusal.field}: {refusal.reason}")
    if outcome.evictions:
        _title(console, "Evicted")
        show_evictions(outcome.evictions, console)
    if outcome.spared:
        _title(console, "Spared: looked at as victims, and kept")
        show_spared(outcome.spared, {f"{job.namespace}/{job.pod_group}": job.key for job in outcome.jobs}, console)
    _title(console, "Queues")
    queues = _queues(outcome.queues)
    if queues.row_count:
        console.print(queues)
    _item(console, _without_jobs(outcome.queues))
    cluster = _cluster(outcome)
    if cluster.row_count:
        _title(console, "Cluster")
        console.print(cluster)
    _show_notes(outcome, console, notes, ignored)
    console.print(_summary(outcome))


def _title(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"))


def _item(console: Console, text: str) -> None:
    _print(console, Text(text), 2)


def _print(console: Console, text: Text, indent: int) -> None:
    console.print(Padding(text, (0, 0, 0, indent), expand=False))


def _table(*columns: tuple[str, str]) -> Table:
    """A table with headings and their alignment."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=True, header_style="")
    for heading, side in columns:
        table.add_column(heading, justify="right" if side == "right" else "left", overflow="fold")
    return table


# --- what went where --------------------------------------------------------------------------------------------------


def _placements(jobs: list[JobOutcome]) -> Table:
    table = _table(("Queue", "left"), ("Job", "left"), ("Kind", "left"), ("Pods", "right"), ("Nodes", "left"))
    rows = sorted(jobs, key=lambda job: (job.queue, job.namespace, job.name))
    queue = None
    for group in _grouped(rows, len(rows) > _MANY):
        first = group[0]
        nodes = Counter(node for job in group for node in (*job.placed.values(), *job.running.values()))
        on_nodes = nodes.total()
        total = sum(job.pods - job.finished for job in group)
        table.add_row(
            first.queue if first.queue != queue else "",
            first.key if len(group) == 1 else f"{_pattern(first)}\n{len(group):,} jobs",
            first.kind,
            f"{on_nodes:,}/{total:,}",
            counted(nodes, _NODES_SHOWN) if len(nodes) <= _MANY else f"{len(nodes):,} nodes",
        )
        queue = first.queue
    return table


def _grouped(jobs: list[JobOutcome], together: bool) -> Iterable[list[JobOutcome]]:
    if not together:
        return ([job] for job in jobs)
    groups: dict[tuple[str, str, str], list[JobOutcome]] = {}
    for job in jobs:
        groups.setdefault((job.queue, _pattern(job), job.kind), []).append(job)
    return groups.values()


def _pattern(job: JobOutcome) -> str:
    return f"{job.namespace}/{_DIGITS.sub('*', job.name)}"


# --- what waits and why -----------------------------------------------------------------------------------------------


def _show_waiting(jobs: list[JobOutcome], console: Console) -> None:
    if len(jobs) > _MANY:
        console.print(_waiting_by_reason(jobs))
        return
    groups: dict[object, list[JobOutcome]] = {}
    for job in sorted(jobs, key=lambda job: (not job.queue, job.queue, job.namespace, job.name)):
        groups.setdefault(_alike(job), []).append(job)
    for group in groups.values():
        first = group[0]
        assert first.reason is not None
        head = Text(shortened((job.key for job in group), thing="job"), style="bold")
        each = ", each" if len(group) > 1 else ""
        head.append(f"  ({_facts(first)}){each}: {_progress(first)}", style="not bold")
        _print(console, head, 2)
        _print(console, Text(_sentence(first.reason.message)), 6)
        for found in first.reason.no_node:
            _show_no_node(found, console, named=len(first.reason.no_node) > 1)


def _alike(job: JobOutcome) -> object:
    """Equal for jobs that need only one explanation: named alike, in the same state, for the same reason."""
    reason = job.reason
    assert reason is not None
    because = [(each.role, each.pods, each.refusals, each.message) for each in reason.no_node]
    return str((_pattern(job), job.kind, job.queue, job.priority, _progress(job), reason.message, because))


def _facts(job: JobOutcome) -> str:
    facts = [job.kind]
    facts += [f"queue {job.queue}"] if job.queue else []
    facts += [f"priority {job.priority}"] if job.priority else []
    return ", ".join(facts)


def _progress(job: JobOutcome) -> str:
    on_nodes = len(job.placed) + len(job.running)
    needs = f", the gang needs {job.min_available}" if job.min_available > 1 else ""
    if not job.pods:
        return "no pods yet" + needs
    return f"{job.waiting} of {job.pods} pods wait" + (f", {on_nodes} run" if on_nodes else "") + needs


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?")) else ".")


def _show_no_node(found: NoNode, console: Console, named: bool) -> None:
    if named:
        task = f"task {found.role}, " if found.role else ""
        _print(console, Text(f"{task}{_count(found.pods, 'pod')}:"), 6)
    if found.message:
        _print(console, Text(found.message), 8)
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for refusal in found.refusals:
        table.add_row(_count(refusal.nodes, "node"), refusal.rule, _refusal(refusal))
    console.print(Padding(table, (0, 0, 0, 8)))


def _refusal(refusal: Refusal) -> str:
    text = f"{refusal.reason} ({refusal.detail})" if refusal.detail else refusal.reason
    return f"{text}\non {shortened(refusal.names)}" if refusal.names else text


def _waiting_by_reason(jobs: list[JobOutcome]) -> Table:
    """For very many jobs: how many of them each rule kept waiting, and of how many nodes."""
    found: dict[tuple[str, str], list[int]] = {}
    nodes: dict[tuple[str, str], list[int]] = {}
    for job in jobs:
        assert job.reason is not None
        rules = {
            (refusal.rule, refusal.reason): refusal.nodes for each in job.reason.no_node for refusal in each.refusals
        } or {(job.reason.cause.value, re.sub(r" \(it asks .*\)$", "", job.reason.message)): 0}
        for rule, count in rules.items():
            found.setdefault(rule, []).append(job.waiting)
            nodes.setdefault(rule, []).append(count)
    table = _table(
        ("Jobs", "right"), ("Pods", "right"), ("Rule", "left"), ("Reason", "left"), ("Nodes refused", "right")
    )
    for rule in sorted(found, key=lambda rule: (-len(found[rule]), rule)):
        low, high = min(nodes[rule]), max(nodes[rule])
        span = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        table.add_row(f"{len(found[rule]):,}", f"{sum(found[rule]):,}", *rule, span if high else "")
    return table


# --- queues and the cluster -------------------------------------------------------------------------------------------


def _queues(queues: list[QueueReport]) -> Table:
    """A row a resource that somebody uses or that is limited."""
    table = _table(
        ("Queue", "left"),
        ("Weight", "right"),
        ("Jobs", "right"),
        ("Resource", "left"),
        ("Allocated", "right"),
        ("Deserved", "right"),
        ("Capability", "right"),
        ("Share", "left"),
    )
    for queue in queues:
        if not queue.jobs and not queue.deserved:
            continue
        about = queue.name if queue.state == "Open" else f"{queue.name} ({queue.state})"
        head = (about, str(queue.weight), str(queue.jobs))
        for name in _worth_showing(queue):
            deserved = queue.deserved.get(name) if queue.deserved is not None else None
            capability = _listed(queue.capability, name)
            table.add_row(
                *head,
                name,
                amount(name, queue.allocated.get(name)),
                "-" if deserved is None else amount(name, deserved),
                "-" if capability is None else amount(name, capability),
                _share(queue, name),
            )
            head = ("", "", "")
        if head[0]:
            table.add_row(*head)
    return table


def _without_jobs(queues: list[QueueReport]) -> str:
    empty = [queue for queue in queues if not queue.jobs and not queue.deserved]
    names = [queue.name if queue.state == "Open" else f"{queue.name} ({queue.state})" for queue in empty]
    return f"Without jobs: {', '.join(names)}." if names else ""


def _worth_showing(queue: QueueReport) -> list[str]:
    vectors = [queue.allocated, queue.guarantee, queue.deserved, queue.capability]
    shown: dict[str, None] = {}
    for vector in vectors:
        if vector is not None:
            shown.update((name, None) for name in names(vector) if vector.get(name) and name != PODS)
    if queue.deciding == PODS:
        shown[PODS] = None
    return list(shown)


def _listed(vector: Resources | None, name: str) -> float | None:
    if vector is None:
        return None
    return vector.get(name) or None


def _share(queue: QueueReport, name: str) -> str:
    """Part of deserved that is in use; the largest one is the queue's share."""
    deserved = queue.deserved.get(name) if queue.deserved is not None else 0.0
    if not deserved:
        return ""
    part = f"{queue.allocated.get(name) / deserved:.0%}"
    return f"{part} decides" if name == queue.deciding else part


def _cluster(outcome: Outcome) -> Table:
    table = _table(("Resource", "left"), ("Allocatable", "right"), ("Used", "right"), ("", "right"))
    for name in names(outcome.allocatable):
        whole, used = outcome.allocatable.get(name), outcome.used.get(name)
        if whole or used:
            table.add_row(name, amount(name, whole), amount(name, used), f"{used / whole:.1%}" if whole else "")
    return table


# --- the rest ---------------------------------------------------------------------------------------------------------


def _show_notes(outcome: Outcome, console: Console, notes: Sequence[str], ignored: dict[str, int]) -> None:
    lines = list(notes)
    if outcome.other_schedulers:
        theirs = ", ".join(f"{count} for {name}" for name, count in outcome.other_schedulers.items())
        lines.append(f"Pods left to other schedulers: {theirs}.")
    if ignored:
        counts = ", ".join(f"{kind} ({count})" if count > 1 else kind for kind, count in sorted(ignored.items()))
        lines.append(f"Play no part in scheduling and were left out: {counts}.")
    if lines:
        console.print()
    for line in lines:
        console.print(Text(line))


def _summary(outcome: Outcome) -> Text:
    waiting = outcome.waiting
    pods = sum(job.waiting for job in waiting)
    running = sum(len(job.running) for job in outcome.jobs)
    placed, nodes = _count(outcome.placed, "pod"), _count(outcome.nodes, "node")
    text = f"\n{placed} placed on {nodes} in {_count(outcome.cycles, 'cycle')}"
    if running:
        text += f", {running:,} ran before"
    if waiting:
        text += f"; {_count(pods, 'pod')} of {_count(len(waiting), 'job')} {'waits' if pods == 1 else 'wait'}"
    if outcome.evictions:
        text += f"; {_count(len(outcome.evictions), 'pod')} evicted"
    if outcome.refused:
        text += f"; {_count(len(outcome.refused), 'object')} refused"
    return Text(text + ".", style="bold")


def _count(n: int, thing: str) -> str:
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"
