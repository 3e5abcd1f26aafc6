"""A cache that lived through events and sessions knows what one knows that is built from the objects at once."""

from __future__ import annotations

import random
from copy import deepcopy
from typing import TypeVar

import pytest
from hypothesis import given

import builders
import digests
from lab import NOW, Lab, member, pod_group, queue
from profiles import SEEDS, SOME
from random_clusters import SMALL, SceneBuilder, scene
from vcscheduler.cluster.faults import Operation
from vcscheduler.model.aggregates import Aggregates
from vcscheduler.objects import KubernetesObject, Node, Pod, PodGroup, Queue

K = TypeVar("K", bound=KubernetesObject)


class World:
    """Random things that users, controllers and kubelets do."""

    def __init__(self, lab: Lab, rng: random.Random) -> None:
        self.lab = lab
        self.rng = rng
        self.count = 0
        self.templates = SceneBuilder(rng, SMALL)

    def some(self, kind: type[K]) -> K | None:
        found = self.lab.cluster.objects(kind)
        return deepcopy(self.rng.choice(found)) if found else None

    def happen(self) -> None:
        getattr(self, self.rng.choice([name for name in dir(self) if name.startswith("do_")]))()

    def do_new_pods(self) -> None:
        group = self.some(PodGroup)
        how = self.templates._template()
        for _ in range(self.rng.randint(1, 4)):
            self.count += 1
            name = group.name if group is not None and self.rng.random() < 0.9 else "unknown"
            self.lab.add(member(name, f"new-{self.count}", role=self.rng.choice(["", "master"]), **how))

    def do_new_group(self) -> None:
        self.count += 1
        target = self.rng.choice(["q0", "q1", "nowhere", ""])
        least = {"cpu": 2, "memory": "1Gi"} if self.rng.random() < 0.5 else None
        self.lab.add(pod_group(f"g{self.count}", self.rng.randint(0, 3), target, min_resources=least))

    def do_change_group(self) -> None:
        group = self.some(PodGroup)
        if group is not None:
            group.spec.min_member = self.rng.randint(0, 4)
            group.spec.queue = self.rng.choice(["q0", "q1", "nowhere"])
            group.spec.min_task_member = self.rng.choice([{}, {"master": 1}])
            self.lab.add(group)

    def do_delete_group(self) -> None:
        group = self.some(PodGroup)
        if group is not None and self.rng.random() < 0.3:
            self.lab.cluster.delete(PodGroup, group.key)

    def do_queue_comes_or_goes(self) -> None:
        name = self.rng.choice(["q0", "q1", "q2"])
        if self.lab.cluster.get(Queue, name) is None:
            self.lab.add(queue(name))
        elif self.rng.random() < 0.3:
            self.lab.cluster.delete(Queue, name)

    def do_pod_ends(self) -> None:
        pod = self.some(Pod)
        if pod is not None and pod.spec.node_name:
            pod.status.phase = self.rng.choice(["Succeeded", "Failed", "Unknown"])
            self.lab.add(pod)

    def do_delete_pod(self) -> None:
        pod = self.some(Pod)
        if pod is not None:
            self.lab.cluster.delete(Pod, pod.key)

    def do_mark_pod_deleted(self) -> None:
        pod = self.some(Pod)
        if pod is not None:
            pod.metadata.deletion_timestamp = NOW
            self.lab.add(pod)

    def do_relabel_pod(self) -> None:
        pod = self.some(Pod)
        if pod is not None:
            pod.metadata.labels = {"app": self.rng.choice(["web", "db"]), "volcano.sh/task-spec": "master"}
            self.lab.add(pod)

    def do_new_node(self) -> None:
        self.count += 1
        extra = {"example.com__card": 2} if self.rng.random() < 0.3 else {}
        self.lab.add(builders.node(f"m{self.count}", labels={"disk": "ssd"}, **extra))

    def do_change_node(self) -> None:
        node = self.some(Node)
        if node is not None:
            node.status.allocatable = {**node.status.allocatable, "cpu": str(self.rng.randint(1, 8))}
            node.spec.unschedulable = self.rng.random() < 0.3
            self.lab.add(node)

    def do_drain_and_delete_node(self) -> None:
        node = self.some(Node)
        if node is not None and self.rng.random() < 0.3:
            for pod in self.lab.cluster.objects(Pod):
                if pod.spec.node_name == node.name:
                    self.lab.cluster.delete(Pod, pod.key)
            self.lab.cluster.delete(Node, node.name)

    def do_cycle(self) -> None:
        self.lab.cycle()
        self.lab.cluster.step()


def recomputed(lab: Lab) -> Aggregates:
    plain = Aggregates()
    plain.refresh(lab.cache.jobs.values())
    return plain


@SOME
@given(SEEDS)
def test_after_any_events_the_cache_is_as_if_made_anew(seed: int) -> None:
    rng = random.Random(seed)
    lab = scene(rng).lab()
    world = World(lab, rng)
    for _ in range(4):
        for _ in range(rng.randint(1, 6)):
            world.happen()
        lab.cache.begin_session()
        assert digests.sums(lab.cache.aggregates) == digests.sums(recomputed(lab))
        assert digests.cache(lab.cache) == digests.cache(digests.rebuilt(lab))


@SOME
@given(SEEDS)
def test_after_whole_sessions_the_cache_is_as_if_made_anew(seed: int) -> None:
    lab = scene(random.Random(seed), wild=seed % 2 == 0).lab()
    for _ in range(3):
        lab.cycle()
        lab.cluster.step()
        lab.cache.begin_session()
        assert digests.cache(lab.cache) == digests.cache(digests.rebuilt(lab))


@SOME
@given(SEEDS)
def test_a_session_that_does_nothing_changes_nothing(seed: int) -> None:
    lab = scene(random.Random(seed), wild=seed % 2 == 0).lab()
    lab.cycles(2)
    lab.cluster.step()
    lab.cache.begin_session()
    tables = digests.nodes(lab.cache.table)
    ssn = lab.session()
    lab.close(ssn)
    assert digests.nodes(lab.cache.table) == tables


@pytest.mark.parametrize("share", [0.3, 1.0])
@SOME
@given(SEEDS)
def test_refused_binds_leave_no_trace(share: float, seed: int) -> None:
    lab = scene(random.Random(seed), wild=seed % 2 == 0).lab()
    choose = random.Random(seed)
    refused: set[str] = set()

    def unlucky(obj: KubernetesObject) -> bool:
        if choose.random() < share:
            refused.add(obj.key)
            return True
        return False

    lab.cluster.refuse(Operation.BIND, unlucky)
    record = lab.cycle()
    assert not refused & record.binds.keys()
    lab.cluster.clear_faults()
    lab.cluster.step()
    lab.cache.begin_session()
    assert digests.cache(lab.cache) == digests.cache(digests.rebuilt(lab))
