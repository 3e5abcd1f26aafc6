"""A scheduling loop over an embedded cluster whose time is the test's.

Instead of sleeping the loop moves the clock on, so that what it does in an hour is known in a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import lab
from vcscheduler.cluster.memory import MemoryCluster
from vcscheduler.config import ConfigurationFile, SchedulerOptions, configuration_from_value
from vcscheduler.framework.registry import Registry
from vcscheduler.framework.scheduler import Scheduler
from vcscheduler.framework.session import Session
from vcscheduler.objects import KubernetesObject
from vcscheduler.server.cache import LiveCache
from vcscheduler.server.loop import Cycle, CycleObserver, SchedulingLoop
from vcscheduler.server.wakeups import Bell, Urgency


class _MovingBell(Bell):
    """Waiting moves the machine's clock to the end of the wait, or to the next thing that is planned."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(lambda: machine.seconds)
        self._machine = machine

    def wait(self, seen: Urgency, timeout: float | None) -> None:
        self._machine.pass_time(timeout)


class Machine:
    """Attributes: `cycles`: what ran, in order. `turns`: how often the loop woke up."""

    def __init__(
        self,
        config: dict[str, object] | None = None,
        options: SchedulerOptions | None = None,
        file: ConfigurationFile | None = None,
        observers: Sequence[CycleObserver] = (),
        registry: Registry | None = None,
        cycle_seconds: float = 0.001,
        deciding: bool = True,
        measure: bool = False,
    ) -> None:
        self.seconds = 0.0
        self.cycle_seconds = cycle_seconds
        self.cycles: list[Cycle] = []
        self.turns = 0
        self._end = 0.0
        self._planned: list[tuple[float, Callable[[], None]]] = []
        self.cluster = MemoryCluster(self.now)
        self.bell = _MovingBell(self)
        self.options = replace(options or SchedulerOptions(), leader_elect=False)
        self.cache = LiveCache(self.cluster, self.now, self.options, self.bell, measure=measure)
        registry = registry or Registry.default()
        if file is not None:
            configuration = file.load().configuration
        else:
            configuration = configuration_from_value(
                config or lab.configuration(),
                "test",
                known_actions=registry.action_names,
                known_plugins=registry.plugin_names,
            ).configuration
        self.scheduler = Scheduler(self.cache, configuration, self.options, registry, self.now)
        self.loop = SchedulingLoop(
            self.scheduler,
            self.cache,
            self.bell,
            (*observers, self),
            file,
            deciding=deciding,
            clock=lambda: self.seconds,
        )

    def now(self) -> datetime:
        return lab.NOW + timedelta(seconds=self.seconds)

    # --- building -----------------------------------------------------------------------------------------------------

    def add(self, *objects: KubernetesObject) -> Machine:
        self.cluster.apply_all(objects)
        return self

    def at(self, seconds: float, action: Callable[[], object]) -> Machine:
        """Have something happen when the clock says so."""
        self._planned.append((seconds, lambda: (action(), None)[1]))
        self._planned.sort(key=lambda each: each[0])
        return self

    # --- running ------------------------------------------------------------------------------------------------------

    def run(self, seconds: float) -> list[float]:
        """For so long; returns when cycles began."""
        known = len(self.cycles)
        self._end = self.seconds + seconds
        while self.seconds < self._end:
            self.turns += 1
            self.loop.turn()
        return [round(self._began[cycle.number], 3) for cycle in self.cycles[known:]]

    def pass_time(self, timeout: float | None) -> None:
        until = self._end if timeout is None else min(self.seconds + timeout, self._end)
        if self._planned and self._planned[0][0] <= until:
            at, action = self._planned.pop(0)
            self.seconds = max(self.seconds, at)
            action()
        else:
            self.seconds = until

    # --- as an observer -----------------------------------------------------------------------------------------------

    _began: dict[int, float]

    def observe(self, ssn: Session) -> None:
        self._began = getattr(self, "_began", {})
        self._began[self.loop.cycles + 1] = self.seconds
        self.seconds += self.cycle_seconds

    def ended(self, cycle: Cycle) -> None:
        self.cycles.append(cycle)

    def failed(self, error: Exception) -> None:
        self.errors = [*getattr(self, "errors", []), error]

    def configuration_read(self, taken: bool) -> None:
        self.readings = [*getattr(self, "readings", []), taken]
