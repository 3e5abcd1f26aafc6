"""What goes on in a cluster beside the scheduler: pods start and end, controllers create what they held back.

A conformance case has no such world, its cluster only steps (spec 07 §8.4, §8.9).
"""

from __future__ import annotations

from collections.abc import Sequence

from vcscheduler.cluster.memory import MemoryCluster
from vcscheduler.objects import Pod, PodGroup
from vcscheduler.workloads import Expansion, HeldPods
from vcscheduler.workloads.keys import GROUP_NAME, TASK_SPEC

_READY = ("Running", "Succeeded")


class World:
    """An embedded cluster and the controllers around it.

    Args:
        expansion: what is there at first; its objects are created in the cluster, at the clock's time.
    """

    def __init__(self, cluster: MemoryCluster, expansion: Expansion) -> None:
        self.cluster = cluster
        self._held: list[HeldPods] = []
        self.add(expansion)

    def add(self, expansion: Expansion) -> None:
        """More objects arrive."""
        for obj in expansion.objects:
            self.cluster.create(obj)
        self._held += expansion.held
        self.cluster.bind_waiting_claims()

    @property
    def held(self) -> Sequence[HeldPods]:
        """Pods that their controller has not created yet."""
        return self._held

    def step(self) -> None:
        """One move of the world between two cycles."""
        self.cluster.step()
        due = [held for held in self._held if self._is_due(held)]
        self._held = [held for held in self._held if held not in due]
        for held in due:
            for pod in held.pods:
                self.cluster.create(pod)
        self.cluster.bind_waiting_claims()

    def _is_due(self, held: HeldPods) -> bool:
        group = self.cluster.get(PodGroup, held.pod_group)
        if group is None or group.status.phase in ("", "Pending"):
            return False
        if not held.after:
            return True
        ready = [self._ready_pods(held.pod_group, task) >= least for task, least in held.after]
        return any(ready) if held.any_of and len(ready) > 1 else all(ready)

    def _ready_pods(self, pod_group: str, task: str) -> int:
        namespace, _, name = pod_group.partition("/")
        return sum(
            pod.namespace == namespace
            and pod.metadata.annotations.get(GROUP_NAME) == name
            and pod.metadata.annotations.get(TASK_SPEC) == task
            and pod.status.phase in _READY
            for pod in self.cluster.objects(Pod)
        )
