"""Writer: sends what the scheduler decided, many at a time, each object's in order.

Decisions are handed over from their own thread; sending happens on the event loop. The queue is bounded: who hands
over more waits, for a while, which is the back-pressure that a slow API server exerts on the scheduler.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from vcscheduler.cluster.interface import ClusterError, ErrorReason
from vcscheduler.cluster.live.backoff import delay
from vcscheduler.cluster.live.connection import Connection
from vcscheduler.cluster.live.failures import ApiFailure
from vcscheduler.cluster.live.queue import Lane, Write, WriteQueue

log = logging.getLogger(__name__)

Gate = Callable[[], bool]

_FIRST_RETRY: Final = 0.05
_LAST_RETRY: Final = 5.0
_STATUS_SHARE: Final = 10
"""While bindings wait, every so many-th write is one of status."""
_EVENTS_AT_A_TIME: Final = 8
_EVENT_PATIENCE: Final = 1.0
_EVENT_SHARE: Final = 32
"""Events that waited for that many seconds go out even while bindings wait, one in so many writes."""


@dataclass(frozen=True, slots=True)
class WriterLimits:
    """in_flight: requests at a time. waiting: writes that wait before the next one has to wait for room; events apart.
    patience: seconds that a hand-over waits for room. give_up: seconds after which a write that keeps failing has
    failed for good."""

    in_flight: int = 32
    waiting: int = 20_000
    events: int = 10_000
    patience: float = 10.0
    give_up: float = 30.0


@dataclass(slots=True)
class WriteCounts:
    """What became of writes since the start, for metrics."""

    sent: int = 0
    retried: int = 0
    failed: int = 0
    replaced: int = 0
    throttled: int = 0
    events_dropped: int = 0


class Writer:
    """The queue and the sending. `submit` is called from any thread but the loop's, everything else from the loop.

    Args:
        gate: asked before each request; while it says no, writes fail.
    """

    def __init__(self, connection: Connection, gate: Gate, limits: WriterLimits) -> None:
        self.counts = WriteCounts()
        self._connection = connection
        self._gate = gate
        self._limits = limits
        self._queue = WriteQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inbox: deque[Write] = deque()
        self._room = threading.Condition()
        self._waiting = 0
        self._events = 0
        self._called = False
        self._in_flight = 0
        self._events_in_flight = 0
        self._turn = 0
        self._event_due = 0.0
        self._event_turn = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    # --- any thread ---------------------------------------------------------------------------------------------------

    @property
    def backlog(self) -> int:
        """Writes that are not done yet, events apart."""
        return self._waiting

    @property
    def saturated(self) -> bool:
        """Whether the next hand-over would have to wait."""
        return self._waiting >= self._limits.waiting

    def submit(self, writes: Sequence[Write], wait: bool = True) -> None:
        """Hand over for sending.

        Raises:
            ClusterError: there was no room for as long as the hand-over may wait; nothing was taken.
        """
        due = time.monotonic() + self._limits.give_up
        for write in writes:
            write.due = due
        with self._room:
            if self._closed:
                raise ClusterError(ErrorReason.UNAVAILABLE, "the connection to the cluster is closed")
            if self._waiting >= self._limits.waiting and not (
                wait
                and self._room.wait_for(
                    lambda: self._waiting < self._limits.waiting or self._closed, self._limits.patience
                )
            ):
                raise ClusterError(
                    ErrorReason.UNAVAILABLE,
                    f"{self._waiting} writes wait for the API server already, no more are taken",
                )
            self._waiting += len(writes)
            self._inbox.extend(writes)
            call = not self._called
            self._called = True
        if call:
            assert self._loop is not None, "the writer is not open"
            self._loop.call_soon_threadsafe(self._take_in)

    def settled(self, timeout: float) -> bool:
        """Wait until nothing is left to do, events apart. False if that took too long."""
        with self._room:
            return self._room.wait_for(lambda: self._waiting == 0, timeout)

    # --- the loop -----------------------------------------------------------------------------------------------------

    def submit_event(self, write: Write) -> bool:
        """Queue an event; False if there is no room for it."""
        if self._events >= self._limits.events or self._closed:
            self.counts.events_dropped += 1
            return False
        write.due = time.monotonic() + self._limits.give_up
        self._events += 1
        if self._events == 1:
            self._event_due = time.monotonic() + _EVENT_PATIENCE
        self._left(self._queue.put(write))
        self._pump()
        return True

    async def close(self, drain: float) -> None:
        """Send what waits, for `drain` seconds at most, then refuse the rest."""
        end = time.monotonic() + drain
        while (self._waiting or self._events) and time.monotonic() < end:
            await asyncio.sleep(0.01)
        with self._room:
            self._closed = True
            self._room.notify_all()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _take_in(self) -> None:
        with self._room:
            self._called = False
        inbox, queue = self._inbox, self._queue
        while inbox:
            self._left(queue.put(inbox.popleft()))
        self._pump()

    def _left(self, writes: Sequence[Write]) -> None:
        """Writes that were replaced by later ones."""
        self.counts.replaced += len(writes)
        for write in writes:
            self._forget(write)

    def _forget(self, write: Write) -> None:
        if write.lane is Lane.EVENTS:
            self._events -= 1
            return
        with self._room:
            self._waiting -= 1
            self._room.notify_all()

    def _next(self) -> Write | None:
        """Bindings first, but not so that status never gets a turn; events in what is left."""
        queue = self._queue
        self._turn += 1
        urgent = queue.has(Lane.URGENT)
        if urgent and not (self._turn % _STATUS_SHARE == 0 and queue.has(Lane.STATUS)):
            return queue.take(Lane.URGENT)
        write = queue.take(Lane.STATUS)
        if write is not None:
            return write
        if self._events_in_flight >= _EVENTS_AT_A_TIME:
            return None
        return queue.take(Lane.EVENTS)

    def _pump(self) -> None:
        while self._in_flight < self._limits.in_flight and not self._closed:
            write = self._overdue_event() or self._next()
            if write is None:
                return
            self._in_flight += 1
            if write.lane is Lane.EVENTS:
                self._events_in_flight += 1
            task = asyncio.ensure_future(self._send(write))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _overdue_event(self) -> Write | None:
        if self._events and self._turn >= self._event_turn and time.monotonic() > self._event_due:
            self._event_turn = self._turn + _EVENT_SHARE
            return self._queue.take(Lane.EVENTS)
        return None

    async def _send(self, write: Write) -> None:
        try:
            await self._attempt(write)
        finally:
            self._in_flight -= 1
            if write.lane is Lane.EVENTS:
                self._events_in_flight -= 1
            self._pump()

    async def _attempt(self, write: Write) -> None:
        write.attempts += 1
        try:
            if not self._gate():
                raise ApiFailure(403, "NotLeader", "this scheduler is not the leader, it writes nothing")
            await write.send(self._connection)
        except ApiFailure as failure:
            await self._failed(write, failure)
            return
        except Exception as error:
            # A mistake of ours must not leave the object waiting for ever.
            log.exception("%s: sending failed", write.key)
            write.due = 0.0
            await self._failed(write, ApiFailure(0, "", f"{write.key}: {type(error).__name__}: {error}"))
            return
        self.counts.sent += 1
        self._queue.done(write)
        self._forget(write)
        write.succeeded()

    async def _failed(self, write: Write, failure: ApiFailure) -> None:
        write.uncertain = write.uncertain or failure.uncertain
        if failure.status == 429:
            self.counts.throttled += 1
        now = time.monotonic()
        if failure.transient and now < write.due:
            self.counts.retried += 1
            pause = max(delay(write.attempts, _FIRST_RETRY, _LAST_RETRY), failure.retry_after or 0.0)
            assert self._loop is not None
            self._loop.call_later(pause, self._again, write)
            return
        self.counts.failed += 1
        try:
            await write.failed(failure, self._connection)
        finally:
            self._queue.done(write)
            self._forget(write)

    def _again(self, write: Write) -> None:
        self._queue.again(write)
        self._pump()
