"""What the evicting actions have in common: for whom, from which nodes, whom, and whether it helps (spec 03 §1.7).

Looking for victims walks the same nodes over and over, so what may be evicted from a node is kept until something on
the node changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from vcscheduler.framework.heap import PriorityQueue
from vcscheduler.framework.session import Session
from vcscheduler.model.job import Job
from vcscheduler.model.nodes import NodeTable
from vcscheduler.model.queue import Queue
from vcscheduler.model.status import ALLOCATED, BINDING, BOUND, PENDING, PIPELINED, RUNNING, SUCCEEDED
from vcscheduler.model.task import Task
from vcscheduler.placement import kernels
from vcscheduler.placement.rules import BoolArray, IntArray
from vcscheduler.placement.search import Purpose

NEVER = "Never"

_FIRST_ONES = 3
_SERVED = (ALLOCATED, PIPELINED, BINDING, BOUND, RUNNING, SUCCEEDED)


# --- for whom ---------------------------------------------------------------------------------------------------------


def starving_jobs(ssn: Session, wanted: Callable[[Job], bool] = lambda job: True) -> list[Job]:
    """Jobs that were let in, are valid and starve, by key. Some have no Pending task: nothing can be done for them, but
    their queue takes its turn. A job all of whose tasks have been served is not asked."""
    waiting = [job for job in ssn.jobs.values() if _wants(job) and not job.is_pending and wanted(job)]
    return [job for job in ssn.sorted_jobs(waiting) if ssn.job_valid(job) is None and ssn.job_starving(job)]


def _wants(job: Job) -> bool:
    counts = job.counts
    if counts[PENDING]:
        return True
    served = sum([counts[s] for s in _SERVED])
    return served < len(job.tasks) or served < job.min_available


def queues_by_first_job(ssn: Session) -> list[Queue]:
    """Queues that have a valid job which was let in, starving or not, in the order of the first such job's key."""
    first: dict[str, str] = {}
    for job in ssn.jobs.values():
        known = first.get(job.queue)
        if (known is None or job.id < known) and not job.is_pending and ssn.job_valid(job) is None:
            first[job.queue] = job.id
    return [ssn.queues[name] for name in sorted(first, key=lambda name: first[name])]


def turns(ssn: Session) -> tuple[PriorityQueue[Queue], dict[str, PriorityQueue[Job]]]:
    """The queues to be served, and the starving jobs of each by its name; no queues if no job has anything to place."""
    queues, jobs = ssn.queue_heap(), dict[str, PriorityQueue[Job]]()
    starving = starving_jobs(ssn)
    if not any(job.has_pending_tasks for job in starving):
        return queues, jobs
    for queue in queues_by_first_job(ssn):
        queues.push(queue)
    for job in starving:
        if job.queue not in jobs:
            jobs[job.queue] = ssn.job_heap()
        jobs[job.queue].push(job)
    return queues, jobs


def waiting_tasks(job: Job) -> list[Task]:
    """Pending tasks that no gate holds back, by key."""
    if not job.counts[PENDING]:
        return []
    return sorted((t for t in job.tasks_in(PENDING) if not t.gated), key=lambda t: t.key)


# --- where ------------------------------------------------------------------------------------------------------------


def rows_not_excluded(ssn: Session, job: Job, task: Task) -> IntArray:
    """All nodes but those of which an earlier action of this session found that no eviction can help (spec 03 §1.5)."""
    rows = ssn.search.all_rows
    errors = job.fit_errors.get(task.uid)
    if errors is None:
        return rows
    hopeless = errors.unresolvable_rows()
    return rows[~np.isin(rows, hopeless)] if len(hopeless) else rows


def best_first(ssn: Session, task: Task, rows: IntArray, skip: BoolArray) -> Iterator[int]:
    """The rows by descending score, equal ones by name, without those to be skipped. Often one of the first does, so
    the rest is sorted late. Scores may depend on which nodes take part, so the skipped ones are scored too."""
    search, totals = ssn.search, ssn.runs.scores(task)
    if totals is None:
        rows = search.ranked(task, rows)
        yield from rows[~skip[rows]].tolist()
        return
    rank, skip = ssn.table.rank, skip.copy()
    for _ in range(_FIRST_ONES):
        row = kernels.best_of(rows, totals, rank, skip)
        if row < 0:
            return
        yield row
        skip[row] = True
    rows = rows[~skip[rows]]
    yield from rows[np.lexsort((rank[rows], -totals[rows]))].tolist()


def in_order(rows: IntArray, skip: BoolArray) -> Iterator[int]:
    """The rows one after the other, without those to be skipped; few are ever asked for."""
    at = -1
    while (at := kernels.next_of(rows, skip, at + 1)) < len(rows):
        yield int(rows[at])


class Futile:
    """The last attempt that came to nothing without leaving a trace: one for a task alike, on the same nodes and with
    nothing changed since, comes to nothing too."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._task: Task | None = None
        self._rows: IntArray = np.empty(0, dtype=np.int64)
        self._position = -1
        self._begun = -1

    def again(self, task: Task, rows: IntArray) -> bool:
        """Whether an attempt would be the same as the last; otherwise one begins."""
        self._begun = self._table.log_end
        other = self._task
        return (
            other is not None
            and self._position == self._begun
            and alike(task, other)
            and np.array_equal(rows, self._rows)
        )

    def note(self, task: Task, rows: IntArray) -> None:
        """The attempt that began came to nothing."""
        if self._table.log_end == self._begun:
            self._task, self._rows, self._position = task, rows, self._begun


def alike(a: Task, b: Task) -> bool:
    """Whether no rule can tell two tasks apart, but for their names."""
    if a.cls is not b.cls or a.job_id != b.job_id or a.role != b.role or a.priority != b.priority:
        return False
    mine, theirs = a.pod.metadata, b.pod.metadata
    return mine.labels == theirs.labels and mine.annotations == theirs.annotations


def passes(ssn: Session, task: Task, row: int) -> bool:
    """Whether no predicate has anything against the node; resources are not looked at."""
    known = ssn.runs.passes(task, row)
    if known is not None:
        return known
    return not ssn.search.failure_codes(task, np.array([row], dtype=np.int64), Purpose.BACKFILL)[0]


# --- whom -------------------------------------------------------------------------------------------------------------


class Evictables:
    """Tasks on each node that are Bound or Running, allow it, and have a job in the session, by queue and in the order
    of keys: what the filters of the actions choose from."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self._table = ssn.table
        self._by_row: dict[int, dict[str, list[Task]]] = {}
        self._thinner: set[int] = set()
        self._barren: dict[str, BoolArray] = {}
        self._position = ssn.table.log_end
        self._returned = ssn.returned

    def refresh(self) -> None:
        """Take note of nodes on which something changed. Only undone evictions bring tasks back; all else takes some
        away."""
        table = self._table
        if self._position == table.log_end:
            return
        changed = table.changed_since(self._position)
        self._position = table.log_end
        if self._returned == self._ssn.returned and changed is not None:
            self._thinner.update(changed.tolist())
            return
        self._returned = self._ssn.returned
        if changed is None:
            self._by_row.clear()
            for barren in self._barren.values():
                barren[:] = False
            return
        for row in changed.tolist():
            self._by_row.pop(row, None)
        for barren in self._barren.values():
            barren[changed] = False

    def barren(self, whom: str) -> BoolArray:
        """bool [rows]: nodes known to have no task of a kind; the caller says which kind it means and marks them. The
        marks go when tasks come back."""
        found = self._barren.get(whom)
        if found is None:
            found = self._barren[whom] = np.zeros(self._table.n, dtype=np.bool_)
        return found

    def by_queue(self, row: int) -> dict[str, list[Task]]:
        """Not to be changed; as of the last :meth:`refresh`."""
        found = self._by_row.get(row)
        if found is None:
            found = self._collect(row)
        elif row in self._thinner:
            thinned = {name: [t for t in tasks if _evictable(t)] for name, tasks in found.items()}
            found = {name: tasks for name, tasks in thinned.items() if tasks}
        else:
            return found
        self._thinner.discard(row)
        self._by_row[row] = found
        return found

    def _collect(self, row: int) -> dict[str, list[Task]]:
        jobs = self._ssn.jobs
        found: dict[str, list[Task]] = {}
        tasks = self._table.nodes[row].tasks
        for key in sorted(tasks):
            task = tasks[key]
            if _evictable(task) and task.preemptable:
                job = jobs.get(task.job_id)
                if job is not None:
                    found.setdefault(job.queue, []).append(task)
        return found


def _evictable(task: Task) -> bool:
    return task.status is RUNNING or task.status is BOUND


# --- whether it helps -------------------------------------------------------------------------------------------------


class Room:
    """What a node will have free, in the dimensions that one task asks for; counted up as victims go."""

    __slots__ = ("_free", "_table", "_wanted")

    def __init__(self, table: NodeTable, task: Task, row: int) -> None:
        self._table = table
        self._wanted = table.items(task.cls)
        idle, releasing, pipelined = table.idle.item, table.releasing.item, table.pipelined.item
        self._free = {d: idle(d, row) + releasing(d, row) - pipelined(d, row) for d, _ in self._wanted}

    def copy(self) -> Room:
        other = Room.__new__(Room)
        other._table, other._wanted, other._free = self._table, self._wanted, self._free.copy()
        return other

    def add(self, task: Task, times: int = 1) -> None:
        free = self._free
        for d, x in self._table.items(task.cls):
            if d in free:
                free[d] += x * times

    def enough(self) -> bool:
        free = self._free
        for d, x in self._wanted:
            have = free[d]
            if not (x < have or abs(x - have) < 0.1):
                return False
        return True


def enough_with(room: Room, victims: Iterable[Task]) -> bool:
    """Whether the task would fit with all victims gone. Counts ``room`` up as far as it has to."""
    if room.enough():
        return True
    for victim in victims:
        room.add(victim)
        if room.enough():
            return True
    return False


def free_something(victims: Iterable[Task]) -> bool:
    """Whether the victims free anything but places for pods. Only then is the eviction said to have happened for the
    task (Quirk, spec 03 §5.4)."""
    return any(not v.best_effort for v in victims)
