"""What a process needs of its cluster beside scheduling: to know when all of it is known, a lease, an orderly end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from vcscheduler.cluster.interface import Cluster, EventSink
from vcscheduler.cluster.object_store import ObjectStore
from vcscheduler.config import SchedulerOptions
from vcscheduler.server.leader import LeaseClient

Gate = Callable[[], bool]


class NotReady(Exception):
    """Not all of the cluster is known yet. The message says what is missing and what helps."""


class Unreachable(Exception):
    """There is no way to the cluster; the message says why."""


class Backend(Protocol):
    """A cluster that is about to be scheduled. Its watches begin when its cluster is started."""

    @property
    def cluster(self) -> Cluster: ...

    @property
    def objects(self) -> ObjectStore:
        """The cluster as controllers see it."""

    def add_listener(self, sink: EventSink) -> None:
        """Another one who is told everything. To be called before the cluster is started."""

    def wait_for_sync(self, timeout: float) -> None:
        """Wait until everything was told.

        Raises:
            NotReady: that takes longer.
        """

    def settled(self, timeout: float) -> bool:
        """Wait until what was written is done; False if that takes longer."""

    def gauges(self) -> Mapping[str, tuple[str, float]]:
        """Numbers about the connection: name -> what it says, value."""

    def stop(self, drain: float) -> None:
        """Send what waits, for so many seconds at most, and disconnect."""

    async def open_lease(self) -> LeaseClient:
        """The way to the lease, apart from everything else. For the event loop that calls."""

    async def close_lease(self) -> None: ...


BackendMaker = Callable[[SchedulerOptions, Gate], Backend]
"""
Raises:
    Unreachable: there is no way to the cluster.
"""
