"""Leader election on a Lease: of several schedulers only one decides and writes (spec 07 §6).

The rules are those of Kubernetes' own components, so that replicas of either kind respect each other: a lease is free
when its holder is empty or when nobody has seen it change for as long as its holder promised to renew it within. Clocks
of different machines are never compared; each candidate times what it sees by its own steady clock.

It runs on an event loop apart from decisions, so that a long cycle cannot cost the leadership. Whoever writes asks
`holds()` before each write: it turns false by the clock alone, one lease duration less renew deadline before anyone
else may take over, even if this process was stopped for minutes.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from vcscheduler.config import SchedulerOptions

log = logging.getLogger(__name__)

_JITTER = 1.2
T = TypeVar("T")


class LeaseConflict(Exception):
    """The lease was changed since it was read, or created by somebody else."""


@dataclass(frozen=True, slots=True)
class Lease:
    """What candidates write into the lease. `version` is its resourceVersion; "" for one that does not exist yet."""

    holder: str = ""
    duration_seconds: int = 0
    acquired: datetime | None = None
    renewed: datetime | None = None
    transitions: int = 0
    version: str = ""


class LeaseClient(Protocol):
    """Reads and writes the one lease of the election. Any exception but `LeaseConflict` means: perhaps later."""

    async def get(self) -> Lease | None: ...

    async def create(self, lease: Lease) -> Lease: ...

    async def update(self, lease: Lease) -> Lease:
        """Replace it, if it still has the version of `lease`."""


@dataclass(frozen=True, slots=True)
class ElectionTimes:
    """Seconds: how long a lease lasts, how long a leader tries to renew before it gives up, pause between two tries."""

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    @classmethod
    def of(cls, options: SchedulerOptions) -> ElectionTimes:
        return cls(
            options.leader_elect_lease_duration,
            options.leader_elect_renew_deadline,
            options.leader_elect_retry_period,
        )


class LeaderElection:
    """One candidate.

    Args:
        identity: who this is; must differ between processes.
        clock: steady seconds, the same for `holds()` in any thread.
        now: the time to write into the lease, for people.
    """

    def __init__(
        self,
        client: LeaseClient,
        identity: str,
        times: ElectionTimes,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        rng: random.Random | None = None,
    ) -> None:
        self.identity = identity
        self._client = client
        self._times = times
        self._clock = clock
        self._now = now
        self._rng = rng or random.Random()
        self._until = -math.inf
        self._seen: Lease | None = None
        self._seen_at = -math.inf
        self._said_holder = ""
        self._led = False

    def holds(self) -> bool:
        """Whether this candidate may write now."""
        return self._clock() < self._until

    @property
    def leader(self) -> str:
        """Who held the lease when it was last seen."""
        return self._seen.holder if self._seen is not None else ""

    # --- the life of a candidate --------------------------------------------------------------------------------------

    async def run(self, started: Callable[[], None]) -> None:
        """Wait for the lease, call `started`, keep it. Returns when it is lost; cancel it to end it."""
        await self._acquire()
        self._led = True
        log.info("became leader as %s", self.identity)
        started()
        try:
            await self._keep()
        finally:
            self._until = -math.inf
        if self._lost():
            log.error("%s has taken the lease: no longer the leader", self.leader)
        else:
            log.error("the lease could not be renewed within %.1f s: no longer the leader", self._times.renew)

    async def release(self) -> None:
        """Give the lease up, so that the next one need not wait for it to run out. Call it when nothing more will be
        written; a failure costs the next one that wait, nothing else."""
        self._until = -math.inf
        seen = self._seen
        if seen is None or seen.holder != self.identity:
            return
        now = self._now()
        free = replace(seen, holder="", duration_seconds=1, acquired=now, renewed=now)
        try:
            self._see(await self._within(self._client.update(free), self._times.renew / 2))
        except Exception as error:
            log.warning("the lease was not released: %s", _text(error))

    async def _acquire(self) -> None:
        while True:
            if await self._try(self._times.renew):
                return
            await asyncio.sleep(self._times.retry * (1.0 + _JITTER * self._rng.random()))

    async def _keep(self) -> None:
        """Until no try to renew has succeeded for the renew deadline."""
        renewed = self._clock()
        while True:
            await asyncio.sleep(self._times.retry)
            left = renewed + self._times.renew - self._clock()
            if left <= 0.0:
                return
            began = self._clock()
            # A try that hangs must leave time for another.
            if await self._try(min(left, self._times.renew / 2)):
                renewed = began
            elif self._lost():
                return

    def _lost(self) -> bool:
        """Whether somebody else holds the lease: then there is nothing to renew."""
        seen = self._seen
        return seen is not None and seen.holder not in ("", self.identity)

    # --- one try ------------------------------------------------------------------------------------------------------

    async def _try(self, timeout: float) -> bool:
        began = self._clock()
        try:
            held = await self._within(self._take_or_renew(), timeout)
        except LeaseConflict:
            self._seen_at = self._seen_at if self._seen is not None else began
            held = False
        except Exception as error:
            log.warning("the lease cannot be read or written: %s", _text(error))
            held = False
        if held:
            # By the time before the request: others count from when it arrived, which is later.
            self._until = began + self._times.renew
        elif self._lost():
            self._until = -math.inf
        return held

    async def _take_or_renew(self) -> bool:
        now, seen = self._now(), self._seen
        if seen is not None and seen.holder == self.identity and self.holds():
            # Nobody else may have touched it, so the version that we know should still be right.
            try:
                self._see(await self._client.update(replace(seen, renewed=now)))
                return True
            except LeaseConflict:
                pass
        found = await self._client.get()
        if found is None:
            mine = Lease(self.identity, math.ceil(self._times.lease), now, now)
            self._see(await self._client.create(mine))
            return True
        self._see(found)
        if found.holder == self.identity:
            self._see(await self._client.update(replace(found, renewed=now)))
            return True
        if found.holder and self._clock() < self._seen_at + (found.duration_seconds or self._times.lease):
            if found.holder != self._said_holder and not self._led:
                self._said_holder = found.holder
                log.info("%s is the leader; waiting", found.holder)
            return False
        mine = Lease(
            self.identity,
            math.ceil(self._times.lease),
            now,
            now,
            found.transitions + 1,
            found.version,
        )
        self._see(await self._client.update(mine))
        return True

    def _see(self, lease: Lease) -> None:
        """Remember what the lease says, and since when it has said so."""
        if self._seen is None or self._seen.version != lease.version:
            self._seen_at = self._clock()
        self._seen = lease

    async def _within(self, work: Awaitable[T], timeout: float) -> T:
        async with asyncio.timeout(timeout):
            return await work


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__
