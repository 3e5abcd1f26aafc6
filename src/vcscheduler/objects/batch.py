# ruff: noqa: RUF012 - msgspec gives every instance its own copy of an empty list or dict default.
"""Jobs: Volcano's Job and Command, and Kubernetes' own Job and CronJob (`BatchJob`, `CronJob`)."""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from vcscheduler.objects.meta import (
    ApiStruct,
    Condition,
    KubernetesObject,
    LabelSelector,
    OwnerReference,
    Time,
)
from vcscheduler.objects.pod import PodTemplateSpec
from vcscheduler.objects.scheduling import NetworkTopologySpec
from vcscheduler.objects.volumes import PersistentVolumeClaimSpec


class LifecyclePolicy(ApiStruct):
    action: str = ""
    event: str = ""
    events: list[str] = []
    exit_code: int | None = None
    timeout: str | None = None
    """Go duration such as ``10m``."""


class DependsOn(ApiStruct):
    name: list[str] = []
    iteration: str = ""


class PartitionPolicy(ApiStruct):
    total_partitions: int = 0
    partition_size: int = 0
    min_partitions: int = 0
    network_topology: NetworkTopologySpec | None = None


class TaskSpec(ApiStruct):
    name: str = ""
    replicas: int = 0
    min_available: int | None = None
    template: PodTemplateSpec = field(default_factory=PodTemplateSpec)
    policies: list[LifecyclePolicy] = []
    topology_policy: str = ""
    max_retry: int = 0
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None


class VolumeSpec(ApiStruct):
    mount_path: str = ""
    volume_claim_name: str = ""
    volume_claim: PersistentVolumeClaimSpec | None = None


class VolcanoJobSpec(ApiStruct):
    scheduler_name: str = ""
    min_available: int = 0
    volumes: list[VolumeSpec] = []
    tasks: list[TaskSpec] = []
    policies: list[LifecyclePolicy] = []
    plugins: dict[str, list[str]] = {}
    running_estimate: str | None = None
    queue: str = ""
    max_retry: int = 0
    ttl_seconds_after_finished: int | None = None
    priority_class_name: str = ""
    min_success: int | None = None
    network_topology: NetworkTopologySpec | None = None


class VolcanoJobState(ApiStruct):
    phase: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class TaskState(ApiStruct):
    phase: dict[str, int] = {}


class VolcanoJobCondition(ApiStruct):
    status: str = ""
    last_transition_time: Time | None = None


class VolcanoJobStatus(ApiStruct):
    state: VolcanoJobState = field(default_factory=VolcanoJobState)
    min_available: int = 0
    task_status_count: dict[str, TaskState] = {}
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    version: int = 0
    retry_count: int = 0
    running_duration: str | None = None
    controlled_resources: dict[str, str] = {}
    conditions: list[VolcanoJobCondition] = []


class VolcanoJob(KubernetesObject):
    api_version: ClassVar[str] = "batch.volcano.sh/v1alpha1"
    kind: ClassVar[str] = "Job"

    spec: VolcanoJobSpec = field(default_factory=VolcanoJobSpec)
    status: VolcanoJobStatus = field(default_factory=VolcanoJobStatus)


class Command(KubernetesObject):
    """An order to the job or queue controller, such as AbortJob or CloseQueue."""

    api_version: ClassVar[str] = "bus.volcano.sh/v1alpha1"
    kind: ClassVar[str] = "Command"

    action: str = ""
    target: OwnerReference | None = None
    reason: str = ""
    message: str = ""


class BatchJobSpec(ApiStruct):
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = field(default_factory=PodTemplateSpec)


class BatchJobStatus(ApiStruct):
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    start_time: Time | None = None
    completion_time: Time | None = None
    conditions: list[Condition] = []


class BatchJob(KubernetesObject):
    api_version: ClassVar[str] = "batch/v1"
    kind: ClassVar[str] = "Job"

    spec: BatchJobSpec = field(default_factory=BatchJobSpec)
    status: BatchJobStatus = field(default_factory=BatchJobStatus)


class BatchJobTemplate(ApiStruct):
    spec: BatchJobSpec = field(default_factory=BatchJobSpec)


class CronJobSpec(ApiStruct):
    schedule: str = ""
    time_zone: str | None = None
    suspend: bool | None = None
    concurrency_policy: str = ""
    job_template: BatchJobTemplate = field(default_factory=BatchJobTemplate)


class CronJob(KubernetesObject):
    api_version: ClassVar[str] = "batch/v1"
    kind: ClassVar[str] = "CronJob"

    spec: CronJobSpec = field(default_factory=CronJobSpec)
