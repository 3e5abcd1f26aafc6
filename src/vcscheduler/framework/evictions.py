"""What is remembered about evictions while somebody wants to know why they happened."""

from __future__ import annotations

from dataclasses import dataclass, field

from vcscheduler.model.resources import Resources
from vcscheduler.model.task import Task


@dataclass(frozen=True, slots=True)
class EvictionRecord:
    """One eviction that was handed to the cluster.

    ``on_behalf``: the task that needs the room; None where an action evicts for no task in particular. ``frees``: the
    victim's request on ``node_name``.
    """

    victim: Task
    on_behalf: Task | None
    action: str
    node_name: str
    frees: Resources


@dataclass(slots=True)
class EvictionTally:
    """What evicting actions did in one session, for metrics (spec 02 §1.3, 03 §5.4).

    transactions: committed statements that evicted, by action. attempts: on how many nodes preempt tried to make room.
    candidates: how many tasks might have been evicted on the last node that preempt looked at; None if at none.
    """

    transactions: dict[str, int] = field(default_factory=dict)
    attempts: int = 0
    candidates: int | None = None


@dataclass(frozen=True, slots=True)
class NodePassedOver:
    """A node on which an action could make no room for a task, and why."""

    task: Task
    action: str
    node_name: str
    why: str
