"""Questions about one pod, job or node of a cluster on paper: what stands in the way, and what would change it.

The cluster is scheduled until nothing changes any more; then the session's rules are asked about the pod. What would
help and concerns more than one pod (a larger queue, a job less) is tried by scheduling the whole cluster anew with that
one thing different.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from vcscheduler.config import SchedulerConfiguration, SchedulerOptions
from vcscheduler.documents import nearest_name
from vcscheduler.explain.evictions import Eviction
from vcscheduler.explain.jobs import GangState, gang_state
from vcscheduler.explain.nodes import NodeExplanation, explain_node
from vcscheduler.explain.pending import Cause, Reason
from vcscheduler.explain.pods import BlockingJob, Change, NodeScore, NodeView, best_nodes, node_view
from vcscheduler.framework.registry import Registry
from vcscheduler.framework.session import Session
from vcscheduler.model.amounts import amounts
from vcscheduler.model.job import Job
from vcscheduler.model.requests import pod_resources
from vcscheduler.model.resources import MEMORY, PODS, Resources
from vcscheduler.model.task import GROUP_ANNOTATION
from vcscheduler.objects import KubernetesObject, Manifests, Node, Pod, PodGroup, PodSpec, Queue
from vcscheduler.objects.kinds import KINDS
from vcscheduler.simulator.outcome import JobOutcome
from vcscheduler.simulator.simulate import Simulation
from vcscheduler.workloads.admission import changed
from vcscheduler.workloads.expansion import Expansion, HeldPods
from vcscheduler.workloads.keys import TASK_SPEC

_T = TypeVar("_T")
_JOBS_TRIED = 3
_CHANGES_TRIED = 2
_NAMED = 3


class UnknownObject(Exception):
    """There is no such pod, job or node, or more than one."""


@dataclass(frozen=True, slots=True)
class PodStory:
    """One pod.

    Attributes:
        state: "waits", "is placed" (by this run), "ran before", "is finished", "was evicted", "is not created yet" (by
            the controller of its job) or "is left to another scheduler".
        node, cycle: where, and in which cycle of the run it came there; "" and 0 if it did not.
        reason: why its job waits. view: how it stands to the nodes. tried: what would help, tried on the whole cluster.
        scores: the best nodes for it and its own, if it has one. evictions: of others, for it.
    """

    pod: str
    state: str
    job: str
    kind: str
    queue: str
    priority: int
    asks: Resources
    node: str = ""
    cycle: int = 0
    scheduler: str = ""
    reason: Reason | None = None
    view: NodeView | None = None
    tried: tuple[Change, ...] = ()
    scores: tuple[NodeScore, ...] = ()
    evictions: tuple[Eviction, ...] = ()


@dataclass(frozen=True, slots=True)
class JobStory:
    """One job. ``waiting``: one pod of each of its tasks that waits, with what stands in its way."""

    outcome: JobOutcome
    gang: GangState | None
    waiting: tuple[PodStory, ...]
    evictions: tuple[Eviction, ...]


class Inquiry:
    """Asks about one cluster.

    Args:
        objects: everything there is.
        trials: at most how often the whole cluster is scheduled anew to see whether something helps.

    Raises:
        PluginError: the configuration names what cannot be loaded.
    """

    def __init__(
        self,
        objects: Manifests | list[KubernetesObject],
        configuration: SchedulerConfiguration,
        options: SchedulerOptions,
        registry: Registry,
        *,
        trials: int = 6,
    ) -> None:
        self._configuration = configuration
        self._options = options
        self._registry = registry
        self._trials = trials
        self.given = Simulation(objects, configuration, options, registry, explain_victims=True, name_nodes=True)

    # --- questions ----------------------------------------------------------------------------------------------------

    def node(self, name: str, *, after: bool = False) -> NodeExplanation:
        """A node as the input has it, or once everything was scheduled.

        Raises:
            UnknownObject: there is no such node.
        """
        if after:
            self.given.run()
        names = {node.name for node in self.given.cluster.objects(Node)}
        if name not in names:
            raise _unknown("node", name, names)
        found = _look(self.given, lambda ssn: explain_node(ssn, name))
        assert found is not None
        return found

    def pod(self, name: str, namespace: str = "") -> PodStory:
        """A pod, once everything was scheduled.

        Raises:
            UnknownObject: there is no such pod, or the name alone could mean several.
        """
        self._run()
        pods = {pod.key: pod for pod in self.given.cluster.objects(Pod)}
        held = {pod.key: pod for each in self.given.held for pod in each.pods}
        key = _resolve("pod", name, namespace, [*pods, *held, *(e.pod for e in self._outcome.evictions)])
        if key in pods:
            return self._story(pods[key])
        if key in held:
            return self._not_created(held[key])
        evicted = [each for each in self._outcome.evictions if each.pod == key]
        last = evicted[-1]
        return PodStory(
            key, "was evicted", last.job, "PodGroup", last.queue, last.priority, last.frees or Resources(),
            node=last.node, cycle=last.cycle, evictions=tuple(evicted),
        )  # fmt: skip

    def job(self, name: str, namespace: str = "") -> JobStory:
        """A job by its own name or that of its PodGroup, once everything was scheduled.

        Raises:
            UnknownObject: there is no such job, or the name alone could mean several.
        """
        self._run()
        by_key = {job.key: job for job in self._outcome.jobs}
        groups = {_group_key(job): job for job in self._outcome.jobs}
        spelled = f"{namespace}/{name}" if namespace and "/" not in name else name
        known = by_key if not any(key.endswith(spelled) for key in groups) else {**groups, **by_key}
        key = _resolve("job", name, namespace, known)
        outcome = by_key.get(key) or groups[key]
        group = _group_key(outcome)
        gang = _look(self.given, lambda ssn: gang_state(ssn, ssn.jobs[group]) if group in ssn.jobs else None)
        waiting: dict[str, Pod] = {}
        for pod in self.given.cluster.objects(Pod):
            if _job_of(pod) == group and not pod.spec.node_name and pod.status.phase == "Pending":
                waiting.setdefault(_role(pod), pod)
        stories = [self._story(pod) for _, pod in sorted(waiting.items())]
        if not stories:
            stories = [self._not_created(each.pods[0]) for each in self.given.held if each.pod_group == group][:1]
        evictions = [each for each in self._outcome.evictions if each.preemptor_job == group]
        return JobStory(outcome, gang, tuple(stories), tuple(evictions))

    # --- one pod ------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._outcome = self.given.run()
        self._rest = self._objects()

    def _objects(self) -> list[KubernetesObject]:
        cluster = self.given.cluster
        return [obj for kind in KINDS.values() for obj in cluster.objects(kind)]

    def _outcome_of(self, pod: Pod) -> JobOutcome | None:
        group = _job_of(pod)
        return next((job for job in self._outcome.jobs if _group_key(job) in (group, pod.key)), None)

    def _base(self, pod: Pod, state: str) -> PodStory:
        job = self._outcome_of(pod)
        asks = pod_resources(pod)
        if job is None:
            return PodStory(pod.key, state, "", "", "", pod.spec.priority or 0, asks, node=pod.spec.node_name)
        return PodStory(pod.key, state, job.key, job.kind, job.queue, job.priority, asks, node=pod.spec.node_name)

    def _story(self, pod: Pod) -> PodStory:
        if pod.status.phase in ("Succeeded", "Failed"):
            return self._base(pod, "is finished")
        if pod.spec.node_name:
            return self._placed(pod)
        if pod.spec.scheduler_name not in self._options.scheduler_names:
            name = pod.spec.scheduler_name or "default-scheduler"
            return replace(self._base(pod, "is left to another scheduler"), scheduler=name)
        group, job = _job_of(pod), self._outcome_of(pod)
        view = _look(self.given, lambda ssn: node_view(ssn, pod, ssn.jobs.get(group)))
        reason = None if job is None else job.reason
        tried = self._tried(pod, group, reason, view)
        return replace(self._base(pod, "waits"), reason=reason, view=view, tried=tried)

    def _placed(self, pod: Pod) -> PodStory:
        cycle = self.given.bound_in.get(pod.key, 0)
        again = changed(
            pod,
            spec=changed(pod.spec, node_name=""),
            status=changed(pod.status, phase="Pending", conditions=[]),
        )
        others = [obj for obj in self._rest if not (isinstance(obj, Pod) and obj.key == pod.key)]
        scene = self._scene([*others, again])
        scores = _look(scene, lambda ssn: best_nodes(ssn, again, pod.spec.node_name))
        evictions = tuple(each for each in self._outcome.evictions if each.preemptor == pod.key)
        state = "is placed" if cycle else "ran before"
        return replace(self._base(pod, state), cycle=cycle, scores=scores, evictions=evictions)

    def _not_created(self, pod: Pod) -> PodStory:
        job, group = self._outcome_of(pod), _job_of(pod)
        reason = None if job is None else job.reason
        view = _look(self.given, lambda ssn: node_view(ssn, pod, ssn.jobs.get(group)))
        tried = self._tried(pod, group, reason, view)
        return replace(self._base(pod, "is not created yet"), reason=reason, view=view, tried=tried)

    # --- what would help ----------------------------------------------------------------------------------------------

    def _tried(self, pod: Pod, group: str, reason: Reason | None, view: NodeView) -> tuple[Change, ...]:
        if reason is None:
            return ()
        found: list[Change] = []
        if reason.cause in (Cause.QUEUE_LIMIT, Cause.NOT_ADMITTED):
            found += self._larger_queue(pod, group)
            if reason.cause is Cause.QUEUE_LIMIT or any(each.helps for each in found):
                return tuple(found)
        elif reason.cause is not Cause.NO_NODE:
            return ()
        job = self._outcome_of(pod)
        if job is not None and job.min_available > 1:
            # What opens a node for one pod need not do for a gang.
            for change in view.changes[:_CHANGES_TRIED]:
                if self._trials and change.spec is not None:
                    found.append(self._all_alike(pod, group, change.what, change.spec))
        for each in view.blocking[:_JOBS_TRIED]:
            if self._trials:
                found.append(self._without_job(pod, each))
        return tuple(found)

    def _all_alike(self, pod: Pod, group: str, what: str, spec: PodSpec) -> Change:
        """The same difference for all pods of the task that wait."""
        role = _role(pod)
        objects: list[KubernetesObject] = []
        alike = 0
        for obj in self._rest:
            if isinstance(obj, Pod) and _job_of(obj) == group and _role(obj) == role and not obj.spec.node_name:
                alike += 1
                obj = changed(obj, spec=changed(spec, hostname=obj.spec.hostname))
            objects.append(obj)
        pods = f"each of the {alike} pods of its task that wait" if alike > 1 else "the pod"
        return self._outcome_with(what.replace("the pod", pods, 1), objects, self.given.held, pod)

    def _larger_queue(self, pod: Pod, group: str) -> tuple[Change, ...]:
        """Make the queue, and those above it, as large as it takes. Others in it may take what is added, so it may
        have to grow further."""
        wanted: dict[str, Resources] = {}
        scene, objects, change = self.given, self._rest, None
        while self._trials and (lacking := _look(scene, lambda ssn: _lacking(ssn, group, pod))):
            for name, lack, _ in lacking:
                wanted.setdefault(name, Resources()).add(lack)
            sizes = {name: total for name, _, total in lacking}
            objects = [
                _enlarged(obj, sizes[obj.name], wanted[obj.name])
                if isinstance(obj, Queue) and obj.name in sizes
                else obj
                for obj in objects
            ]
            what = " and ".join(f"queue {name} might hold {amounts(more)} more" for name, more in wanted.items())
            scene = self._scene(objects, self.given.held)
            change = self._run_with(what, scene, pod)
            if change.helps:
                break
        return () if change is None else (change,)

    def _without_job(self, pod: Pod, job: BlockingJob) -> Change:
        objects = [
            obj
            for obj in self._rest
            if not (isinstance(obj, PodGroup) and obj.key == job.job)
            and not (isinstance(obj, Pod) and _job_of(obj) == job.job)
        ]
        held = [each for each in self.given.held if each.pod_group != job.job]
        known = next((each.key for each in self._outcome.jobs if _group_key(each) == job.job), job.job)
        pods = "1 pod" if job.pods == 1 else f"{job.pods} pods"
        what = f"job {known} (queue {job.queue}, priority {job.priority}, {pods}) were gone"
        return self._outcome_with(what, objects, held, pod)

    def _outcome_with(self, what: str, objects: list[KubernetesObject], held: Iterable[HeldPods], pod: Pod) -> Change:
        return self._run_with(what, self._scene(objects, held), pod)

    def _run_with(self, what: str, scene: Simulation, pod: Pod) -> Change:
        """Schedule a cluster with something different, and see what becomes of the pod."""
        self._trials -= 1
        for job in scene.run().jobs:
            node = job.placed.get(pod.key)
            if node is not None:
                return Change(what, (node,), f"it would run on {node}")
            if _group_key(job) == _job_of(pod) and job.reason is not None:
                return Change(what, (), f"it would still wait: {job.reason.message}", helps=False)
        return Change(what, (), "it would still wait", helps=False)

    def _scene(self, objects: list[KubernetesObject], held: Iterable[HeldPods] = ()) -> Simulation:
        return Simulation(
            Expansion(objects=objects, held=list(held)), self._configuration, self._options, self._registry
        )


def _look(simulation: Simulation, ask: Callable[[Session], _T]) -> _T:
    answers: list[_T] = []
    simulation.look(lambda ssn: answers.append(ask(ssn)))
    return answers[0]


def _lacking(ssn: Session, group: str, pod: Pod) -> list[tuple[str, Resources, Resources]]:
    """(queue, what it would have to hold more, what it would hold then) of the job's queue and those above it that are
    too small for the rest of its gang, or for one more pod of a gang that runs."""
    job: Job | None = ssn.jobs.get(group)
    if job is None:
        return []
    wanted = pod_resources(pod)
    missing = job.min_available - job.ready_tasks
    if missing > 1 and job.min_resources is not None:
        wanted = job.min_resources.above(job.allocated)
    elif missing > 1:
        wanted.multiply(missing)
    found: list[tuple[str, Resources, Resources]] = []
    option = ssn.plugin_option("capacity")
    name, seen = job.queue, set[str]()
    while name in ssn.queues and name not in seen:
        seen.add(name)
        standing = ssn.queue_standing(ssn.queues[name])
        if standing is not None:
            total = standing.allocated.clone().add(wanted)
            lack = Resources()
            for resource in wanted.names():
                over = total.get(resource) - standing.ceiling.get(resource)
                if wanted.get(resource) and over > 0 and resource != PODS:
                    _set(lack, resource, over)
            if not lack.is_empty():
                found.append((name, lack, total))
        if option is None or not option.enable_hierarchy:
            break
        name = ssn.queues[name].parent or ("root" if name != "root" else "")
    return found


def _set(vector: Resources, name: str, value: float) -> None:
    if name == "cpu":
        vector.cpu = value
    elif name == MEMORY:
        vector.memory = value
    else:
        vector.set_scalar(name, value)


def _enlarged(queue: Queue, total: Resources, lack: Resources) -> Queue:
    """A queue that may hold ``total``, and has a right to it, in what it lacks."""
    spec = queue.spec
    capability, guarantee = dict(spec.capability), dict(spec.guarantee.resource)
    for name in lack.names():
        if lack.get(name):
            if name in capability:
                capability[name] = _quantity(name, total.get(name))
            guarantee[name] = _quantity(name, total.get(name))
    return changed(
        queue,
        spec=changed(spec, capability=capability, guarantee=changed(spec.guarantee, resource=guarantee)),
    )


def _quantity(name: str, value: float) -> str:
    return str(int(value)) if name == MEMORY else f"{int(value)}m"


def _role(pod: Pod) -> str:
    return pod.metadata.annotations.get(TASK_SPEC, "")


def _job_of(pod: Pod) -> str:
    group = pod.metadata.annotations.get(GROUP_ANNOTATION, "")
    return f"{pod.namespace}/{group}" if group else ""


def _group_key(job: JobOutcome) -> str:
    return f"{job.namespace}/{job.pod_group}"


def _resolve(kind: str, name: str, namespace: str, keys: Iterable[str]) -> str:
    """``namespace/name`` of what was meant."""
    known = dict.fromkeys(keys)
    if namespace and "/" not in name:
        name = f"{namespace}/{name}"
    if name in known:
        return name
    matching = [key for key in known if key.partition("/")[2] == name]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise UnknownObject(f'{kind} "{name}" is there {len(matching)} times: {", ".join(matching[:5])}; say which')
    raise _unknown(kind, name, known)


def _unknown(kind: str, name: str, known: Iterable[str]) -> UnknownObject:
    names = list(known)
    short = [key.partition("/")[2] or key for key in names]
    near = nearest_name(name, names if "/" in name else short)
    if near is not None:
        hint = f'; did you mean "{near}"?'
    elif len(names) > _NAMED:
        hint = f"; there are {len(names)} {kind}s"
    else:
        hint = f"; there is {', '.join(names)}" if names else "; there are none"
    return UnknownObject(f'there is no {kind} "{name}"{hint}')
