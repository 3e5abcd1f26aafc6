"""What the API server fills in when a pod or a PodGroup is created (spec 07 §7.1, §8.4; spec 05 §4.5).

Only what scheduling can see: priority, requests, host ports, tolerations, selectors made of label keys. Nothing
is changed in place; pods of one template share the spec that comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import Final, TypeVar

from vcscheduler.objects import (
    Affinity,
    ApiStruct,
    Container,
    ContainerPort,
    LabelSelector,
    NetworkTopologySpec,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodGroup,
    PodSpec,
    PriorityClass,
    ResourceRequirements,
    StorageClass,
    Toleration,
    TopologySpreadConstraint,
)
from vcscheduler.objects.errors import InvalidField, did_you_mean, show_value
from vcscheduler.objects.selectors import with_requirement
from vcscheduler.workloads.identity import uid_of
from vcscheduler.workloads.usage import container_amounts, is_pod_level, to_resource_list

DEFAULT_QUEUE: Final = "default"
DEFAULT_SCHEDULER: Final = "default-scheduler"

_SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_ABSENT_NODE_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_ABSENT_NODE_SECONDS: Final = 300
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"

_T = TypeVar("_T", bound=ApiStruct)


def changed(struct: _T, **fields: object) -> _T:
    """A copy with some fields set."""
    new = copy(struct)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


class PodAdmission:
    """Defaults and admission of pods, given the priority classes of the cluster."""

    def __init__(self, classes: Iterable[PriorityClass]) -> None:
        self._classes = {name: PriorityClass(value=value) for name, value in _SYSTEM_CLASSES.items()}
        self._classes.update((each.name, each) for each in classes)
        # Of several global defaults Kubernetes takes the lowest.
        defaults = sorted((each.value, name) for name, each in self._classes.items() if each.global_default)
        self._default = defaults[0][1] if defaults else ""

    def priority_of(self, class_name: str) -> int:
        """The value of a class; 0 if there is none of that name."""
        found = self._classes.get(class_name)
        return found.value if found is not None else 0

    def odd_priority(self, spec: PodSpec) -> str:
        """What is odd about a priority that stands in a manifest, "" if nothing is. It is kept all the same."""
        by_class = self.priority_of(spec.priority_class_name or self._default)
        if spec.priority is None or spec.priority == by_class:
            return ""
        return (
            f"spec.priority: found {spec.priority}, kept; a cluster would refuse it, "
            f"since the pod's PriorityClass makes it {by_class}"
        )

    def admit(self, pod: Pod) -> Pod:
        """The pod as the API server stores it.

        Raises:
            InvalidField: it names a priority class that does not exist.
        """
        labels = pod.metadata.labels
        metadata = changed(pod.metadata, uid=uid_of(pod))
        status = pod.status if pod.status.phase else changed(pod.status, phase="Pending")
        spec = with_label_keys(self.spec(pod.spec), labels)
        return changed(pod, metadata=metadata, spec=spec, status=status)

    def spec(self, spec: PodSpec) -> PodSpec:
        """A pod spec with everything filled in that does not depend on the pod's labels.

        Raises:
            InvalidField: it names a priority class that does not exist.
        """
        new = copy(spec)
        new.scheduler_name = spec.scheduler_name or DEFAULT_SCHEDULER
        self._set_priority(new)
        new.containers = [_with_defaults(each, spec.host_network) for each in spec.containers]
        new.init_containers = [_with_defaults(each, spec.host_network) for each in spec.init_containers]
        if new.resources is not None:
            new.resources = _pod_level(new, new.resources)
        new.tolerations = [*spec.tolerations, *_missing_tolerations(spec.tolerations)]
        return new

    def _set_priority(self, spec: PodSpec) -> None:
        name = spec.priority_class_name or self._default
        found = self._classes.get(name)
        if name and found is None:
            hint = did_you_mean(name, self._classes) or "; make one or leave the field out"
            raise InvalidField(
                ("spec", "priorityClassName"), f"found {show_value(name)}, no PriorityClass of that name{hint}"
            )
        policy = found.preemption_policy if found is not None else None
        spec.priority_class_name = name
        if spec.priority is None:
            spec.priority = self.priority_of(name)
        spec.preemption_policy = spec.preemption_policy or policy or "PreemptLowerPriority"


def _with_defaults(container: Container, host_network: bool) -> Container:
    resources = container.resources
    missing = {name: limit for name, limit in resources.limits.items() if name not in resources.requests}
    ports = container.ports
    if host_network and any(not port.host_port for port in ports):
        ports = [_on_host(port) for port in ports]
    if not missing and ports is container.ports:
        return container
    if missing:
        resources = changed(resources, requests={**resources.requests, **missing})
    return changed(container, resources=resources, ports=ports)


def _on_host(port: ContainerPort) -> ContainerPort:
    return ContainerPort(
        port.container_port, port.host_port or port.container_port, port.host_ip, port.protocol, port.name
    )


def _pod_level(spec: PodSpec, resources: ResourceRequirements) -> ResourceRequirements:
    """Requests of the pod as a whole: what its containers request together, else its limits."""
    together = to_resource_list(container_amounts(spec, lambda each: each.requests))
    requests = {name: amount for name, amount in together.items() if is_pod_level(name)}
    requests.update(resources.requests)
    for name, limit in resources.limits.items():
        if is_pod_level(name):
            requests.setdefault(name, limit)
    return changed(resources, requests=requests)


def _missing_tolerations(present: list[Toleration]) -> list[Toleration]:
    """Every pod stays for five minutes on a node that is not ready or cannot be reached, unless it says otherwise."""
    return [
        Toleration(key, "Exists", "", "NoExecute", _ABSENT_NODE_SECONDS)
        for key in _ABSENT_NODE_TAINTS
        if not any(each.key in ("", key) and each.effect in ("", "NoExecute") for each in present)
    ]


# Selectors made of label keys


def with_label_keys(spec: PodSpec, labels: Mapping[str, str]) -> PodSpec:
    """The spec with matchLabelKeys and mismatchLabelKeys turned into requirements, by the pod's own labels."""
    affinity, spread = spec.affinity, spec.topology_spread_constraints
    new_affinity = _merged_affinity(affinity, labels) if affinity is not None else None
    new_spread = _each(spread, lambda each: _merged_spread(each, labels))
    if new_affinity is affinity and new_spread is spread:
        return spec
    return changed(spec, affinity=new_affinity, topology_spread_constraints=new_spread)


def _each(items: list[_T], change: Callable[[_T], _T]) -> list[_T]:
    """The list with every item changed, or the same list when nothing changes."""
    if not items:
        return items
    new = [change(item) for item in items]
    return items if all(a is b for a, b in zip(items, new)) else new


def _merged_affinity(affinity: Affinity, labels: Mapping[str, str]) -> Affinity:
    together = _merged_terms(affinity.pod_affinity, labels)
    apart = _merged_terms(affinity.pod_anti_affinity, labels)
    if together is affinity.pod_affinity and apart is affinity.pod_anti_affinity:
        return affinity
    return changed(affinity, pod_affinity=together, pod_anti_affinity=apart)


def _merged_terms(terms: PodAffinity | None, labels: Mapping[str, str]) -> PodAffinity | None:
    if terms is None:
        return None
    required = _each(terms.required, lambda each: _merged_term(each, labels))
    preferred = []
    for weighted in terms.preferred:
        term = _merged_term(weighted.pod_affinity_term, labels)
        preferred.append(weighted if term is weighted.pod_affinity_term else changed(weighted, pod_affinity_term=term))
    if required is terms.required and all(a is b for a, b in zip(terms.preferred, preferred)):
        return terms
    return changed(terms, required=required, preferred=preferred)


def _merged_term(term: PodAffinityTerm, labels: Mapping[str, str]) -> PodAffinityTerm:
    if term.label_selector is None:
        return term
    selector = _with_keys(term.label_selector, term.match_label_keys, "In", labels)
    selector = _with_keys(selector, term.mismatch_label_keys, "NotIn", labels)
    return term if selector is term.label_selector else changed(term, label_selector=selector)


def _merged_spread(constraint: TopologySpreadConstraint, labels: Mapping[str, str]) -> TopologySpreadConstraint:
    if constraint.label_selector is None:
        return constraint
    selector = _with_keys(constraint.label_selector, constraint.match_label_keys, "In", labels)
    return constraint if selector is constraint.label_selector else changed(constraint, label_selector=selector)


def _with_keys(selector: LabelSelector, keys: list[str], operator: str, labels: Mapping[str, str]) -> LabelSelector:
    for key in keys:
        if key in labels:
            selector = with_requirement(selector, key, operator, [labels[key]])
    return selector


# PodGroups


def with_topology_mode(topology: NetworkTopologySpec | None) -> NetworkTopologySpec | None:
    return topology if topology is None or topology.mode else changed(topology, mode="hard")


def default_pod_group(group: PodGroup) -> PodGroup:
    """The PodGroup as the API server stores it."""
    spec = changed(
        group.spec,
        queue=group.spec.queue or DEFAULT_QUEUE,
        network_topology=with_topology_mode(group.spec.network_topology),
        sub_group_policy=[
            changed(
                policy,
                sub_group_size=1 if policy.sub_group_size is None else policy.sub_group_size,
                min_sub_groups=policy.min_sub_groups or 0,
                network_topology=with_topology_mode(policy.network_topology),
            )
            for policy in group.spec.sub_group_policy
        ],
    )
    return changed(group, metadata=changed(group.metadata, uid=uid_of(group)), spec=spec)


# Volumes


def default_storage_class(classes: Iterable[StorageClass]) -> str | None:
    """The class of claims that name none; of several defaults the first by name."""
    return min((each.name for each in classes if each.metadata.annotations.get(_DEFAULT_CLASS) == "true"), default=None)


def default_claim(claim: PersistentVolumeClaim, default_class: str | None) -> PersistentVolumeClaim:
    spec, status = claim.spec, claim.status
    if spec.storage_class_name is None:
        spec = changed(spec, storage_class_name=default_class)
    if not status.phase:
        status = changed(status, phase="Pending")
    return changed(claim, metadata=changed(claim.metadata, uid=uid_of(claim)), spec=spec, status=status)


def default_volume(volume: PersistentVolume) -> PersistentVolume:
    status = volume.status if volume.status.phase else changed(volume.status, phase="Available")
    return changed(volume, metadata=changed(volume.metadata, uid=uid_of(volume)), status=status)
