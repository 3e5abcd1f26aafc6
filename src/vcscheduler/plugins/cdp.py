"""cdp: cooldown protection, pods that started recently are no victims (spec 04 §13)."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from vcscheduler.config import DurationError, parse_nanoseconds
from vcscheduler.framework.plugin import Plugin
from vcscheduler.model.status import Vote
from vcscheduler.model.task import Task

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

COOLDOWN_TIME = "volcano.sh/cooldown-time"


class CooldownProtectionPlugin(Plugin):
    """The time runs from the pod being scheduled, not from it being ready (Quirk)."""

    name = "cdp"

    def on_session_open(self, ssn: Session) -> None:
        self.ssn = ssn
        ssn.add_preemptable_fn(self.name, self.evictable)
        ssn.add_reclaimable_fn(self.name, self.evictable)

    def evictable(self, task: Task, candidates: list[Task]) -> tuple[list[Task], Vote]:
        kept = []
        for t in candidates:
            protected = self.is_protected(t)
            if not protected:
                kept.append(t)
            if self.ssn.explaining_victims:
                why = partial("its cooldown {}".format, "is running" if protected else "is over or unset")
                self.ssn.explain_victim(self.name, task, t, not protected, why)
        return kept, Vote.PERMIT

    def is_protected(self, task: Task) -> bool:
        pod = task.pod
        # The label counts even if it is no duration.
        text = pod.metadata.labels.get(COOLDOWN_TIME, pod.metadata.annotations.get(COOLDOWN_TIME))
        cooldown = None if text is None else _duration(text)
        if cooldown is None or pod.status.phase != "Running":
            return False
        for c in pod.status.conditions:
            if c.type == "PodScheduled" and c.status == "True":
                since = c.last_transition_time
                return since is not None and since + cooldown > self.ssn.now
        return False


@lru_cache(maxsize=1024)
def _duration(text: str) -> timedelta | None:
    try:
        return timedelta(microseconds=parse_nanoseconds(text) / 1000)
    except DurationError:
        return None
