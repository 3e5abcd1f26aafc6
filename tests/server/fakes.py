"""A backend over an embedded cluster, and a whole process over it that runs in the background of a test."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from leases import FakeLeaseClient, StoredLease

import builders
import lab
from vcscheduler.cluster.interface import Cluster, ClusterError, ErrorReason
from vcscheduler.cluster.memory import MemoryCluster
from vcscheduler.config import SchedulerOptions, configuration_from_value
from vcscheduler.framework.registry import Registry
from vcscheduler.objects import Pod, Queue
from vcscheduler.server.backend import Gate, NotReady
from vcscheduler.server.leader import LeaseClient
from vcscheduler.server.logs import LogLevel
from vcscheduler.server.process import SchedulerProcess


class GatedCluster(MemoryCluster):
    """Refuses what a process writes that does not lead, as a real one's gate does. `refused`: how often."""

    gate: Gate
    refused = 0

    def bind_many(self, bindings: Any) -> list[ClusterError | None]:
        if not self.gate():
            self.refused += len(bindings)
            return [ClusterError(ErrorReason.FORBIDDEN, "not the leader")] * len(bindings)
        return super().bind_many(bindings)

    def create_queue(self, queue: Queue) -> Queue:
        assert self.gate(), "only a leader writes"
        return super().create_queue(queue)


class MemoryBackend:
    """`slow`: seconds until everything is known. `flush`: what `settled` answers."""

    def __init__(self, cluster: GatedCluster, lease: LeaseClient, slow: float = 0.0) -> None:
        self._cluster = cluster
        self._lease = lease
        self._ready_at = time.monotonic() + slow
        self.log: list[str] = []
        self.settles = True

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    def wait_for_sync(self, timeout: float) -> None:
        if time.monotonic() < self._ready_at:
            raise NotReady("pods: no complete list yet")

    def settled(self, timeout: float) -> bool:
        self.log.append("settled")
        return self.settles

    def gauges(self) -> Mapping[str, tuple[str, float]]:
        return {"vcscheduler_api_writes_waiting": ("Writes handed over and not done yet.", 3.0)}

    def stop(self, drain: float) -> None:
        self.log.append("stopped")

    async def open_lease(self) -> LeaseClient:
        return self._lease

    async def close_lease(self) -> None:
        self.log.append("lease closed")


class Background:
    """A process that runs in a thread. Its cluster has queue q and node n1 with 4 cores."""

    def __init__(self, options: SchedulerOptions, stored: StoredLease | None = None, slow: float = 0.0) -> None:
        self.stored = stored or StoredLease()
        self.lease = FakeLeaseClient(self.stored)
        self.cluster = GatedCluster(lambda: lab.datetime.now(lab.UTC))
        self.cluster.apply_all([lab.queue("q"), builders.node("n1", cpu=4, memory="64Gi")])
        self.exit_code: int | None = None
        registry = Registry.default()
        configuration = configuration_from_value(
            lab.configuration(), "test", known_actions=registry.action_names, known_plugins=registry.plugin_names
        ).configuration

        def make(_options: SchedulerOptions, gate: Gate) -> MemoryBackend:
            self.cluster.gate = gate
            self.backend = MemoryBackend(self.cluster, self.lease, slow)
            return self.backend

        self.process = SchedulerProcess(options, registry, configuration, None, make, LogLevel(0), drain=10.0)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        self.exit_code = self.process.run()

    def port(self, name: str) -> int:
        return self.process.endpoints.listeners[name].port

    def start(self) -> Background:
        self._thread.start()
        return self

    def join(self) -> int:
        self._thread.join(30)
        assert self.exit_code is not None, "the process did not end"
        return self.exit_code

    def until(self, condition: Callable[[], object], seconds: float = 20.0) -> None:
        due = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < due, "it did not come to that"
            time.sleep(0.01)

    def bound(self, pod: str) -> Callable[[], bool]:
        return lambda: (
            pod in self.cluster.bindings()
            or bool((found := self.cluster.get(Pod, pod)) is not None and found.spec.node_name)
        )


@contextmanager
def background(options: SchedulerOptions, stored: StoredLease | None = None, slow: float = 0.0) -> Iterator[Background]:
    running = Background(options, stored, slow).start()
    try:
        yield running
    finally:
        if running.exit_code is None:
            running.process.stop()
            running.join()
        logging.getLogger("vcscheduler").setLevel(logging.NOTSET)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
