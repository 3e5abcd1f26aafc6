"""Writes that wait: in order for each object, urgent ones first, bounded.

Of a status only the latest version matters, so a later write may take the place of one that still waits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from enum import IntEnum
from typing import ClassVar

from vcscheduler.cluster.live.connection import Connection
from vcscheduler.cluster.live.failures import ApiFailure


class Lane(IntEnum):
    """URGENT: bindings and evictions. STATUS: what is written to status and volumes. EVENTS: for people."""

    URGENT = 0
    STATUS = 1
    EVENTS = 2


class Write(ABC):
    """One thing to be done to one object.

    Attributes: `key` orders writes among each other; `attempts` made so far; `uncertain`: an earlier attempt may have
    been carried out; `due`: monotonic time of giving up.
    """

    __slots__ = ("attempts", "due", "key", "uncertain")
    lane: ClassVar[Lane] = Lane.STATUS

    def __init__(self, key: str) -> None:
        self.key = key
        self.attempts = 0
        self.uncertain = False
        self.due = 0.0

    @abstractmethod
    async def send(self, connection: Connection) -> None:
        """Carry it out; settle first what an earlier attempt left uncertain.

        Raises:
            ApiFailure: it was not done. A transient failure is tried again, any other is final.
        """

    def succeeded(self) -> None:
        """It is done."""
        return

    async def failed(self, failure: ApiFailure, connection: Connection) -> None:
        """It will not be done."""
        return

    def replaces(self, waiting: Write) -> bool:
        """Whether `waiting`, the one before this for the same object, need not be sent any more."""
        return False


class WriteQueue:
    """The writes that wait, by lane and object. Of each object one at a time is out.

    Belongs to one thread.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Write]] = {}
        self._out: set[str] = set()
        self._ready: tuple[deque[str], ...] = tuple(deque() for _ in Lane)
        self._turn = 0
        self.replaced = 0

    def __len__(self) -> int:
        """Writes that wait, without those that are out."""
        return sum(len(writes) for writes in self._waiting.values())

    def put(self, write: Write) -> list[Write]:
        """Add a write; returns those that it made superfluous."""
        dropped: list[Write] = []
        waiting = self._waiting.get(write.key)
        if waiting is None:
            waiting = self._waiting[write.key] = deque()
        while waiting and waiting[-1].attempts == 0 and write.replaces(waiting[-1]):
            dropped.append(waiting.pop())
        self.replaced += len(dropped)
        waiting.append(write)
        changed_lane = bool(dropped) and dropped[-1].lane is not write.lane
        if len(waiting) == 1 and write.key not in self._out and (not dropped or changed_lane):
            self._ready[write.lane].append(write.key)
        return dropped

    def has(self, lane: Lane) -> bool:
        """Whether something in the lane could go out now."""
        return self._first(lane) is not None

    def take(self, lane: Lane) -> Write | None:
        """The next write of a lane; its object is busy until `done` or `again`."""
        key = self._first(lane)
        if key is None:
            return None
        self._ready[lane].popleft()
        write = self._waiting[key].popleft()
        self._out.add(key)
        return write

    def _first(self, lane: Lane) -> str | None:
        ready = self._ready[lane]
        while ready:
            key = ready[0]
            waiting = self._waiting.get(key)
            if waiting and key not in self._out and waiting[0].lane is lane:
                return key
            ready.popleft()  # What stood there was replaced by a write of another lane.
        return None

    def done(self, write: Write) -> None:
        """The write is out of the way; the object's next one may go."""
        self._out.discard(write.key)
        waiting = self._waiting.get(write.key)
        if waiting:
            self._ready[waiting[0].lane].append(write.key)
        else:
            self._waiting.pop(write.key, None)

    def again(self, write: Write) -> None:
        """The write has to be sent once more, before all others of its object."""
        self._out.discard(write.key)
        self._waiting.setdefault(write.key, deque()).appendleft(write)
        self._ready[write.lane].append(write.key)
