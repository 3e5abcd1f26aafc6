"""What the rules say of the tasks on a node, asked once for many tasks alike.

A gang that needs a hundred victims asks the same rules about the same node a hundred times, each time with one
candidate less. Where what a rule says of a candidate follows from the candidate's job (``by_job`` when it was
registered), the answer stays as it was but for the victim that went, until one of the jobs changes.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter

from vcscheduler.actions.victims import alike
from vcscheduler.framework.heap import PriorityQueue
from vcscheduler.framework.session import Session
from vcscheduler.framework.victim_order import Entry, KeyedVictims, VictimKeys
from vcscheduler.model.task import Task

Ask = Callable[[Task, list[Task]], list[Task]]


class Answer:
    """Who may be evicted from a node for a task."""

    def __init__(self, ssn: Session, task: Task, victims: list[Task], candidates: int) -> None:
        """``victims``: in no order that matters. ``candidates``: out of how many."""
        self._ssn = ssn
        self._task = task
        self.victims = victims
        self.candidates = candidates

    def queue(self) -> PriorityQueue[Task] | KeyedVictims:
        """In which order to evict."""
        return self._ssn.victims_queue(self.victims, self._task)

    def evicted(self, tasks: list[Task]) -> None:
        """These went for the task, which now has its place."""


class _Kept(Answer):
    """An answer for tasks alike. The best victim stands last."""

    def __init__(
        self, ssn: Session, task: Task, candidates: list[Task], keys: VictimKeys, entries: list[Entry], seen: int
    ) -> None:
        """``entries``: the victims. ``seen``: how many changes of jobs there were."""
        self._keys = keys
        self._entries = entries
        super().__init__(ssn, task, [e[2] for e in sorted(entries, key=itemgetter(0))], len(candidates))
        self._jobs: dict[str, int] = {}
        for t in candidates:
            self._jobs[t.job_id] = self._jobs.get(t.job_id, 0) + 1
        self._seen = seen
        self._spoilt = False

    def holds(self, task: Task, touches: list[str]) -> bool:
        """Whether the rules would say the same for another task now."""
        if self._spoilt or not self.victims or not alike(self._task, task):
            return False
        jobs = self._jobs
        for at in range(self._seen, len(touches)):
            if touches[at] in jobs:
                return False
        self._seen = len(touches)
        return True

    def queue(self) -> KeyedVictims:
        left = set(self.victims)
        entries = [entry for entry in self._entries if entry[2] in left]
        return KeyedVictims(self._keys, entries, None, self.victims[-1])

    def evicted(self, tasks: list[Task]) -> None:
        if not tasks:
            return
        victim = self.victims.pop()
        if len(tasks) > 1 or tasks[0] is not victim:
            self._spoilt = True
            return
        left = self._jobs[victim.job_id] - 1
        if left:
            # The job has changed, and has others here.
            self._spoilt = True
        else:
            del self._jobs[victim.job_id]


class Answers:
    """The answers of one action to one question, by node."""

    def __init__(self, ssn: Session, ask: Ask, ask_by_job: Ask) -> None:
        """``ask``: the session's question; ``ask_by_job``: its form that is silent where the answer follows from more
        than the candidates' jobs."""
        self._ssn = ssn
        self._ask = ask
        self._ask_by_job = ask_by_job
        self._touches = ssn.touch_log()
        self._returned = ssn.returned
        self._kept: dict[int, _Kept] = {}

    def of(self, task: Task, row: int, candidates: Callable[[int], list[Task]]) -> Answer | None:
        """None: there are no candidates."""
        ssn = self._ssn
        if self._returned != ssn.returned:
            # Who came back may be a candidate again.
            self._returned = ssn.returned
            self._kept.clear()
        kept = self._kept.get(row)
        if kept is not None:
            if kept.holds(task, self._touches):
                return kept
            del self._kept[row]
        found = candidates(row)
        if not found:
            return None
        if not ssn.explaining_victims:
            kept = self._keep(task, found)
            if kept is not None:
                self._kept[row] = kept
                return kept
        return Answer(ssn, task, self._ask(task, found), len(found))

    def _keep(self, task: Task, candidates: list[Task]) -> _Kept | None:
        keys = self._ssn.victim_keys
        victims = self._ask_by_job(task, candidates) if keys is not None else []
        if not victims or keys is None:
            return None
        entries = keys.entries(victims)
        if entries is None or len({queue for _, queue, _ in entries}) > 1:
            return None
        return _Kept(self._ssn, task, candidates, keys, entries, len(self._touches))
