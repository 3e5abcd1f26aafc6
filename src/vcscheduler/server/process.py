"""The scheduler as one process: starts everything in order, waits, and ends it in order.

Order (spec 07 §1.2, with the watches first, so that a replica that takes over knows the cluster already): watches,
listeners, election, all of the cluster known, queues that must exist, cycles. Nothing is written before this process
leads.

The end: a signal lets the cycle under way finish, sends what was decided, gives the lease up and exits with 0. A lost
lease ends the process with 1, as in the reference: what this process believes about the cluster is then worth nothing,
and starting anew is the one way to be sure that none of it survives.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import socket
import sys
import threading
import time
import uuid
from datetime import datetime
from enum import Enum

from vcscheduler.cluster.interface import ClusterError, ErrorReason
from vcscheduler.config import ConfigurationError, ConfigurationFile, SchedulerConfiguration, SchedulerOptions
from vcscheduler.controllers import ControllerManager
from vcscheduler.framework.registry import Registry
from vcscheduler.framework.scheduler import Scheduler
from vcscheduler.objects import ObjectMeta, Queue, QueueSpec
from vcscheduler.server.backend import Backend, BackendMaker, NotReady
from vcscheduler.server.cache import LiveCache
from vcscheduler.server.dump import log_dump, write_dump
from vcscheduler.server.endpoints import Endpoints
from vcscheduler.server.leader import ElectionTimes, LeaderElection
from vcscheduler.server.logs import LogLevel
from vcscheduler.server.loop import Cycle, CycleObserver, SchedulingLoop, check_usable
from vcscheduler.server.metrics import SchedulerMetrics
from vcscheduler.server.rehearsal import rehearse
from vcscheduler.server.story import Stories
from vcscheduler.server.wakeups import Bell

log = logging.getLogger(__name__)

DRAIN_SECONDS = 20.0
"""How long the end may take; Kubernetes kills after 30 s."""
_QUEUE_ATTEMPTS = 60
_SYNC_WAIT = 60.0
_SWITCH_SECONDS = 0.001


class _End(Enum):
    """Why the process ends."""

    ASKED = "asked to end"
    LEASE_LOST = "the lease was lost"
    FAILED = "an error leaves no other way"


def _now() -> datetime:
    return datetime.now().astimezone()


class SchedulerProcess:
    """One scheduler from start to end.

    Args:
        configuration: what is active at first. file: where it came from, to be read again when it changes.
        make_backend: given the options and the gate for writes.

    Raises:
        AddressError: an address cannot be listened on, or a TLS file cannot be used.
        PluginError: the configuration names something that cannot be run.
        Unreachable: there is no way to the cluster.
    """

    def __init__(
        self,
        options: SchedulerOptions,
        registry: Registry,
        configuration: SchedulerConfiguration,
        file: ConfigurationFile | None,
        make_backend: BackendMaker,
        level: LogLevel,
        *,
        drain: float = DRAIN_SECONDS,
    ) -> None:
        check_usable(configuration, registry)
        self.options = options
        self._drain = drain
        self._ended = threading.Event()
        self._end = _End.ASKED
        # A pipe, since signal handlers may write to one whatever the thread that they interrupt was doing.
        self._until_end, self._to_end = os.pipe()
        self._problem = "not started yet"
        self._election: LeaderElection | None = None
        self._election_loop: asyncio.AbstractEventLoop | None = None
        self._candidate: asyncio.Task[None] | None = None
        self._leading = threading.Event()
        self._deciding = threading.Event()
        self.bell = Bell()
        self.endpoints = Endpoints(options, self, level)
        try:
            self.backend: Backend = make_backend(options, self.may_write)
            self._controllers = self._make_controllers() if options.with_controllers else None
            self.cache = LiveCache(self.backend.cluster, _now, options, self.bell, measure=options.enable_metrics)
        except BaseException:
            self.endpoints.close()
            raise
        self.stories = Stories(self.cache)
        self.metrics = (
            SchedulerMetrics(self.cache, self.backend.gauges, self.may_write) if options.enable_metrics else None
        )
        observers: list[CycleObserver] = [self.stories, _Settled()]
        if self.metrics is not None:
            observers.append(self.metrics)
        scheduler = Scheduler(self.cache, configuration, options, registry, _now)
        self.loop = SchedulingLoop(scheduler, self.cache, self.bell, observers, file, deciding=False)
        self._thread = threading.Thread(target=self._decide, name="scheduler", daemon=True)
        self._election_thread = threading.Thread(target=self._run_election, name="election", daemon=True)

    def _make_controllers(self) -> ControllerManager:
        """Controllers that act only while this process leads and knows all of the cluster."""
        controllers = ControllerManager(
            self.backend.objects,
            _now,
            self.options.scheduler_names,
            lambda: self._deciding.is_set() and self.may_write(),
        )
        self.backend.add_listener(controllers)
        return controllers

    # --- questions, from any thread -----------------------------------------------------------------------------------

    def may_write(self) -> bool:
        """The gate of all writes."""
        if not self.options.leader_elect:
            return True
        return self._election is not None and self._election.holds()

    def live_problem(self) -> str:
        """Why this process should be restarted; "" if it should not."""
        if self._ended.is_set():
            return ""
        if not self._thread.is_alive():
            return "the thread that decides has ended"
        stuck = self.loop.stuck_for
        return f"a cycle has been running for {stuck:.0f} s" if stuck > 600 else ""

    def ready_problem(self) -> str:
        """Why this process is of no use yet; "" once it knows the cluster, leading or not."""
        return self.live_problem() or self._problem

    # --- the whole of it ----------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Until it ends; returns the exit code. Call it in the main thread and `stop` on signals."""
        # A long decision must not hold up the threads that watch, write and renew the lease: they do little at a time,
        # and each time would wait this long for their turn.
        sys.setswitchinterval(_SWITCH_SECONDS)
        self.endpoints.start()
        self._thread.start()
        if self._controllers is not None:
            self._controllers.start()
        if self.options.leader_elect:
            self._election_thread.start()
        threading.Thread(target=rehearse, name="rehearsal", daemon=True).start()
        threading.Thread(target=self._start, name="start", daemon=True).start()
        os.read(self._until_end, 1)
        self._ended.set()
        return self._finish()

    def stop(self) -> None:
        """End in order. Safe in a signal handler."""
        os.write(self._to_end, b".")

    def dump(self) -> None:
        """Write the cache to a file, without waiting for it."""

        def work() -> None:
            try:
                path = write_dump(self.cache, self.options.cache_dump_dir, _now())
            except OSError as error:
                log.error("the cache cannot be dumped to %s: %s", self.options.cache_dump_dir, error)
            else:
                log.info("the cache was dumped to %s", path)

        self.bell.call(work)

    def log_cache(self) -> None:
        """Write the cache to the log, without waiting for it."""
        self.bell.call(lambda: log_dump(self.cache))

    def _fail(self, end: _End) -> None:
        if not self._ended.is_set():
            self._end = end
            self.stop()

    # --- start --------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        try:
            if not (self._synced() and self._led()):
                return
            self._create_queues()
            if not self._ended.is_set():
                log.info("scheduling begins")
                self._deciding.set()
                self.loop.decide()
        except Exception as error:
            if not self._ended.is_set():
                log.error("the scheduler cannot start: %s", error)
                self._fail(_End.FAILED)

    def _synced(self) -> bool:
        self._problem = "not all of the cluster is known yet"
        began = time.monotonic()
        while not self._ended.is_set():
            try:
                self.backend.wait_for_sync(self.options.resource_sync_timeout or _SYNC_WAIT)
            except NotReady as error:
                # The reference would schedule on what it knows, or wait in silence; half a cluster is worse than none.
                log.error("%s", error)
                self._problem = str(error)
                self._ended.wait(5.0)
                continue
            self._problem = ""
            log.info("the cluster is known after %.1f s", time.monotonic() - began)
            return True
        return False

    def _led(self) -> bool:
        if not self.options.leader_elect:
            return True
        while not self._ended.is_set():
            if self._leading.wait(0.2):
                return True
        return False

    def _create_queues(self) -> None:
        """The queues that upstream's scheduler makes (spec 07 §1.2).

        Raises:
            ClusterError: one cannot be made.
        """
        for name, reclaimable in (("root", False), (self.options.default_queue, True)):
            if not name:
                continue
            queue = Queue(metadata=ObjectMeta(name=name), spec=QueueSpec(weight=1, reclaimable=reclaimable))
            self._create(queue)

    def _create(self, queue: Queue) -> None:
        for attempt in range(1, _QUEUE_ATTEMPTS + 1):
            if self.bell.call(lambda: self._knows_queue(queue.name)).result() or self._ended.is_set():
                return
            try:
                self.backend.cluster.create_queue(queue)
                log.info("queue %s was created", queue.name)
                return
            except ClusterError as error:
                if error.reason is ErrorReason.ALREADY_EXISTS:
                    return
                if attempt == _QUEUE_ATTEMPTS:
                    raise
                log.warning("queue %s cannot be created: %s", queue.name, error)
            self._ended.wait(1.0 + 0.1 * random.random())

    def _knows_queue(self, name: str) -> bool:
        self.cache.apply_events()
        return name in self.cache.queues

    # --- decisions ----------------------------------------------------------------------------------------------------

    def _decide(self) -> None:
        try:
            self.loop.run()
        except ConfigurationError as error:
            log.error("the scheduler configuration cannot be used any more: %s", error)
            self._fail(_End.FAILED)
        except Exception:
            log.exception("the scheduling loop has ended")
            self._fail(_End.FAILED)

    # --- election -----------------------------------------------------------------------------------------------------

    def _run_election(self) -> None:
        try:
            asyncio.run(self._elect())
        except Exception as error:
            log.error("leader election is not possible: %s", error)
            self._fail(_End.FAILED)

    async def _elect(self) -> None:
        self._election_loop = asyncio.get_running_loop()
        client = await self.backend.open_lease()
        election = LeaderElection(client, f"{socket.gethostname()}_{uuid.uuid4()}", ElectionTimes.of(self.options))
        self._election = election
        self._candidate = asyncio.ensure_future(election.run(lambda: self._started_leading(election.identity)))
        try:
            await self._candidate
            self._tell_of_lease(election.identity, "stopped leading")
            self._fail(_End.LEASE_LOST)
        except asyncio.CancelledError:
            await election.release()
        finally:
            await self.backend.close_lease()

    def _started_leading(self, identity: str) -> None:
        self._leading.set()
        self._tell_of_lease(identity, "became leader")

    def _tell_of_lease(self, identity: str, what: str) -> None:
        options = self.options
        self.backend.cluster.record_event(
            "Lease",
            options.lease_namespace(),
            options.leader_elect_resource_name,
            "Normal",
            "LeaderElection",
            f"{identity} {what}",
        )

    def _release(self) -> None:
        loop, candidate = self._election_loop, self._candidate
        if loop is not None and candidate is not None and loop.is_running():
            loop.call_soon_threadsafe(candidate.cancel)
        if self._election_thread.is_alive():
            self._election_thread.join(5.0)

    # --- end ----------------------------------------------------------------------------------------------------------

    def _finish(self) -> int:
        end = self._end
        due = time.monotonic() + (self._drain if end is _End.ASKED else 1.0)
        log.info("ending: %s", end.value)
        self.loop.stop()
        self._thread.join(_left(due))
        if self._thread.is_alive():
            log.warning("the cycle under way did not end in time")
        if self._controllers is not None:
            self._controllers.stop(_left(due))
        drained = end is not _End.ASKED or self.backend.settled(_left(due))
        if not drained:
            log.warning("not all writes were done in time; what is missing is decided again after the next start")
        self.backend.stop(min(2.0, _left(due)))
        self._release()
        self.endpoints.close()
        return 0 if end is _End.ASKED else 1


def _left(due: float) -> float:
    return max(0.0, due - time.monotonic())


class _Settled:
    """After the first cycle everything that was listed is there to stay: the collector need not walk it any more. It is
    not called before that: the first bindings would wait for it."""

    def __init__(self) -> None:
        self._due = True

    def observe(self, ssn: object) -> None:
        return

    def ended(self, cycle: Cycle) -> None:
        if self._due:
            self._due = False
            gc.freeze()

    def failed(self, error: Exception) -> None:
        return

    def configuration_read(self, taken: bool) -> None:
        return
