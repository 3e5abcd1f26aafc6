# ruff: noqa: RUF012 - msgspec gives every instance its own copy of an empty list or dict default.
"""Workloads of the apps group: Deployment, ReplicaSet, StatefulSet, DaemonSet."""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from vcscheduler.objects.meta import ApiStruct, KubernetesObject, LabelSelector
from vcscheduler.objects.pod import PodTemplateSpec
from vcscheduler.objects.volumes import PersistentVolumeClaimTemplate


class ReplicaStatus(ApiStruct):
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0


class DeploymentSpec(ApiStruct):
    replicas: int | None = None
    """Absent means 1."""
    selector: LabelSelector | None = None
    template: PodTemplateSpec = field(default_factory=PodTemplateSpec)
    paused: bool = False


class Deployment(KubernetesObject):
    api_version: ClassVar[str] = "apps/v1"
    kind: ClassVar[str] = "Deployment"

    spec: DeploymentSpec = field(default_factory=DeploymentSpec)
    status: ReplicaStatus = field(default_factory=ReplicaStatus)


class ReplicaSetSpec(ApiStruct):
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = field(default_factory=PodTemplateSpec)


class ReplicaSet(KubernetesObject):
    api_version: ClassVar[str] = "apps/v1"
    kind: ClassVar[str] = "ReplicaSet"

    spec: ReplicaSetSpec = field(default_factory=ReplicaSetSpec)
    status: ReplicaStatus = field(default_factory=ReplicaStatus)


class StatefulSetOrdinals(ApiStruct):
    start: int = 0


class StatefulSetSpec(ApiStruct):
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = field(default_factory=PodTemplateSpec)
    volume_claim_templates: list[PersistentVolumeClaimTemplate] = []
    service_name: str = ""
    pod_management_policy: str = ""
    ordinals: StatefulSetOrdinals | None = None


class StatefulSetStatus(ReplicaStatus):
    current_revision: str = ""
    update_revision: str = ""


class StatefulSet(KubernetesObject):
    api_version: ClassVar[str] = "apps/v1"
    kind: ClassVar[str] = "StatefulSet"

    spec: StatefulSetSpec = field(default_factory=StatefulSetSpec)
    status: StatefulSetStatus = field(default_factory=StatefulSetStatus)


class DaemonSetSpec(ApiStruct):
    selector: LabelSelector | None = None
    template: PodTemplateSpec = field(default_factory=PodTemplateSpec)


class DaemonSet(KubernetesObject):
    api_version: ClassVar[str] = "apps/v1"
    kind: ClassVar[str] = "DaemonSet"

    spec: DaemonSetSpec = field(default_factory=DaemonSetSpec)
