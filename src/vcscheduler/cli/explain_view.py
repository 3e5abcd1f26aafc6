"""Answers of ``vcscheduler explain`` for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from vcscheduler.cli.node_names import shortened
from vcscheduler.explain.evictions import Eviction
from vcscheduler.explain.nodes import NodeExplanation
from vcscheduler.explain.pods import Change, NodeScore, NodeView
from vcscheduler.model.amounts import amount, amounts, names
from vcscheduler.model.resources import PODS, Resources
from vcscheduler.simulator.inquiry import JobStory, PodStory


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text, or a row of cells; rows that follow one another line up."""

    indent: int
    text: str
    cells: tuple[str, ...] = ()
    title: bool = False


def show(lines: Sequence[Line], console: Console) -> None:
    """Print lines, cells of successive rows in columns."""
    with console.capture() as captured:
        at = 0
        while at < len(lines):
            line = lines[at]
            if not line.cells:
                if line.title and at:
                    console.print()
                style = "bold" if line.title else ""
                console.print(Padding(Text(line.text, style=style), (0, 0, 0, line.indent), expand=False))
                at += 1
                continue
            table = Table.grid(padding=(0, 2, 0, 0))
            for _ in line.cells:
                table.add_column(overflow="fold")
            while at < len(lines) and len(lines[at].cells) == len(line.cells):
                table.add_row(*lines[at].cells)
                at += 1
            console.print(Padding(table, (0, 0, 0, line.indent)))
    console.file.write("".join(f"{text.rstrip()}\n" for text in captured.get().splitlines()))


# --- pods -------------------------------------------------------------------------------------------------------------


def pod_lines(story: PodStory, indent: int = 0) -> list[Line]:
    """Everything about one pod."""
    lines = [Line(indent, f"Pod {story.pod} {_state(story)}.", title=True)]
    facts = f"{story.kind} {story.job}, queue {story.queue}, priority {story.priority}; it " if story.job else "It "
    lines.append(Line(indent + 2, f"{facts}asks {amounts(story.asks)}."))
    if story.reason is not None:
        lines.append(Line(indent + 2, _sentence(story.reason.message)))
    if story.view is not None:
        lines += _view(story.view, indent)
    changes = [*(story.view.changes if story.view is not None else ()), *story.tried]
    lines += _changes(changes, indent)
    if story.scores:
        lines += _scores(story.scores, story.node, indent)
    for eviction in story.evictions:
        lines += _eviction(eviction, story, indent)
    return lines


def _state(story: PodStory) -> str:
    if story.state == "is placed":
        return f"is placed on {story.node}, in cycle {story.cycle} of this run"
    if story.state == "ran before":
        return f"ran on {story.node} before"
    if story.state == "is left to another scheduler":
        return f"is left to another scheduler, {story.scheduler}"
    if story.state == "was evicted":
        return f"was evicted from {story.node} in cycle {story.cycle} of this run"
    return story.state


def _view(view: NodeView, indent: int) -> list[Line]:
    if view.prevented:
        return [Line(indent + 2, f"No node was looked at: {view.prevented}.")]
    lines = []
    if view.refusals:
        lines.append(Line(indent, f"Rules about nodes: {len(view.fitting)} of {view.nodes} would take it", title=True))
        for each in view.refusals:
            nodes = "1 node" if each.nodes == 1 else f"{each.nodes} nodes"
            lines.append(Line(indent + 2, "", (nodes, each.rule, each.reason, shortened(each.names, limit=4))))
    elif view.nodes:
        lines.append(Line(indent + 2, f"Each of the {view.nodes} nodes would take it: it is not nodes that refuse."))
    if view.near and not view.fitting:
        lines.append(Line(indent, "Nearest: nodes that lack only resources", title=True))
        for near in view.near:
            lacks = f"lacks {amounts(near.lacks, pods=True)}"
            lines.append(Line(indent + 2, "", (near.node, lacks, "too small even if empty" if near.never else "")))
    return lines


def _changes(changes: Sequence[Change], indent: int) -> list[Line]:
    if not changes:
        return []
    lines = [Line(indent, "What would change it (each was tried)", title=True)]
    for each in changes:
        if each.outcome:
            text = each.outcome
        else:
            nodes = "1 node" if len(each.nodes) == 1 else f"{len(each.nodes)} nodes"
            text = f"{nodes} would take it: {shortened(each.nodes, limit=4)}"
        lines.append(Line(indent + 2, f"If {each.what}: {text}."))
    return lines


def _scores(scores: Sequence[NodeScore], node: str, indent: int) -> list[Line]:
    lines = [Line(indent, "Points of the best nodes, were it placed once more", title=True)]
    parts = [name for name in scores[0].parts if any(each.parts[name] for each in scores)]
    short = [name.partition(": ")[2] or name for name in parts]
    lines.append(Line(indent + 2, "", ("", "total", *(short if len(set(short)) == len(parts) else parts))))
    for each in scores:
        mark = f"{each.node} *" if each.node == node else each.node
        lines.append(Line(indent + 2, "", (mark, _points(each.total), *(_points(each.parts[name]) for name in parts))))
    if any(each.node == node for each in scores):
        lines.append(Line(indent + 2, "* where it is. Of equal nodes the first by name is taken."))
    return lines


def _points(points: float) -> str:
    return f"{points:.2f}".rstrip("0").rstrip(".")


def _eviction(eviction: Eviction, story: PodStory, indent: int) -> list[Line]:
    if eviction.pod == story.pod:
        text = f"Evicted by {eviction.action}" + (f" for {eviction.preemptor}" if eviction.preemptor else "")
    else:
        frees = "" if eviction.frees is None else f", which frees {amounts(eviction.frees)}"
        text = f"For it {eviction.pod} was evicted ({eviction.action}){frees}"
    lines = [Line(indent + 2, f"{text}.")]
    return lines + [Line(indent + 6, "", (each.plugin, each.why)) for each in eviction.rule]


# --- jobs -------------------------------------------------------------------------------------------------------------


def job_lines(story: JobStory) -> list[Line]:
    """Everything about one job."""
    outcome, gang = story.outcome, story.gang
    phase = f", {outcome.phase}" if outcome.phase else ""
    facts = f"queue {outcome.queue}, priority {outcome.priority}{phase}"
    lines = [Line(0, f"{outcome.kind} {outcome.key}, {facts}", title=True)]
    on_nodes = len(outcome.placed) + len(outcome.running)
    text = f"{outcome.pods} pods: {on_nodes} have a node, {outcome.waiting} wait"
    lines.append(Line(2, f"{text}{f', {outcome.finished} are finished' if outcome.finished else ''}."))
    if gang is not None:
        lines.append(Line(2, _gang(gang.minimum, gang.ready, gang.missing)))
        for role in gang.roles:
            if role.minimum:
                lines.append(Line(4, f"task {role.role}: {role.ready} of {role.pods} count, {role.minimum} must"))
        if not gang.asks.is_empty():
            lines.append(Line(2, f"Those that wait ask {amounts(gang.asks)}."))
        if gang.admission is not None and outcome.phase in ("", "Pending"):
            lines.append(Line(2, f"To be admitted it must find {amounts(gang.admission)}."))
        if gang.held is not None and gang.deserved is not None and gang.limit is not None and outcome.waiting:
            queue = f"Queue {gang.queue} holds {amounts(gang.held)}, deserves {amounts(gang.deserved)}"
            lines.append(Line(2, f"{queue} and may have {amounts(gang.limit)}."))
    if outcome.reason is not None:
        lines.append(Line(2, _sentence(outcome.reason.message)))
    for pod in story.waiting:
        lines += pod_lines(pod)
    if story.evictions:
        lines.append(Line(0, "Evicted for it", title=True))
        lines += [Line(2, f"{each.pod} from {each.node} ({each.action})") for each in story.evictions]
    return lines


def _gang(minimum: int, ready: int, missing: int) -> str:
    if not missing:
        return f"The gang needs {minimum} at once and has {ready}: it runs."
    return f"The gang needs {minimum} at once and has {ready}: {missing} more must find room together."


# --- nodes ------------------------------------------------------------------------------------------------------------


def node_lines(node: NodeExplanation) -> list[Line]:
    """Everything about one node."""
    lines = [Line(0, f"Node {node.name}", title=True)]
    lines += [Line(2, _sentence(each)) for each in node.obstacles]
    lines.append(Line(2, "", ("resource", "allocatable", "used", "free", "being freed")))
    for name in names(node.allocatable):
        if node.allocatable.get(name) or node.used.get(name):
            vectors: list[Resources] = [node.allocatable, node.used, node.idle, node.releasing]
            lines.append(Line(2, "", (name, *(amount(name, each.get(name)) for each in vectors))))
    lines.append(Line(0, f"{len(node.pods)} pods" if len(node.pods) != 1 else "1 pod", title=True))
    for pod in node.pods:
        whose = f"queue {pod.queue}, priority {pod.priority}" if pod.queue else "of no job"
        lines.append(Line(2, "", (pod.pod, whose, pod.status, amounts(_without_pods(pod.request)))))
    return lines


def _without_pods(vector: Resources) -> Resources:
    return Resources(vector.cpu, vector.memory, {name: v for name, v in vector.scalar_items() if name != PODS} or None)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?")) else ".")
