"""Binding with claims: write what the plan says, wait until they are bound, then bind the pod (spec 05 §3.9, 07 §3.3).

Nobody blocks for it: a pod that waits for its claims is looked at again when a session begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta

from vcscheduler.cluster.interface import Cluster, ClusterError, ErrorReason
from vcscheduler.model.listers import Listers
from vcscheduler.model.task import Task
from vcscheduler.model.volume_plan import BIND_COMPLETED, SELECTED_NODE, VolumePlan
from vcscheduler.objects import KubernetesObject, ObjectReference, PersistentVolumeClaim


@dataclass(slots=True)
class _Waiting:
    task: Task
    plan: VolumePlan
    deadline: datetime


class VolumeBinder:
    """Pods on their way to a binding.

    ``news()``: events that the cache has not taken in yet, which may already tell of bound claims.
    """

    def __init__(
        self,
        cluster: Cluster,
        listers: Listers,
        clock: Callable[[], datetime],
        news: Callable[[], Iterable[KubernetesObject | None]],
    ) -> None:
        self._cluster = cluster
        self._listers = listers
        self._clock = clock
        self._news = news
        self._waiting: list[_Waiting] = []

    def start(self, task: Task, plan: VolumePlan) -> None:
        """Write, and bind at once if there is nothing to wait for.

        Raises:
            ClusterError: a write was refused; what was assumed is taken back.
        """
        try:
            self._write(plan)
        except ClusterError:
            plan.abandon()
            raise
        if self._bound(plan):
            self._cluster.bind(task.pod, plan.node, {})
        else:
            deadline = self._clock() + timedelta(seconds=plan.timeout_seconds)
            self._waiting.append(_Waiting(task, plan, deadline))

    def advance(self) -> list[tuple[Task, ClusterError]]:
        """Bind the pods whose claims are bound by now; returns those that came to nothing."""
        failed: list[tuple[Task, ClusterError]] = []
        still: list[_Waiting] = []
        for each in self._waiting:
            try:
                if self._bound(each.plan):
                    self._cluster.bind(each.task.pod, each.plan.node, {})
                elif self._clock() >= each.deadline:
                    raise ClusterError(ErrorReason.TIMEOUT, "binding volumes: context deadline exceeded")
                else:
                    still.append(each)
            except ClusterError as error:
                each.plan.abandon()
                failed.append((each.task, error))
        self._waiting = still
        return failed

    def __len__(self) -> int:
        return len(self._waiting)

    def _write(self, plan: VolumePlan) -> None:
        for volume_name, key in plan.bindings:
            volume, claim = self._listers.volumes[volume_name], self._listers.claims[key]
            given = copy(volume)
            given.spec = copy(volume.spec)
            given.spec.claim_ref = ObjectReference(
                api_version="v1",
                kind="PersistentVolumeClaim",
                namespace=claim.namespace,
                name=claim.name,
                uid=claim.metadata.uid,
            )
            self._cluster.update_volume(given)
        for key in plan.provisions:
            claim = self._listers.claims[key]
            chosen = copy(claim)
            chosen.metadata = copy(claim.metadata)
            chosen.metadata.annotations = {**claim.metadata.annotations, SELECTED_NODE: plan.node}
            self._cluster.update_claim(chosen)

    def _bound(self, plan: VolumePlan) -> bool:
        claims = dict(self._listers.claims)
        for obj in self._news():
            if isinstance(obj, PersistentVolumeClaim):
                claims[obj.key] = obj
        return all(
            (claim := claims.get(key)) is not None
            and claim.spec.volume_name
            and BIND_COMPLETED in claim.metadata.annotations
            for key in plan.claims
        )
