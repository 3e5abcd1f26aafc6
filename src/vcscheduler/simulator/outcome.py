"""What came of a simulation, as values: every job with its placements or the reason why it waits, every queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from vcscheduler.cache.cache import SchedulerCache
from vcscheduler.cluster.memory import MemoryCluster
from vcscheduler.documents import nearest_name
from vcscheduler.explain.evictions import Eviction, Spared
from vcscheduler.explain.pending import Cause, Reason
from vcscheduler.explain.standing import QueueReport
from vcscheduler.model.resources import Resources
from vcscheduler.model.task import GROUP_ANNOTATION
from vcscheduler.objects import Node, Pod, PodGroup, ReplicaSet, controller_of
from vcscheduler.workloads.expansion import Expansion, HeldPods, Refusal

_FINISHED = ("Succeeded", "Failed")


@dataclass(slots=True)
class JobOutcome:
    """One job: a PodGroup, under the name of the workload that it stands for.

    Attributes:
        kind, namespace, name: of the workload; the PodGroup itself where nothing owns it.
        min_available: how many pods make the gang.
        placed: pods that this run bound, to their node. running: pods that were on a node before.
        waiting: pods without a node, those included that the job controller does not create yet.
        reason: why it waits; None if nothing does.
    """

    kind: str
    namespace: str
    name: str
    pod_group: str
    queue: str
    phase: str
    priority: int = 0
    min_available: int = 0
    placed: dict[str, str] = field(default_factory=dict)
    running: dict[str, str] = field(default_factory=dict)
    finished: int = 0
    waiting: int = 0
    reason: Reason | None = None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def pods(self) -> int:
        return len(self.placed) + len(self.running) + self.finished + self.waiting


@dataclass(frozen=True, slots=True)
class Outcome:
    """The whole of it.

    Attributes:
        cycles: how many ran. settled: whether the last one changed nothing. seconds: spent in cycles.
        allocatable, used: of all nodes that take pods.
        spared: pods that were looked at as victims and stayed, if the simulation was told to explain victims.
        other_schedulers: pods that wait for another scheduler, by its name.
        refused: objects that a cluster would not have accepted.
    """

    cycles: int
    settled: bool
    seconds: float
    nodes: int
    jobs: list[JobOutcome]
    queues: list[QueueReport]
    evictions: list[Eviction]
    spared: list[Spared]
    allocatable: Resources
    used: Resources
    other_schedulers: dict[str, int]
    refused: list[Refusal]
    warnings: list[str]

    @property
    def placed(self) -> int:
        return sum(len(job.placed) for job in self.jobs)

    @property
    def waiting(self) -> list[JobOutcome]:
        """Jobs that wait, or of which pods wait."""
        return [job for job in self.jobs if job.reason is not None]


def collect(
    *,
    cluster: MemoryCluster,
    cache: SchedulerCache,
    expansion: Expansion,
    held: Sequence[HeldPods],
    scheduler_names: Sequence[str],
    bound: dict[str, str],
    evictions: list[Eviction],
    spared: Sequence[Spared],
    reasons: dict[str, Reason],
    queues: list[QueueReport],
    allocatable: Resources,
    used: Resources,
    cycles: int,
    settled: bool,
    seconds: float,
) -> Outcome:
    """Put together what the cluster shows and what was read from the last session."""
    refused = {refusal.obj: refusal.reason for refusal in expansion.refusals}
    replica_sets = {found.key: found for found in cluster.objects(ReplicaSet)}
    jobs: dict[str, JobOutcome] = {}
    queue_names = [queue.name for queue in queues]
    for group in cluster.objects(PodGroup):
        jobs[group.key] = _job(group, cache, replica_sets, reasons.get(group.key), queue_names)
    others: Counter[str] = Counter()
    for pod in cluster.objects(Pod):
        waits = not pod.spec.node_name and pod.status.phase not in _FINISHED
        if waits and pod.spec.scheduler_name not in scheduler_names:
            others[pod.spec.scheduler_name or "default-scheduler"] += 1
            continue
        name = pod.metadata.annotations.get(GROUP_ANNOTATION, "")
        key = f"{pod.namespace}/{name}" if name else pod.key
        job = jobs.get(key)
        if job is None:
            if not waits:
                continue  # Runs without a PodGroup: none of ours.
            job = jobs[key] = _without_group(pod, name, refused)
        _count(job, pod, bound)
    for each in held:
        job = jobs.get(each.pod_group)
        if job is not None:
            job.waiting += len(each.pods)
            if job.reason is None and each.after:
                names = f" {'or' if each.any_of else 'and'} ".join(name for name, _ in each.after)
                job.reason = Reason(Cause.OTHER, f"task {each.task} starts after {names}")
    for job in jobs.values():
        if not job.waiting and job.pods:
            job.reason = None
    return Outcome(
        cycles=cycles,
        settled=settled,
        seconds=seconds,
        nodes=len(cluster.objects(Node)),
        jobs=sorted(jobs.values(), key=lambda job: (job.namespace, job.name, job.kind, job.pod_group)),
        queues=queues,
        evictions=evictions,
        spared=_still_spared(evictions, spared),
        allocatable=allocatable,
        used=used,
        other_schedulers=dict(sorted(others.items())),
        refused=expansion.refusals,
        warnings=expansion.warnings,
    )


def _still_spared(evictions: Sequence[Eviction], spared: Sequence[Spared]) -> list[Spared]:
    """Without those that the same kind of preemptor got at last."""
    gone = {(each.preemptor_job, each.pod) for each in evictions}
    left = [each for each in spared if (each.preemptor_job, each.pod) not in gone]
    return sorted(left, key=lambda each: (each.cycle, each.preemptor_job, each.role, each.node, each.pod))


def _job(
    group: PodGroup,
    cache: SchedulerCache,
    replica_sets: dict[str, ReplicaSet],
    reason: Reason | None,
    queue_names: list[str],
) -> JobOutcome:
    kind, name = _workload(group, replica_sets)
    known = cache.jobs.get(group.key)
    queue = known.queue if known is not None else group.spec.queue
    if known is None and reason is None:
        near = nearest_name(queue, queue_names)
        hint = f'; did you mean "{near}"?' if near is not None else f"; there are {', '.join(queue_names)}"
        reason = Reason(Cause.QUEUE_MISSING, f'queue "{queue}" does not exist{hint}')
    return JobOutcome(
        kind=kind,
        namespace=group.namespace,
        name=name,
        pod_group=group.name,
        queue=queue,
        phase=group.status.phase,
        priority=known.priority if known is not None else 0,
        min_available=group.spec.min_member,
        reason=reason,
    )


def _workload(group: PodGroup, replica_sets: dict[str, ReplicaSet]) -> tuple[str, str]:
    """Kind and name of what a person wrote and the PodGroup was made for."""
    owner = controller_of(group.metadata)
    if owner is None:
        return group.kind, group.name
    if owner.kind == ReplicaSet.kind:
        made = replica_sets.get(f"{group.namespace}/{owner.name}")
        above = controller_of(made.metadata) if made is not None else None
        if above is not None:
            return above.kind, above.name
    kind = "VolcanoJob" if owner.kind == "Job" and owner.api_version.startswith("batch.volcano.sh/") else owner.kind
    return kind, owner.name


def _without_group(pod: Pod, group: str, refused: dict[str, str]) -> JobOutcome:
    """A pod of ours whose PodGroup is not there."""
    if not group:
        message = "it has no PodGroup"
    elif (why := refused.get(f"PodGroup {pod.namespace}/{group}")) is not None:
        message = f'its PodGroup "{group}" was refused: {why}'
    else:
        message = f'its PodGroup "{group}" does not exist'
    return JobOutcome(
        kind="PodGroup" if group else "Pod",
        namespace=pod.namespace,
        name=group or pod.name,
        pod_group=group,
        queue="",
        phase="",
        reason=Reason(Cause.POD_GROUP_MISSING, message),
    )


def _count(job: JobOutcome, pod: Pod, bound: dict[str, str]) -> None:
    if pod.status.phase in _FINISHED:
        job.finished += 1
    elif pod.key in bound:
        job.placed[pod.key] = bound[pod.key]
    elif pod.spec.node_name:
        job.running[pod.key] = pod.spec.node_name
    else:
        job.waiting += 1
