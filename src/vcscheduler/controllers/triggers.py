"""Which work a change of the cluster calls for (spec 07 §8.5-§8.7)."""

from __future__ import annotations

from collections.abc import Iterator

from vcscheduler.controllers.groups import scaled_to_nothing
from vcscheduler.controllers.job_events import JOB_UNKNOWN, PLAIN_SYNC, Request, choose, job_of, request_of_pod
from vcscheduler.controllers.mirror import WORKLOADS, Mirror
from vcscheduler.controllers.work import CommandWork, Item, JobWork, PodWork, QueueWork, WorkloadWork
from vcscheduler.objects import (
    Command,
    KubernetesObject,
    Pod,
    PodGroup,
    Queue,
    VolcanoJob,
    controller_of,
)


def work_of(old: KubernetesObject | None, new: KubernetesObject | None, mirror: Mirror) -> Iterator[Item]:
    """The work for one change, which `mirror` already shows: only `new` = added, both = updated, only `old` =
    deleted."""
    some = new if new is not None else old
    if isinstance(some, Pod):
        yield from _of_pod(old, new, some, mirror)
    elif isinstance(some, PodGroup):
        yield from _of_pod_group(old, new, some, mirror)
    elif isinstance(new, VolcanoJob):
        if not isinstance(old, VolcanoJob) or _asks_for_sync(old, new):
            yield JobWork(Request(new.key))
    elif isinstance(new, Queue):
        if not isinstance(old, Queue) or (old.spec.parent, old.status.state) != (new.spec.parent, new.status.state):
            yield QueueWork(new.name)
    elif isinstance(new, Command):
        yield CommandWork(new.key)
    elif isinstance(new, WORKLOADS) and scaled_to_nothing(new):
        yield WorkloadWork(type(new), new.key)


def everything(mirror: Mirror) -> Iterator[Item]:
    """All there is to look at, for one that has just become responsible."""
    for queue in mirror.queues().values():
        yield from work_of(None, queue, mirror)
    for command in mirror.commands():
        yield from work_of(None, command, mirror)
    for key in mirror.jobs():
        view = mirror.view(key)
        assert view is not None
        yield from work_of(None, view.stored, mirror)
        for pod in list(view.pods.values()):
            yield from work_of(None, pod, mirror)
    for workload in mirror.workloads():
        yield from work_of(None, workload, mirror)
    for key in list(mirror.ungrouped):
        yield PodWork(key)


def _of_pod(old: KubernetesObject | None, new: KubernetesObject | None, pod: Pod, mirror: Mirror) -> Iterator[Item]:
    if pod.key in mirror.ungrouped:
        yield PodWork(pod.key)
    owner = job_of(pod)
    if owner is None:
        return
    view = mirror.view(f"{pod.namespace}/{owner.name}")
    before, after = (each if isinstance(each, Pod) else None for each in (old, new))
    request = request_of_pod(before, after, view)
    if request is None or view is None:
        return
    # What no policy cares for only asks for a look at the job, and one look serves a thousand pods.
    yield JobWork(Request(request.job) if choose(view.job, request) == PLAIN_SYNC else request)


def _of_pod_group(
    old: KubernetesObject | None, new: KubernetesObject | None, group: PodGroup, mirror: Mirror
) -> Iterator[Item]:
    before = old.status.phase if isinstance(old, PodGroup) else None
    after = new.status.phase if isinstance(new, PodGroup) else None
    if before == after:
        return
    yield QueueWork(group.spec.queue)
    owner = controller_of(group.metadata)
    if owner is None or (owner.api_version, owner.kind) != (VolcanoJob.api_version, VolcanoJob.kind):
        return
    job = f"{group.namespace}/{owner.name}"
    # Of job version 0, so that policies on it are silent once the whole job was restarted, as in the reference
    # (spec 07 §8.5).
    yield JobWork(Request(job, JOB_UNKNOWN, uid=owner.uid)) if after == "Unknown" else JobWork(Request(job))


def _asks_for_sync(old: VolcanoJob, new: VolcanoJob) -> bool:
    return old.spec != new.spec or old.status.state.phase != new.status.state.phase
