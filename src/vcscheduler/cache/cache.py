"""SchedulerCache: the scheduler's single writer (docs/architecture.md, "Cache").

Events of the cluster are queued and applied between sessions; a session works on state that nobody else changes. What
was handed to the cluster stays assumed until the cluster confirms it, or refuses it: then the pod is read again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime

from vcscheduler.cache.state import ClusterState
from vcscheduler.cache.volume_binder import VolumeBinder
from vcscheduler.cluster.interface import Cluster, ClusterError
from vcscheduler.model.aggregates import Aggregates
from vcscheduler.model.job import Job
from vcscheduler.model.nodes import Node
from vcscheduler.model.queue import Queue
from vcscheduler.model.status import ALLOCATED, BINDING, PENDING, RELEASING
from vcscheduler.model.task import Task
from vcscheduler.model.topology import Topology
from vcscheduler.model.volume_plan import VolumePlan
from vcscheduler.objects import Condition, KubernetesObject, Pod, PodGroup, QueueStatus
from vcscheduler.objects import Queue as QueueObject
from vcscheduler.objects.collector import collector_paused

log = logging.getLogger(__name__)

Clock = Callable[[], datetime]


class SchedulerCache(ClusterState):
    """The state of the cluster and the way to change it; an EventSink of the cluster."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        scheduler_names: tuple[str, ...] = ("volcano",),
        default_queue: str = "default",
        node_selector: tuple[str, ...] = (),
        ignored_provisioners: tuple[str, ...] = (),
    ) -> None:
        super().__init__(scheduler_names, default_queue, node_selector, ignored_provisioners)
        self._cluster = cluster
        self._clock = clock
        self._events: deque[tuple[KubernetesObject | None, KubernetesObject | None]] = deque()
        self._refusals: deque[tuple[KubernetesObject, ClusterError]] = deque()
        self._resync: list[Task] = []
        self.aggregates = Aggregates()
        self.unsettled: dict[str, Job] = {}
        self.active: dict[str, Job] = {}
        self.bound: list[tuple[list[Task], list[str]]] = []
        self._volumes = VolumeBinder(cluster, self.listers, clock, lambda: [new for _, new in list(self._events)])
        cluster.start(self)

    @property
    def topology(self) -> Topology:
        return self.network.topology

    # --- events -------------------------------------------------------------------------------------------------------

    def added(self, obj: KubernetesObject, /) -> None:
        self._events.append((None, obj))

    def updated(self, old: KubernetesObject, new: KubernetesObject, /) -> None:
        self._events.append((old, new))

    def deleted(self, obj: KubernetesObject, /) -> None:
        self._events.append((obj, None))

    def refused(self, obj: KubernetesObject, error: ClusterError, /) -> None:
        """A write to the object that had been accepted came to nothing."""
        self._refusals.append((obj, error))

    def apply_events(self) -> None:
        """Take in what the cluster told since the last time."""
        events = self._events
        if events:
            with collector_paused():
                while events:
                    self.handle(*events.popleft())
        refusals = self._refusals
        while refusals:
            obj, error = refusals.popleft()
            task = self._tasks.get(obj.metadata.uid or obj.key) if isinstance(obj, Pod) else None
            if task is not None:
                self._failed(task, error)

    def begin_session(self) -> None:
        self.apply_events()
        for task, error in self._volumes.advance():
            self._failed(task, error)
        waiting, self._resync = self._resync, []
        for task in waiting:
            try:
                self._read_again(task)
            except ClusterError as error:
                # Until the cluster says what became of the pod, it counts as it was decided.
                log.warning("reading pod %s: %s", task.key, error)
                self._resync.append(task)
        self.bound = []
        changed = [job for job in self.changed.values() if job.id in self.jobs]
        self.network.begin_session(changed, self.left)
        if self.left:
            for id in self.left:
                self.aggregates.forget(id)
                self.unsettled.pop(id, None)
                self.active.pop(id, None)
            self.left = []
        if changed:
            self.aggregates.refresh(changed)
            for job in changed:
                self.unsettled[job.id] = job
                self._note_work(job)
        self.changed = {}

    def _note_work(self, job: Job) -> None:
        if job.is_pending or job.counts[PENDING]:
            self.active[job.id] = job
        else:
            self.active.pop(job.id, None)

    def settle(self, touched: Iterable[Job]) -> None:
        for job in touched:
            self.changed[job.id] = job
            self.unsettled[job.id] = job
        for job in list(self.unsettled.values()):
            job.load_status()
            self._note_work(job)
            if job.phase in ("Running", "Completed") and job.is_ready and not job.counts[PENDING]:
                del self.unsettled[job.id]

    # --- writes -------------------------------------------------------------------------------------------------------

    def bind(self, task: Task, node: Node, plan: VolumePlan | None = None) -> str | None:
        """Hand over for binding. The node must have room by the cache's own books; what the cluster answers comes
        later, as an event or as a resync of the pod."""
        short = node.refuses_binding(task)
        if short:
            return (
                f"node {node.name} resources [{' '.join(short)}] are not enough to put task <{task.key}>, "
                f"idle: {node.idle}, req: {task.resreq}"
            )
        self.bound.append(([task], [node.name]))
        try:
            if plan is not None and plan.claims:
                self._volumes.start(task, plan)
            else:
                self._cluster.bind(task.pod, node.name, {})
        except ClusterError as error:
            self._failed(task, error)
        return None

    def bind_run(self, tasks: list[Task], rows: list[int]) -> list[tuple[Task, str]]:
        nodes = self.table.nodes
        names = [nodes[row].name for row in rows]
        self.bound.append((tasks, names))
        for task, error in zip(tasks, self._cluster.bind_many([(t.pod, n) for t, n in zip(tasks, names)])):
            if error is not None:
                self._failed(task, error)
        # Placement saw room on the session's books, which never show more than the cache's own.
        return []

    def _failed(self, task: Task, error: ClusterError) -> None:
        log.warning("pod %s: %s", task.key, error)
        if task.status in (ALLOCATED, BINDING):
            self.update_pod_condition(task.pod, "SchedulerError", str(error), "")
        self._resync.append(task)

    def _read_again(self, task: Task) -> None:
        """The cluster refused a write: believe what it says of the pod now."""
        if self._tasks.get(task.uid) is not task or task.status not in (BINDING, RELEASING):
            return
        pod = self._cluster.read_pod(task.namespace, task.name)
        self._forget_task(task)
        if pod is not None and self._ours(pod) and (pod.metadata.uid or pod.key) == task.uid:
            self._take_pod(pod)

    def evict(self, task: Task, reason: str) -> str | None:
        job = self._all_jobs.get(task.job_id)
        node = self.table.by_name.get(task.node_name)
        if job is None or node is None or job.pod_group is None or node.tasks.get(task.key) is not task:
            return f"task {task.key}: its job, node or pod group is not known"
        self.record_event("PodGroup", job.namespace, job.name, "Normal", "Evict", reason)
        try:
            self._cluster.evict(task.pod, reason)
        except ClusterError as error:
            log.warning("evicting pod %s: %s", task.key, error)
            self._resync.append(task)
        self.record_event("Pod", task.namespace, task.name, "Warning", "Evict", f"Pod is evicted, because of {reason}")
        return None

    def update_pod_group(self, job: Job, pg: PodGroup) -> str | None:
        try:
            before = job.pod_group
            job.pod_group = self._cluster.update_pod_group(pg)
            # Sums over jobs look at the phase, so the next session must count a job anew whose phase moved.
            if before is None or before.status.phase != pg.status.phase:
                self.changed[job.id] = job
        except ClusterError as error:
            log.warning("pod group %s: %s", job.id, error)
            return str(error)
        return None

    def update_queue_status(self, queue: Queue, allocated: dict[str, str]) -> str | None:
        old = queue.object
        status = QueueStatus(
            state=old.status.state,
            unknown=old.status.unknown,
            pending=old.status.pending,
            running=old.status.running,
            inqueue=old.status.inqueue,
            completed=old.status.completed,
            allocated=dict(allocated),
            reservation=old.status.reservation,
        )
        try:
            queue.object = self._cluster.update_queue_status(
                QueueObject(metadata=old.metadata, spec=old.spec, status=status)
            )
        except ClusterError as error:
            log.warning("queue %s: %s", queue.name, error)
            return str(error)
        return None

    def tells_of(self, job: Job) -> bool:
        return True

    def update_pod_condition(self, pod: Pod, reason: str, message: str, nominated: str) -> None:
        condition = Condition(
            type="PodScheduled", status="False", reason=reason, message=message, last_transition_time=self._clock()
        )
        try:
            self._cluster.update_pod_condition(pod, condition, nominated)
        except ClusterError as error:
            log.warning("condition of pod %s: %s", pod.key, error)

    def record_event(self, kind: str, namespace: str, name: str, type: str, reason: str, message: str) -> None:
        self._cluster.record_event(kind, namespace, name, type, reason, message)

    def remove_gate(self, task: Task) -> None:
        self.record_event(
            "Pod", task.namespace, task.name, "Warning", "FailedGateRemoval", "gate removal is not supported yet"
        )
