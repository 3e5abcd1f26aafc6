"""What happened to jobs lately: the last few thousand things, so that one can be asked for its story."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from datetime import datetime

from vcscheduler.framework.session import Session
from vcscheduler.model.status import PIPELINED
from vcscheduler.server.cache import LiveCache
from vcscheduler.server.loop import Cycle

_KEPT = 20_000
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that a cycle did to a job."""

    job: str
    at: datetime
    text: str


class Stories:
    """A CycleObserver that remembers."""

    def __init__(self, cache: LiveCache, kept: int = _KEPT) -> None:
        self._cache = cache
        self._happenings: deque[Happening] = deque(maxlen=kept)
        self._phases: dict[str, str] = {}

    def observe(self, ssn: Session) -> None:
        bound: dict[str, list[str]] = {}
        for tasks, nodes in self._cache.bound:
            for task, node in zip(tasks, nodes):
                bound.setdefault(task.job_id, []).append(node)
        for job_id, nodes in bound.items():
            self._note(ssn, job_id, f"{_tasks(len(nodes))} bound to {_some(nodes)}")
        evicted: dict[tuple[str, str], list[str]] = {}
        for task, reason in ssn.evictions:
            evicted.setdefault((task.job_id, reason), []).append(task.name)
        for (job_id, reason), names in evicted.items():
            self._note(ssn, job_id, f"{_tasks(len(names))} evicted ({reason}): {_some(names)}")
        for job in ssn.touched.values():
            if job.counts[PIPELINED]:
                self._note(ssn, job.id, f"{_tasks(job.counts[PIPELINED])} planned where others still leave")
            before = self._phases.get(job.id, job.pod_group.status.phase if job.pod_group is not None else "")
            if job.phase != before:
                self._phases[job.id] = job.phase
                self._note(ssn, job.id, f"phase {before or 'none'} became {job.phase}")
        if len(self._phases) > 2 * len(ssn.jobs) + 1000:
            self._phases = {id: phase for id, phase in self._phases.items() if id in ssn.jobs}

    def ended(self, cycle: Cycle) -> None:
        return

    def failed(self, error: Exception) -> None:
        return

    def configuration_read(self, taken: bool) -> None:
        return

    def of(self, job_id: str) -> list[Happening]:
        """What is remembered of a job, the oldest first."""
        return [each for each in self._happenings if each.job == job_id]

    def _note(self, ssn: Session, job_id: str, text: str) -> None:
        self._happenings.append(Happening(job_id, ssn.now, text))


def _tasks(n: int) -> str:
    return "1 task" if n == 1 else f"{n} tasks"


def _some(names: list[str]) -> str:
    different = list(Counter(names))
    rest = len(different) - _NAMED
    return ", ".join(different[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
