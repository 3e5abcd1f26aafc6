"""Small builders of objects, and a world to ask filters and scorers in without a cluster.

    world = World(node("n1", cpu=4, memory="8Gi"), node("n2", cpu=2, memory="4Gi", taints=["gpu:NoSchedule"]))
    world.place(pod("old", cpu=1), "n1")
    session = world.session(PredicatesPlugin)
    session.refusals(pod("new", cpu=1))      # {"n1": [], "n2": ["node(s) had untolerated taint(s)"]}

What a builder has no keyword for is given as ``spec``, in the words of a manifest.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from vcscheduler.config import Arguments, PluginOption, Tier
from vcscheduler.framework.extension_points import ExtensionPoints
from vcscheduler.framework.plugin import Event, Plugin
from vcscheduler.framework.simulation_points import SimulationPoints
from vcscheduler.model.fit import Status
from vcscheduler.model.listers import Listers
from vcscheduler.model.nodes import NodeTable
from vcscheduler.model.status import ALLOCATED, PENDING, PIPELINED, RELEASING, RUNNING, TaskStatus
from vcscheduler.model.task import Task, TaskClasses
from vcscheduler.objects import Namespace, Node, Pod
from vcscheduler.placement.images import ImageTable

Labels = dict[str, str]


def node(
    name: str,
    cpu: object = 4,
    memory: object = "8Gi",
    pods: object = 110,
    labels: Labels | None = None,
    taints: list[str] | None = None,
    unschedulable: bool = False,
    images: dict[str, int] | None = None,
    **other: object,
) -> Node:
    """``taints``: ``key=value:Effect`` or ``key:Effect``. ``images``: name -> bytes. ``other``: further resources."""
    amounts = {"cpu": cpu, "memory": memory, "pods": pods}
    amounts |= {k.replace("__", "/").replace("_", "-"): v for k, v in other.items()}
    allocatable = {k: str(v) for k, v in amounts.items() if v is not None}
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {
                "unschedulable": unschedulable,
                "taints": [_taint(text) for text in taints or []],
            },
            "status": {
                "allocatable": allocatable,
                "capacity": allocatable,
                "images": [{"names": [n], "sizeBytes": size} for n, size in (images or {}).items()],
            },
        },
        Node,
    )


def _taint(text: str) -> dict[str, str]:
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return {"key": key, "value": value, "effect": effect}


def pod(
    name: str = "p",
    cpu: object = None,
    memory: object = None,
    namespace: str = "ns",
    labels: Labels | None = None,
    annotations: Labels | None = None,
    requests: dict[str, Any] | None = None,
    image: str = "",
    ports: list[dict[str, Any]] | None = None,
    deleted: str | None = None,
    owner: dict[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """One container. ``deleted``: deletion timestamp. ``spec``: the rest of the pod's spec, as in a manifest."""
    amounts = {"cpu": cpu, "memory": memory, **(requests or {})}
    container = {
        "name": "c",
        "image": image,
        "resources": {"requests": {k: str(v) for k, v in amounts.items() if v is not None}},
        "ports": ports or [],
    }
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "labels": labels or {},
        "annotations": annotations or {},
        "ownerReferences": [owner] if owner else [],
    }
    if deleted:
        metadata["deletionTimestamp"] = deleted
    return msgspec.convert({"metadata": metadata, "spec": {"containers": [container], **spec}}, Pod)


def term(key: str, match: Labels | None = None, **other: Any) -> dict[str, Any]:
    """A pod affinity term over topology ``key``."""
    selector = {} if match is None else {"labelSelector": {"matchLabels": match}}
    return {"topologyKey": key, **selector, **other}


def affinity(
    to: list[Any] | None = None,
    off: list[Any] | None = None,
    prefer_to: list[tuple[int, Any]] | None = None,
    prefer_off: list[tuple[int, Any]] | None = None,
    nodes: list[Any] | None = None,
    prefer_nodes: list[tuple[int, Any]] | None = None,
) -> dict[str, Any]:
    """``to``, ``off``: required terms of pod affinity and anti-affinity; ``prefer_*``: (weight, term). ``nodes``:
    terms of required node affinity."""

    def pods(required: list[Any] | None, preferred: list[tuple[int, Any]] | None) -> dict[str, Any]:
        return {
            "requiredDuringSchedulingIgnoredDuringExecution": required or [],
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": w, "podAffinityTerm": t} for w, t in preferred or []
            ],
        }

    found: dict[str, Any] = {}
    if to or prefer_to:
        found["podAffinity"] = pods(to, prefer_to)
    if off or prefer_off:
        found["podAntiAffinity"] = pods(off, prefer_off)
    if nodes is not None or prefer_nodes:
        found["nodeAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": w, "preference": t} for w, t in prefer_nodes or []
            ]
        }
        if nodes is not None:
            required = {"nodeSelectorTerms": nodes}
            found["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = required
    return found


def expressions(*parts: tuple[str, str, list[str]]) -> dict[str, Any]:
    """A node selector term of (key, operator, values)."""
    return {"matchExpressions": [{"key": k, "operator": o, "values": v} for k, o, v in parts]}


def spread(key: str, match: Labels | None, max_skew: int = 1, hard: bool = True, **other: Any) -> dict[str, Any]:
    return {
        "maxSkew": max_skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": {"matchLabels": match or {}},
        **other,
    }


class World:
    """Nodes and pods that live from session to session."""

    def __init__(self, *nodes: Node) -> None:
        self.table = NodeTable()
        self.listers = Listers()
        self.store: dict[str, object] = {}
        self.images = ImageTable.of(self.store)
        self.classes = TaskClasses()
        self._sessions = 0
        for each in nodes:
            self.add(each)

    def add(self, obj: Node) -> None:
        self.table.set_object(obj)
        self.images.set_node(obj)

    def namespace(self, name: str, **labels: str) -> None:
        self.listers.namespaces[name] = msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace)
        self.listers.version += 1

    def task(self, obj: Pod, status: TaskStatus = PENDING) -> Task:
        task = Task(obj, self.classes.of(obj))
        task.status = status
        return task

    def place(self, obj: Pod, node_name: str, status: TaskStatus = RUNNING) -> Task:
        """A pod that is on a node already."""
        task = self.task(obj, status)
        found = self.table.placeholder(node_name)
        found.add(task)
        self.table.view.add(task, found.row)
        return task

    def remove(self, task: Task) -> None:
        self.table.by_name[task.node_name].remove(task)
        self.table.view.remove(task)

    def session(self, *plugins: type[Plugin], **arguments: dict[str, Any]) -> StubSession:
        """A session with the plugins open. ``arguments`` by plugin name, dashes as underscores."""
        self._sessions += 1
        session = StubSession(self, f"session-{self._sessions}", [p.name for p in plugins])
        for plugin in plugins:
            given = arguments.get(plugin.name.replace("-", "_"), {})
            plugin(Arguments(given, plugin.name)).on_session_open(session)  # type: ignore[arg-type]
        return session


class StubSession(ExtensionPoints, SimulationPoints):
    """As much of a session as rules about nodes read."""

    def __init__(self, world: World, uid: str, plugins: list[str]) -> None:
        tiers = [Tier(plugins=tuple(PluginOption(name=name) for name in plugins))]
        ExtensionPoints.__init__(self, tiers)
        SimulationPoints.__init__(self, tiers)
        self.world = world
        self.table = world.table
        self.listers = world.listers
        self.store = world.store
        self.uid = uid
        self._states: dict[str, dict[str, object]] = {}

    def cycle_state(self, task: Task) -> dict[str, object]:
        return self._states.setdefault(task.uid, {})

    @property
    def rows(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        return self.table.ready_rows

    def task(self, obj: Pod | Task) -> Task:
        return obj if isinstance(obj, Task) else self.world.task(obj)

    def statuses(self, obj: Pod | Task, *, prepare: bool = True) -> dict[str, list[Status]]:
        """Per node, what refuses the pod after PrePredicate; a failed PrePredicate stands under ``""``."""
        task = self.task(obj)
        if prepare:
            failure = self.pre_predicate(task)
            if failure is not None:
                return {"": [failure]}
        found: dict[str, list[Status]] = {self.table.nodes[r].name: [] for r in self.rows}
        for rule in self.filters:
            for row, code in zip(self.rows.tolist(), rule.codes(task, self.rows).tolist()):
                name = self.table.nodes[row].name
                if code and not found[name]:
                    found[name] = list(rule.statuses(task, code))
        return found

    def refusals(self, obj: Pod | Task, *, prepare: bool = True) -> dict[str, list[str]]:
        return {name: [s.reason for s in found] for name, found in self.statuses(obj, prepare=prepare).items()}

    def fitting(self, obj: Pod | Task) -> list[str]:
        return [name for name, reasons in self.refusals(obj).items() if name and not reasons]

    def scores(self, obj: Pod | Task, *candidates: str) -> dict[str, float]:
        """The sum of all scorers over the candidates (all nodes if none are named)."""
        task = self.task(obj)
        names = candidates or tuple(self.table.nodes[r].name for r in self.rows)
        rows = np.array([self.table.by_name[n].row for n in names], dtype=np.int64)
        total = np.zeros(len(rows))
        for scorer in self.scorers:
            total = total + scorer.scores(task, rows)
        return dict(zip(names, total.tolist()))

    def put(self, obj: Pod | Task, node_name: str, *, pipelined: bool = False, prepare: bool = True) -> Task:
        """Allocate (or pipeline) as a statement does; the event's error is the task's fate."""
        task = self.task(obj)
        if prepare:
            assert self.pre_predicate(task) is None
        task.status = PIPELINED if pipelined else ALLOCATED
        self.table.by_name[node_name].add(task)
        self._fire("allocate", task)
        return task

    def take_back(self, task: Task) -> None:
        task.status = PENDING
        self.table.by_name[task.node_name].remove(task)
        self._fire("deallocate", task)
        task.node_name = ""

    def evict(self, task: Task) -> None:
        task.status = RELEASING
        self.table.by_name[task.node_name].update(task)
        self._fire("deallocate", task)

    def undo_evict(self, task: Task) -> str:
        task.status = RUNNING
        self.table.by_name[task.node_name].update(task)
        return self._fire("allocate", task)

    def _fire(self, kind: str, task: Task) -> str:
        error = ""
        for handler in self.event_handlers:
            event = Event(task)
            function = getattr(handler, kind)
            if function is not None:
                function(event)
                error = error or event.error
        return error
