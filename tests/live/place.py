"""What a live test works with: the control plane emptied, things put into it, a scheduler over it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from live import api
from live.api import Api, Document, Refused, wait_until
from live.kubeenv import ControlPlane
from vcscheduler.cache.cache import SchedulerCache
from vcscheduler.cluster.live import Access, LiveCluster, LiveOptions
from vcscheduler.config import parse_configuration
from vcscheduler.framework.registry import Registry
from vcscheduler.framework.scheduler import Scheduler

CONFIGURATION = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


class Place:
    """The control plane of a test, in namespace `default`."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.api = Api(plane.url, plane.token, plane.ca)
        self.pods_path = api.PODS.format("default")
        self.groups_path = api.PODGROUPS.format("default")
        self._ensure("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
        self.open_queue("default")

    def _ensure(self, path: str, document: Document) -> None:
        try:
            self.api.create(path, document)
        except Refused as refused:
            if refused.status != 409:
                raise

    def open_queue(self, name: str, **spec: object) -> None:
        """A queue in the state that Volcano's controller would give it."""
        self._ensure(api.QUEUES, api.queue(name, **spec))
        self.api.merge(f"{api.QUEUES}/{name}/status", {"status": {"state": "Open"}})

    def nodes(self, count: int, **node: Any) -> None:
        self.api.create_many("/api/v1/nodes", [api.node(f"n{number:04d}", **node) for number in range(count)])

    def gang(self, name: str, size: int, minimum: int | None = None, queue: str = "default", **pod: Any) -> None:
        self.api.create(self.groups_path, api.pod_group(name, size if minimum is None else minimum, queue))
        self.api.create_many(self.pods_path, [api.pod(f"{name}-{each}", name, **pod) for each in range(size)])

    def pods(self) -> list[Document]:
        return self.api.items(self.pods_path)

    def bound(self) -> dict[str, str]:
        """Pods that have a node."""
        return {
            each["metadata"]["name"]: each["spec"]["nodeName"] for each in self.pods() if each["spec"].get("nodeName")
        }

    def group(self, name: str) -> Document:
        return self.api.get(f"{self.groups_path}/{name}")

    def status(self, name: str) -> Document:
        """Of a PodGroup; empty before anybody wrote it."""
        return self.group(name).get("status") or {}

    def events(self, name: str = "") -> list[Document]:
        found = self.api.items("/api/v1/namespaces/default/events")
        return [each for each in found if not name or each["involvedObject"]["name"] == name]

    def clear(self) -> None:
        """Take everything away again."""
        for path in (self.groups_path, "/api/v1/nodes"):
            self.api.delete(path)
        self.api.delete("/api/v1/namespaces/default/events")
        self.api.delete("/api/v1/namespaces/default/persistentvolumeclaims")
        for each in self.pods():
            if each["metadata"].get("finalizers"):
                self.api.merge(f"{self.pods_path}/{each['metadata']['name']}", {"metadata": {"finalizers": None}})
        self.api.delete(f"{self.pods_path}?gracePeriodSeconds=0")
        for each in self.api.items(api.QUEUES):
            self.api.delete(f"{api.QUEUES}/{each['metadata']['name']}")
        wait_until(lambda: not self.pods(), "pods to go")

    def access(self, server: str = "", token: str = "") -> Access:
        """How a scheduler reaches this cluster, by way of another address or as somebody else if told so."""
        if not server and not token:
            return Access(kubeconfig=str(self.plane.kubeconfig))
        path = self.plane.kubeconfig.with_name(f"kubeconfig-{time.monotonic_ns()}")
        path.write_text(self.plane.kubeconfig_text(server or self.plane.url, token or self.plane.token))
        return Access(kubeconfig=str(path))

    @contextmanager
    def connected(
        self, access: Access | None = None, options: LiveOptions | None = None, **arguments: Any
    ) -> Iterator[Conductor]:
        conductor = Conductor(access or self.access(), options or LiveOptions(), **arguments)
        try:
            yield conductor
        finally:
            conductor.close()


class Conductor:
    """A scheduler over a live cluster whose cycles the test runs."""

    def __init__(
        self, access: Access, options: LiveOptions, configuration: str = CONFIGURATION, **arguments: Any
    ) -> None:
        self.woken = threading.Event()
        self.cluster = LiveCluster(access, options, wakeup=self.woken.set, **arguments)
        self.cache = SchedulerCache(self.cluster, _now)
        actions = Registry.default().action_names
        parsed = parse_configuration(configuration, known_actions=actions)
        self.scheduler = Scheduler(self.cache, parsed.configuration)

    def sync(self, timeout: float = 20.0) -> None:
        self.cluster.wait_for_sync(timeout)

    def cycles_until(self, condition: Callable[[], bool], what: str, timeout: float = 30.0) -> int:
        """Run cycles, one whenever something changed, until the condition holds. Returns how many."""
        end = time.monotonic() + timeout
        count = 0
        while True:
            self.woken.clear()
            self.scheduler.run_once()
            count += 1
            if condition():
                return count
            if time.monotonic() > end:
                raise AssertionError(f"{count} cycles in {timeout:g} s, and still waiting for {what}")
            self.woken.wait(0.2)

    def close(self) -> None:
        self.cluster.stop()


def _now() -> datetime:
    return datetime.now(UTC)
