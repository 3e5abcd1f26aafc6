"""Volcano Jobs: the webhook's defaults, then the PodGroup, claims and pods of the job controller (spec 07 §8.2-8.4).

The job plugins (svc, env, ssh, mpi ...) change nothing that scheduling sees, so they are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vcscheduler.objects import (
    ObjectMeta,
    PersistentVolumeClaim,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodGroup,
    PodGroupSpec,
    PodSpec,
    PodStatus,
    ResourceList,
    SubGroupPolicy,
    TaskSpec,
    VolcanoJob,
    Volume,
)
from vcscheduler.objects.meta import LabelSelector
from vcscheduler.workloads import keys
from vcscheduler.workloads.admission import DEFAULT_QUEUE, PodAdmission, changed, default_pod_group, with_label_keys
from vcscheduler.workloads.identity import claim_suffix, owned_by, uid_of
from vcscheduler.workloads.usage import total_usage

FINISHED: Final = frozenset(("Aborting", "Aborted", "Completing", "Completed", "Terminating", "Terminated", "Failed"))
"""Phases in which the controller makes no pods."""
_MAX_RETRY: Final = 3


def default_job(job: VolcanoJob, scheduler_name: str) -> VolcanoJob:
    """The job after the webhook's defaulting, with a UID and the status it starts with."""
    spec = job.spec
    tasks = [_default_task(task, index) for index, task in enumerate(spec.tasks)]
    plugins = dict(spec.plugins)
    if plugins.keys() & {"tensorflow", "mpi", "pytorch", "ray"}:
        plugins.setdefault("svc", [])
    if "mpi" in plugins:
        plugins.setdefault("ssh", [])
    spec = changed(
        spec,
        queue=spec.queue or DEFAULT_QUEUE,
        scheduler_name=spec.scheduler_name or scheduler_name,
        max_retry=spec.max_retry or _MAX_RETRY,
        tasks=tasks,
        min_available=spec.min_available or sum(task.min_available or 0 for task in tasks),
        plugins=plugins,
    )
    status = job.status
    if not status.state.phase:
        status = changed(status, state=changed(status.state, phase="Pending"), min_available=spec.min_available)
    return changed(job, metadata=changed(job.metadata, uid=uid_of(job)), spec=spec, status=status)


def _default_task(task: TaskSpec, index: int) -> TaskSpec:
    least = task.min_available
    if least is None:
        partition = task.partition_policy
        least = task.replicas
        if partition is not None and partition.min_partitions > 0:
            least = partition.min_partitions * partition.partition_size
    return changed(
        task,
        name=task.name or f"default{index}",
        min_available=least,
        max_retry=task.max_retry or _MAX_RETRY,
    )


def group_name(job: VolcanoJob) -> str:
    return f"{job.name}-{uid_of(job)}"


def pod_group(job: VolcanoJob, priority_of: Callable[[str], int]) -> PodGroup:
    """The job's PodGroup as the controller creates it; its phase is still empty."""
    spec = job.spec
    topology = spec.network_topology
    if topology is not None and topology.highest_tier_allowed is not None:
        topology = changed(topology, highest_tier_name="")
    group = PodGroup(
        ObjectMeta(
            name=group_name(job),
            namespace=job.namespace,
            labels=job.metadata.labels,
            annotations=job.metadata.annotations,
            owner_references=[owned_by(job)],
        ),
        PodGroupSpec(
            min_member=spec.min_available,
            min_task_member={task.name: _min_member(task) for task in spec.tasks},
            queue=spec.queue,
            priority_class_name=spec.priority_class_name,
            min_resources=min_resources(job, priority_of),
            network_topology=topology,
            sub_group_policy=[_sub_groups(task) for task in spec.tasks if task.partition_policy is not None],
        ),
    )
    return default_pod_group(group)


def _min_member(task: TaskSpec) -> int:
    if task.min_available is not None:
        return task.min_available
    partition = task.partition_policy
    if partition is not None and partition.min_partitions and partition.partition_size:
        return partition.min_partitions * partition.partition_size
    return task.replicas


def _sub_groups(task: TaskSpec) -> SubGroupPolicy:
    partition = task.partition_policy
    assert partition is not None
    return SubGroupPolicy(
        name=task.name,
        sub_group_size=partition.partition_size,
        min_sub_groups=partition.min_partitions,
        label_selector=LabelSelector(match_labels={keys.TASK_SPEC: task.name}),
        match_label_keys=[keys.PARTITION_ID],
        network_topology=partition.network_topology,
    )


def min_resources(job: VolcanoJob, priority_of: Callable[[str], int]) -> ResourceList:
    """What the job needs to start: the usage of its `minAvailable` most important pods.

    Templates count as they stand: a container that names limits only needs nothing here, although its pod
    will (spec 07 §8.3).
    """
    tasks = sorted(job.spec.tasks, key=lambda task: -priority_of(task.template.spec.priority_class_name))
    wanted = job.spec.min_available
    least = [task.replicas if task.min_available is None else task.min_available for task in tasks]
    taken = [0] * len(tasks)

    def take(index: int, at_most: int) -> None:
        taken[index] += max(0, min(at_most, wanted - sum(taken)))

    if wanted < sum(least):
        for index, task in enumerate(tasks):
            take(index, task.replicas)
    else:
        for index, task in enumerate(tasks):
            if task.min_available is not None:
                take(index, least[index])
        for index, task in enumerate(tasks):
            take(index, task.replicas - taken[index])
    return total_usage((task.template.spec, count) for task, count in zip(tasks, taken))


def claims(job: VolcanoJob) -> list[PersistentVolumeClaim]:
    """The claims that the controller makes for the job's volumes."""
    made = []
    for index, volume in enumerate(job.spec.volumes):
        if volume.volume_claim is not None:
            metadata = ObjectMeta(
                name=claim_name(job, index), namespace=job.namespace, owner_references=[owned_by(job)]
            )
            made.append(PersistentVolumeClaim(metadata, volume.volume_claim))
    return made


def claim_name(job: VolcanoJob, index: int) -> str:
    """The claim behind one of the job's volumes, which is also what the volume is called in its pods."""
    return job.spec.volumes[index].volume_claim_name or f"{job.name}-pvc-{claim_suffix(uid_of(job), index)}"


def task_pods(job: VolcanoJob, task: TaskSpec, group: str, admission: PodAdmission) -> list[Pod]:
    """All pods of one task, as stored.

    Raises:
        InvalidField: admission refuses them; the path is within a pod.
    """
    job_spec, template = job.spec, task.template
    spec = changed(
        template.spec,
        scheduler_name=template.spec.scheduler_name or job_spec.scheduler_name,
        priority_class_name=template.spec.priority_class_name or job_spec.priority_class_name,
    )
    if job_spec.volumes:
        spec = _with_volumes(spec, [claim_name(job, index) for index in range(len(job_spec.volumes))])
    spec = admission.spec(spec)
    annotations, labels = _shared_metadata(job, task, group)
    partition = task.partition_policy
    owners = [owned_by(job)]
    pods = []
    for index in range(task.replicas):
        number = {keys.TASK_INDEX: str(index)}
        own_labels = {**labels, **number}
        if partition is not None:
            size = partition.partition_size
            own_labels[keys.PARTITION_ID] = str(index // size if size > 0 else 0)
        pod = Pod(
            ObjectMeta(
                name=f"{job.name}-{task.name}-{index}",
                namespace=job.namespace,
                labels=own_labels,
                annotations={**annotations, **number},
                owner_references=owners,
            ),
            with_label_keys(spec, own_labels),
            PodStatus(phase="Pending"),
        )
        pod.metadata.uid = uid_of(pod)
        pods.append(pod)
    return pods


def _with_volumes(spec: PodSpec, claim_names: list[str]) -> PodSpec:
    mounted = [
        Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=name))
        for name in claim_names
    ]
    return changed(spec, volumes=[*spec.volumes, *mounted])


def _shared_metadata(job: VolcanoJob, task: TaskSpec, group: str) -> tuple[dict[str, str], dict[str, str]]:
    """Annotations and labels that all pods of a task have."""
    both = {keys.JOB_NAME: job.name, keys.TASK_SPEC: task.name, keys.JOB_QUEUE: job.spec.queue}
    annotations = {
        **task.template.metadata.annotations,
        keys.GROUP_NAME: group,
        **both,
        keys.JOB_VERSION: str(job.status.version),
        keys.JOB_RETRY_COUNT: str(job.status.retry_count),
        keys.TEMPLATE_UID: f"{job.name}-{task.name}",
        **keys.eviction_settings(job.metadata.annotations),
    }
    if task.topology_policy:
        annotations[keys.NUMA_POLICY] = task.topology_policy
    labels = {
        **task.template.metadata.labels,
        **both,
        keys.JOB_NAMESPACE: job.namespace,
        **keys.eviction_labels(job.metadata.labels),
    }
    return annotations, labels
