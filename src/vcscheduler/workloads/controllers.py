"""Kubernetes' own workloads: the ReplicaSet of a Deployment, and the pods of everything that has a pod template.

Each function tells what a controller would still create, given what is there already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from vcscheduler.objects import (
    Affinity,
    BatchJob,
    DaemonSet,
    Deployment,
    KubernetesObject,
    LabelSelector,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    PersistentVolumeClaim,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicationController,
    StatefulSet,
    Taint,
    Toleration,
    Volume,
    compile_label_map,
    node_selector_matches,
)
from vcscheduler.workloads.admission import PodAdmission, changed, with_label_keys
from vcscheduler.workloads.identity import owned_by, suffix, uid_of

Workload: TypeAlias = ReplicaSet | ReplicationController | StatefulSet | DaemonSet | BatchJob
"""Workloads that own pods themselves."""

_TEMPLATE_HASH: Final = "pod-template-hash"
_KUBECTL: Final = "kubectl.kubernetes.io/last-applied-configuration"
_DAEMON_TOLERATIONS: Final = (
    Toleration("node.kubernetes.io/not-ready", "Exists", "", "NoExecute"),
    Toleration("node.kubernetes.io/unreachable", "Exists", "", "NoExecute"),
    Toleration("node.kubernetes.io/disk-pressure", "Exists", "", "NoSchedule"),
    Toleration("node.kubernetes.io/memory-pressure", "Exists", "", "NoSchedule"),
    Toleration("node.kubernetes.io/pid-pressure", "Exists", "", "NoSchedule"),
    Toleration("node.kubernetes.io/unschedulable", "Exists", "", "NoSchedule"),
)
_OVER: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Draft:
    """A pod that a controller is about to create: its name, and how it differs from the template."""

    name: str
    labels: dict[str, str]
    annotations: dict[str, str]
    spec: PodSpec


def replica_set(deployment: Deployment) -> ReplicaSet:
    """The ReplicaSet that a Deployment without any creates."""
    template = deployment.spec.template
    digest = suffix(deployment.key, template, length=10)
    labels = {**template.metadata.labels, _TEMPLATE_HASH: digest}
    selector = deployment.spec.selector or LabelSelector(match_labels=template.metadata.labels)
    annotations = {key: value for key, value in deployment.metadata.annotations.items() if key != _KUBECTL}
    made = ReplicaSet(
        ObjectMeta(
            name=f"{deployment.name}-{digest}",
            namespace=deployment.namespace,
            labels=labels,
            annotations=annotations,
            owner_references=[owned_by(deployment)],
        ),
        ReplicaSetSpec(
            replicas=_one_if_absent(deployment.spec.replicas),
            selector=changed(selector, match_labels={**selector.match_labels, _TEMPLATE_HASH: digest}),
            template=changed(template, metadata=changed(template.metadata, labels=labels)),
        ),
    )
    made.metadata.uid = uid_of(made)
    return made


def template_of(workload: Workload) -> PodTemplateSpec:
    return workload.spec.template or PodTemplateSpec()


def missing_pods(
    workload: Workload, present: Sequence[Pod], nodes: Iterable[Node], admission: PodAdmission
) -> list[Pod]:
    """The pods that the workload's controller would create beside those that are there, as stored.

    Raises:
        InvalidField: admission refuses them; the path is within a pod.
    """
    owners = [owned_by(workload)]
    drafts = list(_drafts(workload, present, nodes))
    admitted: dict[int, PodSpec] = {}
    pods = []
    for draft in drafts:
        spec = admitted.get(id(draft.spec))
        if spec is None:
            spec = admitted[id(draft.spec)] = admission.spec(draft.spec)
        metadata = ObjectMeta(
            name=draft.name,
            namespace=workload.namespace,
            labels=draft.labels,
            annotations=draft.annotations,
            owner_references=owners,
        )
        pod = Pod(metadata, with_label_keys(spec, draft.labels), PodStatus(phase="Pending"))
        pod.metadata.uid = uid_of(pod)
        pods.append(pod)
    return pods


def _drafts(workload: Workload, present: Sequence[Pod], nodes: Iterable[Node]) -> Iterator[Draft]:
    if isinstance(workload, StatefulSet):
        return _of_stateful_set(workload, present)
    if isinstance(workload, DaemonSet):
        return _of_daemon_set(workload, present, nodes)
    if isinstance(workload, BatchJob):
        return _of_batch_job(workload, present)
    return _of_replicas(workload, present)


def _of_replicas(workload: ReplicaSet | ReplicationController, present: Sequence[Pod]) -> Iterator[Draft]:
    template = template_of(workload)
    alive = sum(pod.status.phase not in _OVER and pod.metadata.deletion_timestamp is None for pod in present)
    for index in range(alive, _one_if_absent(workload.spec.replicas)):
        name = f"{workload.name}-{suffix(workload.kind, workload.key, index)}"
        yield Draft(name, template.metadata.labels, template.metadata.annotations, template.spec)


def _of_stateful_set(workload: StatefulSet, present: Sequence[Pod]) -> Iterator[Draft]:
    template, ordinals = template_of(workload), workload.spec.ordinals
    first = ordinals.start if ordinals is not None else 0
    names = {pod.name for pod in present}
    for index in range(first, first + _one_if_absent(workload.spec.replicas)):
        name = f"{workload.name}-{index}"
        if name in names:
            continue
        labels = {
            **template.metadata.labels,
            "apps.kubernetes.io/pod-index": str(index),
            "statefulset.kubernetes.io/pod-name": name,
        }
        spec = template.spec
        if workload.spec.volume_claim_templates:
            spec = changed(spec, volumes=[*_other_volumes(workload), *_claimed_volumes(workload, index)])
        yield Draft(name, labels, template.metadata.annotations, spec)


def _other_volumes(workload: StatefulSet) -> list[Volume]:
    """The template's volumes, without those that a claim of the same name takes the place of."""
    claimed = {claim.metadata.name for claim in workload.spec.volume_claim_templates}
    return [volume for volume in workload.spec.template.spec.volumes if volume.name not in claimed]


def _claimed_volumes(workload: StatefulSet, index: int) -> list[Volume]:
    return [
        Volume(
            name=claim.metadata.name,
            persistent_volume_claim=PersistentVolumeClaimVolumeSource(f"{claim.metadata.name}-{workload.name}-{index}"),
        )
        for claim in workload.spec.volume_claim_templates
    ]


def claims_of(workload: StatefulSet, pods: Iterable[Pod]) -> Iterator[PersistentVolumeClaim]:
    """The claims that belong to the set's pods."""
    for pod in pods:
        for claim in workload.spec.volume_claim_templates:
            name = f"{claim.metadata.name}-{pod.name}"
            metadata = changed(claim.metadata, name=name, namespace=workload.namespace)
            yield PersistentVolumeClaim(metadata, claim.spec)


def _of_daemon_set(workload: DaemonSet, present: Sequence[Pod], nodes: Iterable[Node]) -> Iterator[Draft]:
    template = template_of(workload)
    tolerations = [*template.spec.tolerations, *_DAEMON_TOLERATIONS]
    if template.spec.host_network:
        tolerations.append(Toleration("node.kubernetes.io/network-unavailable", "Exists", "", "NoSchedule"))
    taken = {pod.spec.node_name or _pinned_node(pod) for pod in present}
    for node in nodes:
        if node.name in taken or not _wants_daemon(template.spec, tolerations, node):
            continue
        spec = changed(template.spec, affinity=_pinned(template.spec.affinity, node.name), tolerations=tolerations)
        name = f"{workload.name}-{suffix(workload.kind, workload.key, node.name)}"
        yield Draft(name, template.metadata.labels, template.metadata.annotations, spec)


def _pinned(affinity: Affinity | None, node_name: str) -> Affinity:
    """The affinity of the daemon's pod for one node: required terms give way to the node's name."""
    affinity = affinity or Affinity()
    at_node = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node_name])
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[at_node])])
    return changed(affinity, node_affinity=changed(affinity.node_affinity or NodeAffinity(), required=required))


def _pinned_node(pod: Pod) -> str:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
        return ""
    for term in affinity.node_affinity.required.node_selector_terms:
        for requirement in term.match_fields:
            if requirement.key == "metadata.name" and len(requirement.values) == 1:
                return requirement.values[0]
    return ""


def _wants_daemon(spec: PodSpec, tolerations: list[Toleration], node: Node) -> bool:
    labels = node.metadata.labels
    if spec.node_name and spec.node_name != node.name:
        return False
    if not compile_label_map(spec.node_selector).matches(labels):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required if affinity is not None else None
    if required is not None and not node_selector_matches(required, labels, node.name):
        return False
    return all(
        taint.effect == "PreferNoSchedule" or any(_tolerates(each, taint) for each in tolerations)
        for taint in node.spec.taints
    )


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    return toleration.operator == "Exists" or (bool(toleration.key) and toleration.value == taint.value)


def _of_batch_job(workload: BatchJob, present: Sequence[Pod]) -> Iterator[Draft]:
    spec, status, template = workload.spec, workload.status, template_of(workload)
    over = any(each.type in ("Complete", "Failed") and each.status == "True" for each in status.conditions)
    if over or spec.suspend:
        return
    parallelism = _one_if_absent(spec.parallelism)
    # Without completions any success ends the job; at first as many pods start as may run at a time.
    completions = spec.completions if spec.completions is not None else parallelism
    labels = {
        **template.metadata.labels,
        "batch.kubernetes.io/job-name": workload.name,
        "job-name": workload.name,
        "batch.kubernetes.io/controller-uid": uid_of(workload),
        "controller-uid": uid_of(workload),
    }
    done = max(status.succeeded, sum(pod.status.phase == "Succeeded" for pod in present))
    active = sum(pod.status.phase not in _OVER for pod in present)
    wanted = min(parallelism, completions - done) - active
    indexed = spec.completion_mode == "Indexed"
    used = {_completion_index(pod) for pod in present if pod.status.phase != "Failed"}
    index = -1
    for _ in range(wanted):
        index += 1
        while indexed and str(index) in used:
            index += 1
        number = {"batch.kubernetes.io/job-completion-index": str(index)} if indexed else {}
        stem = f"{workload.name}-{index}" if indexed else workload.name
        name = f"{stem}-{suffix(workload.kind, workload.key, len(present), index)}"
        yield Draft(name, {**labels, **number}, {**template.metadata.annotations, **number}, template.spec)


def _completion_index(pod: Pod) -> str:
    return pod.metadata.annotations.get("batch.kubernetes.io/job-completion-index", "")


def _one_if_absent(number: int | None) -> int:
    return 1 if number is None else number


def reference_key(owner: KubernetesObject) -> tuple[str, str, str]:
    """(API version, kind, ``namespace/name``): how owner references name an object."""
    return owner.api_version, owner.kind, owner.key
