"""What PrePredicate leaves for the filters of the same task, for the length of a session (spec 05 §3.2-3.3)."""

from __future__ import annotations

from typing import Protocol

from vcscheduler.model.task import Task
from vcscheduler.placement.affinity import AffinityState
from vcscheduler.placement.spread import SpreadState
from vcscheduler.plugins.predicates.volume_binding import VolumeState
from vcscheduler.plugins.predicates.volume_zone import Topology

_KEY = "predicates"


class HasCycleStates(Protocol):
    def cycle_state(self, task: Task) -> dict[str, object]: ...


class PreState:
    """One task's PreFilter data.

    Attributes:
        ran: rules whose PreFilter left something.
        skips_affinity: only ever goes on (Quirk: once InterPodAffinity has nothing to say about a task, it stays silent
            for the session).
        allocated_to: the node that the pod was last allocated to in this session, undone or not.
    """

    __slots__ = ("affinity", "allocated_to", "ran", "skips_affinity", "spread", "volumes", "zones")

    def __init__(self) -> None:
        self.ran: set[str] = set()
        self.skips_affinity = False
        self.affinity: AffinityState | None = None
        self.spread: SpreadState | None = None
        self.zones: list[Topology] = []
        self.volumes: VolumeState | None = None
        self.allocated_to = ""

    def copy(self) -> PreState:
        """For another task with the same outcome."""
        new = PreState()
        new.ran = set(self.ran)
        new.skips_affinity = self.skips_affinity
        new.affinity = self.affinity
        new.spread = self.spread
        return new


def find_state(session: HasCycleStates, task: Task) -> PreState | None:
    """None if PrePredicate has not run for the task in this session."""
    found = session.cycle_state(task).get(_KEY)
    return found if isinstance(found, PreState) else None


def put_state(session: HasCycleStates, task: Task, state: PreState) -> None:
    session.cycle_state(task)[_KEY] = state
