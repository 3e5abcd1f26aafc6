"""deadlines: of the jobs of a queue, the one with the earliest deadline first.

An order with a key. The comparison alone would do; the key says the same as a value to sort by, and lets the session
keep jobs in a plain sorted list instead of comparing them pair by pair.

    tiers:
    - plugins:
      - name: priority
      - name: deadlines      # after priority: only among jobs of equal priority
      - name: gang

The deadline is the annotation ``example.com/deadline`` of the PodGroup (Volcano Jobs hand their annotations down), a
time such as ``2026-12-01T06:00:00Z``. Jobs without one come last; a text that is no time counts as none.
"""

from __future__ import annotations

import functools
import math
from datetime import datetime

from vcscheduler.config import Arguments
from vcscheduler.framework.plugin import Plugin
from vcscheduler.framework.session import Session
from vcscheduler.model.job import Job

ANNOTATION = "example.com/deadline"


class Deadlines(Plugin):
    name = "deadlines"

    def on_session_open(self, ssn: Session) -> None:
        ssn.add_job_order_fn(self.name, compare, key=deadline)


def compare(a: Job, b: Job) -> int:
    """Negative: a first. 0: this plugin cannot tell, the next one is asked."""
    first, second = deadline(a), deadline(b)
    return (first > second) - (first < second)


def deadline(job: Job) -> float:
    """Seconds since 1970."""
    if job.pod_group is None:
        return math.inf
    return seconds(job.pod_group.metadata.annotations.get(ANNOTATION, ""))


@functools.lru_cache(maxsize=10_000)
def seconds(text: str) -> float:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return math.inf
    return at.timestamp() if at.tzinfo is not None else math.inf


def New(arguments: Arguments) -> Deadlines:
    return Deadlines(arguments)
