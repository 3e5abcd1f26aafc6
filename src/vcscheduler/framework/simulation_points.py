"""Extension points at which plugins say what would be if some tasks were gone from a node (spec 02 §5.3).

A simulation works on a copy of a task's cycle state, never on the session: a plugin keeps there what it counts, and may
not touch its own books. It is asked in this order: tasks are removed one by one and some are added again; in between
the session asks whether the queue may run the task and whether a predicate refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from vcscheduler.config import PluginOption, Tier
from vcscheduler.framework.points import Point
from vcscheduler.model.fit import Status
from vcscheduler.model.nodes import Node
from vcscheduler.model.queue import Queue
from vcscheduler.model.task import Task

State = dict[str, object]
#: (state, task to place, task that goes or comes back, node) -> why the simulation cannot go on, or None.
SimulateChange = Callable[[State, Task, Task, Node], str | None]


@runtime_checkable
class Cloneable(Protocol):
    """A note in a cycle state that a simulation may change."""

    def clone(self) -> object: ...


class _ChangePoint(Point[SimulateChange]):
    def _enabled(self, option: PluginOption) -> bool:
        return option.enable_preemptable or option.enabled_allocatable


class SimulationPoints:
    def __init__(self, tiers: Sequence[Tier]) -> None:
        self._simulate_allocatable: Point[Callable[[State, Queue, Task], bool]] = Point(tiers, "enabled_allocatable")
        self._simulate_predicate: Point[Callable[[State, Task, Node], Status | None]] = Point(tiers, "enable_predicate")
        self._simulate_remove: Point[SimulateChange] = _ChangePoint(tiers, None)
        self._simulate_add: Point[SimulateChange] = _ChangePoint(tiers, None)

    def add_simulate_allocatable_fn(self, name: str, fn: Callable[[State, Queue, Task], bool]) -> None:
        self._simulate_allocatable.add(name, fn)

    def add_simulate_predicate_fn(self, name: str, fn: Callable[[State, Task, Node], Status | None]) -> None:
        """``fn``: None if nothing is against the node."""
        self._simulate_predicate.add(name, fn)

    def add_simulate_remove_task_fn(self, name: str, fn: SimulateChange) -> None:
        self._simulate_remove.add(name, fn)

    def add_simulate_add_task_fn(self, name: str, fn: SimulateChange) -> None:
        """``fn`` must undo exactly what the plugin does when a task is removed."""
        self._simulate_add.add(name, fn)

    def simulate_allocatable(self, state: State, queue: Queue, task: Task) -> bool:
        return all(f(state, queue, task) for f in self._simulate_allocatable.all)

    def simulate_predicate(self, state: State, task: Task, node: Node) -> Status | None:
        return next((s for f in self._simulate_predicate.all if (s := f(state, task, node)) is not None), None)

    def simulate_remove_task(self, state: State, task: Task, removed: Task, node: Node) -> str | None:
        return next((e for f in self._simulate_remove.all if (e := f(state, task, removed, node)) is not None), None)

    def simulate_add_task(self, state: State, task: Task, added: Task, node: Node) -> str | None:
        return next((e for f in self._simulate_add.all if (e := f(state, task, added, node)) is not None), None)


def simulated(state: State) -> State:
    """A copy to simulate on; notes that can be cloned are."""
    return {name: note.clone() if isinstance(note, Cloneable) else note for name, note in state.items()}
