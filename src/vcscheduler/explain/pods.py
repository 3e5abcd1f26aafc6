"""What stands in a pod's way on the nodes, what would change that, and why it is where it is.

Read from a session of which no action has run. Everything that would change something was tried (explain/trials.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vcscheduler.explain.pending import Refusal
from vcscheduler.explain.trials import Trials, relaxations, with_less, without_request
from vcscheduler.framework.session import Session
from vcscheduler.model.amounts import amounts
from vcscheduler.model.job import Job
from vcscheduler.model.nodes import Node
from vcscheduler.model.resources import Resources
from vcscheduler.model.task import Task
from vcscheduler.objects import Pod, PodSpec
from vcscheduler.placement.rules import FloatArray, IntArray, NodeScorer, ScoringFailed
from vcscheduler.placement.search import Purpose

_NEAREST = 5
_BEST = 5


@dataclass(frozen=True, slots=True)
class NearNode:
    """A node that would take the pod but for one thing. ``lacks``: what it is short of, if that is resources;
    ``never``: it would not do even if it were empty."""

    node: str
    lacks: Resources
    never: bool


@dataclass(frozen=True, slots=True)
class Change:
    """Something that was tried. ``what``: a whole clause; ``nodes``: that would then take the pod, by name;
    ``outcome``: what came of it where the whole cluster was scheduled anew; ``spec``: of the pod, where that differs.
    """

    what: str
    nodes: tuple[str, ...] = ()
    outcome: str = ""
    helps: bool = True
    spec: PodSpec | None = None


@dataclass(frozen=True, slots=True)
class BlockingJob:
    """A job whose pods hold what a pod needs. ``nodes``: on how many nodes it would make room alone."""

    job: str
    queue: str
    priority: int
    pods: int
    nodes: int


@dataclass(frozen=True, slots=True)
class NodeView:
    """How one pending pod stands to the nodes.

    Attributes:
        nodes: how many were looked at. fitting: those that would take the pod as it is.
        prevented: what kept all nodes from being looked at. refusals: rule by rule, how many nodes it refuses.
        near: nodes that lack only resources, the least lack first. changes: what would open nodes.
        blocking: jobs that hold what it needs, the most dispensable first.
    """

    nodes: int
    fitting: tuple[str, ...]
    prevented: str
    refusals: tuple[Refusal, ...]
    near: tuple[NearNode, ...]
    changes: tuple[Change, ...]
    blocking: tuple[BlockingJob, ...]


@dataclass(frozen=True, slots=True)
class NodeScore:
    """A node that takes the pod. ``parts``: weighted points by scorer."""

    node: str
    total: float
    parts: dict[str, float]


def node_view(ssn: Session, pod: Pod, job: Job | None) -> NodeView:
    """Look at all nodes for a pending pod."""
    trials = Trials(ssn)
    task = trials.task(pod)
    rows = ssn.search.all_rows
    failure = ssn.pre_predicate(task)
    if failure is not None:
        return NodeView(len(rows), (), failure.reason, (), (), (), ())
    codes = ssn.search.failure_codes(task, rows, Purpose.ALLOCATE)
    fitting = rows[np.flatnonzero(codes == 0)]
    light = trials.fitting(without_request(pod))
    short = light[~np.isin(light, fitting)]
    lacks = trials.shortages(pod, short)
    near = _nearest(ssn, task, short, lacks)
    changes = [] if len(fitting) else _changes(ssn, trials, pod, near)
    blocking = () if len(fitting) else _blocking(ssn, task, job, short, lacks)
    return NodeView(
        len(rows),
        _names(ssn, fitting),
        "",
        _refusals(ssn, task, rows, codes),
        tuple(near),
        tuple(changes),
        tuple(blocking),
    )


def best_nodes(ssn: Session, pod: Pod, chosen: str = "") -> tuple[NodeScore, ...]:
    """The nodes with the most points among those that would take a pod, best first; ``chosen`` in any case."""
    trials = Trials(ssn)
    task = trials.task(pod)
    rows = ssn.search.all_rows
    if ssn.pre_predicate(task) is not None:
        return ()
    fits = ssn.search.failure_codes(task, rows, Purpose.ALLOCATE) == 0
    rows = rows[np.flatnonzero(fits)]
    # Nodes with room now come before those that will have room (spec 03 §3.3).
    now = rows[np.flatnonzero(ssn.search.fits(task, rows, future=False))]
    rows = now if len(now) else rows
    if not len(rows):
        return ()
    parts = {name: _points(scorer, task, rows) for name, scorer in _scorers(ssn)}
    total = np.sum(list(parts.values()), axis=0) if parts else np.zeros(len(rows))
    order = np.lexsort((ssn.table.rank[rows], -total)).tolist()
    names = [ssn.table.nodes[row].name for row in rows.tolist()]
    shown = order[:_BEST] + [at for at in order[_BEST:] if names[at] == chosen]
    return tuple(
        NodeScore(names[at], float(total[at]), {name: float(points[at]) for name, points in parts.items()})
        for at in shown
    )


def _scorers(ssn: Session) -> list[tuple[str, NodeScorer]]:
    found: list[tuple[str, NodeScorer]] = []
    for plugin, scorers in ssn.scorers_by_plugin:
        for scorer in scorers:
            parts = scorer.parts()
            if parts:
                found += [(f"{plugin}: {name}", part) for name, part in parts.items()]
            else:
                title = type(scorer).__name__
                found.append((plugin if len(scorers) == 1 else f"{plugin}: {title}", scorer))
    return found


def _points(scorer: NodeScorer, task: Task, rows: IntArray) -> FloatArray:
    try:
        return scorer.scores(task, rows)
    except ScoringFailed:
        return np.zeros(len(rows))


def _names(ssn: Session, rows: IntArray) -> tuple[str, ...]:
    return tuple(sorted(ssn.table.nodes[row].name for row in rows.tolist()))


def _refusals(ssn: Session, task: Task, rows: IntArray, codes: IntArray) -> tuple[Refusal, ...]:
    describe = ssn.search.describer(task)
    found: dict[tuple[str, str], list[int]] = {}
    for row, code in zip(rows.tolist(), codes.tolist()):
        if code:
            for status in describe(code):
                found.setdefault((status.plugin, status.reason), []).append(row)
    refusals = [
        Refusal(rule or "unnamed rule", reason, len(refused), names=_names(ssn, np.array(refused, dtype=np.int64)))
        for (rule, reason), refused in found.items()
        if reason
    ]
    return tuple(sorted(refusals, key=lambda each: (-each.nodes, each.rule, each.reason)))


def _nearest(ssn: Session, task: Task, rows: IntArray, lacks: Sequence[Resources]) -> list[NearNode]:
    """Nodes that lack only resources: few of them first, then the smallest part of what is asked."""
    nodes = ssn.table.nodes

    def distance(at: int) -> tuple[bool, float, str]:
        lack, node = lacks[at], nodes[int(rows[at])]
        part = max((lack.get(name) / task.resreq.get(name) for name in lack.names() if lack.get(name)), default=0.0)
        return _too_small(node, task), part, node.name

    order = sorted(range(len(rows)), key=distance)[:_NEAREST]
    return [NearNode(nodes[int(rows[at])].name, lacks[at], _too_small(nodes[int(rows[at])], task)) for at in order]


def _too_small(node: Node, task: Task) -> bool:
    return bool(task.resreq.exceeding_where(node.allocatable, task.resreq))


def _changes(ssn: Session, trials: Trials, pod: Pod, near: list[NearNode]) -> list[Change]:
    """What would open nodes, one thing at a time; two at a time if no single one does."""
    found: list[Change] = []

    def attempt(what: str, variant: Pod) -> None:
        opened = trials.fitting(variant)
        if len(opened):
            found.append(Change(f"the pod {what}", _names(ssn, opened), spec=variant.spec))

    for each in near[:1]:
        attempt(f"asked for {amounts(each.lacks, pods=True)} less", with_less(pod, each.lacks))
    nodes = list(ssn.table)
    singles = list(relaxations(pod, nodes))
    for one in singles:
        attempt(one.what, one.pod)
    if found:
        return found
    for one in singles:
        light = trials.fitting(without_request(one.pod))
        if len(light):
            lacks = trials.shortages(one.pod, light)
            best = _nearest(ssn, trials.task(one.pod), light, lacks)[0].lacks
            attempt(f"{one.what} and asked for {amounts(best, pods=True)} less", with_less(one.pod, best))
    for at, one in enumerate(singles):
        later = {other.what for other in singles[at + 1 :]}
        for both in relaxations(one.pod, nodes):
            if both.what in later:
                attempt(f"{one.what} and {both.what}", both.pod)
    return found[:_BEST]


def _blocking(
    ssn: Session, task: Task, own: Job | None, rows: IntArray, lacks: Sequence[Resources]
) -> list[BlockingJob]:
    """Jobs that, gone, would leave enough on some node; those of lower priority, then of fewer pods, first."""
    rooms: dict[str, int] = {}
    for row, lack in zip(rows.tolist(), lacks):
        held: dict[str, Resources] = {}
        for each in ssn.table.nodes[row].sorted_tasks():
            if each.job_id and (own is None or each.job_id != own.id):
                held.setdefault(each.job_id, Resources()).add(each.resreq)
        for job_id, amount in held.items():
            if all(amount.get(name) >= lack.get(name) for name in lack.names()):
                rooms[job_id] = rooms.get(job_id, 0) + 1
    found = [
        BlockingJob(job.id, job.queue, job.priority, len(job.tasks), nodes)
        for job_id, nodes in rooms.items()
        if (job := ssn.jobs.get(job_id)) is not None
    ]
    return sorted(found, key=lambda each: (each.priority, -each.nodes, each.pods, each.job))[:_BEST]
