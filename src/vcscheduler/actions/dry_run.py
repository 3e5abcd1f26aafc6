"""Topology-aware preemption: try nodes in thought only, then take the one with the least harm (spec 03 §5.5).

"Topology" stands for predicates that depend on other pods: they are simulated with the victims gone, which the normal
mode cannot do. Network domains play no part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from vcscheduler.actions.victims import Room, enough_with
from vcscheduler.config import Arguments
from vcscheduler.framework.session import Session
from vcscheduler.framework.simulation_points import simulated
from vcscheduler.framework.statement import Statement
from vcscheduler.model.nodes import Node
from vcscheduler.model.queue import Queue
from vcscheduler.model.task import Task
from vcscheduler.placement.rules import IntArray

_ACTION = "preempt"
_PRIORITY_OFFSET = 2**31


@dataclass(frozen=True, slots=True)
class DryRunSettings:
    """How many nodes with victims are compared: a part of those that the task may go to, within bounds."""

    percentage: int = 10
    at_least: int = 1
    at_most: int = 100

    def updated(self, arguments: Arguments) -> DryRunSettings:
        return DryRunSettings(
            arguments.get_int("minCandidateNodesPercentage", self.percentage),
            arguments.get_int("minCandidateNodesAbsolute", self.at_least),
            arguments.get_int("maxCandidateNodesAbsolute", self.at_most),
        )

    def wanted(self, nodes: int) -> int:
        return min(max(nodes * self.percentage // 100, self.at_least), self.at_most, nodes)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, and who would have to go: most important first."""

    node: Node
    victims: list[Task]


class DryRun:
    def __init__(self, ssn: Session, settings: DryRunSettings) -> None:
        self._ssn = ssn
        self._settings = settings

    def preempt(
        self,
        queue: Queue,
        task: Task,
        rows: IntArray,
        candidates: Callable[[int], list[Task]],
        statement: Statement,
    ) -> bool:
        """Whether the task is pipelined now; what it took is in the statement."""
        wanted = self._settings.wanted(len(rows))
        found: list[Candidate] = []
        for row in rows.tolist():
            if len(found) >= wanted:
                break
            candidate = self._try(queue, task, row, candidates(row))
            if candidate is not None:
                found.append(candidate)
        if not found:
            return False
        self._ssn.eviction_tally.attempts += 1
        chosen = min(found, key=lambda c: _harm(c, self._ssn.now))
        here = Statement(self._ssn)
        for victim in chosen.victims:
            here.evict(victim, _ACTION, task)
        if here.pipeline(task, chosen.node, True) is not None:
            here.discard()
            return False
        statement.merge(here)
        return True

    def _try(self, queue: Queue, task: Task, row: int, candidates: list[Task]) -> Candidate | None:
        ssn = self._ssn
        node = ssn.table.nodes[row]
        victims = ssn.preemptable(task, candidates) if candidates else []
        ssn.eviction_tally.candidates = len(victims)
        if not enough_with(Room(ssn.table, task, row), victims):
            return None
        trial = _Trial(ssn, queue, task, node)
        heap = ssn.victims_queue(victims, task)
        removed: list[Task] = []
        while (victim := heap.pop()) is not None:
            if not trial.remove(victim):
                return None
            removed.append(victim)
            if trial.fits():
                break
        # Whether the queue may run the task is not asked again here (Quirk, spec 03 §5.5).
        if not removed or not trial.predicates_pass():
            return None
        needed: list[Task] = []
        for victim in reversed(removed):
            if not trial.add(victim):
                return None
            if not trial.fits():
                if not trial.remove(victim):
                    return None
                needed.append(victim)
        return Candidate(node, needed) if needed else None


class _Trial:
    """One node in thought, with some of its tasks gone."""

    def __init__(self, ssn: Session, queue: Queue, task: Task, node: Node) -> None:
        self._ssn = ssn
        self._queue = queue
        self._task = task
        self._node = node
        self._state = simulated(ssn.cycle_state(task))
        self._room = Room(ssn.table, task, node.row)

    def remove(self, victim: Task) -> bool:
        """False: a plugin cannot simulate it."""
        if self._ssn.simulate_remove_task(self._state, self._task, victim, self._node) is not None:
            return False
        self._room.add(victim)
        return True

    def add(self, victim: Task) -> bool:
        if self._ssn.simulate_add_task(self._state, self._task, victim, self._node) is not None:
            return False
        self._room.add(victim, -1)
        return True

    def fits(self) -> bool:
        return (
            self._ssn.simulate_allocatable(self._state, self._queue, self._task)
            and self._room.enough()
            and self.predicates_pass()
        )

    def predicates_pass(self) -> bool:
        return self._ssn.simulate_predicate(self._state, self._task, self._node) is None


def _harm(candidate: Candidate, now: datetime) -> tuple[int, int, int, float]:
    """The least is best: the first victim's pod priority, the sum of priorities, the number of victims, then how
    recently the longest-running of the most important victims started. Job priorities play no part."""
    victims = candidate.victims
    priorities = [_priority(v) for v in victims]
    top = max(priorities)
    started = min(_started(v, now) for v, p in zip(victims, priorities) if p == top)
    return priorities[0], sum(p + _PRIORITY_OFFSET for p in priorities), len(victims), -started.timestamp()


def _priority(task: Task) -> int:
    return task.pod.spec.priority or 0


def _started(task: Task, now: datetime) -> datetime:
    return task.pod.status.start_time or now
