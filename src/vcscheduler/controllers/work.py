"""What controllers have to look at, now or later: work items in a queue, each at most once at a time."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from vcscheduler.controllers.job_events import Request
from vcscheduler.controllers.job_reconcile import Order
from vcscheduler.controllers.queues import SYNC as SYNC_QUEUE
from vcscheduler.objects import KubernetesObject

_FIRST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 30.0
_MOST_DOUBLINGS: Final = 16


@dataclass(frozen=True, slots=True)
class JobWork:
    """Something a Volcano Job may have to react to. `order`: what was decided then, to be done if it still makes
    sense; None: decide now."""

    request: Request
    order: Order | None = None


@dataclass(frozen=True, slots=True)
class PodWork:
    """A pod, by key, that may need a PodGroup."""

    pod: str


@dataclass(frozen=True, slots=True)
class QueueWork:
    queue: str
    action: str = SYNC_QUEUE
    by_parent: bool = False


@dataclass(frozen=True, slots=True)
class CommandWork:
    command: str


@dataclass(frozen=True, slots=True)
class WorkloadWork:
    """A workload that may have been scaled to nothing."""

    kind: type[KubernetesObject]
    key: str


Item: TypeAlias = JobWork | PodWork | QueueWork | CommandWork | WorkloadWork


@dataclass(frozen=True, slots=True)
class Attempt:
    """An item, how often it was tried in vain, and how often of these the cluster refused it."""

    item: Item
    tries: int = 0
    refusals: int = 0


class WorkQueue:
    """Items in the order they came. One that waits already is not added again."""

    def __init__(self) -> None:
        self._ready: dict[Item, Attempt] = {}
        self._order: deque[Item] = deque()
        self._later: list[tuple[datetime, int, Attempt]] = []
        self._due: dict[Item, datetime] = {}
        self._number = 0

    def __bool__(self) -> bool:
        return bool(self._order)

    def add(self, item: Item) -> None:
        self._add(Attempt(item))

    def _add(self, attempt: Attempt) -> None:
        if attempt.item not in self._ready:
            self._ready[attempt.item] = attempt
            self._order.append(attempt.item)

    def add_at(self, item: Item, due: datetime) -> None:
        """Add it at that time; if it was to be added at another time already, the earlier one counts."""
        self._add_at(Attempt(item), due)

    def _add_at(self, attempt: Attempt, due: datetime) -> None:
        known = self._due.get(attempt.item)
        if known is not None and known <= due:
            return
        self._due[attempt.item] = due
        self._number += 1
        heapq.heappush(self._later, (due, self._number, attempt))

    def again(self, attempt: Attempt, now: datetime, refused: bool) -> None:
        """Try once more, after a pause that doubles each time."""
        pause = min(_FIRST_PAUSE * 2 ** min(attempt.tries, _MOST_DOUBLINGS), _LONGEST_PAUSE)
        next_one = replace(attempt, tries=attempt.tries + 1, refusals=attempt.refusals + refused)
        self._add_at(next_one, now + timedelta(seconds=pause))

    def take(self) -> Attempt:
        item = self._order.popleft()
        return self._ready.pop(item)

    def take_pods(self) -> list[Attempt]:
        """All pods that wait: their groups are made together."""
        pods = [item for item in self._order if isinstance(item, PodWork)]
        if pods:
            self._order = deque(item for item in self._order if not isinstance(item, PodWork))
        return [self._ready.pop(item) for item in pods]

    def wake(self, now: datetime) -> datetime | None:
        """Let what is due by now be ready. Returns when the next item is due."""
        while self._later:
            due, _, attempt = self._later[0]
            if self._due.get(attempt.item) != due:
                heapq.heappop(self._later)  # It was brought forward.
            elif due <= now:
                heapq.heappop(self._later)
                del self._due[attempt.item]
                self._add(attempt)
            else:
                return due
        return None

    def clear(self) -> None:
        self._ready.clear()
        self._order.clear()
        self._later.clear()
        self._due.clear()
