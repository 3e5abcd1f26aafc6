"""What queues would hold if some tasks were gone: the figures that simulations of preemption count in.

A task's cycle state holds one such note from its pre-predicate on. It starts from what queues hold at the moment and
keeps only what the simulation changed, so that taking the note costs nothing (spec 04 §6.3, §7.3).
"""

from __future__ import annotations

from typing import Protocol

from vcscheduler.model.resources import Resources


class Holding(Protocol):
    """A queue of which is known what it holds."""

    @property
    def name(self) -> str: ...

    @property
    def allocated(self) -> Resources: ...


class SimulatedQueues:
    __slots__ = ("_changed",)

    def __init__(self, changed: dict[str, Resources] | None = None) -> None:
        self._changed = changed or {}

    def clone(self) -> SimulatedQueues:
        return SimulatedQueues({name: r.clone() for name, r in self._changed.items()})

    def allocated(self, queue: Holding) -> Resources:
        """Not to be changed."""
        return self._changed.get(queue.name, queue.allocated)

    def change(self, request: Resources, times: int, *queues: Holding) -> None:
        for queue in queues:
            held = self._changed.get(queue.name)
            if held is None:
                held = self._changed[queue.name] = queue.allocated.clone()
            held.add_times(request, times)
