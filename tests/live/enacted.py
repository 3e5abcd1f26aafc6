"""Conformance cases put on a real API server: what its admission demands is added, and the world is moved by hand.

Times of creation and UIDs are the server's own, so a case is not what it was: what the embedded cluster is compared
with is not the case's file but what the server stored of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from live.api import Api, Document, Refused, wait_until
from vcscheduler.cache.cache import SchedulerCache
from vcscheduler.cluster.interface import Cluster
from vcscheduler.cluster.live import Access, LiveCluster, LiveOptions
from vcscheduler.cluster.memory import MemoryCluster
from vcscheduler.config import configuration_from_value
from vcscheduler.framework.registry import Registry
from vcscheduler.framework.scheduler import Scheduler
from vcscheduler.framework.session import Session
from vcscheduler.model.status import PIPELINED
from vcscheduler.objects import KubernetesObject, Pod, PodGroup, Queue
from vcscheduler.objects.kinds import from_value

PATHS = {
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "Node": "/api/v1/nodes",
    "HyperNode": "/apis/topology.volcano.sh/v1alpha1/hypernodes",
    "Queue": "/apis/scheduling.volcano.sh/v1beta1/queues",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "PodGroup": "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups",
    "Pod": "/api/v1/namespaces/{}/pods",
    # Last, since its admission would refuse the pods of a full namespace.
    "ResourceQuota": "/api/v1/namespaces/{}/resourcequotas",
}
_PREEMPTING = "PreemptLowerPriority"
_OF_THE_SYSTEM = {
    "system-cluster-critical": (2_000_000_000, _PREEMPTING),
    "system-node-critical": (2_000_001_000, _PREEMPTING),
}
_OURS = ("uid", "creationTimestamp", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds")
_KEPT = "test/kept"
_STATUS_APART = ("Pod", "Queue", "ResourceQuota", "HyperNode", "ResourceClaim")
"""Kinds whose status is not taken with the object."""


@dataclass(slots=True)
class Move:
    """What one cycle did."""

    binds: dict[str, str]
    evicts: list[str]
    pipelined: dict[str, str]
    phases: dict[str, str]
    conditions: dict[str, list[tuple[str, str, str, str]]]


def documents_of(file: Path) -> list[Document]:
    """The objects of a case as plain data."""
    return list(yaml.load(file.read_text(), yaml.CSafeLoader)["objects"])


def key_of(document: Document) -> str:
    metadata = document["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else str(metadata["name"])


class Server:
    """A control plane without kwok, one case at a time."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._pool = ThreadPoolExecutor(8)
        self._namespaces: set[str] = set()

    def close(self) -> None:
        self._pool.shutdown()

    def each(self, work: Callable[[Any], object], items: Iterable[Any]) -> None:
        list(self._pool.map(work, items))

    def path(self, document: Document) -> str:
        return PATHS[document["kind"]].format(document["metadata"].get("namespace", ""))

    def item(self, document: Document) -> str:
        return f"{self.path(document)}/{document['metadata']['name']}"

    # --- a case comes -------------------------------------------------------------------------------------------------

    def put(self, objects: Sequence[Document]) -> dict[str, str]:
        """Create all of them. Returns what the server refused, and its words."""
        refusals: dict[str, str] = {}
        objects = _with_classes(objects)
        for namespace in {each["metadata"].get("namespace", "") for each in objects} - {""} - self._namespaces:
            with suppress(Refused):
                metadata = {"name": namespace}
                self._api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            self._namespaces.add(namespace)

        def create(document: Document) -> None:
            try:
                self._create(document)
            except Refused as refused:
                refusals[f"{document['kind']} {key_of(document)}"] = str(refused)
                if document["kind"] == "Queue" and document["spec"].get("parent") == "":
                    self._create(_without_parent(document))

        for kind in PATHS:
            self.each(create, [each for each in objects if each["kind"] == kind])
        return refusals

    def _create(self, document: Document) -> None:
        kind, status = document["kind"], document.get("status")
        wanted = _admissible(document)
        if kind in _STATUS_APART:
            wanted.pop("status", None)
        self._api.create(self.path(document), wanted)
        if status and kind in _STATUS_APART and status != {"phase": "Pending"}:
            self._api.merge(f"{self.item(document)}/status", {"status": status})
        if document["metadata"].get("deletionTimestamp"):
            self._api.delete(self.item(document))

    def stored(self) -> list[Document]:
        """All objects as the server keeps them, what others refer to first."""
        found = []
        for kind, path in PATHS.items():
            if kind == "RuntimeClass":
                continue
            for each in self._api.items(path.replace("/namespaces/{}", "")):
                found.append({"apiVersion": _api_version(path), "kind": kind, **each})
        return found

    def clear(self) -> None:
        """Take everything away again, but for namespaces."""
        for kind, path in PATHS.items():
            if kind == "PriorityClass":
                named = [each["metadata"]["name"] for each in self._api.items(path)]
                self.each(self._api.delete, [f"{path}/{name}" for name in named if not name.startswith("system-")])
                continue
            for namespace in sorted(self._namespaces) if "{}" in path else ("",):
                self._api.delete(path.format(namespace) + ("?gracePeriodSeconds=0" if kind == "Pod" else ""))
        left = self._api.items("/api/v1/pods")
        if left:
            self.each(lambda pod: self._let_go({"kind": "Pod", **pod}), left)
            wait_until(lambda: not self._api.items("/api/v1/pods"), "pods to go")

    # --- the world moves ----------------------------------------------------------------------------------------------

    def _let_go(self, pod: Document) -> None:
        with suppress(Refused):
            if pod["metadata"].get("finalizers"):
                self._api.merge(self.item(pod), {"metadata": {"finalizers": None}})
            self._api.delete(f"{self.item(pod)}?gracePeriodSeconds=0")

    def pods(self) -> dict[str, Document]:
        return {key_of(each): {"kind": "Pod", **each} for each in self._api.items("/api/v1/pods")}

    def groups(self) -> dict[str, Document]:
        return {key_of(each): each for each in self._api.items(PATHS["PodGroup"].replace("/namespaces/{}", ""))}

    def step(self, move: Move) -> None:
        """Pods that were bound run, pods that were evicted are gone."""
        pods = self.pods()
        nodes = {each["metadata"]["name"] for each in self._api.items(PATHS["Node"])}
        started = [pods[key] for key, node in move.binds.items() if key in pods and node in nodes]
        self.each(lambda pod: self._api.merge(f"{self.item(pod)}/status", {"status": {"phase": "Running"}}), started)
        self.each(self._let_go, [pods[key] for key in move.evicts if key in pods])

    def versions(self, kind: type[KubernetesObject]) -> dict[str, str]:
        path = PATHS[kind.kind].replace("/namespaces/{}", "")
        return {key_of(each): each["metadata"]["resourceVersion"] for each in self._api.items(path)}


def _api_version(path: str) -> str:
    parts = path.split("/")
    return parts[2] if parts[1] == "api" else "/".join(parts[2:4])


def _with_classes(objects: Sequence[Document]) -> list[Document]:
    """Numbers that only a class may give a pod: its priority, its overhead."""
    known = {
        "system-cluster-critical": (2_000_000_000, _PREEMPTING),
        "system-node-critical": (2_000_001_000, _PREEMPTING),
    }
    for each in objects:
        if each["kind"] == "PriorityClass":
            known[each["metadata"]["name"]] = (each["value"], each.get("preemptionPolicy", _PREEMPTING))
    result = []
    for each in objects:
        spec = each.get("spec") or {}
        if each["kind"] == "Pod" and spec.keys() & {"priority", "preemptionPolicy", "overhead"}:
            each = deepcopy(each)
            spec = each["spec"]
            wanted = spec.pop("priority", 0), spec.pop("preemptionPolicy", _PREEMPTING)
            if known.get(spec.get("priorityClassName", ""), (0, _PREEMPTING)) != wanted:
                value, policy = wanted
                name = spec["priorityClassName"] = f"test-{value}-{policy.lower()}"
                if name not in known:
                    known[name] = wanted
                    made = _object("scheduling.k8s.io/v1", "PriorityClass", name)
                    result.append({**made, "value": value, "preemptionPolicy": policy})
            overhead = spec.pop("overhead", None)
            if overhead:
                name = spec["runtimeClassName"] = f"test-{len(result)}"
                runtime = _object("node.k8s.io/v1", "RuntimeClass", name)
                result.append({**runtime, "handler": "none", "overhead": {"podFixed": overhead}})
        result.append(each)
    return result


def _object(api_version: str, kind: str, name: str) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


def _without_parent(queue: Document) -> Document:
    """What an empty parent means, in the words that a server takes."""
    return {**queue, "spec": {name: value for name, value in queue["spec"].items() if name != "parent"}}


def _admissible(document: Document) -> Document:
    """The object as a client would send it."""
    wanted = deepcopy(document)
    metadata = wanted["metadata"]
    if metadata.get("deletionTimestamp"):
        metadata["finalizers"] = [_KEPT]
    for name in _OURS:
        metadata.pop(name, None)
    if document["kind"] == "Pod":
        spec = wanted["spec"]
        for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
            container.setdefault("image", "none")
            resources = container.get("resources") or {}
            requests = resources.get("requests") or {}
            # What cannot be overcommitted must have a limit.
            for name, amount in requests.items():
                if "/" in name or name.startswith("hugepages-"):
                    resources.setdefault("limits", {}).setdefault(name, amount)
    return wanted


# --- the two clusters -------------------------------------------------------------------------------------------------


def _scheduler(cluster: Cluster, config: object, source: str, now: datetime) -> Scheduler:
    registry = Registry.default()
    parsed = configuration_from_value(
        config, source, known_actions=registry.action_names, known_plugins=registry.plugin_names
    )
    cache = SchedulerCache(cluster, lambda: now)
    return Scheduler(cache, parsed.configuration, registry=registry, clock=lambda: now)


def _pipelined(into: dict[str, str]) -> Callable[[Session], None]:
    def observe(ssn: Session) -> None:
        for job in ssn.jobs.values():
            into.update((task.key, task.node_name) for task in job.tasks_in(PIPELINED))

    return observe


def embedded(objects: Iterable[Document], config: object, source: str, now: datetime, cycles: int) -> list[Move]:
    """What the embedded cluster makes of objects that a server stored."""
    cluster = MemoryCluster(lambda: now)
    scheduler = _scheduler(cluster, config, source, now)
    cluster.apply_all(from_value(each) for each in objects)
    moves: list[Move] = []
    for cycle in range(cycles):
        if cycle:
            cluster.step()
        before = {each.key for each in cluster.objects(Pod)}
        pipelined: dict[str, str] = {}
        scheduler.run_once(_pipelined(pipelined))
        gone = before - {each.key for each in cluster.objects(Pod)}
        groups = cluster.objects(PodGroup)
        moves.append(
            Move(
                cluster.bindings(),
                sorted({*gone, *cluster.terminating()}),
                pipelined,
                {each.key: each.status.phase for each in groups},
                {
                    each.key: [(c.type, c.status, c.reason, c.message) for c in each.status.conditions]
                    for each in groups
                    if each.status.conditions
                },
            )
        )
    return moves


def enacted(server: Server, access: Access, config: object, source: str, now: datetime, cycles: int) -> list[Move]:
    """What comes of the objects on the server, as the server shows it."""
    cluster = LiveCluster(access, LiveOptions())
    try:
        scheduler = _scheduler(cluster, config, source, now)
        cluster.wait_for_sync(20.0)
        moves: list[Move] = []
        before = server.pods()
        for cycle in range(cycles):
            if cycle:
                server.step(moves[-1])
                wait_until(lambda: _caught_up(server, cluster), "the watches to catch up")
                before = server.pods()
            pipelined: dict[str, str] = {}
            scheduler.run_once(_pipelined(pipelined))
            assert cluster.settled(20.0), f"{cluster.backlog} writes are not done"
            assert cluster.counts.failed == 0
            moves.append(_seen(before, server.pods(), server.groups(), pipelined))
        return moves
    finally:
        cluster.stop()


def _caught_up(server: Server, cluster: LiveCluster) -> bool:
    for kind in (Pod, PodGroup, Queue):
        known = {each.key: each.metadata.resource_version for each in cluster.objects(kind)}
        stored = server.versions(kind)
        if any(stored.get(key) != version for key, version in known.items()):
            return False
        if kind is not Pod and len(stored) != len(known):
            return False
    return cluster.statuses_under_way == 0


def _seen(
    before: dict[str, Document], after: dict[str, Document], groups: dict[str, Document], pipelined: dict[str, str]
) -> Move:
    binds = {
        key: pod["spec"]["nodeName"]
        for key, pod in after.items()
        if pod["spec"].get("nodeName") and not before[key]["spec"].get("nodeName")
    }
    evicts = [
        key
        for key, pod in before.items()
        if key not in after
        or (after[key]["metadata"].get("deletionTimestamp") and not pod["metadata"].get("deletionTimestamp"))
    ]
    statuses = {key: each.get("status") or {} for key, each in groups.items()}
    conditions = {
        key: [
            (c["type"], c["status"], c.get("reason", ""), c.get("message", "")) for c in status.get("conditions") or ()
        ]
        for key, status in statuses.items()
    }
    return Move(
        binds,
        sorted(evicts),
        pipelined,
        {key: status.get("phase", "") for key, status in statuses.items()},
        {key: listed for key, listed in conditions.items() if listed},
    )
