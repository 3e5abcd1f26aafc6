"""Who was evicted, for whom, and what each victim rule thought of it."""

from __future__ import annotations

from dataclasses import dataclass

from vcscheduler.framework.session import Session


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one plugin said of evicting a pod for another one."""

    plugin: str
    preemptor: str
    allowed: bool
    why: str


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that had to go. `opinions` is empty unless the session was told to explain victims."""

    cycle: int
    pod: str
    node: str
    reason: str
    opinions: tuple[Opinion, ...] = ()


def evictions(ssn: Session, cycle: int) -> list[Eviction]:
    """Those of the session so far, in order. The notes of rules speak of candidates, so only those on pods that did
    go are kept."""
    notes: dict[str, dict[Opinion, None]] = {}
    for plugin, preemptor, candidate, allowed, why in ssn.victim_notes:
        notes.setdefault(candidate.uid, {})[Opinion(plugin, preemptor.key, allowed, why)] = None
    return [
        Eviction(cycle, task.key, task.node_name, reason, tuple(notes.get(task.uid, ())))
        for task, reason in ssn.evictions
    ]
