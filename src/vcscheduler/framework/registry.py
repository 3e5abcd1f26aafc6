"""Which actions and plugins exist, and where they come from (spec 02 §3).

Built-in ones are imported when a configuration names them. Others come from installed packages (entry point groups
``vcscheduler.plugins`` and ``vcscheduler.actions``) or from ``*.py`` files in ``--plugins-dir``, named after the file,
each with a module-level callable ``New(arguments)``. A later source replaces an earlier one of the same name.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vcscheduler.config import Arguments
from vcscheduler.framework.action import Action
from vcscheduler.framework.plugin import Plugin

PluginBuilder = Callable[[Arguments], Plugin]
ActionBuilder = Callable[[], Action]

BUILTIN_PLUGINS: dict[str, str] = {
    "binpack": "binpack:BinpackPlugin",
    "capacity": "capacity:CapacityPlugin",
    "cdp": "cdp:CooldownProtectionPlugin",
    "conformance": "conformance:ConformancePlugin",
    "drf": "drf:DrfPlugin",
    "gang": "gang:GangPlugin",
    "network-topology-aware": "network_topology_aware:NetworkTopologyAwarePlugin",
    "nodegroup": "nodegroup:NodeGroupPlugin",
    "nodeorder": "nodeorder:NodeOrderPlugin",
    "overcommit": "overcommit:OvercommitPlugin",
    "pdb": "pdb:PdbPlugin",
    "predicates": "predicates:PredicatesPlugin",
    "priority": "priority:PriorityPlugin",
    "proportion": "proportion:ProportionPlugin",
    "rescheduling": "rescheduling:ReschedulingPlugin",
    "resource-strategy-fit": "resource_strategy_fit:ResourceStrategyFitPlugin",
    "resourcequota": "resourcequota:ResourceQuotaPlugin",
    "sla": "sla:SlaPlugin",
    "task-topology": "task_topology:TaskTopologyPlugin",
    "usage": "usage:UsagePlugin",
    "tdm": "tdm:TdmPlugin",
}
BUILTIN_ACTIONS: dict[str, str] = {
    "allocate": "allocate:Allocate",
    "backfill": "backfill:Backfill",
    "enqueue": "enqueue:Enqueue",
    "gangpreempt": "gangpreempt:GangPreempt",
    "gangreclaim": "gangreclaim:GangReclaim",
    "preempt": "preempt:Preempt",
    "reclaim": "reclaim:Reclaim",
    "shuffle": "shuffle:Shuffle",
}
#: What Volcano has and this version does not build yet.
MISSING_PLUGINS = frozenset(
    (
        "deviceshare",
        "extender",
        "numa-aware",
    )
)
MISSING_ACTIONS: frozenset[str] = frozenset()


#: What the values of ``known_arguments`` may be, and the type that each stands for.
ARGUMENT_KINDS: dict[str, object] = {"int": int, "float": float, "bool": bool, "str": str, "any": object}


class PluginError(Exception):
    """A plugin or action cannot be loaded, is not built yet, or failed. The message names it; ``plugin`` is the one
    that failed while it ran."""

    def __init__(self, message: str, plugin: str | None = None) -> None:
        super().__init__(message)
        self.plugin = plugin


class Registry:
    """Names to builders. ``load_installed`` and ``load_directory`` add to the built-in ones."""

    def __init__(self) -> None:
        self._plugins: dict[str, PluginBuilder] = {}
        self._actions: dict[str, ActionBuilder] = {}

    @classmethod
    def default(cls, plugins_dir: str = "") -> Registry:
        registry = cls()
        registry.load_installed()
        if plugins_dir:
            registry.load_directory(Path(plugins_dir))
        return registry

    # --- names ------------------------------------------------------------------------------------------------------

    @property
    def plugin_names(self) -> frozenset[str]:
        """Everything that a configuration may name, built already or not."""
        return frozenset((*BUILTIN_PLUGINS, *MISSING_PLUGINS, *self._plugins))

    @property
    def action_names(self) -> frozenset[str]:
        return frozenset((*BUILTIN_ACTIONS, *MISSING_ACTIONS, *self._actions))

    def known_arguments(self) -> dict[str, dict[str, str]]:
        """Known arguments by name of plugins and actions. A custom one may take what it likes, unless it is made by a
        class that says otherwise."""
        known: dict[str, dict[str, str]] = {}
        for name, target in BUILTIN_PLUGINS.items():
            plugin: type[Plugin] = _builtin("plugins", target)
            if self._plugins.get(name, plugin) is plugin:
                known[name] = plugin.known_arguments
        for name, target in BUILTIN_ACTIONS.items():
            action: type[Action] = _builtin("actions", target)
            if self._actions.get(name, action) is action:
                known[name] = action.known_arguments
        for name, builder in (*self._plugins.items(), *self._actions.items()):
            declared = _declared_arguments(builder)
            if declared is not None:
                known[name] = declared
                self._check_kinds(name, declared)
        return known

    def _check_kinds(self, name: str, declared: dict[str, str]) -> None:
        for key, kind in declared.items():
            if kind not in ARGUMENT_KINDS:
                allowed = ", ".join(ARGUMENT_KINDS)
                raise PluginError(f"{name}: known_arguments: {key}: found {kind!r}, allowed are {allowed}")

    # --- building ---------------------------------------------------------------------------------------------------

    def has_plugin(self, name: str) -> bool:
        return name in self._plugins or name in BUILTIN_PLUGINS or name in MISSING_PLUGINS

    def plugin(self, name: str, arguments: Arguments) -> Plugin:
        """
        Raises:
            PluginError: no such plugin, not built yet, or it cannot be made.
        """
        builder = self._plugins.get(name)
        if builder is None:
            if name in MISSING_PLUGINS:
                raise PluginError(f"plugin {name} is not supported yet (see docs/support.md)")
            if name not in BUILTIN_PLUGINS:
                raise PluginError(f"plugin {name} is not known")
            builder = self._plugins[name] = _builtin("plugins", BUILTIN_PLUGINS[name])
        try:
            made = builder(arguments)
        except PluginError:
            raise
        except (Exception, SystemExit) as error:
            raise PluginError(f"plugin {name} cannot be made: {_told(error)}", name) from error
        if not isinstance(made, Plugin):
            raise PluginError(f"plugin {name}: found {type(made).__name__}, New(arguments) must give a Plugin", name)
        return made

    def action(self, name: str) -> Action:
        """
        Raises:
            PluginError: no such action, or not built yet.
        """
        builder = self._actions.get(name)
        if builder is None:
            if name in MISSING_ACTIONS:
                raise PluginError(f"action {name} is not supported yet (see docs/support.md)")
            if name not in BUILTIN_ACTIONS:
                raise PluginError(f"action {name} is not known")
            builder = self._actions[name] = _builtin("actions", BUILTIN_ACTIONS[name])
        return builder()

    # --- sources ----------------------------------------------------------------------------------------------------

    def add_plugin(self, name: str, builder: PluginBuilder) -> None:
        self._plugins[name] = builder

    def add_action(self, name: str, builder: ActionBuilder) -> None:
        self._actions[name] = builder

    def load_installed(self) -> None:
        """Plugins and actions that installed packages offer."""
        for point in importlib.metadata.entry_points(group="vcscheduler.plugins"):
            self._plugins[point.name] = _Deferred(point)
        for point in importlib.metadata.entry_points(group="vcscheduler.actions"):
            self._actions[point.name] = _Deferred(point)

    def load_directory(self, directory: Path) -> None:
        """Every ``*.py`` file in the directory, in name order. A missing directory holds no plugins.

        Raises:
            PluginError: a file cannot be imported or lacks ``New``, or is a compiled Go plugin.
        """
        if not directory.is_dir():
            return
        for path in sorted(directory.iterdir()):
            if path.suffix == ".so":
                raise PluginError(
                    f"{path}: plugins compiled from Go cannot run here; write the policy as a Python file "
                    "(docs/plugins.md) or call it through the extender plugin"
                )
            if path.suffix == ".py" and path.is_file():
                self._plugins[path.stem] = _from_file(path)


class _Deferred:
    """An entry point that is imported at first use."""

    def __init__(self, point: importlib.metadata.EntryPoint) -> None:
        self._point = point

    def __call__(self, *arguments: Any) -> Any:
        try:
            target = self._point.load()
        except Exception as error:
            raise PluginError(f"{self._point.group} {self._point.name} ({self._point.value}): {error}") from error
        return target(*arguments)


def _builtin(package: str, target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(f"vcscheduler.{package}.{module}"), name)


def _declared_arguments(builder: object) -> dict[str, str] | None:
    """What the class of a custom plugin or action, not only its base class, says of its arguments. What an installed
    package offers is not imported for that."""
    if not isinstance(builder, type) or not issubclass(builder, Plugin | Action):
        return None
    declared: dict[str, str] = builder.known_arguments
    return None if declared is Plugin.known_arguments or declared is Action.known_arguments else declared


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _from_file(path: Path) -> PluginBuilder:
    # A private module name, so that equal stems elsewhere do not clash.
    module_name = f"_vcscheduler_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{path}: cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # one that calls sys.exit would end the command without a word
        raise PluginError(f"{path}: {_told(error)}") from error
    new = getattr(module, "New", None)
    if not callable(new):
        raise PluginError(f"{path}: has no callable New(arguments)")
    return new  # type: ignore[no-any-return]
