"""What the plugins answered when victims were asked for, tier by tier, while somebody wants to know.

The walk itself is in extension_points.py; here its answers are only listened to, so that explaining cannot change what
is decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from vcscheduler.config import Tier
from vcscheduler.model.job import Job
from vcscheduler.model.status import Vote
from vcscheduler.model.task import Task


class VictimQuestion(StrEnum):
    """The extension point that was asked."""

    PREEMPTABLE = "Preemptable"
    RECLAIMABLE = "Reclaimable"
    UNIFIED_EVICTABLE = "UnifiedEvictable"
    VICTIM_TASKS = "VictimTasks"


@dataclass(frozen=True, slots=True)
class Answer:
    """What one plugin said. ``tier``: from 0. ``abstained``: it left the choice to others. ``chosen``: uids."""

    tier: int
    plugin: str
    abstained: bool
    chosen: frozenset[str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One question and what came of it.

    Attributes:
        preemptor: the task that needs room, or the job where a whole job does; None where nobody does.
        answers: in the order in which the plugins were asked.
        victims: uids of those that may be evicted. tier: which tier decided, from 0; None if none did.
        notes: (plugin, uid) -> whether the plugin would let the candidate go, and the numbers behind that.
    """

    question: VictimQuestion
    preemptor: Task | Job | None
    candidates: tuple[Task, ...]
    answers: tuple[Answer, ...]
    victims: frozenset[str]
    tier: int | None
    notes: dict[tuple[str, str], tuple[bool, str]]


class Listener:
    """Hears one walk over the plugins of a point.

    Args:
        tiers: of the configuration. functions: name and function of each plugin that the walk may ask.
    """

    def __init__(self, tiers: tuple[Tier, ...], functions: Sequence[tuple[str, object]]) -> None:
        self._entries = iter([(tier, plugin.name) for tier, of in enumerate(tiers) for plugin in of.plugins])
        self._names = {id(function): name for name, function in functions}
        self._answers: list[Answer] = []

    def note(self, function: object, chosen: Sequence[Task], vote: Vote) -> None:
        """What a function has answered; functions come in walk order."""
        name = self._names[id(function)]
        tier = next(tier for tier, entry in self._entries if entry == name)
        self._answers.append(Answer(tier, name, vote == Vote.ABSTAIN, frozenset(t.uid for t in chosen)))

    def hear(self, function: object, answer: tuple[list[Task], Vote]) -> tuple[list[Task], Vote]:
        """The same, for functions that vote; hands the answer on."""
        self.note(function, *answer)
        return answer

    def verdict(
        self,
        question: VictimQuestion,
        preemptor: Task | Job | None,
        candidates: Sequence[Task],
        victims: Sequence[Task],
        notes: dict[tuple[str, str], tuple[bool, str]],
    ) -> Verdict:
        """Once the walk is over. The last plugin that was asked is of the tier that decided, if any did."""
        return Verdict(
            question,
            preemptor,
            tuple(candidates),
            tuple(self._answers),
            frozenset(t.uid for t in victims),
            self._answers[-1].tier if victims else None,
            notes,
        )
