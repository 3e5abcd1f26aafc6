"""PodGroups for pods that come without: what Volcano's PodGroup controller makes (spec 07 §8.6)."""

from __future__ import annotations

from vcscheduler.objects import (
    KubernetesObject,
    NetworkTopologySpec,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodGroup,
    PodGroupSpec,
    PodGroupStatus,
    controller_of,
)
from vcscheduler.workloads import keys
from vcscheduler.workloads.admission import changed, default_pod_group
from vcscheduler.workloads.identity import owned_by, uid_of
from vcscheduler.workloads.usage import total_usage

_INHERITED_PREFIX = "volcano.sh/"


def group_name(pod: Pod) -> str:
    """One group for all pods of an owner; a pod of its own has one of its own."""
    owner = controller_of(pod.metadata)
    return f"podgroup-{owner.uid if owner is not None else uid_of(pod)}"


def in_group(pod: Pod, name: str) -> Pod:
    annotations = {**pod.metadata.annotations, keys.GROUP_NAME: name}
    return changed(pod, metadata=changed(pod.metadata, annotations=annotations))


def pod_group(pod: Pod, owner: KubernetesObject | None) -> PodGroup:
    """The group that the first pod of an owner causes. `owner` is the pod's controller, if it is known."""
    annotations, labels = pod.metadata.annotations, pod.metadata.labels
    inherited = {}
    min_member = 1
    if owner is not None:
        of_owner = owner.metadata.annotations
        inherited = {key: value for key, value in of_owner.items() if key.startswith(_INHERITED_PREFIX)}
        min_member = _number(of_owner.get(keys.GROUP_MIN_MEMBER, ""), 1)
    group = PodGroup(
        ObjectMeta(
            name=group_name(pod),
            namespace=pod.namespace,
            labels=keys.eviction_labels(labels),
            annotations={**inherited, **keys.eviction_settings(annotations)},
            owner_references=_owners(pod),
        ),
        PodGroupSpec(
            min_member=min_member,
            min_resources=total_usage([(pod.spec, min_member)]),
            queue=annotations.get(keys.QUEUE_NAME, ""),
            priority_class_name=pod.spec.priority_class_name,
            network_topology=_topology(annotations),
        ),
        PodGroupStatus(phase="Pending"),
    )
    return default_pod_group(group)


def _owners(pod: Pod) -> list[OwnerReference]:
    if controller_of(pod.metadata) is not None:
        return pod.metadata.owner_references
    return [owned_by(pod)]


def _topology(annotations: dict[str, str]) -> NetworkTopologySpec | None:
    mode, tier = annotations.get(keys.TOPOLOGY_MODE), annotations.get(keys.TOPOLOGY_TIER)
    if mode is None and tier is None:
        return None
    mode = (mode or "").lower()
    highest = _number(tier or "", -1)
    return NetworkTopologySpec(
        mode=mode if mode in ("hard", "soft") else "hard",
        highest_tier_allowed=highest if highest >= 0 else None,
    )


def _number(text: str, otherwise: int) -> int:
    """A whole number that is not negative, or `otherwise`."""
    return int(text) if text.isascii() and text.isdigit() else otherwise
