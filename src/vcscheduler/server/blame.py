"""Whose fault an error in a cycle is: the plugin or action whose code was running.

An error of a custom policy surfaces deep inside an action, which is no help to whoever must fix it. The frames of its
traceback tell whose code it was; looking there costs nothing until something fails.
"""

from __future__ import annotations

from types import FrameType

from vcscheduler.framework.action import Action
from vcscheduler.framework.plugin import Plugin

_PLUGINS = "vcscheduler.plugins."
_FROM_FILE = "_vcscheduler_plugin_"
_ACTIONS = "vcscheduler.actions."


def culprit(error: BaseException) -> str:
    """``plugin x``, ``action y``, ``plugin x in action y``, or "" if neither was running."""
    plugin = action = ""
    each: BaseException | None = error
    while each is not None:
        trace = each.__traceback__
        while trace is not None:
            plugin = _plugin_of(trace.tb_frame) or plugin
            action = action or _action_of(trace.tb_frame)
            trace = trace.tb_next
        each = each.__cause__
    parts = [f"plugin {plugin}" if plugin else "", f"action {action}" if action else ""]
    return " in ".join(part for part in parts if part)


def _plugin_of(frame: FrameType) -> str:
    own = frame.f_locals.get("self")
    if isinstance(own, Plugin):
        return own.name
    module = str(frame.f_globals.get("__name__", ""))
    if module.startswith(_FROM_FILE):
        return module.removeprefix(_FROM_FILE)
    if module.startswith(_PLUGINS):
        return module.removeprefix(_PLUGINS).partition(".")[0]
    return ""


def _action_of(frame: FrameType) -> str:
    own = frame.f_locals.get("self")
    if isinstance(own, Action):
        return own.name
    module = str(frame.f_globals.get("__name__", ""))
    return module.removeprefix(_ACTIONS).partition(".")[0] if module.startswith(_ACTIONS) else ""
