"""Waiting times between attempts: doubled each time, with jitter so that many do not come back at once."""

from __future__ import annotations

import random


class Backoff:
    """Delays from `first` seconds up to `largest`, each anywhere between half and all of what is due."""

    __slots__ = ("_due", "_first", "_largest")

    def __init__(self, first: float, largest: float) -> None:
        self._first = first
        self._largest = largest
        self._due = first

    def next(self) -> float:
        due = self._due
        self._due = min(due * 2, self._largest)
        return due * random.uniform(0.5, 1.0)

    def reset(self) -> None:
        self._due = self._first


def delay(attempt: int, first: float, largest: float) -> float:
    """The delay before attempt number `attempt`, counted from 1 for the first repetition."""
    return min(largest, first * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.0)
