"""The world around the scheduler creates the pods of Volcano Jobs when their time has come (spec 07 §8.4)."""

from copy import copy
from datetime import UTC, datetime

from vcscheduler.cluster.memory import MemoryCluster
from vcscheduler.objects import Pod, PodGroup, PodGroupStatus, read_manifest_text
from vcscheduler.simulator.world import World
from vcscheduler.workloads import expand

JOB = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: m, namespace: ns, uid: u}
spec:
  tasks:
  - {name: a, replicas: 2, template: {spec: {containers: [{name: c}]}}}
  - {name: b, replicas: 1, dependsOn: {name: [a]}, template: {spec: {containers: [{name: c}]}}}
"""
NOW = datetime(2026, 11, 29, tzinfo=UTC)


def names(cluster: MemoryCluster) -> list[str]:
    return [pod.name for pod in cluster.objects(Pod)]


def test_pods_come_when_their_group_is_let_in_and_the_tasks_before_them_are_ready() -> None:
    cluster = MemoryCluster(lambda: NOW)
    world = World(cluster, expand(read_manifest_text(JOB), hold_job_pods=True))
    world.step()
    assert names(cluster) == []

    group = cluster.get(PodGroup, "ns/m-u")
    assert group is not None
    admitted = copy(group)
    admitted.status = PodGroupStatus(phase="Inqueue")
    cluster.update_pod_group(admitted)
    world.step()
    assert names(cluster) == ["m-a-0", "m-a-1"]
    assert [held.task for held in world.held] == ["b"]

    for pod in cluster.objects(Pod):
        assert pod.metadata.creation_timestamp == NOW
        cluster.bind(pod, "n1", {})
    world.step()
    assert names(cluster) == ["m-a-0", "m-a-1", "m-b-0"]
    assert world.held == []
