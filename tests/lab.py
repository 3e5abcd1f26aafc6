"""The whole scheduler over an embedded cluster, built and run in a few words.

    lab = Lab().queue("q").node("n1", cpu=4).job("a", minimum=2, tasks=3, cpu=1)
    assert lab.cycle().binds == {"ns/a-w-0": "n1", ...}

Pods are called ``<job>-w-<i>`` and ask for 1Gi unless told otherwise, as in the worked examples of the specs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

import builders
from vcscheduler.cache.cache import SchedulerCache
from vcscheduler.cluster.memory import MemoryCluster
from vcscheduler.framework.action import Action
from vcscheduler.framework.scheduler import Scheduler
from vcscheduler.framework.session import Session
from vcscheduler.framework.updater import update_jobs, update_queues
from vcscheduler.objects import KubernetesObject, Pod, PodGroup, PriorityClass, Queue
from vcscheduler.placement.runs import ClassStates
from vcscheduler.simulator.conformance import Case, CycleRecord
from vcscheduler.simulator.engine import SchedulerEngine

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
GROUP = "scheduling.k8s.io/group-name"
ROLE = "volcano.sh/task-spec"

#: Plugin set C0 of spec 03 §11.
C0 = [["priority", "gang", "conformance"], ["overcommit", "drf", "predicates", "proportion", "nodeorder"]]


def configuration(
    tiers: Any = C0, actions: str = "enqueue, allocate, backfill", **action_arguments: Mapping[str, Any]
) -> dict[str, object]:
    """A scheduler configuration as its file would say it. A plugin is a name, or a mapping with ``name``."""
    plugins = [[{"name": p} if isinstance(p, str) else p for p in tier] for tier in tiers]
    config: dict[str, object] = {"actions": actions, "tiers": [{"plugins": tier} for tier in plugins]}
    if action_arguments:
        config["configurations"] = [{"name": n, "arguments": dict(a)} for n, a in action_arguments.items()]
    return config


def queue(name: str, weight: int = 1, age: float = 0, state: str = "Open", **spec: Any) -> Queue:
    """``age``: seconds since it was made."""
    return msgspec.convert(
        {
            "metadata": {"name": name, "creationTimestamp": (NOW - timedelta(seconds=age)).isoformat()},
            "spec": {"weight": weight, **spec},
            "status": {"state": state},
        },
        Queue,
    )


def pod_group(
    name: str,
    minimum: int = 1,
    queue: str = "q",
    namespace: str = "ns",
    phase: str = "Pending",
    age: float = 0,
    roles: Mapping[str, int] | None = None,
    min_resources: Mapping[str, object] | None = None,
    priority_class: str = "",
    **spec: Any,
) -> PodGroup:
    wanted: dict[str, Any] = {"minMember": minimum, "queue": queue, "priorityClassName": priority_class, **spec}
    if roles:
        wanted["minTaskMember"] = dict(roles)
    if min_resources is not None:
        wanted["minResources"] = {k: str(v) for k, v in min_resources.items()}
    made = (NOW - timedelta(seconds=age)).isoformat()
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": made},
            "spec": wanted,
            "status": {"phase": phase},
        },
        PodGroup,
    )


def member(
    job: str,
    name: str,
    cpu: object = 1,
    memory: object = "1Gi",
    role: str = "",
    node: str = "",
    phase: str = "",
    annotations: Mapping[str, str] | None = None,
    nominated: str = "",
    age: float = 0,
    **how: Any,
) -> Pod:
    """A pod of a job; with ``node`` it runs there. ``job`` may be empty."""
    notes = {**({GROUP: job} if job else {}), **({ROLE: role} if role else {}), **(annotations or {})}
    pod = builders.pod(name, cpu=cpu, memory=memory, annotations=notes, schedulerName="volcano", **how)
    pod.metadata.creation_timestamp = NOW - timedelta(seconds=age)
    pod.spec.node_name = node
    pod.status.phase = phase or ("Running" if node else "Pending")
    pod.status.nominated_node_name = nominated
    return pod


class Lab:
    """A cluster and a scheduler over it. Building methods return the lab."""

    def __init__(self, config: Mapping[str, object] | None = None, keep_pod_conditions: bool = True) -> None:
        self.now = NOW
        self.cluster = MemoryCluster(lambda: self.now, keep_pod_conditions=keep_pod_conditions)
        case = Case("test", "test", "", False, NOW, config or configuration(), 1, (), ())
        self._engine = SchedulerEngine(case, self.cluster, lambda: self.now)
        self._jobs = 0

    # --- building -----------------------------------------------------------------------------------------------

    def add(self, *objects: KubernetesObject) -> Lab:
        self.cluster.apply_all(objects)
        return self

    def node(self, name: str, cpu: object = 4, memory: object = "64Gi", **how: Any) -> Lab:
        return self.add(builders.node(name, cpu=cpu, memory=memory, **how))

    def queue(self, name: str, weight: int = 1, **how: Any) -> Lab:
        return self.add(queue(name, weight, **how))

    def priority_class(self, name: str, value: int) -> Lab:
        return self.add(msgspec.convert({"metadata": {"name": name}, "value": value}, PriorityClass))

    def job(
        self,
        name: str,
        minimum: int = 1,
        tasks: int = 0,
        queue: str = "q",
        phase: str = "Inqueue",
        group: Mapping[str, Any] | None = None,
        priority: int | None = None,
        on: str = "",
        **pods: Any,
    ) -> Lab:
        """A PodGroup with equal pods; jobs made earlier are older. ``on``: the node on which the pods run."""
        self._jobs += 1
        given = dict(group or {})
        if priority is not None:
            self.priority_class(f"p{priority}", priority)
            given["priority_class"] = f"p{priority}"
        given.setdefault("age", 1000 - self._jobs)
        self.add(pod_group(name, minimum, queue, phase="Running" if on else phase, **given))
        return self.add(*(member(name, f"{name}-w-{i}", node=on, **pods) for i in range(tasks)))

    def pod(self, job: str, name: str, **how: Any) -> Lab:
        return self.add(member(job, name, **how))

    # --- running ------------------------------------------------------------------------------------------------

    def cycle(self) -> CycleRecord:
        return self._engine.run_once()

    def cycles(self, count: int) -> list[CycleRecord]:
        """With a step of the world between any two."""
        records = [self.cycle()]
        for _ in range(count - 1):
            self.cluster.step()
            records.append(self.cycle())
        return records

    @property
    def scheduler(self) -> Scheduler:
        return self._engine._scheduler

    @property
    def cache(self) -> SchedulerCache:
        cache = self.scheduler.cache
        assert isinstance(cache, SchedulerCache)
        return cache

    @property
    def class_states(self) -> ClassStates:
        states = self.cache.store.setdefault("class states", ClassStates())
        assert isinstance(states, ClassStates)
        return states

    def replace_action(self, action: Action) -> Lab:
        """Let an action of the test's own run under its name."""
        self.scheduler._actions[action.name] = action
        return self

    def session(self) -> Session:
        """An open session, for tests that act themselves."""
        cache = self.cache
        cache.begin_session()
        ssn = Session(cache, self.scheduler.configuration, self.scheduler.options, self.now, uid="session")
        for option in self.scheduler.configuration.plugins():
            plugin = self.scheduler.registry.plugin(option.name, option.arguments)
            plugin.on_session_open(ssn)
            ssn.plugins.append(plugin)
        return ssn

    def close(self, ssn: Session) -> None:
        for plugin in ssn.plugins:
            plugin.on_session_close(ssn)
        update_jobs(ssn)
        update_queues(ssn)
        ssn.undo_planned()
        self.cache.settle(ssn.touched.values())

    # --- looking ------------------------------------------------------------------------------------------------

    def pod_conditions(self) -> dict[str, tuple[str, str, str]]:
        """``PodScheduled`` of every pod that has it: (reason, message, nominated node)."""
        return {
            pod.key: (c.reason, c.message, pod.status.nominated_node_name)
            for pod in self.cluster.objects(Pod)
            for c in pod.status.conditions
            if c.type == "PodScheduled"
        }

    def versions(self) -> dict[str, str]:
        """resourceVersion of everything stored."""
        return {
            f"{kind.__name__} {key}": obj.metadata.resource_version
            for kind, found in self.cluster._objects.items()
            for key, obj in found.items()
        }


def written(record: CycleRecord) -> bytes:
    """A record as bytes, so that equal means equal to the letter."""
    return msgspec.json.encode(msgspec.to_builtins(record), order="deterministic")
