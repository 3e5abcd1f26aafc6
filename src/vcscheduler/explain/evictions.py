"""Who was evicted, for whom, under which rule and what that frees; and who might have been and was spared, by what.

Every question for victims leaves a verdict in the session (framework/verdicts.py) while somebody wants to know. Here
verdicts are put beside the evictions that came of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vcscheduler.framework.evictions import EvictionRecord
from vcscheduler.framework.session import Session
from vcscheduler.framework.verdicts import Verdict, VictimQuestion
from vcscheduler.model.job import Job
from vcscheduler.model.resources import Resources
from vcscheduler.model.task import Task

_ACTION = {
    VictimQuestion.PREEMPTABLE: "preempt",
    VictimQuestion.RECLAIMABLE: "reclaim",
    VictimQuestion.UNIFIED_EVICTABLE: "gang eviction",
    VictimQuestion.VICTIM_TASKS: "shuffle",
}


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one plugin said of evicting a pod. ``tier``: from 1. ``decided``: whether its tier was the one that counted.
    ``why``: the numbers."""

    tier: int
    plugin: str
    allowed: bool
    abstained: bool
    decided: bool
    why: str


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that had to go.

    Attributes:
        action: which evicted it. frees: its request, on ``node``.
        preemptor: the pod that needed the room, with its job, queue and request; "" and None where nobody did.
        question, tier: the extension point, and the tier (from 1, 0 if unknown) whose plugins agreed.
        opinions: of all plugins that were asked. Empty unless the session was told to explain victims.
    """

    cycle: int
    pod: str
    node: str
    action: str
    job: str = ""
    queue: str = ""
    priority: int = 0
    frees: Resources | None = None
    preemptor: str = ""
    preemptor_job: str = ""
    preemptor_queue: str = ""
    asks: Resources | None = None
    question: str = ""
    tier: int = 0
    opinions: tuple[Opinion, ...] = ()

    @property
    def rule(self) -> tuple[Opinion, ...]:
        """The opinions that allowed it."""
        return tuple(each for each in self.opinions if each.decided and each.allowed and not each.abstained)


@dataclass(frozen=True, slots=True)
class Spared:
    """A pod that was looked at as a victim and stayed.

    ``protected_by``: the opinions that kept it; empty if the plugins would have let it go, and then ``why`` says why it
    was not evicted all the same. ``role``: the preemptor's task in its job.
    """

    cycle: int
    pod: str
    node: str
    job: str
    queue: str
    action: str
    preemptor: str
    preemptor_job: str
    role: str
    protected_by: tuple[Opinion, ...]
    why: str


def evictions(ssn: Session, cycle: int) -> list[Eviction]:
    """Those of the session so far, in order."""
    if not ssn.explaining_victims:
        return [Eviction(cycle, task.key, task.node_name, reason) for task, reason in ssn.evictions]
    allowed: dict[tuple[str, str], Verdict] = {}
    for verdict in ssn.verdicts:
        for uid in verdict.victims:
            allowed[_whose(verdict.preemptor), uid] = verdict
    return [_eviction(ssn, cycle, record, allowed) for record in ssn.eviction_records]


def spared(ssn: Session, cycle: int) -> list[Spared]:
    """Candidates of the session so far that were not evicted: one entry a candidate and kind of preemptor, as of the
    last time that it was looked at."""
    gone = {record.victim.uid for record in ssn.eviction_records}
    passed_over = {(each.task.uid, each.node_name): each.why for each in ssn.nodes_passed_over}
    found: dict[tuple[str, str, str, str], Spared] = {}
    for verdict in ssn.verdicts:
        if verdict.question is VictimQuestion.VICTIM_TASKS:
            continue  # Asked about all running pods; those that nobody names are not spared by anybody.
        preemptor = verdict.preemptor
        job = preemptor if isinstance(preemptor, Job) else ssn.job_of(preemptor) if preemptor is not None else None
        role = preemptor.role if isinstance(preemptor, Task) else ""
        for candidate in verdict.candidates:
            if candidate.uid in gone:
                continue
            action = _ACTION[verdict.question]
            about = (action, "" if job is None else job.id, role, candidate.uid)
            found.pop(about, None)
            found[about] = _spared(ssn, cycle, verdict, candidate, job, role, passed_over)
    return list(found.values())


def latest(known: dict[tuple[str, str, str, str], Spared], more: Iterable[Spared]) -> None:
    """Lay what a later cycle says over what earlier ones said."""
    for each in more:
        known[each.action, each.preemptor_job, each.role, each.pod] = each


def _eviction(ssn: Session, cycle: int, record: EvictionRecord, allowed: dict[tuple[str, str], Verdict]) -> Eviction:
    victim, task = record.victim, record.on_behalf
    job, owner = ssn.job_of(victim), None if task is None else ssn.job_of(task)
    verdict = None
    for who in ([] if task is None else [task.uid]) + ([] if owner is None else [owner.id]) + [""]:
        verdict = verdict or allowed.get((who, victim.uid))
    return Eviction(
        cycle,
        victim.key,
        record.node_name,
        record.action,
        job="" if job is None else job.id,
        queue="" if job is None else job.queue,
        priority=victim.priority if job is None else job.priority,
        frees=record.frees,
        preemptor="" if task is None else task.key,
        preemptor_job="" if owner is None else owner.id,
        preemptor_queue="" if owner is None else owner.queue,
        asks=None if task is None else task.resreq,
        question="" if verdict is None else verdict.question.value,
        tier=0 if verdict is None or verdict.tier is None else verdict.tier + 1,
        opinions=() if verdict is None else _opinions(ssn, verdict, victim),
    )


def _spared(
    ssn: Session,
    cycle: int,
    verdict: Verdict,
    candidate: Task,
    job: Job | None,
    role: str,
    passed_over: dict[tuple[str, str], str],
) -> Spared:
    own, preemptor = ssn.job_of(candidate), verdict.preemptor
    opinions = _opinions(ssn, verdict, candidate)
    against = tuple(each for each in opinions if not each.allowed and not each.abstained)
    why = ""
    if candidate.uid in verdict.victims:
        against = ()
        uid = preemptor.uid if isinstance(preemptor, Task) else ""
        why = "it might have gone, but "
        why += passed_over.get((uid, candidate.node_name)) or "what was needed was found without it"
    elif verdict.tier is not None:
        against = tuple(each for each in against if each.decided)
        why = "" if against else f"the plugins of tier {verdict.tier + 1} agreed on others"
    elif not opinions:
        why = f"no plugin has a say in {verdict.question.value}, so nobody may go"
    return Spared(
        cycle,
        candidate.key,
        candidate.node_name,
        "" if own is None else own.id,
        "" if own is None else own.queue,
        _ACTION[verdict.question],
        "" if preemptor is None or isinstance(preemptor, Job) else preemptor.key,
        "" if job is None else job.id,
        role,
        against,
        why,
    )


def _opinions(ssn: Session, verdict: Verdict, candidate: Task) -> tuple[Opinion, ...]:
    found = []
    for answer in verdict.answers:
        allowed = candidate.uid in answer.chosen
        noted = verdict.notes.get((answer.plugin, candidate.uid))
        if answer.abstained:
            why = "it has no say here"
        elif noted is not None:
            why = noted[1]
        else:
            why = _figures(ssn, answer.plugin, verdict.preemptor, candidate, allowed)
        decided = answer.tier == verdict.tier
        found.append(Opinion(answer.tier + 1, answer.plugin, allowed, answer.abstained, decided, why))
    return tuple(found)


def _figures(ssn: Session, plugin: str, preemptor: Task | Job | None, candidate: Task, allowed: bool) -> str:
    """Where a plugin left no note: what is known of the two sides."""
    own = ssn.job_of(candidate)
    if plugin == "gang" and own is not None:
        return f"its job has {own.ready_tasks} ready tasks and needs {own.min_available}"
    if plugin == "priority" and own is not None and isinstance(preemptor, Job):
        return f"its job priority is {own.priority}, the preemptor's {preemptor.priority}"
    if plugin == "conformance":
        return f"it is {'no' if allowed else 'a'} system pod"
    if plugin == "capacity" and own is not None and (queue := ssn.queue_of(own)) is not None:
        standing = ssn.queue_standing(queue)
        if standing is not None:
            share = f"{standing.share:.0%}"
            return f"its queue {queue.name} has {share} of what it deserves"
    return "it names the pod" if allowed else "it does not name the pod"


def _whose(preemptor: Task | Job | None) -> str:
    if preemptor is None:
        return ""
    return preemptor.id if isinstance(preemptor, Job) else preemptor.uid
