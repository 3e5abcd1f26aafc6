"""A lease in memory, and an event loop whose time passes only when everybody waits."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from vcscheduler.server.leader import Lease, LeaseConflict

T = TypeVar("T")


class VirtualTime(asyncio.SelectorEventLoop):
    """Jumps to the next timer when nothing is left to do."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 1000.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        timers: list[Any] = self._scheduled  # type: ignore[attr-defined]
        if not self._ready and timers:  # type: ignore[attr-defined]
            self._now = max(self._now, timers[0].when())
        super()._run_once()  # type: ignore[misc]


def run_virtual(main: Callable[[], Awaitable[T]]) -> T:
    async def body() -> T:
        return await main()

    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        return runner.run(body())


class StoredLease:
    """The lease as an API server keeps it."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self._version = 0

    def store(self, lease: Lease) -> Lease:
        self._version += 1
        self.lease = replace(lease, version=str(self._version))
        return self.lease


class FakeLeaseClient:
    """One candidate's way to the lease. `cut`: nothing gets through. `lose_answers`: writes are done, answers are lost.
    `delay`: seconds that a request takes, half of it on the way there."""

    def __init__(self, stored: StoredLease, rng: random.Random | None = None) -> None:
        self._stored = stored
        self._rng = rng or random.Random(1)
        self.cut = False
        self.lose_answers = False
        self.delay = 0.01
        self.requests = 0

    async def _way(self) -> None:
        await asyncio.sleep(self._rng.uniform(0, self.delay))
        if self.cut:
            await asyncio.sleep(self._rng.choice((0.1, 3600.0)))
            raise ConnectionError("no route to the API server")

    async def _answer(self, lease: Lease | None) -> Lease | None:
        if self.lose_answers:
            raise ConnectionError("connection reset")
        await self._way()
        return lease

    async def get(self) -> Lease | None:
        self.requests += 1
        await self._way()
        return await self._answer(self._stored.lease)

    async def create(self, lease: Lease) -> Lease:
        self.requests += 1
        await self._way()
        if self._stored.lease is not None:
            raise LeaseConflict
        answer = await self._answer(self._stored.store(lease))
        assert answer is not None
        return answer

    async def update(self, lease: Lease) -> Lease:
        self.requests += 1
        await self._way()
        current = self._stored.lease
        if current is None or current.version != lease.version:
            raise LeaseConflict
        answer = await self._answer(self._stored.store(lease))
        assert answer is not None
        return answer
