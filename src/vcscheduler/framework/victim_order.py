"""In which order victims go, with keys instead of comparisons (spec 02 §6.4).

The reference keeps victims in a heap and compares jobs as they stand at each step; evicting changes jobs, so what comes
third depends on how the heap lay. Here the same heap runs over keys that are taken once, and taken anew for jobs that
changed. The first victim is the largest key; often no more than that one is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any

from vcscheduler.framework.heap import PriorityQueue
from vcscheduler.model.job import Job
from vcscheduler.model.task import Task

Key = tuple[Any, ...]
#: Key of the job, then of the task; the queue's name; the task. The larger key goes first.
Entry = tuple[tuple[Key, Key], str, Task]

_key = itemgetter(0)


class VictimKeys:
    """Keys of jobs and tasks for one session. ``job_key`` may depend on nothing but the job, ``task_key`` on nothing
    that changes. ``memo``: keeps something for a job until the job changes."""

    def __init__(
        self,
        jobs: Mapping[str, Job],
        memo: dict[str, tuple[Key, str]],
        job_key: Callable[[Job], Key],
        task_key: Callable[[Task], Key],
    ) -> None:
        self._jobs = jobs
        self._job_key = job_key
        self._task_key = task_key
        self._job_keys = memo
        self._task_keys: dict[Task, Key] = {}
        #: With what they were made from.
        self._entries: dict[Task, tuple[tuple[Key, str], Entry]] = {}

    def _job(self, id: str) -> tuple[Key, str] | None:
        """Key and queue; None if the session does not have the job."""
        job = self._jobs.get(id)
        if job is None:
            return None
        # The fallback does not count between victims.
        found = self._job_keys[id] = (self._job_key(job)[:-1], job.queue)
        return found

    def _task(self, task: Task) -> Key:
        own = self._task_key(task)
        key = self._task_keys[task] = (*own[:-1], *(() if task.index is None else (task.index,)), *own[-1])
        return key

    def entries(self, victims: Iterable[Task]) -> list[Entry] | None:
        """None if keys cannot order them: a job is gone, or only some of the pods' names have an index."""
        job_keys, kept = self._job_keys, self._entries
        found: list[Entry] = []
        indexed = 0
        for t in victims:
            job = job_keys.get(t.job_id) or self._job(t.job_id)
            if job is None:
                return None
            if t.index is not None:
                indexed += 1
            known = kept.get(t)
            if known is None or known[0] is not job:
                entry = ((job[0], self._task_keys.get(t) or self._task(t)), job[1], t)
                known = kept[t] = (job, entry)
            found.append(known[1])
        return found if indexed in (0, len(found)) else None

    def renewed(self, entry: Entry) -> Entry:
        (old, task_key), queue, task = entry
        job = self._job_keys.get(task.job_id) or self._job(task.job_id)
        return (old if job is None else job[0], task_key), queue, task


class KeyedVictims:
    """The victims of one node in order. ``across``: which of two queues victims are taken from first; None where all
    victims count as of one queue."""

    __slots__ = ("_across", "_best", "_entries", "_heap", "_keys", "_taken")

    def __init__(
        self,
        keys: VictimKeys,
        entries: list[Entry],
        across: Callable[[str, str], bool] | None,
        best: Task | None = None,
    ) -> None:
        """``best``: the task of the largest entry, where that is known."""
        self._keys = keys
        self._entries = entries
        self._across = across
        self._heap: PriorityQueue[Entry] | None = None
        self._best = best
        self._taken = False

    def __len__(self) -> int:
        return len(self._entries) - self._taken if self._heap is None else len(self._heap)

    def pop(self) -> Task | None:
        if self._heap is None:
            if not self._entries:
                return None
            if not self._taken and self._across is None:
                self._taken = True
                return self._best or max(self._entries, key=_key)[2]
            # From the second on, how the heap lay before anything was evicted matters.
            self._heap = PriorityQueue(self._less, self._entries)
            if self._taken:
                self._heap.pop()
        # Whatever was evicted since changed jobs.
        self._heap.rekey(self._keys.renewed)
        entry = self._heap.pop()
        return None if entry is None else entry[2]

    def _less(self, a: Entry, b: Entry) -> bool:
        if self._across is not None and a[1] != b[1]:
            return self._across(a[1], b[1])
        return a[0] > b[0]
