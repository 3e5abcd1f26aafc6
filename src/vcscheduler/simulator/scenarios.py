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
PREEMPTING = (
    DEFAULT.format(actions="enqueue, allocate, preempt, backfill")
    .replace("  - name: gang\n", "  - name: gang\n    enablePreemptable: false\n")
    .replace("  - name: drf\n", "  - name: drf\n    enablePreemptable: false\n")
)
RECLAIMING = DEFAULT.format(actions="enqueue, allocate, reclaim, backfill")
TREE = DEFAULT.format(actions="enqueue, allocate, preempt, reclaim, backfill").replace(
    "  - name: proportion\n", "  - name: capacity\n    enableHierarchy: true\n"
)


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
    #: Number of the first group in names; ``start`` counts the seconds of creation.
    name_from: int | None = None
    #: Pods that other groups have placed before, for the round robin.
    placed: int = 0

    def __call__(self) -> Iterator[KubernetesObject]:
        requests: dict[str, str | int | float] = {"cpu": "1", "memory": "2Gi"}
        containers = [Container(name="main", image="work:1", resources=ResourceRequirements(requests=requests))]
        placed = self.placed
        for g in range(self.start, self.start + self.count):
            first = self.start if self.name_from is None else self.name_from
            group = f"{self.prefix}-{first + g - self.start:05d}"
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


def _tree() -> Iterator[KubernetesObject]:
    """A root, 10 departments, 190 teams with equal deserved shares; the first 100 teams use what they have."""
    node_count, departments, teams = 5000, 10, 190
    yield from nodes(node_count)
    cpu, memory, pods = node_count * 64, node_count * 256, node_count * 110

    def of(name: str, parent: str, parts: int) -> Queue:
        made = queue(name)
        made.spec.parent = parent
        made.spec.deserved = {"cpu": f"{cpu * 1000 // parts}m", "memory": f"{memory // parts}Gi", "pods": pods // parts}
        return made

    yield queue("root")
    for d in range(departments):
        yield of(f"department-{d}", "root", departments)
    for t in range(teams):
        yield of(f"team-{t:03d}", f"department-{t % departments}", teams)
    for g in range(500):
        team = f"team-{g % 100:03d}"
        yield from Groups("run", 1, 100, 100, queue=team, running_on=node_count, start=g, placed=100 * g)()
    for g in range(100):
        yield from Groups("new", 1, 20, 20, queue=f"team-{100 + g % 90:03d}", start=1000 + g)()


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
            "H",
            "1,000 full nodes, 60,000 low-priority pods, a high-priority gang of 200, preempt",
            _cluster(
                1000,
                Groups("low", 600, 100, 1, priority_class="low", running_on=1000),
                Groups("high", 1, 200, 200, priority_class="high", start=600, name_from=0),
                cpu="60",
                classes=True,
            ),
            PREEMPTING,
            expected_evictions=200,
        ),
        Scenario(
            "I",
            "1,000 full nodes, 60,000 pods of queue-a, a gang of 500 in queue-b, reclaim",
            _cluster(
                1000,
                Groups("have", 600, 100, 1, queue="queue-a", running_on=1000),
                Groups("want", 1, 500, 500, queue="queue-b", start=600, name_from=0),
                cpu="60",
                queues=("queue-a", "queue-b"),
            ),
            RECLAIMING,
            expected_evictions=500,
        ),
        Scenario(
            "J",
            "5,000 nodes, a tree of 190 team queues, 50,000 running and 2,000 pending pods, preempt and reclaim",
            _tree,
            TREE,
            expected_binds=2000,
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

#: Not measured: small ones, so that what is loaded when it is first used is there.
WARM_UPS = (
    Scenario(
        "warm-up 1",
        "2 nodes, 110 low-priority pods, a gang of 10 that fits, a high-priority gang of 20 that preempts",
        _cluster(
            2,
            Groups("low", 1, 110, 1, priority_class="low", running_on=2),
            Groups("fits", 1, 10, 10, priority_class="high", start=1),
            Groups("high", 1, 20, 20, priority_class="high", start=2),
            cpu="60",
            classes=True,
        ),
        PREEMPTING,
        expected_binds=10,
        expected_evictions=20,
    ),
    Scenario(
        "warm-up 2",
        "2 full nodes, a gang of 5 that reclaims",
        _cluster(
            2,
            Groups("have", 1, 120, 1, queue="queue-a", running_on=2),
            Groups("want", 1, 5, 5, queue="queue-b", start=1),
            cpu="60",
            queues=("queue-a", "queue-b"),
        ),
        RECLAIMING,
        expected_evictions=5,
    ),
)
