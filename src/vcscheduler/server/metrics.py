"""Metrics under the reference's names, labels and buckets (spec 07 §5), and a few of our own.

Nothing here is asked while decisions are made. Cycles are counted when they are over; what is per queue and per job is
read only when somebody scrapes, between two cycles, from the last session. docs/metrics.md lists all of it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping

from vcscheduler.framework.session import Session
from vcscheduler.model.resources import MAX_FLOAT, MAX_SCALAR, Resources
from vcscheduler.model.status import PIPELINED, TaskStatus
from vcscheduler.model.task import Task
from vcscheduler.plugins.drf import DrfPlugin
from vcscheduler.plugins.gang import missing_tasks, only_leaving
from vcscheduler.server.cache import LiveCache
from vcscheduler.server.loop import Cycle
from vcscheduler.server.series import Histogram, Labels, Series, Values, exponential

_JOB = ("job_name", "queue", "job_namespace")
_QUEUE = ("queue_name",)
_COUNTED_ACTIONS = ("preempt", "reclaim", "gangpreempt", "gangreclaim")
_AMOUNTS = (
    ("allocated", "holds"),
    ("request", "holds or asks for"),
    ("deserved", "deserves"),
    ("capacity", "may have at most by its spec"),
    ("real_capacity", "may have at most as things are"),
    ("inqueue", "has admitted and not placed yet"),
)


class SchedulerMetrics:
    """A CycleObserver that keeps numbers.

    Args:
        cluster: further gauges by name, asked at each scrape: (about, value).
    """

    def __init__(
        self,
        cache: LiveCache,
        cluster: Callable[[], Mapping[str, tuple[str, float]]] = dict,
        leading: Callable[[], bool] = lambda: True,
    ) -> None:
        self._cache = cache
        self._cluster = cluster
        self._leading = leading
        self._last: Session | None = None
        self._all: list[Series] = []
        self._scalars_seen: dict[str, set[str]] = {}
        histogram, counter, gauge = self._histogram, self._counter, self._gauge
        v = "volcano_"
        self.e2e = histogram(v + "e2e_scheduling_latency_milliseconds", "A whole cycle.", exponential(1, 5000, 20))
        self.opening = histogram(
            v + "open_session_duration_milliseconds", "Opening of a session.", exponential(1, 5000, 20)
        )
        self.plugin = histogram(
            v + "plugin_scheduling_latency_milliseconds",
            "A plugin's part in opening and closing a session.",
            exponential(0.1, 100, 15),
            ("plugin", "OnSession"),
        )
        self.action = histogram(
            v + "action_scheduling_latency_milliseconds",
            "One execution of an action.",
            exponential(1, 2000, 20),
            ("action",),
        )
        self.job_latency = histogram(
            v + "e2e_job_scheduling_latency_milliseconds",
            "From the creation of a PodGroup to a node for each of its tasks.",
            exponential(100, 120_000, 30),
        )
        self.task_latency = histogram(
            v + "task_scheduling_latency_milliseconds",
            "From the creation of a pod to a stage of its scheduling.",
            exponential(50, 60_000, 30),
            ("stage",),
        )
        self.job_duration = gauge(
            v + "e2e_job_scheduling_duration", "The last such time of a job, in milliseconds.", _JOB
        )
        self.job_start = gauge(v + "e2e_job_scheduling_start_time", "Creation of the PodGroup, unix time.", _JOB)
        self.job_last = gauge(v + "e2e_job_scheduling_last_time", "When a task last got a node, unix time.", _JOB)
        self.missing = gauge(v + "unschedule_task_count", "How many tasks the gang lacks.", ("job_id",))
        self.unready = gauge(v + "unschedule_job_count", "Jobs whose gang lacks tasks.")
        self.retries = counter(v + "job_retry_counts", "Reports in which the gang of a job lacked tasks.", ("job_id",))
        self.victims = gauge(
            v + "pod_preemption_victims", "Tasks that could be evicted on the node that preempt last looked at."
        )
        self.attempts = counter(v + "total_preemption_attempts", "Nodes on which preempt tried to make room.")
        self.transactions = counter(
            v + "eviction_transactions_total", "Decisions that evicted something, by action.", ("action",)
        )
        self.job_share = gauge(v + "job_share", "Dominant share of a job.", ("job_ns", "job_id"))
        self.amounts: dict[str, tuple[Values, Values, Values]] = {
            key: (
                gauge(f"{v}queue_{key}_milli_cpu", f"CPU that a queue {about}.", _QUEUE),
                gauge(f"{v}queue_{key}_memory_bytes", f"Memory that a queue {about}.", _QUEUE),
                gauge(
                    f"{v}queue_{key}_scalar_resources",
                    f"Other resources that a queue {about}.",
                    (*_QUEUE, "resource"),
                ),
            )
            for key, about in _AMOUNTS
        }
        self.queue_share = gauge(v + "queue_share", "Share by which queues are ordered.", _QUEUE)
        self.queue_weight = gauge(v + "queue_weight", "Weight of a queue.", _QUEUE)
        self.queue_overused = gauge(v + "queue_overused", "Whether a queue holds more than it deserves.", _QUEUE)
        own = "vcscheduler_"
        self.cycles = counter(own + "cycles_total", "Cycles, by whether they wrote reports.", ("reported",))
        self.failures = counter(own + "cycle_failures_total", "Cycles that ended in an error.")
        self.binds = counter(own + "pods_bound_total", "Pods handed over for binding.", ("queue",))
        self.evictions = counter(own + "pods_evicted_total", "Pods handed over for eviction.", ("reason",))
        self.reads = counter(own + "configuration_reads_total", "Readings of the file again.", ("result",))
        self.tasks = gauge(own + "tasks", "Tasks of a queue by status.", ("queue", "status"))
        self.jobs = gauge(own + "jobs", "Jobs of a queue by phase.", ("queue", "phase"))
        self.nodes = gauge(own + "nodes", "Nodes.")
        self.events_waiting = gauge(own + "events_waiting", "Changes of the cluster that were not taken in yet.")
        self.leader = gauge(own + "leader", "Whether this process may write.")

    def _histogram(self, name: str, about: str, bounds: Iterable[float], labels: Iterable[str] = ()) -> Histogram:
        made = Histogram(name, about, tuple(bounds), tuple(labels))
        self._all.append(made)
        return made

    def _values(self, made: Values) -> Values:
        self._all.append(made)
        return made

    def _counter(self, name: str, about: str, labels: Iterable[str] = ()) -> Values:
        return self._values(Values("counter", name, about, tuple(labels)))

    def _gauge(self, name: str, about: str, labels: Iterable[str] = ()) -> Values:
        return self._values(Values("gauge", name, about, tuple(labels)))

    # --- what happens in cycles ---------------------------------------------------------------------------------------

    def observe(self, ssn: Session) -> None:
        now = ssn.now.timestamp()
        placed: Counter[str] = Counter()
        for tasks, _ in self._cache.bound:
            self._assumed(tasks, now)
            placed.update(task.job_id for task in tasks)
        for job_id, n in placed.items():
            job = ssn.jobs.get(job_id)
            if job is not None:
                self.binds.add(n, job.queue)
        for job in ssn.touched.values():
            if job.counts[PIPELINED]:
                placed[job.id] += job.counts[PIPELINED]
        for job_id, n in placed.items():
            job = ssn.jobs.get(job_id)
            if job is None or job.created == float("-inf"):
                continue
            labels = (job.name, job.queue, job.namespace)
            took = max(0.0, now - job.created) * 1000
            self.job_latency.observe(took, times=n)
            self.job_duration.set(took, *labels)
            self.job_last.set(now, *labels)
        for _, reason in ssn.evictions:
            self.evictions.add(1, reason)
        tally = ssn.eviction_tally
        self.attempts.add(tally.attempts)
        if tally.candidates is not None:
            self.victims.set(tally.candidates)
        for action, n in tally.transactions.items():
            if action in _COUNTED_ACTIONS:
                self.transactions.add(n, action)
        if self._cache.reporting and any(p.name == "gang" for p in ssn.plugins):
            self._gangs(ssn)

    def _assumed(self, tasks: list[Task], now: float) -> None:
        for created, n in Counter(task.created for task in tasks).items():
            if created != float("-inf"):
                self.task_latency.observe(max(0.0, now - created) * 1000, "Assumed", times=n)

    def _gangs(self, ssn: Session) -> None:
        """What the gang plugin says when the session closes (spec 04 §3.3)."""
        unready = 0
        for job in ssn.unsettled_jobs():
            if not job.tasks or job.id not in ssn.jobs:
                continue
            if job.is_ready:
                self.missing.set(0, job.name)
            elif not only_leaving(job):
                unready += 1
                self.missing.set(missing_tasks(job), job.name)
                self.retries.add(1, job.name)
        self.unready.set(unready)

    def ended(self, cycle: Cycle) -> None:
        times = cycle.times
        self._last = cycle.session
        self.cycles.add(1, "true" if cycle.reported else "false")
        self.e2e.observe(times.total * 1000)
        for phase, seconds in times.phases.items():
            if phase == "open":
                self.opening.observe(seconds * 1000)
            elif phase not in ("close", "observe"):
                self.action.observe(seconds * 1000, phase)
        for plugin, seconds in times.plugins_opened.items():
            self.plugin.observe(seconds * 1000, plugin, "OnSessionOpen")
        for plugin, seconds in times.plugins_closed.items():
            self.plugin.observe(seconds * 1000, plugin, "OnSessionClose")
        self._stages()

    def failed(self, error: Exception) -> None:
        self.failures.add(1)

    def configuration_read(self, taken: bool) -> None:
        self.reads.add(1, "taken" if taken else "refused")

    def _stages(self) -> None:
        for stage, seconds in (("Watched", self._cache.watched), ("Bound", self._cache.bound_after)):
            for value in _all_of(seconds):
                self.task_latency.observe(value * 1000, stage)

    # --- scrapes ------------------------------------------------------------------------------------------------------

    def read(self) -> list[Series]:
        """Everything as it is now, copied. Only in the thread that decides, between two cycles."""
        self._stages()
        self._read_jobs()
        if self._last is not None:
            self._read_queues(self._last)
            self._read_shares(self._last)
        self.nodes.set(sum(1 for _ in self._cache.table))
        self.events_waiting.set(self._cache.events_waiting)
        self.leader.set(1.0 if self._leading() else 0.0)
        copies: list[Series] = [series.copy() for series in self._all]
        for name, (about, value) in self._cluster().items():
            gauge = Values("counter" if name.endswith("_total") else "gauge", name, about)
            gauge.set(value)
            copies.append(gauge)
        return copies

    def _read_jobs(self) -> None:
        jobs = self._cache.jobs
        starts: dict[Labels, float] = {}
        tasks: Counter[Labels] = Counter()
        phases: Counter[Labels] = Counter()
        for job in jobs.values():
            if job.created != float("-inf"):
                starts[job.name, job.queue, job.namespace] = job.created
            phases[job.queue, job.phase] += 1
            for status in TaskStatus:
                if job.counts[status]:
                    tasks[job.queue, status.text] += job.counts[status]
        self.job_start.replace(starts)
        self.tasks.replace(dict(tasks))
        self.jobs.replace(dict(phases))
        # Series of what is gone would add up for ever.
        names = {job.name for job in jobs.values()}
        for by_job in (self.job_duration, self.job_last):
            by_job.keep(starts.__contains__)
        for by_name in (self.missing, self.retries):
            by_name.keep(lambda labels: labels[0] in names)
        queues = self._cache.queues
        self.binds.keep(lambda labels: labels[0] in queues)

    def _read_shares(self, ssn: Session) -> None:
        drf = next((p for p in ssn.plugins if isinstance(p, DrfPlugin)), None)
        if drf is not None:
            self.job_share.replace({(j.namespace, j.name): drf.share(j) for j in self._cache.jobs.values()})

    def _read_queues(self, ssn: Session) -> None:
        queues = self._cache.queues
        for gone in [name for name in self._scalars_seen if name not in queues]:
            del self._scalars_seen[gone]
        weights: dict[Labels, float] = {}
        shares: dict[Labels, float] = {}
        overused: dict[Labels, float] = {}
        vectors: dict[str, dict[str, Resources]] = {key: {} for key, _ in _AMOUNTS}
        for name, queue in queues.items():
            standing = ssn.queue_standing(queue)
            sums = ssn.aggregates.queue(name)
            empty = Resources()
            vectors["allocated"][name] = sums.allocated if sums else empty
            vectors["request"][name] = sums.request if sums else empty
            vectors["inqueue"][name] = sums.inqueue if sums else empty
            if queue.capability is not None:
                vectors["capacity"][name] = queue.capability
            weights[name,] = float(queue.weight)
            if standing is not None:
                vectors["allocated"][name] = standing.allocated
                vectors["deserved"][name] = standing.deserved
                vectors["real_capacity"][name] = standing.capability
                shares[name,] = standing.share
                overused[name,] = 1.0 if standing.share > 1.0 else 0.0
        self.queue_weight.replace(weights)
        self.queue_share.replace(shares)
        self.queue_overused.replace(overused)
        for key, of_queues in vectors.items():
            self._replace_amounts(key, of_queues)

    def _replace_amounts(self, key: str, of_queues: dict[str, Resources]) -> None:
        cpu, memory, scalars = self.amounts[key]
        cpu.replace({(name,): _finite(vector.cpu) for name, vector in of_queues.items()})
        memory.replace({(name,): _finite(vector.memory) for name, vector in of_queues.items()})
        values: dict[Labels, float] = {}
        for name, vector in of_queues.items():
            # A resource that was seen once reads 0 from then on, in all of these gauges (spec 07 §5).
            seen = self._scalars_seen.setdefault(name, set())
            seen.update(resource for resource, _ in vector.scalar_items())
            for resource in sorted(seen):
                values[name, resource] = _finite(vector.get(resource))
        scalars.replace(values)


def _finite(value: float) -> float:
    """Without bound reads +Inf, which is what it means."""
    return float("inf") if value >= MAX_SCALAR or value == MAX_FLOAT else value


def _all_of(values: deque[float]) -> Iterable[float]:
    while values:
        yield values.popleft()
