"""PodGroups for pods that come without: bare pods and those of Kubernetes' own workloads (spec 07 §8.6)."""

from __future__ import annotations

from typing import Final

from vcscheduler.cluster.object_store import Annotate, Create, Delete
from vcscheduler.controllers.job_reconcile import Stages
from vcscheduler.objects import KubernetesObject, Pod, PodGroup, ReplicaSet, StatefulSet, controller_of
from vcscheduler.workloads import keys, pod_groups
from vcscheduler.workloads.admission import changed

_KNOWN_OWNERS: Final = frozenset(
    (("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet"), ("batch/v1", "Job"))
)


def reconcile_pod(pod: Pod, owner: KubernetesObject | None, group: PodGroup | None) -> Stages:
    """A PodGroup for the pod's owner, or for the pod itself, and the pod's note of it.

    Args:
        owner: the workload that controls the pod, if it is known.
        group: the group of that name, if there is one already.
    """
    if keys.GROUP_NAME in pod.metadata.annotations or pod.metadata.deletion_timestamp is not None:
        return []
    name = pod_groups.group_name(pod)
    stages: Stages = []
    if group is None:
        made = pod_groups.pod_group(pod, owner)
        stages.append((Create(changed(made, metadata=changed(made.metadata, uid=""))),))
    stages.append((Annotate(pod, {keys.GROUP_NAME: name}),))
    return stages


def group_key(pod: Pod) -> str:
    return f"{pod.namespace}/{pod_groups.group_name(pod)}"


def awaits_owner(pod: Pod) -> bool:
    """Whether the pod has an owner whose annotations count, so that it must be seen first: pods and their owners are
    told of over different connections."""
    owner = controller_of(pod.metadata)
    return owner is not None and (owner.api_version, owner.kind) in _KNOWN_OWNERS


def scaled_to_nothing(workload: KubernetesObject) -> bool:
    """Whether the group of a workload has no reason to stay."""
    return isinstance(workload, ReplicaSet | StatefulSet) and workload.spec.replicas == 0


def group_key_of(workload: KubernetesObject) -> str:
    return f"{workload.namespace}/podgroup-{workload.metadata.uid}"


def reconcile_workload(workload: KubernetesObject, group: PodGroup | None) -> Stages:
    return [(Delete(group),)] if group is not None and scaled_to_nothing(workload) else []
