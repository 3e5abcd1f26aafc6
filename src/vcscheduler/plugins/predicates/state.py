"""What PrePredicate leaves for the filters of the same task, for the length of a session (spec 05 §3.2-3.3)."""

from __future__ import annotations

from typing import Protocol

from vcscheduler.model.task import Task
from vcscheduler.placement.affinity import AffinityState
from vcscheduler.placement.spread import SpreadState

_KEY = "predicates"


class HasCycleStates(Protocol):
    def cycle_state(self, task: Task) -> dict[str, object]: ...


class PreState:
    """One task's PreFilter data. ``ran``: rules whose PreFilter left something. ``skips_affinity`` only ever goes on
    (Quirk: once InterPodAffinity has nothing to say about a task, it stays silent for the session)."""

    __slots__ = ("affinity", "ran", "skips_affinity", "spread")

    def __init__(self) -> None:
        self.ran: set[str] = set()
        self.skips_affinity = False
        self.affinity: AffinityState | None = None
        self.spread: SpreadState | None = None


def find_state(session: HasCycleStates, task: Task) -> PreState | None:
    """None if PrePredicate has not run for the task in this session."""
    found = session.cycle_state(task).get(_KEY)
    return found if isinstance(found, PreState) else None


def put_state(session: HasCycleStates, task: Task, state: PreState) -> None:
    session.cycle_state(task)[_KEY] = state
