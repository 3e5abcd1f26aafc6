"""The scheduling loop: cycles when something asks for one, nothing otherwise.

It runs in a thread of its own, the only one that touches the cache's state and decides. Others ring its bell, or have
something read between two cycles (`Bell.call`) or at the end of one (`inspect`).
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from vcscheduler.config import ConfigurationFile, SchedulerConfiguration
from vcscheduler.framework.registry import BUILTIN_PLUGINS, PluginError, Registry
from vcscheduler.framework.scheduler import CycleTimes, Scheduler
from vcscheduler.framework.session import Session
from vcscheduler.server.cache import LiveCache
from vcscheduler.server.pace import Pace, Step
from vcscheduler.server.wakeups import Bell, Urgency

log = logging.getLogger(__name__)

LOOK_PERIOD = 1.0
"""Seconds between two looks at the directory of the configuration file."""
_BY_THE_CLOCK = frozenset(("rescheduling", "tdm"))
"""Built-in plugins that may evict although nothing waits and nothing changed."""
_SHUFFLE = "shuffle"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cycle:
    """A cycle that is over. `session` may be read until the next one begins."""

    number: int
    at: datetime
    times: CycleTimes
    reported: bool
    session: Session


class CycleObserver(Protocol):
    """Hears of cycles, in the thread that decides: it must be quick."""

    def observe(self, ssn: Session) -> None:
        """After the last action, before the session closes."""

    def ended(self, cycle: Cycle) -> None: ...

    def failed(self, error: Exception) -> None: ...

    def configuration_read(self, taken: bool) -> None:
        """The configuration file was read again."""


def follows_the_clock(configuration: SchedulerConfiguration) -> bool:
    """Whether something may have to be done although nothing changed and nothing waits. Of a custom plugin nobody
    knows, so it is assumed."""
    if _SHUFFLE in configuration.actions:
        return True
    return any(p.name in _BY_THE_CLOCK or p.name not in BUILTIN_PLUGINS for p in configuration.plugins())


def check_usable(configuration: SchedulerConfiguration, registry: Registry) -> None:
    """
    Raises:
        PluginError: the configuration names something that cannot be run; to be known before a cycle needs it.
    """
    for name in configuration.actions:
        registry.action(name)
    for option in configuration.plugins():
        if registry.has_plugin(option.name):
            registry.plugin(option.name, option.arguments)


class SchedulingLoop:
    """Cycles of one scheduler until its bell is closed.

    Args:
        file: the configuration file to keep an eye on; None if there is none.
        deciding: False for a scheduler that must not decide yet: it only takes in what happens, until `decide`.
        clock: steady seconds.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        cache: LiveCache,
        bell: Bell,
        observers: Sequence[CycleObserver] = (),
        file: ConfigurationFile | None = None,
        deciding: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._scheduler = scheduler
        self._cache = cache
        self._bell = bell
        self._observers = observers
        self._file = file
        self._deciding = deciding
        self._clock = clock
        self._pace = Pace(scheduler.options.schedule_period)
        self._next_look = -math.inf if file is not None else math.inf
        self._inspections: list[Callable[[Session], None]] = []
        self._unfinished = True
        self._by_the_clock = follows_the_clock(scheduler.configuration)
        self._said = ""
        self._said_of_file = ""
        self._repeats = 0
        self.cycles = 0
        self.running_since: float | None = None
        self.last: Cycle | None = None

    # --- any thread ---------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """The cycle under way is finished; none begins after that."""
        self._bell.close()

    def decide(self) -> None:
        """From now on this scheduler leads."""
        self._deciding = True
        self._bell.ring(Urgency.WORK)

    def inspect(self, function: Callable[[Session], T]) -> Future[T]:
        """Have a function look at a session after its last action. A cycle begins at once for that; where nothing is
        decided, none ever does."""
        future: Future[T] = Future()
        if not self._deciding:
            future.cancel()
            return future

        def look(ssn: Session) -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(function(ssn))
            except Exception as error:
                future.set_exception(error)

        self._bell.call(lambda: self._inspections.append(look))
        self._bell.ring(Urgency.WORK)
        return future

    @property
    def stuck_for(self) -> float:
        """Seconds since the cycle under way began; 0 between cycles."""
        since = self.running_since
        return 0.0 if since is None else self._clock() - since

    # --- the thread that decides --------------------------------------------------------------------------------------

    def run(self) -> None:
        """
        Raises:
            ConfigurationError: the file cannot be used any more, and the process was told to do without a default.
        """
        while not self._bell.closed:
            self.turn()
        self._bell.answer_calls()

    def turn(self) -> None:
        """Do what is due, or sleep until something may be."""
        bell = self._bell
        bell.answer_calls()
        self._look_at_file()
        urgency = bell.urgency
        if self._deciding:
            at, step = self._pace.next(
                urgency,
                bell.since,
                waiting=self._cache.waiting,
                unfinished=self._unfinished or self._cache.unfinished or self._by_the_clock,
            )
        else:
            at, step = self._pace.standing_by(urgency, bell.since)
        now = self._clock()
        if now < at:
            until = min(at, self._next_look)
            bell.wait(urgency, None if until == math.inf else until - now)
        elif step is Step.TAKE_IN:
            bell.take()
            self._cache.apply_events()
        else:
            self._cycle()

    def _cycle(self) -> None:
        self._bell.take()
        started = self.running_since = self._clock()
        self._cache.reporting = self._pace.reports(started)
        try:
            sessions: list[Session] = []

            def observe(ssn: Session) -> None:
                sessions.append(ssn)
                self._observe(ssn)

            times = self._scheduler.run_once(observe)
            cycle = Cycle(self.cycles + 1, sessions[-1].now, times, self._cache.reporting, sessions[-1])
            self.cycles, self.last = cycle.number, cycle
            for observer in self._observers:
                observer.ended(cycle)
        except Exception as error:
            self._unfinished = True
            self._report(error, self._pace.failed(started, self._clock()))
            for observer in self._observers:
                observer.failed(error)
        else:
            self._unfinished = False
            self._pace.succeeded(started, self._clock(), self._cache.reporting)
            if self._said:
                log.info("cycles work again after %d that failed", self._repeats)
                self._said, self._repeats = "", 0
        finally:
            self.running_since = None

    def _observe(self, ssn: Session) -> None:
        for observer in self._observers:
            observer.observe(ssn)
        inspections, self._inspections = self._inspections, []
        for look in inspections:
            look(ssn)

    def _report(self, error: Exception, pause: float) -> None:
        """An error that comes again and again is told in full once."""
        told = str(error) if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
        self._repeats = self._repeats + 1 if told == self._said else 1
        log.error(
            "the scheduling cycle failed (%d in a row), next try in %.1f s: %s",
            self._repeats,
            pause,
            told,
            exc_info=error if told != self._said else None,
        )
        self._said = told

    # --- configuration ------------------------------------------------------------------------------------------------

    def _look_at_file(self) -> None:
        now = self._clock()
        if self._file is None or now < self._next_look:
            return
        self._next_look = now + LOOK_PERIOD
        result = self._file.reload_if_changed()
        if result is None:
            return
        taken = result.error is None and self._adopt(result.configuration)
        for observer in self._observers:
            observer.configuration_read(taken)

    def _adopt(self, configuration: SchedulerConfiguration) -> bool:
        scheduler = self._scheduler
        try:
            check_usable(configuration, scheduler.registry)
        except PluginError as error:
            if str(error) != self._said_of_file:
                self._said_of_file = str(error)
                log.error("the scheduler configuration stays as it was: %s", error)
            return False
        self._said_of_file = ""
        if configuration != scheduler.configuration:
            scheduler.configuration = configuration
            self._by_the_clock = follows_the_clock(configuration)
            self._unfinished = True
            self._bell.ring(Urgency.WORK)
            log.info("the scheduler configuration was read again: actions %s", ", ".join(configuration.actions))
        return True
