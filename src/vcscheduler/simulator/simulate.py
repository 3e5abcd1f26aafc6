"""Running the scheduler over an embedded cluster until nothing changes any more.

Objects go in as they were read; webhooks and controllers are played (`workloads`), queues that the scheduler creates at
start are added, and cycles run. Between two cycles the cluster moves one step: bound pods run, evicted ones are gone,
Volcano Jobs that were admitted get their pods. What came of it is an `Outcome`.

Time is virtual, so that the same input gives the same output: it begins at the newest creation time in the input and
moves on by the schedule period each cycle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from vcscheduler.cache.cache import SchedulerCache
from vcscheduler.cluster.memory import MemoryCluster
from vcscheduler.config import SchedulerConfiguration, SchedulerOptions
from vcscheduler.explain.evictions import Eviction, Spared, evictions, latest, spared
from vcscheduler.explain.pending import PendingReasons, Reason
from vcscheduler.explain.standing import QueueReport, queue_reports
from vcscheduler.framework.registry import Registry
from vcscheduler.framework.scheduler import Scheduler
from vcscheduler.framework.session import Session
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import PENDING, PIPELINED
from vcscheduler.objects import KubernetesObject, Manifests, Pod, PodGroup
from vcscheduler.simulator.outcome import Outcome, collect
from vcscheduler.workloads.expansion import Expansion, HeldPods, expand
from vcscheduler.workloads.keys import JOB_NAME, TASK_SPEC

_BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Progress:
    """What a cycle did, for those who watch."""

    cycle: int
    bound: int
    evicted: int
    waiting: int


@dataclass(slots=True)
class _Observed:
    """What is read from a session before it closes."""

    reasons: dict[str, Reason]
    queues: list[QueueReport]
    allocatable: Resources
    used: Resources


class Simulation:
    """One cluster and one scheduler.

    Args:
        objects: everything there is; an expansion is taken as it is, no webhook or controller is played.
        explain_victims: keep what each victim rule thinks of the pods that are evicted.
        name_nodes: say not only how many nodes a rule refused but which.

    Raises:
        PluginError: the configuration names what cannot be loaded.
    """

    def __init__(
        self,
        objects: Manifests | list[KubernetesObject] | Expansion,
        configuration: SchedulerConfiguration,
        options: SchedulerOptions,
        registry: Registry,
        *,
        explain_victims: bool = False,
        name_nodes: bool = False,
    ) -> None:
        if not isinstance(objects, Expansion):
            objects = expand(objects, scheduler_name=options.scheduler_names[0], hold_job_pods=True)
        self.expansion = objects
        created = [obj.metadata.creation_timestamp for obj in self.expansion.objects]
        self._now = max((at for at in created if at is not None), default=_BEGINNING)
        self._options = options
        self._name_nodes = name_nodes
        self.cluster = MemoryCluster(self._clock)
        self.cluster.apply_all(self.expansion.objects)
        self.held: list[HeldPods] = list(self.expansion.held)
        #: In which cycle each pod was bound.
        self.bound_in: dict[str, int] = {}
        self._leaving = [
            pod.key
            for pod in self.cluster.objects(Pod)
            if pod.metadata.deletion_timestamp is not None and pod.spec.node_name
        ]
        self.cache = SchedulerCache(
            self.cluster,
            self._clock,
            scheduler_names=options.scheduler_names,
            default_queue=options.default_queue,
            node_selector=options.node_selector,
            ignored_provisioners=options.ignored_provisioners,
        )
        self._scheduler = Scheduler(self.cache, configuration, options, registry, self._clock)
        self._scheduler.explain_victims = explain_victims

    def _clock(self) -> datetime:
        return self._now

    def run(self, max_cycles: int = 1000, progress: Callable[[Progress], None] | None = None) -> Outcome:
        """Cycles until one changes nothing, at most `max_cycles`.

        Raises:
            PluginError: a plugin failed to open.
        """
        bound: dict[str, str] = {}
        evicted: list[Eviction] = []
        stayed: dict[tuple[str, str, str, str], Spared] = {}
        observed: _Observed | None = None
        phases: dict[str, str] = {}
        cycle, settled = 0, False
        seconds = 0.0

        def observe(ssn: Session) -> None:
            nonlocal observed
            evicted.extend(evictions(ssn, cycle))
            latest(stayed, spared(ssn, cycle))
            quiet = not self.cluster.bindings() and not self.cluster.terminating() and not self._leaving
            if quiet or cycle == max_cycles:
                observed = self._observe(ssn)

        while not settled and cycle < max_cycles:
            cycle += 1
            seconds += self._scheduler.run_once(observe).total
            bindings = self.cluster.bindings()
            leaving = self.cluster.terminating()
            bound.update(bindings)
            self.bound_in.update(dict.fromkeys(bindings, cycle))
            for key in leaving:
                bound.pop(key, None)
            if progress is not None:
                waiting = sum(job.counts[PENDING] for job in self.cache.jobs.values())
                progress(Progress(cycle, len(bindings), len(leaving), waiting))
            before, phases = phases, {group.key: group.status.phase for group in self.cluster.objects(PodGroup)}
            moved = self._step()
            settled = not bindings and not leaving and not moved and phases == before
        self.cache.apply_events()
        assert observed is not None
        return collect(
            cluster=self.cluster,
            cache=self.cache,
            expansion=self.expansion,
            held=self.held,
            scheduler_names=self._options.scheduler_names,
            bound=bound,
            evictions=evicted,
            spared=list(stayed.values()),
            reasons=observed.reasons,
            queues=observed.queues,
            allocatable=observed.allocatable,
            used=observed.used,
            cycles=cycle,
            settled=settled,
            seconds=seconds,
        )

    def look(self, observe: Callable[[Session], None]) -> None:
        """Show a session over the cluster as it is, with all plugins open and no action run.

        Raises:
            PluginError: a plugin failed to open.
        """
        configured = self._scheduler.configuration
        self._scheduler.configuration = replace(configured, actions=())
        try:
            self._scheduler.run_once(observe)
        finally:
            self._scheduler.configuration = configured

    def _step(self) -> bool:
        """Let the world move on. True if more happened than the scheduler had asked for."""
        self._now += timedelta(seconds=self._options.schedule_period)
        self.cluster.step()
        moved = bool(self._leaving)
        for key in self._leaving:
            if self.cluster.get(Pod, key) is not None:
                self.cluster.delete(Pod, key)
        self._leaving = []
        still_held = []
        for held in self.held:
            if self._may_start(held):
                self.cluster.apply_all(held.pods)
                moved = True
            else:
                still_held.append(held)
        self.held = still_held
        return moved

    def _may_start(self, held: HeldPods) -> bool:
        """Whether the job controller would create the pods now (spec 07 §8.4)."""
        group = self.cluster.get(PodGroup, held.pod_group)
        if group is None or group.status.phase in ("", "Pending"):
            return False
        if not held.after:
            return True
        ready = [self._running(held.job, task) >= least for task, least in held.after]
        return any(ready) if held.any_of and len(ready) > 1 else all(ready)

    def _running(self, job: str, task: str) -> int:
        namespace, _, name = job.partition("/")
        return sum(
            pod.status.phase in ("Running", "Succeeded")
            and pod.metadata.annotations.get(TASK_SPEC) == task
            and pod.metadata.annotations.get(JOB_NAME) == name
            and pod.namespace == namespace
            for pod in self.cluster.objects(Pod)
        )

    def _observe(self, ssn: Session) -> _Observed:
        said: dict[str, list[str]] = {}
        for event in self.cluster.events():
            refusal = event.kind == "PodGroup" and event.reason == "Unschedulable" and event.type == "Normal"
            if refusal and event.last == self._now:
                said.setdefault(f"{event.namespace}/{event.name}", []).append(event.message)
        ask = PendingReasons(ssn, self._name_nodes)
        reasons = {
            job.id: ask.why(job, said.get(job.id, ()))
            for job in ssn.sorted_jobs(ssn.jobs.values())
            if job.counts[PENDING] or job.counts[PIPELINED] or (job.is_pending and not job.tasks)
        }
        used = Resources()
        for node in ssn.table:
            used.add(node.used)
        return _Observed(reasons, queue_reports(ssn), ssn.total, used)
