"""tdm: share nodes by time of day with an outside system (spec 04 §12).

Nodes labelled ``volcano.sh/revocable-zone: <zone>`` belong to the cluster only while the zone's window is open. Pods
must say that they may run there; when a window has closed, the shuffle action evicts what is still on its nodes.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from vcscheduler.config import DurationError, parse_nanoseconds
from vcscheduler.framework.plugin import Plugin
from vcscheduler.model.fit import Status
from vcscheduler.model.job import Job
from vcscheduler.model.status import FAILED, PENDING, RUNNING, SUCCEEDED, Code, Vote
from vcscheduler.model.task import Task
from vcscheduler.placement.rules import FloatArray, IntArray, NodeFilter, NodeScorer, ScoringFailed

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

ZONE_ARGUMENT = "tdm.revocable-zone."
EVICT_PERIOD = "tdm.evict.period"
DEFAULT_PERIOD = timedelta(minutes=1)
MIN_AVAILABLE = "volcano.sh/jdb-min-available"
MAX_UNAVAILABLE = "volcano.sh/jdb-max-unavailable"

#: Key in the session's store: when victims were last looked for, over all sessions.
LAST_EVICTION = "tdm.last-eviction"

_TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


class TdmPlugin(Plugin):
    name = "tdm"
    known_arguments: ClassVar[dict[str, str]] = {f"{ZONE_ARGUMENT}*": "str", EVICT_PERIOD: "str"}

    def on_session_open(self, ssn: Session) -> None:
        """
        Raises:
            ArgumentError: a window or the period is no text.
        """
        self.ssn = ssn
        self.windows = {
            key.replace(ZONE_ARGUMENT, ""): self.arguments.decode(key, str, "")
            for key in self.arguments
            if ZONE_ARGUMENT in key
        }
        self.period = _period(self.arguments.decode(EVICT_PERIOD, str, ""))
        self._closed: dict[str, str] = {}
        ssn.add_filter(self.name, _ZoneFilter(self))
        ssn.add_scorer(self.name, _ZoneScorer(self))
        ssn.add_preemptable_fn(self.name, self.preemptable)
        ssn.add_victim_tasks_fn(self.name, [self.victim_tasks])
        ssn.add_job_order_fn(self.name, lambda a, b: a.preemptable - b.preemptable, key=lambda j: j.preemptable)
        ssn.add_job_pipelined_fn(self.name, lambda job: Vote.PERMIT if job.is_pipelined else Vote.REJECT)
        ssn.add_job_starving_fn(self.name, lambda job: not job.preemptable and job.counts[PENDING] > 0)

    def closed(self, zone: str) -> str:
        """Why the zone does not belong to the cluster now; empty if it does."""
        why = self._closed.get(zone)
        if why is None:
            window = self.windows.get(zone)
            why = f"revocable zone {zone} not support" if window is None else why_closed(zone, window, self.ssn.now)
            self._closed[zone] = why
        return why

    def zones(self, rows: IntArray) -> list[str]:
        nodes = self.ssn.table.nodes
        return [nodes[r].revocable_zone for r in rows.tolist()]

    # --- victims ----------------------------------------------------------------------------------------------

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> tuple[list[Task], Vote]:
        """Preemptable tasks on ordinary nodes, for a preemptor that is bound to those. Pods are preemptable unless
        they say otherwise, so few can preempt this way (Quirk)."""
        if preemptor.preemptable or preemptor.revocable_zone:
            return [], Vote.REJECT
        table = self.ssn.table
        ordinary = [t for t in candidates if (node := table.get(t.node_name)) is not None and not node.revocable_zone]
        return self._evictable(ordinary), Vote.PERMIT

    def victim_tasks(self, tasks: list[Task]) -> list[Task]:
        """Once a period, what still runs on nodes of zones that are closed, whatever ``tasks`` are."""
        last = self.ssn.store.get(LAST_EVICTION)
        if isinstance(last, datetime) and last + self.period > self.ssn.now:
            return []
        self.ssn.store[LAST_EVICTION] = self.ssn.now
        victims = []
        for zone in sorted(self.windows):
            if self.closed(zone):
                nodes = [n for n in self.ssn.table if n.revocable_zone == zone]
                victims += self._evictable([t for n in nodes for t in n.sorted_tasks()])
        return victims

    def _evictable(self, tasks: list[Task]) -> list[Task]:
        """The preemptable running ones, of each job not more than its budget allows."""
        left: dict[str, int] = {}
        found = []
        for t in tasks:
            job = self.ssn.jobs.get(t.job_id)
            if job is None or not t.preemptable or t.status is not RUNNING:
                continue
            if job.id not in left:
                left[job.id] = most_evictable(job)
            if left[job.id] > 0:
                left[job.id] -= 1
                found.append(t)
        return found


class _ZoneFilter(NodeFilter):
    """Codes: 1 = the task does not go to revocable nodes, others = 2 + place of the closed zone's reason."""

    def __init__(self, plugin: TdmPlugin) -> None:
        self._plugin = plugin
        self._reasons: list[str] = []

    def codes(self, task: Task, rows: IntArray) -> IntArray:
        return np.array([self._code(task, zone) for zone in self._plugin.zones(rows)], dtype=np.int64)

    def _code(self, task: Task, zone: str) -> int:
        if not zone:
            return 0
        why = self._plugin.closed(zone)
        if not why:
            return 0 if task.revocable_zone else 1
        if why not in self._reasons:
            self._reasons.append(why)
        return 2 + self._reasons.index(why)

    def statuses(self, task: Task, code: int) -> tuple[Status, ...]:
        reason = "not allow to dispatch to revocable node" if code == 1 else self._reasons[code - 2]
        return (Status(Code.UNRESOLVABLE, reason, self._plugin.name),)


class _ZoneScorer(NodeScorer):
    """Tasks that may go to revocable nodes go there first."""

    def __init__(self, plugin: TdmPlugin) -> None:
        self._plugin = plugin

    def scores(self, task: Task, rows: IntArray) -> FloatArray:
        zones = self._plugin.zones(rows)
        closed = [i for i, zone in enumerate(zones) if zone and self._plugin.closed(zone)]
        if closed:
            raise ScoringFailed(self._plugin.closed(zones[closed[0]]), rows[closed])
        return np.array([100.0 if zone and task.revocable_zone else 0.0 for zone in zones])


def why_closed(zone: str, window: str, now: datetime) -> str:
    """Empty while the window, ``HH:MM-HH:MM`` in the clock's time zone, is open. It starts today; so of a window over
    midnight only the part before midnight counts (Quirk)."""
    ends = window.strip().split("-")
    times = [_TIME.fullmatch(end) for end in ends]
    if len(times) != 2 or times[0] is None or times[1] is None:
        return f"revocable zone {zone}: {window!r} is not a window such as 8:00-18:30"
    start, end = (
        now.replace(hour=int(t[1]), minute=int(t[2]), second=0, microsecond=0) for t in times if t is not None
    )
    if start >= end:
        end += timedelta(days=1)
    if start <= now.replace(microsecond=0) <= end:
        return ""
    return f"current time beyond revocable zone {zone}:{window}"


def _period(text: str) -> timedelta:
    try:
        return timedelta(microseconds=parse_nanoseconds(text) / 1000)
    except DurationError:
        return DEFAULT_PERIOD


def most_evictable(job: Job) -> int:
    """How many tasks of the job may be evicted at once, by the budget in its PodGroup's annotations."""
    annotations = {} if job.pod_group is None else job.pod_group.metadata.annotations
    n, running = len(job.tasks), job.counts[RUNNING]
    available = annotations.get(MIN_AVAILABLE)
    if available is None:
        unavailable = annotations.get(MAX_UNAVAILABLE)
        if unavailable is None:
            return 1
        down = n - job.counts[SUCCEEDED] - job.counts[FAILED] - running
        return max(_scaled(unavailable, n) - down, 0)
    spare = running - _scaled(available, n)
    # Short of the minimum already, one may still go (Quirk).
    return spare if spare >= 0 else 1


def _scaled(text: str, n: int) -> int:
    """A number, or a percentage of ``n`` rounded up; 0 for anything else."""
    if _INTEGER.fullmatch(text):
        return int(text)
    if text.endswith("%") and _INTEGER.fullmatch(text[:-1]):
        return -(-int(text[:-1]) * n // 100)
    return 0
