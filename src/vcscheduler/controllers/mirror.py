"""Mirror: the objects that controllers look at, as the cluster last told of them or answered to a write.

Belongs to one thread. Answers are taken in as soon as they come, so that no decision is made twice on what an event,
still on its way, would show to be done.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, TypeAlias

from vcscheduler.controllers.job_events import job_of
from vcscheduler.controllers.job_reconcile import JobView, group_keys
from vcscheduler.objects import (
    BatchJob,
    Command,
    DaemonSet,
    KubernetesObject,
    OwnerReference,
    Pod,
    PodGroup,
    PriorityClass,
    Queue,
    ReplicaSet,
    StatefulSet,
    VolcanoJob,
)
from vcscheduler.workloads.admission import PodAdmission, changed
from vcscheduler.workloads.keys import GROUP_NAME
from vcscheduler.workloads.volcano_jobs import default_job

Change: TypeAlias = tuple[KubernetesObject | None, KubernetesObject | None]
Workload: TypeAlias = ReplicaSet | StatefulSet | DaemonSet | BatchJob

WORKLOADS: Final = (ReplicaSet, StatefulSet, DaemonSet, BatchJob)
"""Owners of pods whose annotations count for the pods' PodGroup."""
_KEPT: Final = (VolcanoJob, PodGroup, Queue, Command, PriorityClass, *WORKLOADS)


class Mirror:
    """
    Args:
        scheduler_names: ours; the first is what jobs that name none get.
    """

    def __init__(self, scheduler_names: tuple[str, ...]) -> None:
        self._names = scheduler_names
        self._objects: dict[type[KubernetesObject], dict[str, KubernetesObject]] = {kind: {} for kind in _KEPT}
        self._defaulted: dict[str, VolcanoJob] = {}
        self._pods: dict[tuple[str, str], dict[str, Pod]] = {}
        self._groups_of_queue: dict[str, set[str]] = {}
        self._admission: PodAdmission | None = None
        self.ungrouped: dict[str, Pod] = {}

    # What is there

    def find(self, kind: type[KubernetesObject], key: str) -> KubernetesObject | None:
        return self._objects[kind].get(key)

    def jobs(self) -> list[str]:
        return list(self._objects[VolcanoJob])

    def queues(self) -> dict[str, Queue]:
        return {key: queue for key, queue in self._objects[Queue].items() if isinstance(queue, Queue)}

    def commands(self) -> list[Command]:
        return [command for command in self._objects[Command].values() if isinstance(command, Command)]

    def pod_group(self, key: str) -> PodGroup | None:
        group = self._objects[PodGroup].get(key)
        return group if isinstance(group, PodGroup) else None

    def queue(self, name: str) -> Queue | None:
        queue = self._objects[Queue].get(name)
        return queue if isinstance(queue, Queue) else None

    def is_used(self, queue: str) -> bool:
        """Whether any PodGroup is in the queue."""
        return bool(self._groups_of_queue.get(queue))

    def workload(self, namespace: str, owner: OwnerReference) -> Workload | None:
        for kind in WORKLOADS:
            if (kind.api_version, kind.kind) == (owner.api_version, owner.kind):
                found = self._objects[kind].get(f"{namespace}/{owner.name}")
                if isinstance(found, kind) and found.metadata.uid == owner.uid:
                    return found
        return None

    def workloads(self) -> list[KubernetesObject]:
        return [each for kind in WORKLOADS for each in self._objects[kind].values()]

    @property
    def admission(self) -> PodAdmission:
        if self._admission is None:
            classes = self._objects[PriorityClass].values()
            self._admission = PodAdmission(each for each in classes if isinstance(each, PriorityClass))
        return self._admission

    def view(self, key: str) -> JobView | None:
        """A job with all that belongs to it."""
        stored = self._objects[VolcanoJob].get(key)
        if not isinstance(stored, VolcanoJob):
            return None
        job = self._defaulted.get(key)
        if job is None:
            job = self._defaulted[key] = default_job(stored, self._names[0])
        groups = (self.pod_group(each) for each in group_keys(job))
        return JobView(
            stored,
            job,
            self._pods.get((job.namespace, job.metadata.uid), {}),
            next((group for group in groups if group is not None and _is_owned(group, job)), None),
        )

    # What changes

    def take(self, change: Change) -> Change | None:
        """Take an event in; None if it tells nothing that is not known already. The old object of the result is the
        one that was known."""
        old, new = change
        obj = new if new is not None else old
        assert obj is not None
        if isinstance(obj, Pod):
            return self._take_pod(old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None)
        of_kind = self._objects.get(type(obj))
        if of_kind is None:
            return None
        known = of_kind.get(obj.key)
        if new is None:
            if known is None or known.metadata.uid != obj.metadata.uid:
                return None
            del of_kind[obj.key]
        else:
            if known is not None and not _is_news(known, new):
                return None
            of_kind[obj.key] = new
        self._forget_derived(known, new)
        return known, new

    def _take_pod(self, old: Pod | None, new: Pod | None) -> Change | None:
        pod = new if new is not None else old
        assert pod is not None
        if pod.spec.scheduler_name in self._names and GROUP_NAME not in pod.metadata.annotations and new is not None:
            self.ungrouped[pod.key] = pod
        else:
            self.ungrouped.pop(pod.key, None)
        owner = job_of(pod)
        if owner is None:
            return old, new
        pods = self._pods.setdefault((pod.namespace, owner.uid), {})
        known = pods.get(pod.name)
        if new is None:
            if known is not None and known.metadata.uid == pod.metadata.uid:
                del pods[pod.name]
                if not pods:
                    del self._pods[pod.namespace, owner.uid]
            return pod, None
        if known is not None and not _is_news(known, new):
            return None
        pods[pod.name] = new
        return known, new

    def _forget_derived(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        some = new if new is not None else old
        if isinstance(some, VolcanoJob):
            self._defaulted.pop(some.key, None)
        elif isinstance(some, PriorityClass):
            self._admission = None
        elif isinstance(some, PodGroup):
            if isinstance(old, PodGroup):
                self._groups_of_queue.get(old.spec.queue, set()).discard(old.key)
            if isinstance(new, PodGroup):
                self._groups_of_queue.setdefault(new.spec.queue, set()).add(new.key)

    # What was answered to writes

    def stored(self, obj: KubernetesObject) -> Change | None:
        """A write was answered with this version. Returns what changed."""
        return self.take((None, obj))

    def deleted(self, obj: KubernetesObject, now: datetime) -> Change | None:
        """A deletion was accepted: a pod is on its way out, anything else is gone. Returns what changed."""
        if not isinstance(obj, Pod):
            return self.take((obj, None))
        owner = job_of(obj)
        pods = self._pods.get((obj.namespace, owner.uid), {}) if owner is not None else {}
        known = pods.get(obj.name)
        if known is not None and known.metadata.uid == obj.metadata.uid and not known.metadata.deletion_timestamp:
            pods[obj.name] = changed(known, metadata=changed(known.metadata, deletion_timestamp=now))
        return None


def _is_owned(group: PodGroup, job: VolcanoJob) -> bool:
    return any(owner.uid == job.metadata.uid for owner in group.metadata.owner_references)


def _is_news(known: KubernetesObject, new: KubernetesObject) -> bool:
    """Whether a version is later than the known one, as far as versions can be compared."""
    if known.metadata.uid != new.metadata.uid:
        return True
    before, now = known.metadata.resource_version, new.metadata.resource_version
    if before.isdecimal() and now.isdecimal():
        return int(now) > int(before)
    return known is not new
