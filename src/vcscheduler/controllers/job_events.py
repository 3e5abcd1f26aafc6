"""What happens to pods, and what a Volcano Job's policies say to it (spec 07 §8.5).

An event of the cluster becomes a `Request`; `choose` finds the action that the job's policies have for it. Events of
pods that an earlier version of the job made, or that we delete ourselves, are no reason to act.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vcscheduler.config import parse_duration
from vcscheduler.controllers.job_phases import (
    ACTIONS,
    RESTART_PARTITION,
    RESTART_POD,
    RESTART_TASK,
    TARGETED,
)
from vcscheduler.controllers.job_reconcile import OUT_OF_SYNC, JobView, Order, Target, version_of
from vcscheduler.controllers.job_status import is_leaving, is_over
from vcscheduler.objects import LifecyclePolicy, OwnerReference, Pod, TaskSpec, VolcanoJob, controller_of
from vcscheduler.workloads import keys

ANY: Final = "*"
POD_PENDING: Final = "PodPending"
POD_RUNNING: Final = "PodRunning"
POD_FAILED: Final = "PodFailed"
POD_EVICTED: Final = "PodEvicted"
JOB_UNKNOWN: Final = "Unknown"
TASK_COMPLETED: Final = "TaskCompleted"
TASK_FAILED: Final = "TaskFailed"
OUT_OF_SYNC_EVENT: Final = "OutOfSync"
COMMAND_ISSUED: Final = "CommandIssued"

_ALWAYS_SYNC: Final = (OUT_OF_SYNC_EVENT, COMMAND_ISSUED, POD_RUNNING)
_NO_LIMIT: Final = -1
_DEFAULT_TASK_RETRY: Final = 3


@dataclass(frozen=True, slots=True)
class Request:
    """Something that a job may have to react to.

    Attributes:
        job: key of the job; `uid`: which job of that name, "" for any.
        action: said outright, by a Command; policies are not asked.
        version: of the job that the pod was made for.
    """

    job: str
    event: str = OUT_OF_SYNC_EVENT
    action: str = ""
    uid: str = ""
    task: str = ""
    pod: str = ""
    pod_uid: str = ""
    partition: str = ""
    exit_code: int = 0
    version: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """What to do about a request. `delay`: seconds until it is done, unless it has become pointless by then."""

    order: Order
    delay: float = 0.0


PLAIN_SYNC: Final = Choice(Order())


def job_of(pod: Pod) -> OwnerReference | None:
    """The Volcano Job that a pod belongs to."""
    owner = controller_of(pod.metadata)
    if owner is None or owner.kind != VolcanoJob.kind or owner.api_version != VolcanoJob.api_version:
        return None
    return owner


def request_of_pod(old: Pod | None, new: Pod | None, view: JobView | None) -> Request | None:
    """What a change of a pod asks of its job; None for pods that belong to none. `view` already shows the change."""
    pod = new if new is not None else old
    owner = job_of(pod) if pod is not None else None
    if pod is None or owner is None:
        return None
    event = OUT_OF_SYNC_EVENT
    if pod.metadata.annotations.get(OUT_OF_SYNC) != "true":
        event = POD_EVICTED if new is None else _event_of(old, new, view)
    return Request(
        job=f"{pod.namespace}/{owner.name}",
        event=event,
        uid=owner.uid,
        task=pod.metadata.annotations.get(keys.TASK_SPEC, ""),
        pod=pod.name,
        pod_uid=pod.metadata.uid,
        partition=pod.metadata.labels.get(keys.PARTITION_ID, ""),
        exit_code=_exit_code(pod) if event == POD_FAILED else 0,
        version=version_of(pod),
    )


def _event_of(old: Pod | None, new: Pod, view: JobView | None) -> str:
    """A pod that is seen for the first time, as after a start, tells by its phase what happened before."""
    before, phase = old.status.phase if old is not None else "", new.status.phase or "Pending"
    if phase != before:
        match phase:
            case "Failed":
                return POD_FAILED
            case "Succeeded":
                return TASK_COMPLETED if _task_is_complete(new, view) else OUT_OF_SYNC_EVENT
            case "Running":
                return POD_RUNNING
            case "Pending":
                return POD_PENDING
    if phase in ("Pending", "Running") and _task_gave_up(new, view):
        return TASK_FAILED
    return OUT_OF_SYNC_EVENT


def _task_is_complete(pod: Pod, view: JobView | None) -> bool:
    task = _task_with_policies(pod, view)
    if task is None or view is None:
        return False
    done = 0
    # The youngest first: as a rule one of them still runs, and the look is over.
    for each in reversed(view.pods.values()):
        if each.metadata.annotations.get(keys.TASK_SPEC) == task.name:
            if each.status.phase != "Succeeded":
                return False
            done += 1
    return done >= task.replicas


def _task_gave_up(pod: Pod, view: JobView | None) -> bool:
    """Whether the containers of a task's pods were restarted as often as the task allows."""
    if not _restarts(pod):
        return False
    task = _task_with_policies(pod, view)
    if task is None or view is None or task.max_retry == _NO_LIMIT:
        return False
    restarts = sum(
        _restarts(each)
        for each in view.pods.values()
        if each.metadata.annotations.get(keys.TASK_SPEC) == task.name and not is_over(each) and not is_leaving(each)
    )
    return restarts >= (task.max_retry or _DEFAULT_TASK_RETRY)


def _restarts(pod: Pod) -> int:
    status = pod.status
    return sum(each.restart_count for each in (*status.init_container_statuses, *status.container_statuses))


def _task_with_policies(pod: Pod, view: JobView | None) -> TaskSpec | None:
    """The pod's task, unless nobody asks what becomes of it as a whole: to look at all pods with each pod is dear."""
    if view is None:
        return None
    name, spec = pod.metadata.annotations.get(keys.TASK_SPEC, ""), view.job.spec
    return next((task for task in spec.tasks if task.name == name and (task.policies or spec.policies)), None)


def _exit_code(pod: Pod) -> int:
    statuses = pod.status.container_statuses
    state = statuses[0].state if statuses else None
    return state.terminated.exit_code if state is not None and state.terminated is not None else 0


# Policies


def choose(job: VolcanoJob, request: Request) -> Choice:
    """The action for a request, by the job's policies."""
    if request.action:
        return Choice(_order(request.action, request)) if request.action in ACTIONS else PLAIN_SYNC
    if (
        request.event in _ALWAYS_SYNC
        or (request.uid and request.uid != job.metadata.uid)
        or request.version < job.status.version
    ):
        return PLAIN_SYNC
    of_task = [task.policies for task in job.spec.tasks if task.name == request.task]
    for policies in (*of_task, job.spec.policies):
        for policy in policies:
            if _matches(policy, request):
                delay = parse_duration(policy.timeout) if policy.timeout is not None else 0.0
                return Choice(_order(policy.action, request), delay) if policy.action in ACTIONS else PLAIN_SYNC
    return PLAIN_SYNC


def _matches(policy: LifecyclePolicy, request: Request) -> bool:
    events = {*policy.events, policy.event} - {""}
    if request.event in events or ANY in events:
        # Every pod is pending at first; only for how long can be a reason to act.
        return request.event != POD_PENDING or policy.timeout is not None
    return policy.exit_code is not None and policy.exit_code != 0 and policy.exit_code == request.exit_code


def _order(action: str, request: Request) -> Order:
    cause = _cause(request)
    if action not in TARGETED:
        return Order(action, None, cause, request.pod)
    target: Target | None = None
    if action == RESTART_TASK and request.task:
        target = Target(request.task)
    elif action == RESTART_POD and request.pod:
        target = Target(request.task, pod=request.pod)
    elif action == RESTART_PARTITION and request.partition:
        target = Target(request.task, partition=request.partition)
    # A part that cannot be told (a job event, a Command) leaves nothing to restart.
    return Order(action, target, cause, request.pod) if target is not None else Order()


def _cause(request: Request) -> str:
    if request.action:
        return "asked for by a Command"
    code = f" (exit code {request.exit_code})" if request.exit_code else ""
    subject = f" of pod {request.pod}" if request.pod else ""
    return f"{request.event}{subject}{code}"


def is_pointless(request: Request, view: JobView) -> bool:
    """Whether a delayed action has lost its reason: the pod is no longer pending, or runs (again)."""
    pod = view.pods.get(request.pod)
    if request.event == POD_PENDING:
        return pod is None or pod.metadata.uid != request.pod_uid or pod.status.phase not in ("", "Pending")
    if request.event in (POD_FAILED, POD_EVICTED):
        return pod is not None and pod.status.phase == "Running" and not is_leaving(pod)
    return False
