"""A small cluster for plugin tests: nodes, queues, PodGroups and pods, and a session over them.

Quantities are written as whole cores, Gi and cards, as in the worked examples: ``cpu=2, memory=4, gpu=1``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from vcscheduler.config import Arguments, PluginOption, SchedulerConfiguration, SchedulerOptions, Tier
from vcscheduler.framework.plugin import Plugin
from vcscheduler.framework.session import Session
from vcscheduler.model.aggregates import Aggregates
from vcscheduler.model.job import Job
from vcscheduler.model.listers import Listers
from vcscheduler.model.nodes import Node, NodeTable
from vcscheduler.model.queue import Queue
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import PENDING, TaskStatus
from vcscheduler.model.task import Task, TaskClasses
from vcscheduler.objects import Node as NodeObject
from vcscheduler.objects import Pod, PodGroup
from vcscheduler.objects import Queue as QueueObject
from vcscheduler.objects.core import NodeStatus
from vcscheduler.objects.meta import ObjectMeta
from vcscheduler.objects.pod import Container, PodSchedulingGate, PodSpec, PodStatus, ResourceRequirements
from vcscheduler.objects.scheduling import (
    Guarantee,
    PodGroupSpec,
    PodGroupStatus,
    QueueSpec,
    QueueStatus,
    SubGroupPolicy,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
GPU = "nvidia.com/gpu"


def quantities(cpu: object = None, memory: object = None, gpu: object = None, **other: object) -> dict[str, str]:
    """A resource list; keyword ``ephemeral_storage`` stands for ``ephemeral-storage``."""
    named = {"cpu": cpu, "memory": None if memory is None else f"{memory}Gi", GPU: gpu}
    named |= {name.replace("_", "-"): value for name, value in other.items()}
    return {name: str(value) for name, value in named.items() if value is not None}


def vector(**amounts: object) -> Resources:
    return Resources.from_list(quantities(**amounts))


def amounts(r: Resources) -> dict[str, float]:
    """A vector in whole cores, Gi and cards, without what is 0."""
    found = {"cpu": r.cpu / 1000, "memory": r.memory / 2**30}
    found |= {"gpu" if n == GPU else n: v if n == "pods" else v / 1000 for n, v in r.scalar_items()}
    return {n: round(v, 9) for n, v in found.items() if v}


class FakeCache:
    """Enough of the cache for a session: nothing leaves, events are remembered."""

    def __init__(self) -> None:
        self.table = NodeTable()
        self.jobs: dict[str, Job] = {}
        self.queues: dict[str, Queue] = {}
        self.listers = Listers()
        self.aggregates = Aggregates()
        self.unsettled: dict[str, Job] = {}
        self.active = self.jobs
        self.store: dict[str, object] = {}
        self.events: list[tuple[str, str, str, str]] = []

    def bind(self, task: Task, node: Node) -> str | None:
        return None

    def evict(self, task: Task, reason: str) -> str | None:
        return None

    def record_event(self, kind: str, namespace: str, name: str, type: str, reason: str, message: str) -> None:
        self.events.append((f"{namespace}/{name}", type, reason, message))


class Cluster:
    def __init__(self, now: datetime = NOW) -> None:
        self.cache = FakeCache()
        self.classes = TaskClasses()
        self.now = now

    def node(self, name: str = "n1", labels: Mapping[str, str] | None = None, **allocatable: object) -> Node:
        allocatable.setdefault("pods", 1000)
        obj = NodeObject(
            metadata=ObjectMeta(name=name, labels=dict(labels or {})),
            status=NodeStatus(allocatable=quantities(**allocatable), capacity=quantities(**allocatable)),
        )
        return self.cache.table.set_object(obj)

    def queue(
        self,
        name: str,
        *,
        weight: int = 1,
        priority: int = 0,
        state: str = "Open",
        parent: str = "",
        age: float = 0,
        capability: Mapping[str, object] | None = None,
        deserved: Mapping[str, object] | None = None,
        guarantee: Mapping[str, object] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> Queue:
        """``age``: seconds since it was made."""
        spec = QueueSpec(
            weight=weight,
            priority=priority,
            parent=parent,
            capability=quantities(**(capability or {})),  # type: ignore[arg-type]
            deserved=quantities(**(deserved or {})),  # type: ignore[arg-type]
            guarantee=Guarantee(resource=quantities(**(guarantee or {}))),  # type: ignore[arg-type]
        )
        meta = ObjectMeta(
            name=name,
            annotations=dict(annotations or {}),
            creation_timestamp=self.now - timedelta(seconds=age),
        )
        queue = Queue(QueueObject(metadata=meta, spec=spec, status=QueueStatus(state=state)))
        self.cache.queues[name] = queue
        return queue

    def job(
        self,
        name: str,
        queue: str = "q",
        *,
        namespace: str = "ns",
        minimum: int = 1,
        roles: Mapping[str, int] | None = None,
        min_resources: Mapping[str, object] | None = None,
        phase: str = "Inqueue",
        priority: int = 0,
        age: float = 0,
        annotations: Mapping[str, str] | None = None,
        policies: Iterable[SubGroupPolicy] = (),
    ) -> Job:
        if queue not in self.cache.queues:
            self.queue(queue)
        pg = PodGroup(
            metadata=ObjectMeta(
                name=name,
                namespace=namespace,
                annotations=dict(annotations or {}),
                creation_timestamp=self.now - timedelta(seconds=age),
            ),
            spec=PodGroupSpec(
                min_member=minimum,
                min_task_member=dict(roles or {}),
                queue=queue,
                min_resources=None if min_resources is None else quantities(**min_resources),  # type: ignore[arg-type]
                sub_group_policy=list(policies),
            ),
            status=PodGroupStatus(phase=phase),
        )
        job = Job(f"{namespace}/{name}")
        job.set_pod_group(pg, "default")
        job.priority = priority
        self.cache.jobs[job.id] = job
        return job

    def task(
        self,
        job: Job,
        name: str,
        status: TaskStatus = PENDING,
        *,
        node: str = "",
        priority: int | None = None,
        priority_class: str = "",
        role: str = "",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        gates: Iterable[str] = (),
        pod_status: PodStatus | None = None,
        **requests: object,
    ) -> Task:
        """A pod of the job in a status, on a node when one is named."""
        notes = {"scheduling.k8s.io/group-name": job.name, **(annotations or {})}
        if role:
            notes["volcano.sh/task-spec"] = role
        pod = Pod(
            metadata=ObjectMeta(
                name=name,
                namespace=job.namespace,
                uid=f"{job.namespace}-{name}",
                labels=dict(labels or {}),
                annotations=notes,
                creation_timestamp=self.now,
            ),
            spec=PodSpec(
                containers=[Container(name="c", resources=ResourceRequirements(requests=quantities(**requests)))],
                priority=priority,
                priority_class_name=priority_class,
                scheduling_gates=[PodSchedulingGate(name=g) for g in gates],
            ),
            status=pod_status or PodStatus(phase="Pending"),
        )
        task = Task(pod, self.classes.of(pod))
        task.status = status
        job.add_task(task)
        if node:
            self.cache.table.by_name[node].add(task)
        return task

    def tasks(self, job: Job, names: str, status: TaskStatus = PENDING, **how: Any) -> list[Task]:
        """Equal tasks; ``names`` separated by spaces."""
        return [self.task(job, name, status, **how) for name in names.split()]

    def session(
        self,
        *plugins: type[Plugin],
        arguments: Mapping[str, object] | None = None,
        flags: Mapping[str, Any] | None = None,
        options: SchedulerOptions | None = None,
        metrics: Mapping[str, str] | None = None,
    ) -> Session:
        """A session in which each plugin is a tier of its own. ``arguments`` and ``flags`` go to all of them."""
        self.cache.aggregates.refresh(self.cache.jobs.values())
        self.cache.unsettled = dict(self.cache.jobs)
        given = Arguments(dict(arguments or {}))
        tiers = tuple(Tier((PluginOption(name=p.name, arguments=given, **(flags or {})),)) for p in plugins)
        configuration = SchedulerConfiguration(
            actions=("enqueue", "allocate"), tiers=tiers, metrics=dict(metrics or {})
        )
        ssn = Session(self.cache, configuration, options or SchedulerOptions(), self.now, uid="session-1")  # type: ignore[arg-type]
        for p in plugins:
            plugin = p(given)
            plugin.on_session_open(ssn)
            ssn.plugins.append(plugin)
        return ssn


def names(tasks: Iterable[Task]) -> list[str]:
    return [t.name for t in tasks]


def in_order(items: Iterable[Any], less: Callable[[Any, Any], bool]) -> list[str]:
    """Names of queues or jobs, sorted by a total order given as ``less``."""
    import functools

    ordered = sorted(items, key=functools.cmp_to_key(lambda a, b: -1 if less(a, b) else 1))
    return [x.name for x in ordered]
