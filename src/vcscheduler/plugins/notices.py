"""Telling the user something once, although plugins are built anew for every session."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

_LOG = logging.getLogger(__name__)


def say_once(ssn: Session, plugin: str, text: str, level: int = logging.WARNING) -> None:
    """Log the text unless it was the last thing that the plugin had to say."""
    key = f"{plugin}.said"
    if ssn.store.get(key) != text:
        ssn.store[key] = text
        _LOG.log(level, "plugin %s: %s", plugin, text)


def nothing_to_say(ssn: Session, plugin: str) -> None:
    """What was wrong is over; should it come back, it is said again."""
    ssn.store.pop(f"{plugin}.said", None)
