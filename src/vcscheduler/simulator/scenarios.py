"""The measured scenarios: clusters and workloads of a few shapes, made from figures (docs/benchmarks.md).

Pods of one group share what they can, as a decoder with interning would: spec, labels and annotations are one object a
group, so a million pods fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from vcscheduler.objects import (
    Affinity,
    Container,
    KubernetesObject,
    LabelSelector,
    Node,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodGroup,
    PodGroupSpec,
    PodGroupStatus,
    PodSpec,
    PodStatus,
    PriorityClass,
    Queue,
    QueueSpec,
    QueueStatus,
    ResourceRequirements,
    TopologySpreadConstraint,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

#: Actions and plugins of the default configuration; a scenario adds an action to it where it needs one.
DEFAULT = """\
actions: "{actions}"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
PLAIN = DEFAULT.format(actions="enqueue, allocate, backfill")


@dataclass(frozen=True, slots=True)
class Scenario:
    """``objects``: in order of creation. ``expected_binds``: in the first cycle; ``expected_evictions`` likewise.
    ``idle``: what is measured is the second cycle on, when nothing changes any more."""

    name: str
    about: str
    objects: Callable[[], Iterator[KubernetesObject]]
    configuration: str = PLAIN
    expected_binds: int = 0
    expected_evictions: int = 0
    idle: bool = False
    large: bool = False


def nodes(count: int, cpu: str = "64") -> Iterator[Node]:
    for i in range(count):
        name = f"node-{i:05d}"
        resources: dict[str, str | int | float] = {"cpu": cpu, "memory": "256Gi", "pods": "110"}
        yield Node(
            metadata=ObjectMeta(
                name=name,
                labels={
                    HOSTNAME: name,
                    "kubernetes.io/arch": "amd64",
                    "kubernetes.io/os": "linux",
                    "topology.kubernetes.io/region": "region-0",
                    ZONE: f"zone-{i % 3}",
                },
                creation_timestamp=START,
            ),
            spec=NodeSpec(),
            status=NodeStatus(capacity=resources, allocatable=resources),
        )


def queue(name: str) -> Queue:
    return Queue(
        metadata=ObjectMeta(name=name, creation_timestamp=START),
        spec=QueueSpec(weight=1),
        status=QueueStatus(state="Open"),
    )


def priority_class(name: str, value: int) -> PriorityClass:
    return PriorityClass(metadata=ObjectMeta(name=name, creation_timestamp=START), value=value)


@dataclass(frozen=True, slots=True)
class Groups:
    """``count`` PodGroups of ``pods`` pods each; ``running_on``: that many nodes hold them already, round robin."""

    prefix: str
    count: int
    pods: int
    min_member: int
    queue: str = "default"
    priority_class: str = ""
    running_on: int = 0
    affinity: Callable[[str], Affinity] | None = None
    spread: tuple[TopologySpreadConstraint, ...] = ()
    start: int = 0

    def __call__(self) -> Iterator[KubernetesObject]:
        requests: dict[str, str | int | float] = {"cpu": "1", "memory": "2Gi"}
        containers = [Container(name="main", image="work:1", resources=ResourceRequirements(requests=requests))]
        placed = 0
        for g in range(self.start, self.start + self.count):
            group = f"{self.prefix}-{g:05d}"
            created = START + timedelta(seconds=g)
            yield PodGroup(
                metadata=ObjectMeta(name=group, namespace="default", uid=group, creation_timestamp=created),
                spec=PodGroupSpec(
                    min_member=self.min_member,
                    queue=self.queue,
                    priority_class_name=self.priority_class,
                    min_resources={"cpu": str(self.min_member), "memory": f"{2 * self.min_member}Gi"},
                ),
                status=PodGroupStatus(phase="Running" if self.running_on else "Pending"),
            )
            labels = {
                "app": "bench",
                "gang": group,
                "volcano.sh/job-name": group,
                "volcano.sh/task-spec": "worker",
            }
            annotations = {
                "scheduling.k8s.io/group-name": group,
                "volcano.sh/job-name": group,
                "volcano.sh/task-spec": "worker",
            }
            owners = [
                OwnerReference(
                    api_version="batch.volcano.sh/v1alpha1", kind="Job", name=group, uid=group, controller=True
                )
            ]
            affinity = self.affinity(group) if self.affinity is not None else None
            spread = list(self.spread)

            def spec(node_name: str) -> PodSpec:
                return PodSpec(
                    containers=containers,
                    scheduler_name="volcano",
                    node_name=node_name,
                    affinity=affinity,  # noqa: B023
                    topology_spread_constraints=spread,  # noqa: B023
                )

            pending = None if self.running_on else spec("")
            status = PodStatus(phase="Running" if self.running_on else "Pending")
            for k in range(self.pods):
                name = f"{group}-worker-{k}"
                yield Pod(
                    metadata=ObjectMeta(
                        name=name,
                        namespace="default",
                        uid=name,
                        labels=labels,
                        annotations=annotations,
                        owner_references=owners,
                        creation_timestamp=created,
                    ),
                    spec=pending or spec(f"node-{placed % self.running_on:05d}"),
                    status=status,
                )
                placed += 1


def _cluster(
    node_count: int, *groups: Groups, cpu: str = "64", queues: tuple[str, ...] = ("default",), classes: bool = False
) -> Callable[[], Iterator[KubernetesObject]]:
    def objects() -> Iterator[KubernetesObject]:
        yield from nodes(node_count, cpu)
        for name in queues:
            yield queue(name)
        if classes:
            yield priority_class("low", 100)
            yield priority_class("high", 1000)
        for each in groups:
            yield from each()

    return objects


def _own_gang_apart(group: str) -> Affinity:
    term = PodAffinityTerm(label_selector=LabelSelector(match_labels={"gang": group}), topology_key=HOSTNAME)
    return Affinity(pod_anti_affinity=PodAffinity(required=[term]))


_ZONE_SPREAD = (
    TopologySpreadConstraint(
        max_skew=1,
        topology_key=ZONE,
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": "bench"}),
    ),
)


def _scenarios() -> dict[str, Scenario]:
    def gang(count: int, size: int = 500) -> Groups:
        return Groups("gang", count, size, size)

    all_of_them = [
        Scenario("A", "1,000 nodes, 20 gangs of 500", _cluster(1000, gang(20)), expected_binds=10_000),
        Scenario(
            "B",
            "1,000 nodes, 10,000 one-pod groups",
            _cluster(1000, Groups("single", 10_000, 1, 1)),
            expected_binds=10_000,
        ),
        Scenario("C", "5,000 nodes, 100 gangs of 500", _cluster(5000, gang(100)), expected_binds=50_000),
        Scenario(
            "D",
            "5,000 nodes, 10,000 one-pod groups",
            _cluster(5000, Groups("single", 10_000, 1, 1)),
            expected_binds=10_000,
        ),
        Scenario(
            "E",
            "5,000 nodes, 50 gangs of 100, anti-affinity to the own gang by hostname",
            _cluster(5000, Groups("anti", 50, 100, 100, affinity=_own_gang_apart)),
            expected_binds=5000,
        ),
        Scenario(
            "F",
            "5,000 nodes, 2,000 one-pod groups, zone spread",
            _cluster(5000, Groups("spread", 2000, 1, 1, spread=_ZONE_SPREAD)),
            expected_binds=2000,
        ),
        Scenario(
            "G",
            "idle: 5,000 nodes, 50,000 running pods",
            _cluster(5000, Groups("gang", 500, 100, 100, running_on=5000)),
            idle=True,
        ),
        Scenario(
            "G2",
            "idle: 5,000 nodes, 140,000 running pods",
            _cluster(5000, Groups("gang", 1400, 100, 100, running_on=5000)),
            idle=True,
        ),
        Scenario(
            "L",
            "100,000 nodes, 1,000 gangs of 1,000",
            _cluster(100_000, gang(1000, 1000)),
            expected_binds=1_000_000,
            large=True,
        ),
    ]
    return {s.name: s for s in all_of_them}


SCENARIOS = _scenarios()
