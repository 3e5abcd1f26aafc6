"""sla: push jobs that have waited longer than they were promised (spec 04 §11)."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from vcscheduler.config import DurationError, parse_nanoseconds
from vcscheduler.framework.plugin import Plugin
from vcscheduler.model.job import Job
from vcscheduler.model.status import Vote
from vcscheduler.plugins.notices import say_once

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

WAITING_TIME = "sla-waiting-time"
ANNOTATIONS = ("volcano.sh/sla-waiting-time", WAITING_TIME)
#: The zero time of the API, which an object without creation time has.
_YEAR_ONE = -62_135_596_800 * 10**9


class SlaPlugin(Plugin):
    """Permits what has waited too long; that overrules only later tiers, a Reject in this or an earlier one wins."""

    name = "sla"
    known_arguments: ClassVar[dict[str, str]] = {WAITING_TIME: "str"}

    def on_session_open(self, ssn: Session) -> None:
        self.now = _nanoseconds(ssn.now.timestamp())
        text = self.arguments.get_str(WAITING_TIME, "")
        self.limit = waiting_limit(text) if text else None
        if text and self.limit is None:
            say_once(
                ssn,
                self.name,
                f"{WAITING_TIME} is {text!r}, not a duration above 0: there is no general limit",
            )
        ssn.add_job_order_fn(self.name, self._compare, key=self.deadline)
        ssn.add_job_enqueueable_fn(self.name, self.vote)
        ssn.add_job_pipelined_fn(self.name, self.vote)

    def limit_of(self, job: Job) -> int | None:
        """Nanoseconds that the job may wait; None = no promise was made."""
        if job.pod_group is not None:
            annotations = job.pod_group.metadata.annotations
            for key in ANNOTATIONS:
                text = annotations.get(key)
                limit = None if text is None else waiting_limit(text)
                if limit is not None:
                    return limit
        return self.limit

    def deadline(self, job: Job) -> float:
        """Nanoseconds since 1970, an integer; infinite without limit."""
        limit = self.limit_of(job)
        return math.inf if limit is None else _nanoseconds(job.created) + limit

    def _compare(self, a: Job, b: Job) -> int:
        x, y = self.deadline(a), self.deadline(b)
        return (x > y) - (x < y)

    def vote(self, job: Job) -> Vote:
        return Vote.PERMIT if self.deadline(job) <= self.now else Vote.ABSTAIN


@lru_cache(maxsize=1024)
def waiting_limit(text: str) -> int | None:
    """Nanoseconds; None for what is no duration above 0."""
    try:
        limit = parse_nanoseconds(text)
    except DurationError:
        return None
    return limit if limit > 0 else None


def _nanoseconds(seconds: float) -> int:
    return _YEAR_ONE if seconds == -math.inf else round(seconds * 1e6) * 1000
