"""An embedded cluster with the real scheduler and our own controllers, moved on by hand.

place = Governed()
place.apply(JOB)
place.settle()
assert place.phase("ns/m") == "Running"
place.finish("m-worker-0", "Succeeded")
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from datetime import UTC, datetime, timedelta

from vcscheduler.cache.cache import SchedulerCache
from vcscheduler.cluster.interface import ClusterError, ErrorReason
from vcscheduler.cluster.memory import MemoryCluster
from vcscheduler.cluster.object_store import ObjectStore, Outcome, Write
from vcscheduler.config import parse_configuration
from vcscheduler.controllers import ControllerManager
from vcscheduler.framework.registry import Registry
from vcscheduler.framework.scheduler import Scheduler
from vcscheduler.objects import (
    Command,
    KubernetesObject,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodGroup,
    Queue,
    VolcanoJob,
    read_manifest_text,
)
from vcscheduler.objects.pod import ContainerState, ContainerStateTerminated, ContainerStatus

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CONFIGURATION = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""
PLACE = """\
---
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 32, memory: 64Gi, pods: 110}, capacity: {cpu: 32, memory: 64Gi, pods: 110}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: root}
spec: {weight: 1}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: default}
spec: {weight: 1}
"""


class Crash(Exception):
    """The process ends here."""


class Brittle(ObjectStore):
    """A store whose process ends before the write of that number; None: never. Counts what was written."""

    def __init__(self, store: ObjectStore, last: int | None = None) -> None:
        self._store = store
        self.last = last
        self.written = 0

    def write(self, writes: Sequence[Write]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for write in writes:
            if self.last is not None and self.written >= self.last:
                raise Crash
            self.written += 1
            outcomes += self._store.write([write])
        return outcomes

    def record_event(self, kind: str, namespace: str, name: str, type: str, reason: str, message: str) -> None:
        self._store.record_event(kind, namespace, name, type, reason, message)


class Switchboard:
    """The one listener of the cluster; whom it tells can be replaced, as when a process starts anew."""

    def __init__(self) -> None:
        self.manager: ControllerManager | None = None

    def added(self, obj: KubernetesObject, /) -> None:
        if self.manager is not None:
            self.manager.added(obj)

    def updated(self, old: KubernetesObject, new: KubernetesObject, /) -> None:
        if self.manager is not None:
            self.manager.updated(old, new)

    def deleted(self, obj: KubernetesObject, /) -> None:
        if self.manager is not None:
            self.manager.deleted(obj)

    def refused(self, obj: KubernetesObject, error: ClusterError, /) -> None:
        raise AssertionError("the embedded cluster refuses at once")


class Governed:
    def __init__(self) -> None:
        self.now = START
        self.leads = True
        self.cluster = MemoryCluster(lambda: self.now)
        self._switchboard = Switchboard()
        self.cluster.add_listener(self._switchboard)
        self.apply(PLACE)
        self.start_controllers()
        self.cache = SchedulerCache(self.cluster, lambda: self.now)
        parsed = parse_configuration(CONFIGURATION, known_actions=Registry.default().action_names)
        self.scheduler = Scheduler(self.cache, parsed.configuration)

    def start_controllers(self, last_write: int | None = None) -> Brittle:
        """Controllers as of a new process, which knows nothing but what is stored."""
        store = Brittle(self.cluster, last_write)
        manager = ControllerManager(store, lambda: self.now, leads=lambda: self.leads)
        known = self._switchboard.manager is not None
        self._switchboard.manager = self.manager = manager
        if known:
            for of_kind in list(self.cluster._objects.values()):
                for obj in list(of_kind.values()):
                    manager.added(obj)
        return store

    def apply(self, text: str) -> None:
        for obj in read_manifest_text(text).objects:
            self.cluster.create(obj)

    # Time goes by

    def turn(self) -> None:
        self.manager.turn()

    def settle(self, cycles: int = 8) -> None:
        """Controllers, scheduler and kubelet, a second a round."""
        for _ in range(cycles):
            self.turn()
            self.scheduler.run_once()
            self.turn()
            self.cluster.step()
            self.now += timedelta(seconds=1)
        self.turn()

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.turn()

    def finish(self, name: str, phase: str, exit_code: int = 0) -> None:
        """A pod of namespace `ns` ends."""
        pod = self.cluster.get(Pod, f"ns/{name}")
        assert pod is not None
        assert pod.status.phase == "Running", f"{name} does not run"
        ended = copy(pod)
        ended.metadata = copy(pod.metadata)
        ended.status = copy(pod.status)
        ended.status.phase = phase
        state = ContainerState(ContainerStateTerminated(exit_code=exit_code))
        ended.status.container_statuses = [ContainerStatus(name="c", state=state)]
        self.cluster.apply(ended)

    def command(self, action: str, target: KubernetesObject) -> None:
        reference = OwnerReference(target.api_version, target.kind, target.name, target.metadata.uid)
        self.cluster.create(Command(ObjectMeta(name=f"{action.lower()}", namespace="ns"), action, reference))

    # What came of it

    def job(self, key: str = "ns/m") -> VolcanoJob:
        job = self.cluster.get(VolcanoJob, key)
        assert job is not None
        return job

    def phase(self, key: str = "ns/m") -> str:
        return self.job(key).status.state.phase

    def pods(self) -> dict[str, str]:
        return {pod.name: pod.status.phase for pod in self.cluster.objects(Pod)}

    def groups(self) -> dict[str, PodGroup]:
        return {group.name: group for group in self.cluster.objects(PodGroup)}

    def state(self, queue: str) -> str:
        found = self.cluster.get(Queue, queue)
        assert found is not None
        return found.status.state


def unavailable() -> ClusterError:
    return ClusterError(ErrorReason.UNAVAILABLE, "no answer")
