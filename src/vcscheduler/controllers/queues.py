"""The state of queues: Open, Closing while PodGroups are left, Closed (spec 07 §8.7). A scheduler admits nothing to a
queue that is not Open, so a queue without a state gets one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from vcscheduler.cluster.object_store import Annotate, Update, UpdateStatus
from vcscheduler.controllers.job_reconcile import Stages
from vcscheduler.objects import Queue
from vcscheduler.workloads.admission import changed
from vcscheduler.workloads.queues import ROOT

SYNC: Final = "SyncQueue"
OPEN: Final = "OpenQueue"
CLOSE: Final = "CloseQueue"
ACTIONS: Final = frozenset((OPEN, CLOSE))
CLOSED_BY_PARENT: Final = "volcano.sh/closed-by-parent"

_SHUT: Final = ("Closed", "Closing")


class QueueRefused(Exception):
    """A queue that cannot be opened or closed; `str()` says why."""


@dataclass(frozen=True, slots=True)
class QueueDecision:
    """What to write, and what then to ask of child queues: (name, action)."""

    stages: Stages
    children: tuple[tuple[str, str], ...] = ()


def next_state(state: str, action: str, used: bool) -> str:
    """`used`: whether any PodGroup is in the queue."""
    if action == OPEN:
        return "Open"
    if action == CLOSE:
        return "Closed" if state == "Closed" or not used else "Closing"
    match state:
        case "" | "Open":
            return "Open"
        case "Closing":
            return "Closing" if used else "Closed"
        case _:
            return state


def reconcile(queue: Queue, action: str, used: bool, queues: Mapping[str, Queue]) -> QueueDecision:
    """
    Args:
        queues: all of them by name.

    Raises:
        QueueRefused: the action is not allowed now.
    """
    parent = queue.spec.parent or (ROOT if queue.name != ROOT else "")
    _check(queue, action, queues.get(parent))
    stages: Stages = []
    if parent != queue.spec.parent:
        stages.append((Update(queue, changed(queue, spec=changed(queue.spec, parent=parent))),))
    state = next_state(queue.status.state, action, used)
    marked = queue.metadata.annotations.get(CLOSED_BY_PARENT) == "true"
    if action == OPEN and marked:
        stages.append((Annotate(queue, {CLOSED_BY_PARENT: "false"}),))
    if state != queue.status.state:
        status = changed(queue.status, state=state)
        stages.append((UpdateStatus(queue, changed(queue, status=status), checked=False),))
    return QueueDecision(stages, tuple(_children(queue, action, queues)))


def mark_closed_by_parent(queue: Queue) -> Stages:
    """To be written to a child before it is closed, so that it opens again with its parent."""
    return [(Annotate(queue, {CLOSED_BY_PARENT: "true"}),)]


def _check(queue: Queue, action: str, parent: Queue | None) -> None:
    if action == CLOSE and queue.name == ROOT:
        raise QueueRefused(f"queue {ROOT} cannot be closed")
    if action == OPEN and parent is not None and parent.status.state in _SHUT:
        raise QueueRefused(
            f"queue {queue.name} cannot be opened while its parent {parent.name} is {parent.status.state}"
        )


def _children(queue: Queue, action: str, queues: Mapping[str, Queue]) -> list[tuple[str, str]]:
    found = []
    for name, child in sorted(queues.items()):
        if child.spec.parent != queue.name or name == queue.name:
            continue
        state, marked = child.status.state, child.metadata.annotations.get(CLOSED_BY_PARENT) == "true"
        if (action == CLOSE and state in ("", "Open")) or (action == OPEN and marked and state in _SHUT):
            found.append((name, action))
    return found
