"""Validation of decoded objects: what the API server and Volcano's webhooks would refuse, in one sentence.

Only manifests read from files are validated. Objects from an API server have passed it already, and recorded
cases hold objects that were never meant to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from vcscheduler.objects import checks, pod_checks, scheduling_checks, workload_checks
from vcscheduler.objects.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet
from vcscheduler.objects.batch import BatchJob, Command, CronJob, VolcanoJob
from vcscheduler.objects.core import Namespace, Node, ReplicationController, ResourceQuota, Service
from vcscheduler.objects.errors import InvalidField, Path, show_value
from vcscheduler.objects.meta import KubernetesObject
from vcscheduler.objects.names import dns_label_problem, dns_subdomain_problem
from vcscheduler.objects.pod import Pod
from vcscheduler.objects.policy import PodDisruptionBudget
from vcscheduler.objects.resource_claims import DeviceRequest, ResourceClaim, ResourceClaimTemplate
from vcscheduler.objects.scheduling import PodGroup, PriorityClass, Queue
from vcscheduler.objects.storage import (
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from vcscheduler.objects.topology import HyperNode, Numatopology

_T = TypeVar("_T", bound=KubernetesObject)
_CHECKS: Final[dict[type[KubernetesObject], Callable[[KubernetesObject], None]]] = {}
_LABEL_NAMED: Final = (Namespace, Service)
"""Kinds whose names allow no dots."""


def _register(cls: type[_T], check: Callable[[_T], None]) -> None:
    def checked(obj: KubernetesObject) -> None:
        assert isinstance(obj, cls)
        check(obj)

    _CHECKS[cls] = checked


def validate(obj: KubernetesObject) -> None:
    """Raise `InvalidField` for the first thing wrong with an object."""
    metadata = obj.metadata
    checks.required(("metadata", "name"), metadata.name)
    problem = (dns_label_problem if isinstance(obj, _LABEL_NAMED) else dns_subdomain_problem)(metadata.name)
    if problem:
        raise InvalidField(("metadata", "name"), f"found {show_value(metadata.name)}, a name {problem}")
    checks.dns_label(("metadata", "namespace"), metadata.namespace)
    if metadata.labels:
        checks.labels(("metadata", "labels"), metadata.labels)
    if metadata.annotations:
        checks.annotation_keys(("metadata", "annotations"), metadata.annotations)
    check = _CHECKS.get(type(obj))
    if check is not None:
        check(obj)


def queue_cycle(queues: Mapping[str, Queue]) -> list[str]:
    """Names of queues that are each other's parents in a circle, starting with the first found; else []."""
    settled: set[str] = set()
    for start in sorted(queues):
        way: list[str] = []
        name = start
        while name in queues and name not in settled:
            if name in way:
                return way[way.index(name) :]
            way.append(name)
            name = queues[name].spec.parent
        settled.update(way)
    return []


def _check_volume(volume: PersistentVolume) -> None:
    spec = volume.spec
    checks.quantities(("spec", "capacity"), spec.capacity)
    pod_checks.check_access_modes(("spec", "accessModes"), spec.access_modes)
    checks.one_of(("spec", "volumeMode"), spec.volume_mode, pod_checks.VOLUME_MODES)
    if spec.node_affinity is not None:
        checks.node_selector(("spec", "nodeAffinity", "required"), spec.node_affinity.required)
    phases = ("Pending", "Available", "Bound", "Released", "Failed")
    checks.one_of(("status", "phase"), volume.status.phase, phases)


def _check_claim(claim: PersistentVolumeClaim) -> None:
    pod_checks.check_claim_spec(("spec",), claim.spec)
    checks.quantities(("status", "capacity"), claim.status.capacity)
    checks.one_of(("status", "phase"), claim.status.phase, ("Pending", "Bound", "Lost"))


def _check_storage_class(storage: StorageClass) -> None:
    checks.required(("provisioner",), storage.provisioner)
    checks.one_of(("volumeBindingMode",), storage.volume_binding_mode, ("Immediate", "WaitForFirstConsumer"))


def _check_storage_capacity(capacity: CSIStorageCapacity) -> None:
    checks.required(("storageClassName",), capacity.storage_class_name)
    checks.quantity(("capacity",), capacity.capacity)
    checks.quantity(("maximumVolumeSize",), capacity.maximum_volume_size)
    checks.label_selector(("nodeTopology",), capacity.node_topology)


def _check_device_requests(path: Path, requests: list[DeviceRequest]) -> None:
    for index, request in enumerate(requests):
        item = (*path, index)
        checks.required((*item, "name"), request.name)
        exactly = request.exactly
        if (exactly is not None) == bool(request.first_available):
            raise InvalidField(item, "exactly one of exactly and firstAvailable must be given")
        if exactly is not None:
            checks.required((*item, "exactly", "deviceClassName"), exactly.device_class_name)
            checks.at_least((*item, "exactly", "count"), exactly.count, 0, 2**63 - 1)
            checks.one_of((*item, "exactly", "allocationMode"), exactly.allocation_mode, ("ExactCount", "All"))
            if exactly.capacity is not None:
                checks.quantities((*item, "exactly", "capacity", "requests"), exactly.capacity.requests)


def _check_resource_claim(claim: ResourceClaim) -> None:
    _check_device_requests(("spec", "devices", "requests"), claim.spec.devices.requests)


def _check_resource_claim_template(template: ResourceClaimTemplate) -> None:
    _check_device_requests(("spec", "spec", "devices", "requests"), template.spec.spec.devices.requests)


_register(Pod, pod_checks.check_pod)
_register(Node, scheduling_checks.check_node)
_register(ResourceQuota, scheduling_checks.check_resource_quota)
_register(PodGroup, scheduling_checks.check_pod_group)
_register(Queue, scheduling_checks.check_queue)
_register(PriorityClass, scheduling_checks.check_priority_class)
_register(HyperNode, scheduling_checks.check_hyper_node)
_register(Numatopology, scheduling_checks.check_numatopology)
_register(PodDisruptionBudget, scheduling_checks.check_disruption_budget)
_register(VolcanoJob, workload_checks.check_volcano_job)
_register(Command, workload_checks.check_command)
_register(BatchJob, workload_checks.check_batch_job)
_register(CronJob, workload_checks.check_cron_job)
_register(Deployment, workload_checks.check_replicated)
_register(ReplicaSet, workload_checks.check_replicated)
_register(StatefulSet, workload_checks.check_stateful_set)
_register(DaemonSet, workload_checks.check_daemon_set)
_register(ReplicationController, workload_checks.check_replication_controller)
_register(PersistentVolume, _check_volume)
_register(PersistentVolumeClaim, _check_claim)
_register(StorageClass, _check_storage_class)
_register(CSIStorageCapacity, _check_storage_capacity)
_register(ResourceClaim, _check_resource_claim)
_register(ResourceClaimTemplate, _check_resource_claim_template)
