"""Scheduler: runs cycles over a cache (spec 02 §1.2, §4).

A cycle opens a session, runs the configured actions in order and closes the session. What the clock says is taken once
a cycle, from outside, so the same input gives the same output.
"""

from __future__ import annotations

import gc
import logging
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from vcscheduler.config import SchedulerConfiguration
from vcscheduler.config.options import SchedulerOptions
from vcscheduler.framework.action import Action
from vcscheduler.framework.plugin import Plugin
from vcscheduler.framework.ports import SessionCache
from vcscheduler.framework.registry import PluginError, Registry
from vcscheduler.framework.session import Session
from vcscheduler.framework.updater import update_jobs, update_queues

log = logging.getLogger(__name__)


@dataclass(slots=True)
class CycleTimes:
    """Seconds of one cycle by phase: ``open``, each action by name, ``close``; and of each plugin's own part of
    opening and closing."""

    phases: dict[str, float] = field(default_factory=dict)
    plugins_opened: dict[str, float] = field(default_factory=dict)
    plugins_closed: dict[str, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return sum(seconds for phase, seconds in self.phases.items() if phase != "observe")


class Scheduler:
    """Cycles over one cache under one configuration, which may be replaced between cycles."""

    def __init__(
        self,
        cache: SessionCache,
        configuration: SchedulerConfiguration,
        options: SchedulerOptions | None = None,
        registry: Registry | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    ) -> None:
        self.cache = cache
        self.options = options or SchedulerOptions()
        self.registry = registry or Registry.default(self.options.plugins_dir)
        self.clock = clock
        self._actions: dict[str, Action] = {}
        self._reported: set[str] = set()
        self.explain_victims = False
        self._times = CycleTimes()
        self.configuration = configuration

    @property
    def configuration(self) -> SchedulerConfiguration:
        return self._configuration

    @configuration.setter
    def configuration(self, value: SchedulerConfiguration) -> None:
        """Takes effect with the next cycle.

        Raises:
            PluginError: an action that does not exist or is not supported yet.
        """
        for name in value.actions:
            if name not in self._actions:
                self._actions[name] = self.registry.action(name)
        self._configuration = value

    def run_once(self, observe: Callable[[Session], None] | None = None) -> CycleTimes:
        """One cycle. ``observe`` sees the session after the last action, before it closes.

        With ``--disable-failing-plugins`` a plugin that fails is left out and the cycle goes over its actions again.

        Raises:
            PluginError: a plugin of the configuration is not supported yet, or failed.
        """
        times = self._times = CycleTimes()
        start = time.perf_counter()

        def lap(name: str) -> None:
            nonlocal start
            now = time.perf_counter()
            times.phases[name] = times.phases.get(name, 0.0) + now - start
            start = now

        # A collection in the middle of a cycle walks everything and finds nothing: cycles make no garbage in circles.
        collecting = gc.isenabled()
        gc.disable()
        without: set[str] = set()
        try:
            while True:
                try:
                    return self._cycle(times, lap, observe, without)
                except PluginError as error:
                    if not self.options.disable_failing_plugins or error.plugin is None or error.plugin in without:
                        raise
                    log.error("%s; this cycle goes on without it", error, exc_info=error.__cause__)
                    without.add(error.plugin)
        finally:
            if collecting:
                gc.enable()

    def _cycle(
        self,
        times: CycleTimes,
        lap: Callable[[str], None],
        observe: Callable[[Session], None] | None,
        without: set[str],
    ) -> CycleTimes:
        self.cache.begin_session()
        ssn = Session(self.cache, self._configuration, self.options, self.clock())
        ssn.explaining_victims = self.explain_victims
        try:
            self._open_plugins(ssn, without)
            lap("open")
            self._run_actions(ssn, lap)
            if observe is not None:
                observe(ssn)
                lap("observe")
        except PluginError:
            if self.options.disable_failing_plugins:
                self._leave(ssn)
            else:
                self._close(ssn)
            raise
        except BaseException:
            self._close(ssn)
            raise
        self._close(ssn)
        lap("close")
        return times

    def _run_actions(self, ssn: Session, lap: Callable[[str], None]) -> None:
        for name in self._configuration.actions:
            try:
                self._actions[name].execute(ssn)
            except Exception as error:
                culprit = _culprit(error, ssn.plugins)
                if culprit is None:
                    raise
                raise _failure(culprit, f"in action {name}", error) from error
            lap(name)

    def _open_plugins(self, ssn: Session, without: set[str]) -> None:
        for option in self._configuration.plugins():
            if option.name in without:
                continue
            if not self.registry.has_plugin(option.name):
                # Upstream reports it at every session and goes on; once is enough here.
                if option.name not in self._reported:
                    self._reported.add(option.name)
                    log.error("plugin %s of the configuration is not known; it has no effect", option.name)
                continue
            plugin = self.registry.plugin(option.name, option.arguments)
            if plugin.name != option.name and option.name not in self._reported:
                self._reported.add(option.name)
                log.warning(
                    "plugin %s registers its functions under the name %s; they will not be called",
                    option.name,
                    plugin.name,
                )
            start = time.perf_counter()
            try:
                plugin.on_session_open(ssn)
            except PluginError:
                raise
            except (Exception, SystemExit) as error:
                raise _failure(option.name, "to open", error) from error
            self._times.plugins_opened[plugin.name] = time.perf_counter() - start
            ssn.plugins = [p for p in ssn.plugins if p.name != plugin.name] + [plugin]

    def _close(self, ssn: Session) -> None:
        """Whatever fails here, what was only planned is undone: the cache must not keep it."""
        failed: PluginError | None = None
        try:
            for plugin in ssn.plugins:
                start = time.perf_counter()
                try:
                    plugin.on_session_close(ssn)
                except Exception as error:
                    failed = _failure(plugin.name, "to close", error)
                    failed.__cause__ = error
                self._times.plugins_closed[plugin.name] = time.perf_counter() - start
            update_jobs(ssn)
            update_queues(ssn)
        finally:
            self._leave(ssn)
        if failed is not None:
            raise failed

    def _leave(self, ssn: Session) -> None:
        """Leave the cache with what was committed, and nothing else."""
        ssn.undo_planned()
        self.cache.settle(ssn.touched.values())


def _failure(plugin: str, where: str, error: BaseException) -> PluginError:
    return PluginError(f"plugin {plugin} failed {where}: {type(error).__name__}: {error}", plugin)


def _culprit(error: Exception, plugins: list[Plugin]) -> str | None:
    """The plugin whose code the error came through last, if any did: told by the modules in the traceback."""
    homes = {_home(type(p).__module__): p.name for p in plugins}
    found: str | None = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        found = homes.get(_home(frame.f_globals.get("__name__", "")), found)
    return found


def _home(module: str) -> str:
    """What all modules of one plugin share: its package, or the module itself."""
    parts = module.split(".")
    return ".".join(parts[:3]) if parts[:2] == ["vcscheduler", "plugins"] else parts[0]
