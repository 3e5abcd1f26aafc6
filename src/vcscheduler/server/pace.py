"""When the next scheduling cycle is due: a rule without threads or clocks.

All times are seconds of one steady clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from vcscheduler.server.wakeups import Urgency

COALESCE = 0.005
"""How long to wait for more of the same before a cycle: what comes together is decided together."""
_REST = 0.25
"""Share of the last cycle's duration that must pass before the next begins, so that watches and writes get their turn
even when changes never end."""
_LEAST_PERIOD = 0.01


class Step(Enum):
    """What is due."""

    NOTHING = "nothing"
    TAKE_IN = "take in"
    """Take in what was told, without a cycle."""
    CYCLE = "cycle"


@dataclass(slots=True)
class Pace:
    """`period`: the schedule period. The rest is what the last cycles were like."""

    period: float
    started: float = -math.inf
    ended: float = -math.inf
    reported: float = -math.inf
    not_before: float = -math.inf
    failures: int = 0

    def next(self, urgency: Urgency, since: float, *, waiting: bool, unfinished: bool) -> tuple[float, Step]:
        """The time of the next step and what it is; infinity if there is nothing to do.

        urgency, since: what has been told, and since when. waiting: jobs or tasks wait. unfinished: a cycle is due
        anyway within the period, for what was held back or for rules that follow the clock.
        """
        period = max(self.period, _LEAST_PERIOD)
        in_time = max(self.ended + period, self.not_before)
        if urgency is Urgency.WORK or (urgency is Urgency.ROOM and waiting):
            rest = min(period, max(COALESCE, (self.ended - self.started) * _REST)) if self.failures == 0 else 0.0
            soon = since + COALESCE
            if self.ended > -math.inf:
                soon = max(soon, self.ended + rest)
            return max(soon, self.not_before), Step.CYCLE
        if urgency >= Urgency.STATUS or waiting or unfinished:
            return in_time, Step.CYCLE
        if urgency is Urgency.NOTED:
            return max(since + period, self.not_before), Step.TAKE_IN
        return math.inf, Step.NOTHING

    def standing_by(self, urgency: Urgency, since: float) -> tuple[float, Step]:
        """As `next`, for a scheduler that must not decide."""
        if urgency is Urgency.NONE:
            return math.inf, Step.NOTHING
        return since + max(self.period, _LEAST_PERIOD), Step.TAKE_IN

    def reports(self, now: float) -> bool:
        """Whether a cycle that begins now should say everything: what it writes about what waits, and sums, is written
        at most once a period (as often as the reference does it)."""
        return now >= self.reported + max(self.period, _LEAST_PERIOD)

    def succeeded(self, started: float, ended: float, reported: bool) -> None:
        self.started, self.ended = started, ended
        self.failures, self.not_before = 0, -math.inf
        if reported:
            self.reported = started

    def failed(self, started: float, ended: float) -> float:
        """After an error: each time twice as long until the next try, at most a minute. Returns the pause."""
        self.started, self.ended = started, ended
        pause = min(60.0, max(self.period, 0.1) * 2.0**self.failures)
        self.failures = min(self.failures + 1, 30)
        self.not_before = ended + pause
        return pause
