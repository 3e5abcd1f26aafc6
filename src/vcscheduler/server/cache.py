"""The scheduler cache of a running process: it rings when something happens, and writes no more often than it must.

Cycles start as soon as something changes, which may be a hundred times a second while a gang's pods are being created.
What each of them would say about jobs that wait, about counts of running pods and about sums of queues is out of date a
moment later; so it is held back and written with the cycles that report, one a schedule period, as often as the
reference writes. Bindings and evictions are never held back, nor is a PodGroup's admission while a controller waits
for it to create the pods.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from vcscheduler.cache.cache import Clock, SchedulerCache
from vcscheduler.cluster.interface import Cluster, ClusterError
from vcscheduler.config import SchedulerOptions
from vcscheduler.model.job import Job
from vcscheduler.model.queue import Queue
from vcscheduler.model.status import BINDING, BOUND
from vcscheduler.objects import KubernetesObject, Pod, PodGroup
from vcscheduler.server.wakeups import Bell, Urgency, same_status, urgency_of

_HELD_BACK = "held back until the next report"
_SAID_ABOUT_WAITING = ("Unschedulable", "FailedScheduling")
_WAITING = ("Unknown", "Pending", "Inqueue")
_REMEMBERED = 100_000
_PATIENT_REPORTS = 10
"""So many reports may pass over a gang whose pods are still being created."""
_ON_THE_WAY_REPORTS = 2
"""So many reports may pass over a job whose pods were bound and do not run yet: its status is about to change."""


class LiveCache(SchedulerCache):
    """A SchedulerCache whose events ring a bell.

    Attributes:
        reporting: set before a cycle: whether it writes everything, or only what somebody waits for.
        held_back: whether something waits to be written by a cycle that reports.
        watched, bound_after: when metrics are kept (`measure`): seconds from the creation of pods until they were seen
            without a node, and until their binding was seen. Taken by the reader.
    """

    def __init__(self, cluster: Cluster, clock: Clock, options: SchedulerOptions, bell: Bell, *, measure: bool) -> None:
        self._bell = bell
        self._names = frozenset(options.scheduler_names)
        self._measure = measure
        self._unwritten: dict[str, PodGroup] = {}
        self._sent: dict[str, PodGroup] = {}
        self._arriving: dict[str, tuple[int, int]] = {}
        self._under_way: dict[str, int] = {}
        self._reports = 0
        self.reporting = True
        self.held_back = False
        self.watched: deque[float] = deque(maxlen=_REMEMBERED)
        self.bound_after: deque[float] = deque(maxlen=_REMEMBERED)
        super().__init__(
            cluster,
            clock,
            scheduler_names=options.scheduler_names,
            default_queue=options.default_queue,
            node_selector=options.node_selector,
            ignored_provisioners=options.ignored_provisioners,
        )

    @property
    def waiting(self) -> bool:
        """Whether a job or task waits for something, or a pod for its claims."""
        return bool(self.active) or len(self._volumes) > 0

    @property
    def unfinished(self) -> bool:
        """Whether a cycle is due within the period although nothing more happens."""
        return self.held_back or bool(self._unwritten) or bool(self._resync)

    @property
    def events_waiting(self) -> int:
        return len(self._events)

    # --- events, in the thread of whoever tells them ------------------------------------------------------------------

    def added(self, obj: KubernetesObject, /) -> None:
        super().added(obj)
        self._bell.ring(urgency_of(None, obj, self._names))
        if self._measure and isinstance(obj, Pod) and not obj.spec.node_name and self._ours(obj):
            self._note(self.watched, obj)

    def updated(self, old: KubernetesObject, new: KubernetesObject, /) -> None:
        super().updated(old, new)
        self._bell.ring(self._urgency_of_update(old, new))
        if (
            self._measure
            and isinstance(old, Pod)
            and isinstance(new, Pod)
            and new.spec.node_name
            and not old.spec.node_name
            and new.spec.scheduler_name in self._names
        ):
            self._note(self.bound_after, new)

    def deleted(self, obj: KubernetesObject, /) -> None:
        super().deleted(obj)
        self._bell.ring(urgency_of(obj, None, self._names))

    def refused(self, obj: KubernetesObject, error: ClusterError, /) -> None:
        """The next try comes with the schedule period: a cluster that refuses is not to be hurried."""
        super().refused(obj, error)
        self._bell.ring(Urgency.STATUS)

    def _urgency_of_update(self, old: KubernetesObject, new: KubernetesObject) -> Urgency:
        urgency = urgency_of(old, new, self._names)
        if urgency is Urgency.STATUS and isinstance(new, PodGroup):
            job = self._all_jobs.get(new.key)
            if job is not None and self._is_echo(job, new):
                return Urgency.NOTED
        return urgency

    def _note(self, places: deque[float], pod: Pod) -> None:
        created = pod.metadata.creation_timestamp
        if created is not None:
            places.append(max(0.0, (self._clock() - created).total_seconds()))

    # --- PodGroups ----------------------------------------------------------------------------------------------------

    def _is_echo(self, job: Job, new: PodGroup) -> bool:
        """Whether an update tells only what we wrote ourselves, lately or before that."""
        known = job.pod_group
        if (
            known is None
            or known.metadata.uid != new.metadata.uid
            or known.spec != new.spec
            or known.metadata.labels != new.metadata.labels
            or known.metadata.annotations != new.metadata.annotations
        ):
            return False
        sent = self._sent.get(job.id)
        return same_status(known.status, new.status) or (sent is not None and same_status(sent.status, new.status))

    def _on_pod_group(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        if not isinstance(new, PodGroup):
            if isinstance(old, PodGroup):
                self._unwritten.pop(old.key, None)
                self._sent.pop(old.key, None)
                self._arriving.pop(old.key, None)
                self._under_way.pop(old.key, None)
            super()._on_pod_group(old, new)
            return
        job = self._all_jobs.get(new.key)
        if job is None or not self._is_echo(job, new):
            super()._on_pod_group(old, new)
            return
        assert job.pod_group is not None
        # What was worked out since then stays; the version is what the next write must name.
        renewed = PodGroup(metadata=new.metadata, spec=new.spec, status=job.pod_group.status)
        if self._unwritten.get(job.id) is job.pod_group:
            self._unwritten[job.id] = renewed
        job.pod_group = renewed

    # --- writes -------------------------------------------------------------------------------------------------------

    def begin_session(self) -> None:
        self.held_back = False
        self._reports += self.reporting
        super().begin_session()

    def update_pod_group(self, job: Job, pg: PodGroup) -> str | None:
        before = job.pod_group
        admitted = before is not None and before.status.phase != pg.status.phase == "Inqueue" and not job.tasks
        if admitted or (self.reporting and not self._on_the_way(job)):
            return self._write(job, pg)
        job.pod_group = pg
        self.changed[job.id] = job
        self._unwritten[job.id] = pg
        return _HELD_BACK

    def _write(self, job: Job, pg: PodGroup) -> str | None:
        self._unwritten.pop(job.id, None)
        self._sent[job.id] = pg
        error = super().update_pod_group(job, pg)
        if error is not None:
            self._sent.pop(job.id, None)
            self.held_back = True
        return error

    def update_queue_status(self, queue: Queue, allocated: dict[str, str]) -> str | None:
        if not self.reporting:
            return _HELD_BACK
        error = super().update_queue_status(queue, allocated)
        if error is not None:
            self.held_back = True
        return error

    def tells_of(self, job: Job) -> bool:
        return self.reporting and not self._on_the_way(job) and not self._still_arrives(job)

    def _on_the_way(self, job: Job) -> bool:
        """Whether pods of the job were bound a moment ago and do not run yet."""
        if job.counts[BINDING]:
            return True  # Its write waits or is being answered, which has an end of its own.
        if not job.counts[BOUND]:
            self._under_way.pop(job.id, None)
            return False
        return self._reports - self._under_way.setdefault(job.id, self._reports) < _ON_THE_WAY_REPORTS

    def _still_arrives(self, job: Job) -> bool:
        """Whether a gang is short of pods and got some since the last report: what is said of it now is out of date
        with the next pod, and would be written to each that is there."""
        pods = len(job.tasks)
        if pods >= job.min_available:
            self._arriving.pop(job.id, None)
            return False
        seen, reports = self._arriving.get(job.id, (-1, 0))
        if seen == pods or reports >= _PATIENT_REPORTS:
            return False
        self._arriving[job.id] = (pods, reports + 1)
        return True

    def update_pod_condition(self, pod: Pod, reason: str, message: str, nominated: str) -> None:
        if self.reporting or reason == "SchedulerError":
            super().update_pod_condition(pod, reason, message, nominated)

    def record_event(self, kind: str, namespace: str, name: str, type: str, reason: str, message: str) -> None:
        if self.reporting or reason not in _SAID_ABOUT_WAITING:
            super().record_event(kind, namespace, name, type, reason, message)

    def settle(self, touched: Iterable[Job]) -> None:
        jobs = list(touched)
        if self.reporting:
            self._write_held_back()
            super().settle(jobs)
            return
        # Jobs whose news were held back come up again in the next cycle that reports; so do their queues.
        pending = [*self.unsettled.values(), *jobs]
        super().settle(jobs)
        for job in pending:
            if self._all_jobs.get(job.id) is job:
                self.unsettled[job.id] = job
        self.held_back = self.held_back or bool(pending)

    def _write_held_back(self) -> None:
        for id, pg in list(self._unwritten.items()):
            job = self._all_jobs.get(id)
            if job is None or job.pod_group is not pg:
                del self._unwritten[id]
            elif self._on_the_way(job):
                continue
            elif self._write(job, pg) is None and pg.status.phase not in _WAITING:
                self.record_event("PodGroup", job.namespace, job.name, "Normal", "Scheduled", "pod group is ready")
