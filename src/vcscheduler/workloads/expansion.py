"""From what people write to what the scheduler sees: defaults, PodGroups, pods, as webhooks and controllers make them.

Objects that come from a cluster (they have a UID and a time of creation) have been through all this: they are
taken as they are, and only what their controllers would still create is added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

from vcscheduler.objects import (
    BatchJob,
    CronJob,
    DaemonSet,
    Deployment,
    KubernetesObject,
    Manifests,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodGroup,
    PodTemplateSpec,
    PriorityClass,
    Queue,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    StorageClass,
    VolcanoJob,
    controller_of,
    describe,
)
from vcscheduler.objects.errors import InvalidField, Path, show_path
from vcscheduler.workloads import controllers, keys, pod_groups, volcano_jobs
from vcscheduler.workloads.admission import (
    PodAdmission,
    changed,
    default_claim,
    default_pod_group,
    default_storage_class,
    default_volume,
)
from vcscheduler.workloads.controllers import Workload, reference_key
from vcscheduler.workloads.identity import is_stored, uid_of
from vcscheduler.workloads.job_checks import check_job
from vcscheduler.workloads.queues import QueueTree, default_queue, missing_queues

_T = TypeVar("_T", bound=KubernetesObject)
_WORKLOADS: Final = (ReplicaSet, ReplicationController, StatefulSet, DaemonSet, BatchJob)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An object that a cluster would refuse, so that it is not in the result."""

    obj: str
    field: str
    reason: str
    origin: str = ""
    """Where it was read, if that is known."""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.origin, self.obj, self.field, self.reason) if part)


@dataclass(frozen=True, slots=True)
class HeldPods:
    """Pods of one task of a Volcano Job that its controller does not create yet.

    They come once the PodGroup's phase is neither empty nor Pending and, if there are tasks in `after`, enough
    pods of these are ready: of any one of them if `any_of`, else of all. Enough is the number beside the name.
    """

    job: str
    pod_group: str
    task: str
    pods: tuple[Pod, ...]
    after: tuple[tuple[str, int], ...] = ()
    any_of: bool = False


@dataclass(slots=True)
class Expansion:
    """What a cluster would hold a moment after the input was applied."""

    objects: list[KubernetesObject] = field(default_factory=list)
    held: list[HeldPods] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def expand(
    objects: Manifests | Sequence[KubernetesObject],
    *,
    scheduler_name: str = "volcano",
    hold_job_pods: bool = False,
) -> Expansion:
    """Play webhooks and controllers once. The input is not changed.

    Args:
        objects: everything there is, in the order of creation.
        scheduler_name: our own name; pods of other schedulers get no PodGroup.
        hold_job_pods: leave the pods of Volcano Jobs in `Expansion.held` until their PodGroup is Inqueue, as the
            job controller does. Otherwise only tasks that depend on others are held.
    """
    origins: dict[int, str] = {}
    if isinstance(objects, Manifests):
        origins = {id(item.obj): str(item.origin) for item in objects.items}
        objects = objects.objects
    return _Expander(objects, origins, scheduler_name, hold_job_pods).run()


@contextmanager
def _within(path: Path) -> Iterator[None]:
    """Say of a mistake in a pod which part of its workload it comes from."""
    try:
        yield
    except InvalidField as wrong:
        raise InvalidField((*path, *wrong.path), wrong.message, at_key=wrong.at_key) from None


def _controller_uid(obj: KubernetesObject) -> str:
    owner = controller_of(obj.metadata)
    return owner.uid if owner is not None else ""


class _Expander:
    def __init__(
        self, objects: Sequence[KubernetesObject], origins: dict[int, str], scheduler_name: str, hold_job_pods: bool
    ) -> None:
        self._input = objects
        self._origins = origins
        self._scheduler_name = scheduler_name
        self._hold_job_pods = hold_job_pods
        self._result = Expansion()
        self._nodes = [obj for obj in objects if isinstance(obj, Node)]
        self._admission = PodAdmission(obj for obj in objects if isinstance(obj, PriorityClass))
        self._default_class = default_storage_class(obj for obj in objects if isinstance(obj, StorageClass))
        self._queues = QueueTree(())
        self._present = {(type(obj), obj.key) for obj in objects}
        self._owned: dict[tuple[str, str, str], list[KubernetesObject]] = {}
        self._owners: dict[tuple[str, str, str], KubernetesObject] = {}
        self._groups: set[str] = set()
        self._refused_groups: set[str] = set()
        self._ungrouped: dict[str, list[Pod]] = {}

    def run(self) -> Expansion:
        self._index()
        self._take_queues()
        for obj in self._input:
            if isinstance(obj, Queue):
                continue
            try:
                self._take(obj)
            except InvalidField as wrong:
                self._refuse(obj, wrong)
        self._group_pods()
        return self._result

    def _index(self) -> None:
        for obj in self._input:
            owner = controller_of(obj.metadata)
            if owner is not None:
                key = (owner.api_version, owner.kind, f"{obj.namespace}/{owner.name}" if obj.namespace else owner.name)
                self._owned.setdefault(key, []).append(obj)

    def _children(self, owner: KubernetesObject) -> list[KubernetesObject]:
        """Objects of the input that `owner` controls; not those of an earlier object of the same name."""
        uid = owner.metadata.uid
        children = self._owned.get(reference_key(owner), [])
        return [child for child in children if not uid or _controller_uid(child) in ("", uid)]

    def _refuse(self, obj: KubernetesObject, wrong: InvalidField) -> None:
        origin = self._origins.get(id(obj), "")
        self._result.refusals.append(Refusal(describe(obj), show_path(wrong.path), wrong.message, origin))

    def _warn(self, obj: KubernetesObject, message: str) -> None:
        origin = self._origins.get(id(obj), "")
        self._result.warnings.append(": ".join(part for part in (origin, describe(obj), message) if part))

    def _add(self, obj: KubernetesObject) -> None:
        if not is_stored(obj.metadata):
            if isinstance(obj, PersistentVolumeClaim):
                obj = default_claim(obj, self._default_class)
            elif isinstance(obj, PersistentVolume):
                obj = default_volume(obj)
        self._result.objects.append(obj)
        if isinstance(obj, PodGroup):
            self._groups.add(obj.key)
        elif isinstance(obj, _WORKLOADS):
            self._owners[reference_key(obj)] = obj

    # Queues

    def _take_queues(self) -> None:
        given = [obj for obj in self._input if isinstance(obj, Queue)]
        defaulted = [queue if is_stored(queue.metadata) else default_queue(queue) for queue in given]
        made = missing_queues({queue.name: queue for queue in given})
        tree = QueueTree((*made, *defaulted))
        self._result.objects += made
        accepted = list(made)
        for obj, queue in zip(given, defaulted):
            try:
                tree.check(queue)
            except InvalidField as wrong:
                self._refuse(obj, wrong)
                continue
            accepted.append(queue)
            self._result.objects.append(queue)
        self._queues = QueueTree(accepted)

    # Everything else

    def _take(self, obj: KubernetesObject) -> None:
        if isinstance(obj, Pod):
            self._take_pod(obj)
        elif isinstance(obj, PodGroup):
            self._take_pod_group(obj)
        elif isinstance(obj, VolcanoJob):
            self._take_job(obj)
        elif isinstance(obj, Deployment):
            self._take_deployment(obj)
        elif isinstance(obj, _WORKLOADS):
            self._take_workload(obj)
        else:
            if isinstance(obj, CronJob):
                self._warn(obj, "its schedule is not run: no jobs come of it")
            self._add(obj)

    def _take_pod(self, pod: Pod) -> None:
        if is_stored(pod.metadata):
            # A dump may have lost its statuses; in a cluster no pod is without a phase.
            self._add(pod if pod.status.phase else changed(pod, status=changed(pod.status, phase="Pending")))
            return
        odd = self._admission.odd_priority(pod.spec)
        admitted = self._admission.admit(pod)
        if odd:
            self._warn(pod, odd)
        if not pod.spec.scheduler_name and not pod.spec.node_name:
            self._warn(pod, self._other_scheduler("spec.schedulerName"))
        self._add(admitted)

    def _other_scheduler(self, place: str) -> str:
        return (
            f"{place}: missing, so the default scheduler would take it, not this one; "
            f'write "{self._scheduler_name}" to have it scheduled here'
        )

    def _take_pod_group(self, group: PodGroup) -> None:
        if is_stored(group.metadata):
            self._add(group)
            return
        try:
            self._add(self._checked_group(default_pod_group(group)))
        except InvalidField:
            self._refused_groups.add(group.key)
            raise

    def _checked_group(self, group: PodGroup) -> PodGroup:
        self._queues.check_use(group.spec.queue, ("spec", "queue"), by_job=False)
        return group

    def _take_job(self, obj: VolcanoJob) -> None:
        job = obj
        if not is_stored(obj.metadata):
            job = volcano_jobs.default_job(obj, self._scheduler_name)
            check_job(job, self._queues)
        if job.status.state.phase in volcano_jobs.FINISHED:
            self._add(job)
            return
        legacy = (PodGroup, job.key) in self._present
        name = job.name if legacy else volcano_jobs.group_name(job)
        group_key = f"{job.namespace}/{name}"
        present = {child.name for child in self._children(obj) if isinstance(child, Pod)}
        made: list[HeldPods] = []
        least = {task.name: task.min_available or 0 for task in job.spec.tasks}
        for index, task in enumerate(job.spec.tasks):
            with _within(("spec", "tasks", index, "template")):
                pods = volcano_jobs.task_pods(job, task, name, self._admission)
            missing = tuple(pod for pod in pods if pod.name not in present)
            depends = task.depends_on
            after = tuple((other, least.get(other, 0)) for other in depends.name) if depends is not None else ()
            any_of = depends is not None and depends.iteration == "any"
            made.append(HeldPods(job.key, group_key, task.name, missing, after, any_of))
        group = None
        if (PodGroup, group_key) not in self._present:
            group = self._checked_group(volcano_jobs.pod_group(job, self._admission.priority_of))
        self._add(job)
        for claim in volcano_jobs.claims(job):
            if (PersistentVolumeClaim, claim.key) not in self._present:
                self._add(claim)
        if group is not None:
            self._add(group)
        for held in made:
            if not held.pods:
                continue
            if self._hold_job_pods or held.after:
                self._result.held.append(held)
            else:
                self._result.objects += held.pods

    def _take_deployment(self, obj: Deployment) -> None:
        deployment = self._with_uid(obj)
        if any(isinstance(child, ReplicaSet) for child in self._children(obj)):
            self._add(deployment)
            return
        if deployment.spec.paused:
            self._warn(obj, "spec.paused: it is paused, so no pods are made for it")
            self._add(deployment)
            return
        made = controllers.replica_set(deployment)
        pods = self._pods_of(made, obj, ())
        self._add(deployment)
        self._add(made)
        self._result.objects += pods

    def _take_workload(self, obj: Workload) -> None:
        workload = self._with_uid(obj)
        present = [child for child in self._children(obj) if isinstance(child, Pod)]
        pods = self._pods_of(workload, obj, present)
        self._add(workload)
        if isinstance(workload, StatefulSet):
            for claim in controllers.claims_of(workload, pods):
                if (PersistentVolumeClaim, claim.key) not in self._present:
                    self._add(claim)
        self._result.objects += pods

    def _pods_of(self, workload: Workload, source: KubernetesObject, present: Sequence[Pod]) -> list[Pod]:
        with _within(("spec", "template")):
            pods = controllers.missing_pods(workload, present, self._nodes, self._admission)
        template: PodTemplateSpec = controllers.template_of(workload)
        if pods and not template.spec.scheduler_name:
            self._warn(source, self._other_scheduler("spec.template.spec.schedulerName"))
        return pods

    @staticmethod
    def _with_uid(obj: _T) -> _T:
        return obj if obj.metadata.uid else changed(obj, metadata=changed(obj.metadata, uid=uid_of(obj)))

    # PodGroups of pods that have none

    def _group_pods(self) -> None:
        objects: list[KubernetesObject] = []
        for obj in self._result.objects:
            objects += self._grouped(obj) if isinstance(obj, Pod) else (obj,)
        self._result.objects = objects
        for key, pods in self._ungrouped.items():
            others = f" (and {len(pods) - 1} more)" if len(pods) > 1 else ""
            self._warn(pods[0], f"names the PodGroup {key}, which does not exist: it is not scheduled{others}")

    def _grouped(self, pod: Pod) -> Sequence[KubernetesObject]:
        """The pod with its group named, after the group itself if that has to be made."""
        own = pod.metadata.annotations.get(keys.GROUP_NAME)
        if own is not None:
            key = f"{pod.namespace}/{own}"
            if key not in self._groups and key not in self._refused_groups:
                self._ungrouped.setdefault(key, []).append(pod)
            return (pod,)
        if pod.spec.scheduler_name != self._scheduler_name:
            return (pod,)
        name = pod_groups.group_name(pod)
        key = f"{pod.namespace}/{name}"
        if key in self._refused_groups:
            return (pod,)
        if key in self._groups:
            return (pod_groups.in_group(pod, name),)
        group = pod_groups.pod_group(pod, self._owner_of(pod))
        try:
            self._checked_group(group)
        except InvalidField as wrong:
            self._refused_groups.add(key)
            self._refuse(group, InvalidField(wrong.path, f"{wrong.message}; {describe(pod)} is not scheduled"))
            return (pod,)
        self._groups.add(key)
        return (group, pod_groups.in_group(pod, name))

    def _owner_of(self, pod: Pod) -> KubernetesObject | None:
        owner = controller_of(pod.metadata)
        if owner is None:
            return None
        return self._owners.get((owner.api_version, owner.kind, f"{pod.namespace}/{owner.name}"))
