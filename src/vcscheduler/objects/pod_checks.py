"""Validation of pods and pod templates, kept quick because dumps hold tens of thousands of them."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from vcscheduler.objects import checks
from vcscheduler.objects.affinity import Affinity, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from vcscheduler.objects.errors import InvalidField, Path, show_value
from vcscheduler.objects.pod import (
    Container,
    ContainerPort,
    ContainerStatus,
    Pod,
    PodSpec,
    ResourceRequirements,
    Toleration,
)
from vcscheduler.objects.quantity import parse_quantity
from vcscheduler.objects.volumes import PersistentVolumeClaimSpec, Volume

TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_OPERATORS: Final = ("Exists", "Equal", "Lt", "Gt")
_PHASES: Final = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_INCLUSION_POLICIES: Final = ("Honor", "Ignore")
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_ACCESS_MODES: Final = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Filesystem", "Block")


def check_pod(pod: Pod) -> None:
    """Raise `InvalidField` for the first thing wrong with a pod."""
    check_pod_spec(("spec",), pod.spec)
    status = pod.status
    checks.one_of(("status", "phase"), status.phase, _PHASES)
    checks.subdomain(("status", "nominatedNodeName"), status.nominated_node_name)
    _check_statuses(("status", "containerStatuses"), status.container_statuses)
    _check_statuses(("status", "initContainerStatuses"), status.init_container_statuses)


def _check_statuses(path: Path, statuses: list[ContainerStatus]) -> None:
    for index, status in enumerate(statuses):
        checks.quantities((*path, index, "allocatedResources"), status.allocated_resources)
        if status.resources is not None:
            checks.quantities((*path, index, "resources", "requests"), status.resources.requests)
            checks.quantities((*path, index, "resources", "limits"), status.resources.limits)


def check_pod_spec(path: Path, spec: PodSpec) -> None:
    """Raise `InvalidField` for the first thing wrong with the pod spec at `path`."""
    if not spec.containers:
        raise InvalidField((*path, "containers"), "missing, a pod needs at least one container")
    for index, container in enumerate(spec.containers):
        _check_container((*path, "containers", index), container)
    for index, container in enumerate(spec.init_containers):
        _check_container((*path, "initContainers", index), container)
    if len(spec.containers) > 1 or spec.init_containers:
        checks.unique((*path, "containers"), (each.name for each in spec.containers))
        checks.unique((*path, "initContainers"), (each.name for each in spec.init_containers))
    if spec.priority is not None:
        checks.at_least((*path, "priority"), spec.priority, checks.MIN_INT32)
    checks.one_of((*path, "restartPolicy"), spec.restart_policy, _RESTART_POLICIES)
    checks.one_of((*path, "preemptionPolicy"), spec.preemption_policy, PREEMPTION_POLICIES)
    checks.subdomain((*path, "nodeName"), spec.node_name)
    checks.subdomain((*path, "priorityClassName"), spec.priority_class_name)
    checks.subdomain((*path, "schedulerName"), spec.scheduler_name)
    checks.quantities((*path, "overhead"), spec.overhead)
    checks.at_least((*path, "terminationGracePeriodSeconds"), spec.termination_grace_period_seconds)
    checks.at_least((*path, "activeDeadlineSeconds"), spec.active_deadline_seconds)
    if spec.resources is not None:
        _check_resources((*path, "resources"), spec.resources)
    if spec.node_selector:
        checks.labels((*path, "nodeSelector"), spec.node_selector)
    for index, toleration in enumerate(spec.tolerations):
        if problem := _toleration_problem(toleration):
            raise InvalidField((*path, "tolerations", index, problem[0]), problem[1])
    if spec.affinity is not None:
        _check_affinity((*path, "affinity"), spec.affinity)
    for index, constraint in enumerate(spec.topology_spread_constraints):
        _check_spread((*path, "topologySpreadConstraints", index), constraint)
    for index, volume in enumerate(spec.volumes):
        _check_volume((*path, "volumes", index), volume)
    for index, gate in enumerate(spec.scheduling_gates):
        checks.required((*path, "schedulingGates", index, "name"), gate.name)
    checks.unique((*path, "schedulingGates"), (each.name for each in spec.scheduling_gates))
    for index, claim in enumerate(spec.resource_claims):
        checks.required((*path, "resourceClaims", index, "name"), claim.name)
        if (claim.resource_claim_name is None) == (claim.resource_claim_template_name is None):
            raise InvalidField(
                (*path, "resourceClaims", index),
                "exactly one of resourceClaimName and resourceClaimTemplateName must be given",
            )


def _check_container(path: Path, container: Container) -> None:
    checks.dns_label((*path, "name"), container.name)
    checks.one_of((*path, "restartPolicy"), container.restart_policy, _RESTART_POLICIES)
    _check_resources((*path, "resources"), container.resources)
    for index, port in enumerate(container.ports):
        if problem := _port_problem(port):
            raise InvalidField((*path, "ports", index, problem[0]), problem[1])


@lru_cache(maxsize=4096)
def _port_problem(port: ContainerPort) -> tuple[str, str] | None:
    try:
        checks.at_least(("containerPort",), port.container_port, 0, 65535)
        checks.at_least(("hostPort",), port.host_port, 0, 65535)
        checks.one_of(("protocol",), port.protocol, _PROTOCOLS)
    except InvalidField as error:
        return str(error.path[0]), error.message
    return None


def _check_resources(path: Path, resources: ResourceRequirements) -> None:
    requests, limits = resources.requests, resources.limits
    checks.quantities((*path, "requests"), requests)
    if not limits:
        return
    checks.quantities((*path, "limits"), limits)
    for name, request in requests.items():
        limit = limits.get(name)
        if limit is not None and limit != request and parse_quantity(request) > parse_quantity(limit):
            raise InvalidField(
                (*path, "requests", name),
                f"found {show_value(request)}, which is more than the limit {show_value(limit)}",
            )


@lru_cache(maxsize=4096)
def _toleration_problem(toleration: Toleration) -> tuple[str, str] | None:
    try:
        checks.one_of(("operator",), toleration.operator, _TOLERATION_OPERATORS)
        checks.one_of(("effect",), toleration.effect, TAINT_EFFECTS)
    except InvalidField as error:
        return str(error.path[0]), error.message
    if toleration.operator == "Exists" and toleration.value:
        return "value", f'found {show_value(toleration.value)}, the operator "Exists" takes no value'
    if not toleration.key and toleration.operator != "Exists":
        return "operator", 'without a key the operator must be "Exists"'
    return None


def _check_affinity(path: Path, affinity: Affinity) -> None:
    node = affinity.node_affinity
    if node is not None:
        at = (*path, "nodeAffinity")
        required = (*at, "requiredDuringSchedulingIgnoredDuringExecution")
        if node.required is not None and not node.required.node_selector_terms:
            raise InvalidField((*required, "nodeSelectorTerms"), "missing, at least one term is needed")
        checks.node_selector(required, node.required)
        for index, preferred in enumerate(node.preferred):
            item = (*at, "preferredDuringSchedulingIgnoredDuringExecution", index)
            checks.at_least((*item, "weight"), preferred.weight, 1, 100)
            checks.node_selector_term((*item, "preference"), preferred.preference)
    if affinity.pod_affinity is not None:
        _check_pod_affinity((*path, "podAffinity"), affinity.pod_affinity)
    if affinity.pod_anti_affinity is not None:
        _check_pod_affinity((*path, "podAntiAffinity"), affinity.pod_anti_affinity)


def _check_pod_affinity(path: Path, affinity: PodAffinity) -> None:
    for index, term in enumerate(affinity.required):
        _check_pod_term((*path, "requiredDuringSchedulingIgnoredDuringExecution", index), term)
    for index, weighted in enumerate(affinity.preferred):
        item = (*path, "preferredDuringSchedulingIgnoredDuringExecution", index)
        checks.at_least((*item, "weight"), weighted.weight, 1, 100)
        _check_pod_term((*item, "podAffinityTerm"), weighted.pod_affinity_term)


def _check_pod_term(path: Path, term: PodAffinityTerm) -> None:
    checks.required((*path, "topologyKey"), term.topology_key)
    checks.label_selector((*path, "labelSelector"), term.label_selector)
    checks.label_selector((*path, "namespaceSelector"), term.namespace_selector)
    for index, namespace in enumerate(term.namespaces):
        checks.dns_label((*path, "namespaces", index), namespace)


def _check_spread(path: Path, constraint: TopologySpreadConstraint) -> None:
    checks.at_least((*path, "maxSkew"), constraint.max_skew, 1)
    checks.required((*path, "topologyKey"), constraint.topology_key)
    checks.one_of((*path, "whenUnsatisfiable"), constraint.when_unsatisfiable, _UNSATISFIABLE, required=True)
    checks.label_selector((*path, "labelSelector"), constraint.label_selector)
    checks.at_least((*path, "minDomains"), constraint.min_domains, 1)
    checks.one_of((*path, "nodeAffinityPolicy"), constraint.node_affinity_policy, _INCLUSION_POLICIES)
    checks.one_of((*path, "nodeTaintsPolicy"), constraint.node_taints_policy, _INCLUSION_POLICIES)


def _check_volume(path: Path, volume: Volume) -> None:
    claim = volume.persistent_volume_claim
    if claim is not None:
        checks.required((*path, "persistentVolumeClaim", "claimName"), claim.claim_name)
        checks.subdomain((*path, "persistentVolumeClaim", "claimName"), claim.claim_name)
    ephemeral = volume.ephemeral
    if ephemeral is not None and ephemeral.volume_claim_template is not None:
        check_claim_spec((*path, "ephemeral", "volumeClaimTemplate", "spec"), ephemeral.volume_claim_template.spec)


def check_claim_spec(path: Path, spec: PersistentVolumeClaimSpec) -> None:
    """Raise `InvalidField` for the first thing wrong with a volume claim."""
    check_access_modes((*path, "accessModes"), spec.access_modes)
    checks.quantities((*path, "resources", "requests"), spec.resources.requests)
    checks.label_selector((*path, "selector"), spec.selector)
    checks.one_of((*path, "volumeMode"), spec.volume_mode, VOLUME_MODES)
    checks.subdomain((*path, "storageClassName"), spec.storage_class_name)


def check_access_modes(path: Path, modes: list[str]) -> None:
    for index, mode in enumerate(modes):
        checks.one_of((*path, index), mode, _ACCESS_MODES, required=True)
