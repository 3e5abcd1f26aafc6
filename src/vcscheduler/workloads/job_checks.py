"""What Volcano's webhook refuses in a new Job, beyond the shape of its fields (spec 07 §8.2)."""

from __future__ import annotations

from typing import Final

from vcscheduler.objects import LifecyclePolicy, PodSpec, TaskSpec, VolcanoJob
from vcscheduler.objects.errors import InvalidField, Path, did_you_mean, show_value
from vcscheduler.objects.names import dns_subdomain_problem, qualified_name_problem
from vcscheduler.objects.quantity import parse_quantity
from vcscheduler.objects.validate import validate
from vcscheduler.workloads.queues import QueueTree

PLUGINS: Final = ("ssh", "env", "svc", "tensorflow", "mpi", "pytorch", "hcclrank", "ray")
_POLICY_EVENTS: Final = (
    "*",
    "PodFailed",
    "PodEvicted",
    "PodPending",
    "Unknown",
    "TaskCompleted",
    "TaskFailed",
    "JobUpdated",
)


def check_job(job: VolcanoJob, queues: QueueTree) -> None:
    """Raise `InvalidField` for the first thing the webhook refuses in a defaulted, new job."""
    validate(job)
    spec = job.spec
    if problem := qualified_name_problem(job.name):
        raise InvalidField(("metadata", "name"), f"found {show_value(job.name)}, a name {problem}")
    for index, task in enumerate(spec.tasks):
        _check_task(("spec", "tasks", index), job, task, index)
    _check_policies(("spec", "policies"), spec.policies)
    _check_plugins(spec.plugins, spec.tasks)
    queues.check_use(spec.queue, ("spec", "queue"), by_job=True)


def _check_task(path: Path, job: VolcanoJob, task: TaskSpec, index: int) -> None:
    _check_policies((*path, "policies"), task.policies)
    pod_name = f"{job.name}-{task.name}-{index}"
    if problem := dns_subdomain_problem(pod_name) or qualified_name_problem(pod_name):
        raise InvalidField((*path, "name"), f"makes pods named {show_value(pod_name)}, a name {problem}")
    if task.topology_policy not in ("", "none"):
        _check_whole_cpus((*path, "template", "spec"), task.template.spec, task.topology_policy)
    partition = task.partition_policy
    if partition is not None and partition.min_partitions > 0:
        least = partition.min_partitions * partition.partition_size
        if least != task.min_available:
            raise InvalidField(
                (*path, "minAvailable"),
                f"found {task.min_available}, but minPartitions {partition.min_partitions} times "
                f"partitionSize {partition.partition_size} is {least}; they must be equal",
            )


def _check_whole_cpus(path: Path, spec: PodSpec, policy: str) -> None:
    for kind, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            resources = container.resources
            cpu = (resources.requests or resources.limits).get("cpu")
            if cpu is None or parse_quantity(cpu).denominator != 1:
                raise InvalidField(
                    (*path, kind, index, "resources", "requests", "cpu"),
                    f"found {show_value(cpu)}, topologyPolicy {policy} needs a whole number of CPUs",
                )


def _check_policies(path: Path, policies: list[LifecyclePolicy]) -> None:
    """Events and exit codes may each be named once, and ``*`` only alone."""
    events: set[str] = set()
    exit_codes: set[int] = set()
    for index, policy in enumerate(policies):
        item = (*path, index)
        named = {*policy.events, policy.event} - {""}
        for event in sorted(named):
            if event not in _POLICY_EVENTS:
                raise InvalidField(item, f"found event {show_value(event)}, allowed are {', '.join(_POLICY_EVENTS)}")
            if event in events:
                raise InvalidField(item, f"event {show_value(event)} has a policy already")
        events |= named
        if policy.exit_code is not None:
            if policy.exit_code in exit_codes:
                raise InvalidField((*item, "exitCode"), f"exit code {policy.exit_code} has a policy already")
            exit_codes.add(policy.exit_code)
    if "*" in events and len(events) > 1:
        raise InvalidField(path, 'event "*" stands for all events; it must be the only one')


def _check_plugins(plugins: dict[str, list[str]], tasks: list[TaskSpec]) -> None:
    for name in plugins:
        if name not in PLUGINS:
            hint = did_you_mean(name, PLUGINS) or f"; allowed are {', '.join(PLUGINS)}"
            raise InvalidField(("spec", "plugins", name), f"no such job plugin{hint}")
    if "mpi" in plugins:
        master = _argument(plugins["mpi"], "master") or "master"
        if all(task.name != master for task in tasks):
            raise InvalidField(("spec", "plugins", "mpi"), f"needs a task named {show_value(master)}, there is none")


def _argument(arguments: list[str], name: str) -> str:
    """The value of ``--name=value`` or ``--name value``."""
    for index, argument in enumerate(arguments):
        flag, equals, value = argument.lstrip("-").partition("=")
        if flag == name:
            return value if equals else (arguments[index + 1] if index + 1 < len(arguments) else "")
    return ""
