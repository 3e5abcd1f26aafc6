"""Telling the user something; once where that is enough, although plugins are built anew for every session."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from vcscheduler.model.job import Job
from vcscheduler.model.status import Vote

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

_LOG = logging.getLogger(__name__)


def refuse(ssn: Session, job: Job, what: str, each: str, lacking: list[str]) -> Vote:
    """Do not admit a job, and say so in an event of its PodGroup: what is wrong, and for each resource that lacks."""
    text = f"{what}: " + ", ".join(f"{each} {name}" for name in lacking)
    ssn.record_pod_group_event(job, "Normal", "Unschedulable", text)
    return Vote.REJECT


def say_once(ssn: Session, plugin: str, text: str, level: int = logging.WARNING) -> None:
    """Log the text unless it was the last thing that the plugin had to say."""
    key = f"{plugin}.said"
    if ssn.store.get(key) != text:
        ssn.store[key] = text
        _LOG.log(level, "plugin %s: %s", plugin, text)


def nothing_to_say(ssn: Session, plugin: str) -> None:
    """What was wrong is over; should it come back, it is said again."""
    ssn.store.pop(f"{plugin}.said", None)
