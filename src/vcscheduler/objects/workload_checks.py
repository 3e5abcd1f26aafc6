"""Validation of workloads: Volcano jobs, Kubernetes jobs, the apps group."""

from __future__ import annotations

from typing import Final

from vcscheduler.objects import checks
from vcscheduler.objects.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet
from vcscheduler.objects.batch import (
    BatchJob,
    BatchJobSpec,
    Command,
    CronJob,
    LifecyclePolicy,
    TaskSpec,
    VolcanoJob,
)
from vcscheduler.objects.core import ReplicationController
from vcscheduler.objects.errors import InvalidField, Path, did_you_mean, show_value
from vcscheduler.objects.pod import PodTemplateSpec
from vcscheduler.objects.pod_checks import check_claim_spec, check_pod_spec
from vcscheduler.objects.scheduling_checks import check_network_topology

ACTIONS: Final = (
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
)
_INTERNAL_ACTIONS: Final = ("SyncJob", "EnqueueJob", "SyncQueue", "OpenQueue", "CloseQueue")
EVENTS: Final = (
    "*",
    "PodPending",
    "PodRunning",
    "PodFailed",
    "PodEvicted",
    "Unknown",
    "TaskCompleted",
    "OutOfSync",
    "CommandIssued",
    "JobUpdated",
    "TaskFailed",
)
_JOB_PHASES: Final = (
    "Pending",
    "Aborting",
    "Aborted",
    "Running",
    "Restarting",
    "Completing",
    "Completed",
    "Terminating",
    "Terminated",
    "Failed",
)
_TOPOLOGY_POLICIES: Final = ("none", "best-effort", "restricted", "single-numa-node")
_MOST_PODS: Final = 1_000_000
"""Pods that one workload may ask for: all of them are made in memory, and a slip of the finger must not fill it."""


def check_template(path: Path, template: PodTemplateSpec) -> None:
    checks.labels((*path, "metadata", "labels"), template.metadata.labels)
    checks.annotation_keys((*path, "metadata", "annotations"), template.metadata.annotations)
    check_pod_spec((*path, "spec"), template.spec)


def check_volcano_job(job: VolcanoJob) -> None:
    spec, path = job.spec, ("spec",)
    if not spec.tasks:
        raise InvalidField((*path, "tasks"), "missing, a job needs at least one task")
    for index, task in enumerate(spec.tasks):
        _check_task((*path, "tasks", index), task)
    checks.unique((*path, "tasks"), (task.name for task in spec.tasks))
    _check_dependencies((*path, "tasks"), spec.tasks)
    checks.at_least((*path, "minAvailable"), spec.min_available)
    total = sum(task.replicas for task in spec.tasks)
    if total > _MOST_PODS:
        raise InvalidField((*path, "tasks"), f"all together have {total} replicas, allowed are at most {_MOST_PODS}")
    if spec.min_available > total:
        raise InvalidField(
            (*path, "minAvailable"),
            f"found {spec.min_available}, but all tasks together have {total} replicas",
        )
    checks.at_least((*path, "minSuccess"), spec.min_success, 1)
    checks.at_least((*path, "maxRetry"), spec.max_retry)
    checks.at_least((*path, "ttlSecondsAfterFinished"), spec.ttl_seconds_after_finished)
    checks.subdomain((*path, "queue"), spec.queue)
    checks.subdomain((*path, "priorityClassName"), spec.priority_class_name)
    check_network_topology((*path, "networkTopology"), spec.network_topology)
    _check_policies((*path, "policies"), spec.policies)
    for index, volume in enumerate(spec.volumes):
        item = (*path, "volumes", index)
        checks.required((*item, "mountPath"), volume.mount_path)
        if bool(volume.volume_claim_name) == (volume.volume_claim is not None):
            raise InvalidField(item, "exactly one of volumeClaimName and volumeClaim must be given")
        if volume.volume_claim is not None:
            check_claim_spec((*item, "volumeClaim"), volume.volume_claim)
    checks.unique((*path, "volumes"), (volume.mount_path for volume in spec.volumes), "mountPath")
    checks.one_of(("status", "state", "phase"), job.status.state.phase, _JOB_PHASES)


def _check_task(path: Path, task: TaskSpec) -> None:
    checks.dns_label((*path, "name"), task.name)
    checks.at_least((*path, "replicas"), task.replicas, 0, _MOST_PODS)
    checks.at_least((*path, "minAvailable"), task.min_available)
    if task.min_available is not None and task.min_available > task.replicas:
        raise InvalidField(
            (*path, "minAvailable"), f"found {task.min_available}, but the task has {task.replicas} replicas"
        )
    checks.at_least((*path, "maxRetry"), task.max_retry, -1)
    checks.one_of((*path, "topologyPolicy"), task.topology_policy, _TOPOLOGY_POLICIES)
    _check_policies((*path, "policies"), task.policies)
    partition = task.partition_policy
    if partition is not None:
        item = (*path, "partitionPolicy")
        checks.at_least((*item, "totalPartitions"), partition.total_partitions, 1)
        checks.at_least((*item, "partitionSize"), partition.partition_size, 1)
        checks.at_least((*item, "minPartitions"), partition.min_partitions)
        check_network_topology((*item, "networkTopology"), partition.network_topology)
        if partition.total_partitions * partition.partition_size != task.replicas:
            raise InvalidField(
                item,
                f"totalPartitions {partition.total_partitions} times partitionSize {partition.partition_size} "
                f"must equal the task's replicas, {task.replicas}",
            )
    check_template((*path, "template"), task.template)


def _check_dependencies(path: Path, tasks: list[TaskSpec]) -> None:
    """Every dependency must be a task of the job, and no task may wait for itself in the end."""
    names = [task.name for task in tasks]
    needs: dict[str, list[str]] = {}
    for index, task in enumerate(tasks):
        if task.depends_on is None:
            continue
        item = (*path, index, "dependsOn")
        checks.one_of((*item, "iteration"), task.depends_on.iteration, ("any", "all"))
        for number, name in enumerate(task.depends_on.name):
            if name not in names:
                hint = did_you_mean(name, names)
                message = f"found {show_value(name)}, no such task{hint}"
                raise InvalidField((*item, "name", number), message)
        needs[task.name] = task.depends_on.name
    for index, task in enumerate(tasks):
        reached, ahead = set[str](), list(needs.get(task.name, ()))
        while ahead:
            name = ahead.pop()
            if name == task.name:
                raise InvalidField((*path, index, "dependsOn"), f'task "{name}" depends on itself')
            if name not in reached:
                reached.add(name)
                ahead.extend(needs.get(name, ()))


def _check_policies(path: Path, policies: list[LifecyclePolicy]) -> None:
    for index, policy in enumerate(policies):
        item = (*path, index)
        checks.one_of((*item, "action"), policy.action, ACTIONS, required=True)
        checks.one_of((*item, "event"), policy.event, EVENTS)
        for number, event in enumerate(policy.events):
            checks.one_of((*item, "events", number), event, EVENTS, required=True)
        has_event = bool(policy.event or policy.events)
        if has_event == (policy.exit_code is not None):
            raise InvalidField(item, "exactly one of event(s) and exitCode must be given")
        if policy.exit_code == 0:
            raise InvalidField((*item, "exitCode"), "found 0, which is no failure")


def check_command(command: Command) -> None:
    checks.one_of(("action",), command.action, (*ACTIONS, *_INTERNAL_ACTIONS), required=True)
    if command.target is None:
        raise InvalidField(("target",), "missing")
    checks.required(("target", "kind"), command.target.kind)
    checks.required(("target", "name"), command.target.name)


def check_batch_job(job: BatchJob) -> None:
    _check_batch_job_spec(("spec",), job.spec)


def _check_batch_job_spec(path: Path, spec: BatchJobSpec) -> None:
    checks.at_least((*path, "parallelism"), spec.parallelism, 0, _MOST_PODS)
    checks.at_least((*path, "completions"), spec.completions)
    checks.at_least((*path, "backoffLimit"), spec.backoff_limit)
    checks.at_least((*path, "activeDeadlineSeconds"), spec.active_deadline_seconds)
    checks.at_least((*path, "ttlSecondsAfterFinished"), spec.ttl_seconds_after_finished)
    checks.one_of((*path, "completionMode"), spec.completion_mode, ("NonIndexed", "Indexed"))
    checks.label_selector((*path, "selector"), spec.selector)
    check_template((*path, "template"), spec.template)


def check_cron_job(job: CronJob) -> None:
    checks.required(("spec", "schedule"), job.spec.schedule)
    checks.one_of(("spec", "concurrencyPolicy"), job.spec.concurrency_policy, ("Allow", "Forbid", "Replace"))
    _check_batch_job_spec(("spec", "jobTemplate", "spec"), job.spec.job_template.spec)


def check_replicated(obj: Deployment | ReplicaSet | StatefulSet) -> None:
    checks.at_least(("spec", "replicas"), obj.spec.replicas, 0, _MOST_PODS)
    checks.label_selector(("spec", "selector"), obj.spec.selector)
    check_template(("spec", "template"), obj.spec.template)


def check_stateful_set(obj: StatefulSet) -> None:
    check_replicated(obj)
    for index, claim in enumerate(obj.spec.volume_claim_templates):
        item = ("spec", "volumeClaimTemplates", index)
        checks.required((*item, "metadata", "name"), claim.metadata.name)
        check_claim_spec((*item, "spec"), claim.spec)
    checks.one_of(("spec", "podManagementPolicy"), obj.spec.pod_management_policy, ("OrderedReady", "Parallel"))


def check_daemon_set(obj: DaemonSet) -> None:
    checks.label_selector(("spec", "selector"), obj.spec.selector)
    check_template(("spec", "template"), obj.spec.template)


def check_replication_controller(obj: ReplicationController) -> None:
    checks.at_least(("spec", "replicas"), obj.spec.replicas, 0, _MOST_PODS)
    if obj.spec.template is not None:
        check_template(("spec", "template"), obj.spec.template)
