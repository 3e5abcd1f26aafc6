"""Random clusters for property tests: a configuration and objects, drawn from any ``random.Random``.

Everything that the default filters and scorers look at occurs, in small figures, so that rules meet each other often.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
import yaml

import builders
from builders import affinity, expressions, spread, term
from lab import C0, NOW, Lab, configuration, member, pod_group, queue
from vcscheduler.objects import KubernetesObject, Pod, PriorityClass, Service
from vcscheduler.objects.pod import PodSchedulingGate

ZONE, HOST, DISK = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "disk"
GPU = "nvidia.com/gpu"
APPS = ("web", "db", "batch")
ACTIONS = (
    "enqueue, allocate, backfill",
    "allocate, backfill",
    "enqueue, allocate, preempt, reclaim, backfill",
    "enqueue, reclaim, allocate, preempt, allocate, backfill, shuffle",
    "enqueue, allocate, gangpreempt, gangreclaim, backfill",
)
FLAGS = (
    "enableJobReady",
    "enableJobPipelined",
    "enablePredicate",
    "enabledAllocatable",
    "enableNodeOrder",
    "enableJobOrder",
    "enableTaskOrder",
    "enablePreemptable",
)
GATES = ("scheduling.volcano.sh/queue-allocation-gate", "example.com/wait")


@dataclass(frozen=True, slots=True)
class Size:
    nodes: tuple[int, int]
    jobs: tuple[int, int]
    most_tasks: int


SMALL = Size((1, 12), (1, 15), 6)
#: Past the borders of blocks of 64 rows, and of the table's first allocation.
LARGE = Size((120, 200), (8, 15), 40)


@dataclass(frozen=True, slots=True)
class Scene:
    config: dict[str, object]
    objects: list[KubernetesObject]

    def lab(self) -> Lab:
        return Lab(self.config).add(*self.objects)

    def __repr__(self) -> str:
        objects = [{"kind": type(o).kind, **msgspec.to_builtins(o)} for o in self.objects]
        return yaml.safe_dump({"config": self.config, "objects": objects}, sort_keys=False)


class SceneBuilder:
    def __init__(self, rng: random.Random, size: Size, *, wild: bool = False) -> None:
        """``wild``: with plugins, actions and objects that the oracle does not know."""
        self.rng = rng
        self.size = size
        self.wild = wild
        self.objects: list[KubernetesObject] = []
        self.nodes: list[str] = []
        #: A scene is calm or rich in rules, so that plain runs and meetings of rules both occur.
        self.spice = rng.choice([0.0, 0.05, 0.15, 0.4])
        #: Most of the cluster is used and being given up, so most of what is placed is pipelined.
        self.leaving = self.chance(0.3)
        #: Share of the waiting pods that were promised a node.
        self.nominated = rng.choice([self.spice / 8, self.spice / 8, 0.3, 1.0])

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def some(self) -> bool:
        return self.chance(self.spice)

    def build(self) -> Scene:
        rng, size = self.rng, self.size
        config = self._config()
        queues = [f"q{i}" for i in range(rng.randint(1, 3))]
        for i, name in enumerate(queues):
            extra: dict[str, Any] = {"priority": rng.randint(0, 2)} if self.some() else {}
            if self.some():
                extra["capability"] = {"cpu": str(rng.randint(2, 20))}
            if self.wild and self.chance(0.5):
                extra["deserved"] = {"cpu": str(rng.randint(1, 8)), "memory": f"{rng.randint(1, 16)}Gi"}
            self.objects.append(queue(name, rng.randint(1, 3), age=rng.choice([0, 10 * i]), **extra))
        for value in (1, 10, 100):
            self.objects.append(_priority_class(value))
        numbers = list(range(rng.randint(*size.nodes)))
        rng.shuffle(numbers)
        self._nodes(numbers)
        if self.wild and self.chance(0.4):
            spread_out = {"metadata": {"name": "s", "namespace": "ns"}, "spec": {"selector": {"app": rng.choice(APPS)}}}
            self.objects.append(msgspec.convert(spread_out, Service))
        for i in range(rng.randint(4, 8) if self.leaving else rng.randint(0, 3)):
            self._running_job(f"old{i}", rng.choice(queues))
        for i in range(rng.randint(*size.jobs)):
            self._waiting_job(f"j{i}", rng.choice(queues))
        return Scene(config, self.objects)

    def _config(self) -> dict[str, object]:
        rng = self.rng
        weights: dict[str, object] = {}
        for key in (
            "leastrequested", "mostrequested", "balancedresource", "nodeaffinity", "podaffinity", "tainttoleration",
            "podtopologyspread",
        ):  # fmt: skip
            if self.chance(0.2):
                weights[f"{key}.weight"] = rng.randint(0, 3)
        tiers: Any = [list(tier) for tier in C0]
        tiers[1][tiers[1].index("nodeorder")] = {"name": "nodeorder", "arguments": weights}
        if self.chance(0.4):
            packing: dict[str, object] = {"binpack.weight": rng.randint(1, 5), "binpack.cpu": rng.randint(1, 3)}
            if self.chance(0.5):
                packing |= {"binpack.resources": GPU, f"binpack.resources.{GPU}": rng.randint(1, 5)}
            tiers[1].append({"name": "binpack", "arguments": packing})
        for name in ("proportion", "drf", "overcommit", "predicates", "nodeorder"):
            if self.chance(0.1):
                tiers[1] = [p for p in tiers[1] if (p if isinstance(p, str) else p["name"]) != name]
        if self.chance(0.04) and "predicates" in tiers[1]:
            tiers[1][tiers[1].index("predicates")] = {"name": "predicates", "enablePredicate": False}
        if self.wild:
            return configuration(self._more_plugins(tiers), rng.choice(ACTIONS))
        actions = rng.choice(["enqueue, allocate, backfill", "enqueue, allocate, backfill", "allocate, backfill"])
        if self.chance(0.2):
            return configuration(tiers, actions, allocate={"predicateErrorCacheEnable": False})
        return configuration(tiers, actions)

    def _more_plugins(self, tiers: Any) -> Any:
        rng = self.rng
        if self.chance(0.4):
            tiers[1] = ["capacity" if p == "proportion" else p for p in tiers[1]]
        more: list[Any] = [
            "sla",
            "resourcequota",
            "nodegroup",
            "task-topology",
            "cdp",
            {"name": "resource-strategy-fit", "arguments": {"resourceStrategyFitWeight": rng.randint(1, 10)}},
        ]
        tiers[rng.randint(0, 1)] += rng.sample(more, rng.randint(0, 2))
        tier = rng.choice(tiers)
        if tier and self.chance(0.3):
            at = rng.randrange(len(tier))
            flag = rng.choice(FLAGS)
            entry = {"name": tier[at]} if isinstance(tier[at], str) else dict(tier[at])
            tier[at] = entry | {flag: False}
        return tiers

    def _nodes(self, numbers: list[int]) -> None:
        rng = self.rng
        alike = self.chance(0.4)
        for n in numbers:
            name = f"n{n}"
            labels = {HOST: name, ZONE: rng.choice("abc")}
            if self.chance(0.5):
                labels[DISK] = rng.choice(["ssd", "hdd"])
            if self.some():
                del labels[ZONE]
            taints = ["dedicated=x:NoSchedule"] if self.some() else []
            taints += ["busy:PreferNoSchedule"] if self.some() else []
            taints += ["odd=1:PreferNoSchedule"] if self.some() else []
            how: dict[str, Any] = {} if alike else {
                "cpu": rng.choice([1, 2, 4, 8]),
                "memory": f"{rng.choice([2, 4, 8, 16])}Gi",
                "pods": rng.choice([2, 3, 110]),
            }  # fmt: skip
            if self.chance(0.3):
                how["nvidia.com__gpu"] = rng.randint(1, 4)
            if self.wild and self.chance(0.5):
                how["images"] = {f"{app}:1": rng.randint(1, 900) * 2**20 for app in rng.sample(APPS, 2)}
            self.objects.append(
                builders.node(name, labels=labels, taints=taints, unschedulable=self.chance(self.spice / 4), **how)
            )
            self.nodes.append(name)

    def _template(self) -> dict[str, Any]:
        """Keywords of a pod."""
        rng, some = self.rng, self.some
        how: dict[str, Any] = {
            "cpu": rng.choice(["500m", 1, 1, 2, "2500m"]),
            "memory": rng.choice(["512Mi", "1Gi", "1Gi", "3Gi"]),
            "labels": {"app": rng.choice(APPS)},
        }
        if self.wild:
            how["image"] = f"{rng.choice(APPS)}:1"
        if some():
            how |= {"cpu": None, "memory": None}
        if some():
            how["requests"] = {GPU: rng.randint(1, 2)}
        if some():
            how["nodeSelector"] = {DISK: "ssd"}
        if some():
            how["tolerations"] = rng.sample(
                [
                    {"key": "dedicated", "operator": "Exists"},
                    {"key": "busy", "operator": "Exists", "effect": "PreferNoSchedule"},
                    {"operator": "Exists"},
                ],
                rng.randint(1, 2),
            )
        if some():
            how["ports"] = [{"hostPort": rng.choice([80, 81]), "containerPort": 80}]
        wanted: dict[str, Any] = {}
        if some():
            wanted["nodes"] = [expressions((ZONE, rng.choice(["In", "NotIn"]), rng.sample("abc", rng.randint(1, 2))))]
        if some():
            wanted["prefer_nodes"] = [
                (rng.randint(1, 100), expressions((DISK, "In", ["ssd"]))),
                (rng.randint(1, 100), expressions((ZONE, "In", [rng.choice("abc")]))),
            ]
        for side in ("to", "off"):
            if some():
                wanted[side] = [self._term() for _ in range(rng.randint(1, 2))]
            if some():
                wanted[f"prefer_{side}"] = [(rng.randint(1, 100), self._term())]
        if wanted:
            how["affinity"] = affinity(**wanted)
        if some():
            how["topologySpreadConstraints"] = [self._spread() for _ in range(rng.randint(1, 2))]
        return how

    def _term(self) -> dict[str, Any]:
        return term(self.rng.choice([ZONE, HOST]), {"app": self.rng.choice(APPS)})

    def _spread(self) -> dict[str, Any]:
        rng = self.rng
        other: dict[str, Any] = {}
        if self.chance(0.3):
            other["nodeTaintsPolicy"] = rng.choice(["Honor", "Ignore"])
        if self.chance(0.3):
            other["nodeAffinityPolicy"] = rng.choice(["Honor", "Ignore"])
        hard = self.chance(0.6)
        if hard and self.chance(0.3):
            other["minDomains"] = rng.randint(1, 4)
        return spread(rng.choice([ZONE, HOST]), {"app": rng.choice(APPS)}, rng.randint(1, 2), hard=hard, **other)

    def _running_job(self, name: str, queue_name: str) -> None:
        rng = self.rng
        tasks, how = rng.randint(1, self.size.most_tasks), self._template()
        group = name if self.chance(0.8) else ""
        if group:
            self.objects.append(
                pod_group(name, rng.randint(0, tasks), queue_name, phase="Running", age=rng.randint(0, 99))
            )
        leaving = self.leaving or self.chance(0.4)
        for i in range(tasks):
            deleted = (NOW + timedelta(seconds=30)).isoformat() if leaving and self.chance(0.7) else None
            node = rng.choice(self.nodes)
            self.objects.append(member(group, f"{name}-w-{i}", node=node, deleted=deleted, **how))

    def _waiting_job(self, name: str, queue_name: str) -> None:
        rng, some = self.rng, self.some
        roles: list[tuple[str, int]] = []
        for role in rng.sample(["", "master", "worker"], rng.randint(1, 2)):
            roles.append((role, rng.randint(1, self.size.most_tasks)))
        total = sum(n for _, n in roles)
        kind = rng.choice(["one", "all", "some", "some"])
        minimum = {"one": 1, "all": total, "some": rng.randint(0, total)}[kind]
        asked: dict[str, Any] = {}
        if some():
            asked["roles"] = {role or "master": rng.randint(0, n) for role, n in roles}
        if self.chance(0.3):
            asked["min_resources"] = {"cpu": rng.randint(1, 6)}
        if self.wild and some():
            policy = {"name": "s", "subGroupSize": rng.randint(1, 2), "minSubGroups": rng.randint(0, 2)}
            asked["subGroupPolicy"] = [policy | {"matchLabelKeys": ["app"]}]
        if self.chance(0.3):
            asked["priority_class"] = f"p{rng.choice([1, 10, 100])}"
        phase = rng.choice(["Pending", "Inqueue", "Inqueue"])
        self.objects.append(pod_group(name, minimum, queue_name, phase=phase, age=rng.randint(0, 99), **asked))
        i = 0
        named = rng.choice(["w-", "w-", "w"])
        for role, count in roles:
            how = self._template()
            for _ in range(count):
                each = dict(how)
                if some():
                    each["labels"] = {"app": rng.choice(APPS)}
                if self.chance(self.spice / 4):
                    each["priority"] = rng.choice([1, 5])
                pod = member(name, f"{name}-{named}{i}", role=role, age=rng.choice([0, 0, i]), **each)
                self._odd(pod)
                self.objects.append(pod)
                i += 1

    def _odd(self, pod: Pod) -> None:
        rng = self.rng
        if self.chance(self.nominated):
            pod.status.nominated_node_name = rng.choice([*self.nodes, "nowhere"])
        if self.chance(self.spice / 8):
            pod.spec.scheduling_gates = [PodSchedulingGate(name=rng.choice(GATES))]


def _priority_class(value: int) -> KubernetesObject:
    return msgspec.convert({"metadata": {"name": f"p{value}"}, "value": value}, PriorityClass)


def scene(rng: random.Random, size: Size = SMALL, *, wild: bool = False) -> Scene:
    return SceneBuilder(rng, size, wild=wild).build()
