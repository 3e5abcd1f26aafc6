"""From a Volcano Job as it stands and an action to the writes that follow: a pure function (spec 07 §8.3-§8.5).

Writes come in stages, each to be finished before the next begins. Their order is such that whoever stops between two of
them can go on by reconciling what is stored: a restart of the whole job is written into its status first, so that pods
of an older version are known to be on their way out; pods of a part that restarts are marked first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from vcscheduler.cluster.object_store import Annotate, Create, Delete, Origin, Update, UpdateStatus, Write
from vcscheduler.controllers import job_plugins
from vcscheduler.controllers.job_phases import (
    FINISHED,
    RESTART_TASK,
    RESUME,
    SYNC,
    Deed,
    Move,
    max_retry,
    move_of,
    phase_after,
)
from vcscheduler.controllers.job_status import count, in_phase, is_leaving, is_over, stamped, with_counts
from vcscheduler.objects import Pod, PodGroup, TaskSpec, VolcanoJob, VolcanoJobStatus
from vcscheduler.workloads import keys, volcano_jobs
from vcscheduler.workloads.admission import PodAdmission, changed
from vcscheduler.workloads.volcano_jobs import group_name

Stages: TypeAlias = list[tuple[Write, ...]]

OUT_OF_SYNC: Final = "volcano.sh/controller-out-of-sync"
"""On pods that are deleted because a part of their job restarts: their end is no event to react to."""


@dataclass(frozen=True, slots=True)
class Target:
    """The part of a job that an action is about: a task, one of its partitions, or one pod."""

    task: str
    partition: str = ""
    pod: str = ""

    def holds(self, pod: Pod) -> bool:
        if pod.metadata.annotations.get(keys.TASK_SPEC) != self.task:
            return False
        if self.pod:
            return pod.name == self.pod
        return not self.partition or pod.metadata.labels.get(keys.PARTITION_ID) == self.partition


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done to a job. `cause`: for people. `culprit`: the pod whose fate caused it."""

    action: str = SYNC
    target: Target | None = None
    cause: str = ""
    culprit: str = ""


@dataclass(frozen=True, slots=True)
class JobView:
    """A job and what belongs to it, as last seen. `stored` is the job as the cluster has it, `job` the same with the
    webhook's defaults, which a cluster without webhooks lacks."""

    stored: VolcanoJob
    job: VolcanoJob
    pods: dict[str, Pod]
    pod_group: PodGroup | None


def version_of(pod: Pod) -> int:
    text = pod.metadata.annotations.get(keys.JOB_VERSION, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def reconcile(view: JobView, order: Order, admission: PodAdmission, now: datetime) -> Stages:
    """What has to be written now; nothing when everything is as it should be.

    Raises:
        InvalidField: the pods of a task would be refused.
    """
    job = view.job
    if job.metadata.deletion_timestamp is not None:
        return []
    move = move_of(job.status.state.phase, order.action)
    if move.deed is Deed.KILL_TARGET and order.target is not None:
        return _kill_target(view, order, move, order.target, now)
    if move.deed is Deed.KILL:
        return _kill(view, order, move, now)
    left_behind = _left_behind(view)
    if left_behind:
        return _remove(view, left_behind)
    marked = [pod for pod in view.pods.values() if _is_marked(pod) and not is_leaving(pod)]
    if marked and job.status.state.phase != "Restarting":
        return _restart_marked(view, marked, now)
    return _sync(view, admission, now)


def expires_at(job: VolcanoJob) -> float | None:
    """Until when a finished job is kept, in seconds since the epoch; None if for ever."""
    ttl, since = job.spec.ttl_seconds_after_finished, job.status.state.last_transition_time
    if ttl is None or since is None or job.status.state.phase not in FINISHED:
        return None
    if job.metadata.deletion_timestamp is not None:
        return None
    return since.timestamp() + ttl


# Killing


def _kill(view: JobView, order: Order, move: Move, now: datetime) -> Stages:
    job, status = view.job, view.job.status
    last_retry = status.retry_count >= max_retry(job) - 1
    spare = move.spare_finished or last_retry
    doomed = [pod for pod in view.pods.values() if not is_leaving(pod) and not (spare and is_over(pod))]
    new = with_counts(status, count(view.pods.values(), {pod.name for pod in doomed}))
    if move.phase or any(version_of(pod) >= status.version for pod in doomed):
        new = changed(new, version=status.version + 1)
    new = _entered(job, new, order, move)
    return [*_status(view, new, now), *_remove(view, doomed)]


def _kill_target(view: JobView, order: Order, move: Move, target: Target, now: datetime) -> Stages:
    last_retry = view.job.status.retry_count >= max_retry(view.job) - 1
    doomed = [
        pod
        for pod in view.pods.values()
        if target.holds(pod) and not is_leaving(pod) and not (last_retry and is_over(pod))
    ]
    # The one that caused this is marked last: until then it would cause it again.
    marks: Stages = [
        _marks(pod for pod in doomed if pod.name != order.culprit),
        _marks(pod for pod in doomed if pod.name == order.culprit),
    ]
    return _without_empty([*marks, *_removal_of_part(view, doomed, order, move, now)])


def _restart_marked(view: JobView, marked: list[Pod], now: datetime) -> Stages:
    """Finish a restart of a part of the job that was cut short before it was written into the status."""
    order = Order(RESTART_TASK, cause="resumed after an interruption")
    return _without_empty(_removal_of_part(view, marked, order, move_of("Running", RESTART_TASK), now))


def _removal_of_part(view: JobView, doomed: list[Pod], order: Order, move: Move, now: datetime) -> Stages:
    counts = count(view.pods.values(), {pod.name for pod in doomed})
    new = _entered(view.job, with_counts(view.job.status, counts), order, move)
    return [*_status(view, new, now), _deletions(doomed)]


def _entered(job: VolcanoJob, status: VolcanoJobStatus, order: Order, move: Move) -> VolcanoJobStatus:
    if move.retry:
        status = changed(status, retry_count=status.retry_count + 1)
    phase = move.phase or phase_after(job, status)
    return in_phase(status, phase, order.action if move.phase else "", order.cause if move.phase else "")


def _left_behind(view: JobView) -> list[Pod]:
    """Pods that a restart of the whole job was about to delete when it was cut short."""
    status = view.job.status
    if status.state.phase != "Restarting":
        return []
    spare = status.state.reason == RESUME or status.retry_count >= max_retry(view.job)
    return [
        pod
        for pod in view.pods.values()
        if version_of(pod) < status.version and not is_leaving(pod) and not (spare and is_over(pod))
    ]


def _remove(view: JobView, pods: list[Pod]) -> Stages:
    """The PodGroup goes first: as long as pods are left it is known that it has to go (see `_left_behind`)."""
    group = view.pod_group
    return _without_empty([(Delete(group),) if group is not None else (), _deletions(pods)])


def _marks(pods: Iterable[Pod]) -> tuple[Write, ...]:
    return tuple(Annotate(pod, {OUT_OF_SYNC: "true"}) for pod in pods if not _is_marked(pod))


def _is_marked(pod: Pod) -> bool:
    return pod.metadata.annotations.get(OUT_OF_SYNC) == "true"


def _deletions(pods: Iterable[Pod]) -> tuple[Write, ...]:
    return tuple(Delete(pod) for pod in sorted(pods, key=lambda pod: pod.name))


def _without_empty(stages: Stages) -> Stages:
    return [stage for stage in stages if stage]


def _status(view: JobView, status: VolcanoJobStatus, now: datetime) -> Stages:
    new = stamped(view.stored, status, now)
    return [] if new is None else [(UpdateStatus(view.stored, changed(view.stored, status=new)),)]


# Synchronising


def _sync(view: JobView, admission: PodAdmission, now: datetime) -> Stages:
    job, status = view.job, changed(view.job.status, min_available=view.job.spec.min_available)
    if status.state.phase == "Restarting" and phase_after(job, status) == "Failed":
        return _status(view, in_phase(status, "Failed", "MaxRetryReached", _retries(job)), now)
    made, resources = _surroundings(job)
    stages: Stages = [made, _group_writes(view, admission)]
    status = changed(status, controlled_resources=resources)
    group = view.pod_group
    if group is not None and group.status.phase not in ("", "Pending"):
        created, removed = _pod_writes(view, group, admission)
        # All pods before the status: what is counted there exists.
        stages += [created, removed]
        doomed = {write.obj.name for write in removed}
        counts = count(view.pods.values(), doomed)
        for write in created:
            counts.add(write.obj)  # type: ignore[arg-type]
        status = with_counts(status, counts)
    status = in_phase(status, phase_after(job, status))
    return [*_without_empty(stages), *_status(view, status, now)]


def _retries(job: VolcanoJob) -> str:
    return f"it was restarted as often as maxRetry {max_retry(job)} allows"


def _surroundings(job: VolcanoJob) -> tuple[tuple[Create, ...], dict[str, str]]:
    """Claims and what plugins need, as far as the status does not say that they were made; and what it has to say."""
    known = job.status.controlled_resources
    writes: list[Create] = []
    resources = dict(known)
    numbers = {
        volcano_jobs.claim_name(job, index): index
        for index, volume in enumerate(job.spec.volumes)
        if volume.volume_claim is not None
    }
    for claim in volcano_jobs.claims(job):
        key = f"volume-pvc-{claim.name}"
        if key not in known:
            writes.append(Create(claim, Origin(job, ("spec", "volumes", numbers[claim.name], "volumeClaim"))))
        resources[key] = claim.name
    for plugin in job_plugins.played(job):
        key = f"plugin-{plugin}"
        if key not in known:
            writes += job_plugins.helpers(job, plugin)
        resources[key] = plugin
    return tuple(writes), resources


def _group_writes(view: JobView, admission: PodAdmission) -> tuple[Write, ...]:
    """The PodGroup made, or brought up to date where a job may change while it runs."""
    wanted = volcano_jobs.pod_group(view.job, admission.priority_of)
    group = view.pod_group
    if group is None:
        return (Create(changed(wanted, metadata=changed(wanted.metadata, uid=""))),)
    spec = changed(
        group.spec,
        priority_class_name=wanted.spec.priority_class_name,
        min_task_member={**group.spec.min_task_member, **wanted.spec.min_task_member},
        sub_group_policy=wanted.spec.sub_group_policy,
    )
    if spec.min_member != wanted.spec.min_member:
        spec.min_member, spec.min_resources = wanted.spec.min_member, wanted.spec.min_resources
    return (Update(group, changed(group, spec=spec)),) if spec != group.spec else ()


def _pod_writes(
    view: JobView, group: PodGroup, admission: PodAdmission
) -> tuple[tuple[Create, ...], tuple[Delete, ...]]:
    job = view.job
    created: list[Create] = []
    wanted: set[str] = set()
    for index, task in enumerate(job.spec.tasks):
        names = {f"{job.name}-{task.name}-{number}" for number in range(task.replicas)}
        wanted |= names
        if names <= view.pods.keys() or not _may_start(view, task):
            continue
        made = volcano_jobs.task_pods(job, task, group.name, admission)
        created += [_creation(job, pod, index) for pod in made if pod.name not in view.pods]
    removed = [
        Delete(pod)
        for name, pod in sorted(view.pods.items())
        if not is_leaving(pod) and (name not in wanted or _is_marked(pod))
    ]
    return tuple(created), tuple(removed)


def _creation(job: VolcanoJob, pod: Pod, task_index: int) -> Create:
    pod = job_plugins.named_on_network(job, pod)
    pod = changed(pod, metadata=changed(pod.metadata, uid=""))
    added = job_plugins.additions(job, pod.metadata.annotations[keys.TASK_INDEX])
    mounts = {volcano_jobs.claim_name(job, index): volume.mount_path for index, volume in enumerate(job.spec.volumes)}
    origin = Origin(job, ("spec", "tasks", task_index, "template"), {**mounts, **added.mounts}, added.env)
    return Create(pod, origin, {"spec": {"volumes": list(added.volumes)}} if added.volumes else {})


def _may_start(view: JobView, task: TaskSpec) -> bool:
    """Whether the tasks that this one depends on are far enough (spec 07 §8.4)."""
    depends = task.depends_on
    if depends is None or not depends.name:
        return True
    least = {each.name: each.min_available or 0 for each in view.job.spec.tasks}
    ready = [_ready_pods(view, name) >= least.get(name, 0) for name in depends.name]
    return any(ready) if depends.iteration == "any" and len(ready) > 1 else all(ready)


def _ready_pods(view: JobView, task: str) -> int:
    return sum(
        pod.metadata.annotations.get(keys.TASK_SPEC) == task
        and (
            pod.status.phase == "Succeeded"
            or (pod.status.phase == "Running" and all(each.ready for each in pod.status.container_statuses))
        )
        for pod in view.pods.values()
    )


def group_keys(job: VolcanoJob) -> tuple[str, str]:
    """The keys under which a job's PodGroup may be found: by the job's name in old clusters, else with its UID."""
    return f"{job.namespace}/{group_name(job)}", job.key
