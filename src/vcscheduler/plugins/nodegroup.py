"""nodegroup: queues tied to groups of nodes, with limits on what a queue may hold in a group (spec 05 §8).

A node belongs to the group that its label names. What a queue thinks of a group does not change within a session, so
it is worked out once a queue as one verdict and one score a group; a task's answer for many nodes is then a look-up by
the nodes' group numbers. Only the limits depend on what was placed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import msgspec
import numpy as np

from vcscheduler.framework.plugin import Event, EventHandler, Plugin
from vcscheduler.model.fit import Status
from vcscheduler.model.nodes import NodeTable
from vcscheduler.model.queue import Queue
from vcscheduler.model.resources import Resources, le
from vcscheduler.model.status import IS_ALLOCATED, Code
from vcscheduler.model.task import Task
from vcscheduler.objects.quantity import QuantityError
from vcscheduler.objects.scheduling import NodeGroupAffinity
from vcscheduler.placement.rules import FloatArray, IntArray, NodeFilter, NodeScorer

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

GROUP_LABEL = "volcano.sh/nodegroup-name"
LIMITS_ANNOTATION = "volcano.sh/nodegroup-resource-limits"
ROOT_QUEUE = "root"

NO_JOB, INVALID_LIMITS, NO_LABEL, NO_AFFINITY, NOT_SATISFIED, LIMIT_EXCEEDED = range(1, 7)
_REASONS = {
    INVALID_LIMITS: "node group resource limit annotation invalid",
    NO_LABEL: "node group label not found",
    NO_AFFINITY: "node group affinity not specified",
    NOT_SATISFIED: "node does not satisfy the node group affinity",
    LIMIT_EXCEEDED: "node group resource limit exceeded",
}


class NodeGroupPlugin(Plugin):
    name = "nodegroup"
    known_arguments: ClassVar[dict[str, str]] = {"strict": "bool", "enablePreferredOrder": "bool"}

    def on_session_open(self, ssn: Session) -> None:
        option = ssn.plugin_option(self.name)
        rules = QueueRules(
            ssn,
            strict=self.arguments.get_bool("strict", True),
            ordered=self.arguments.get_bool("enablePreferredOrder", False),
            hierarchy=option is not None and option.enable_hierarchy,
        )
        ssn.add_filter(self.name, NodeGroupFilter(ssn, rules, self.name))
        ssn.add_scorer(self.name, NodeGroupScorer(ssn, rules))
        if rules.limited:
            ssn.add_event_handler(
                EventHandler(lambda event: rules.count(event, 1), lambda event: rules.count(event, -1))
            )


class Groups:
    """Node groups as numbers. ``of_row``: int64 [rows], -1 = the node has no label."""

    def __init__(self, table: NodeTable) -> None:
        self.epoch = table.epoch
        self.index: dict[str, int] = {}
        self.of_row = np.full(table.n, -1, dtype=np.int64)
        for node in table:
            group = node.labels.get(GROUP_LABEL)
            if group is not None:
                self.of_row[node.row] = self.index.setdefault(group, len(self.index))

    @classmethod
    def of(cls, ssn: Session) -> Groups:
        """Kept between sessions for as long as no node object changes."""
        known = ssn.store.get("nodegroup.groups")
        if not isinstance(known, Groups) or known.epoch != ssn.table.epoch:
            known = ssn.store["nodegroup.groups"] = cls(ssn.table)
        return known


@dataclass(frozen=True, slots=True)
class Affinity:
    """A queue's four lists of groups."""

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    anti_required: tuple[str, ...] = ()
    anti_preferred: tuple[str, ...] = ()

    @property
    def unset(self) -> bool:
        return not (self.required or self.preferred or self.anti_required or self.anti_preferred)

    def admits(self, group: str) -> bool:
        """A group that is only avoided by preference is admitted, even where it is also forbidden."""
        admitted = group in self.required or group in self.preferred
        if group in self.anti_required:
            admitted = False
        return admitted or group in self.anti_preferred

    def score(self, group: str, *, ordered: bool) -> float:
        """``ordered``: groups that are preferred earlier count more, the first of them 50."""
        if group in self.anti_preferred:
            return -1.0
        score = 100.0 if group in self.required else 0.0
        if group in self.preferred:
            if ordered:
                n = len(set(self.preferred))
                last = len(self.preferred) - 1 - self.preferred[::-1].index(group)
                score += 50.0 * (n - last) / n
            else:
                score += 50.0
        return score


@dataclass(slots=True)
class QueueRule:
    """What a queue thinks of the groups: a code and a score by group number, those of unlabelled nodes last.

    ``limits``: group -> resource -> amount; ``allocated``: group -> what the queue holds there, for limited groups.
    """

    verdicts: IntArray
    scores: FloatArray
    limits: dict[str, dict[str, float]] = field(default_factory=dict)
    allocated: dict[str, Resources] = field(default_factory=dict)

    def exceeds(self, group: str, request: Resources) -> bool:
        held = self.allocated[group]
        return any(not le(held.get(n) + request.get(n), limit) for n, limit in self.limits[group].items())


class QueueRules:
    """Rules by queue name. A queue that the session does not know has no affinity and no limits."""

    def __init__(self, ssn: Session, *, strict: bool, ordered: bool, hierarchy: bool) -> None:
        self._ssn = ssn
        self._strict = strict
        self._ordered = ordered
        self.groups = Groups.of(ssn)
        self._affinities = {name: _affinity_of(queue) for name, queue in ssn.queues.items()}
        if hierarchy:
            self._affinities = {name: self._inherited(name) for name in ssn.queues}
        self._rules: dict[str, QueueRule] = {}
        self.limited = {name for name, queue in ssn.queues.items() if self.of(name, queue).limits}
        self._count_allocated()

    def of(self, name: str, queue: Queue | None = None) -> QueueRule:
        rule = self._rules.get(name)
        if rule is None:
            rule = self._rules[name] = self._rule(self._affinities.get(name), queue)
        return rule

    def _inherited(self, name: str) -> Affinity | None:
        """The affinity of the queue or its nearest ancestor that has one; an empty one ends the search too."""
        seen: set[str] = set()
        while name in self._affinities and name not in seen:
            affinity = self._affinities[name]
            if affinity is not None:
                return affinity
            seen.add(name)
            name = self._ssn.queues[name].parent or ROOT_QUEUE
        return None

    def _rule(self, affinity: Affinity | None, queue: Queue | None) -> QueueRule:
        groups = list(self.groups.index)
        unset = affinity is None or affinity.unset
        verdicts = np.zeros(len(groups) + 1, dtype=np.int64)
        scores = np.zeros(len(groups) + 1)
        verdicts[-1] = 0 if unset and not self._strict else NO_LABEL
        for i, group in enumerate(groups):
            if affinity is None or unset:
                verdicts[i] = NO_AFFINITY
            else:
                verdicts[i] = 0 if affinity.admits(group) else NOT_SATISFIED
                scores[i] = affinity.score(group, ordered=self._ordered)
        rule = QueueRule(verdicts, scores)
        limits = _limits_of(queue)
        if limits is None:
            verdicts[:] = INVALID_LIMITS
        else:
            rule.limits = {group: named for group, named in limits.items() if named and group in self.groups.index}
            rule.allocated = {group: Resources() for group in rule.limits}
        return rule

    # --- what limited queues hold -----------------------------------------------------------------------------

    def _count_allocated(self) -> None:
        if not self.limited:
            return
        for job in self._ssn.jobs.values():
            if job.queue in self.limited:
                rule = self._rules[job.queue]
                for task in job.tasks.values():
                    if IS_ALLOCATED[task.status]:
                        self._add(rule, task, 1)

    def _add(self, rule: QueueRule, task: Task, times: int) -> None:
        node = self._ssn.table.get(task.node_name)
        held = rule.allocated.get(node.labels.get(GROUP_LABEL, "")) if node is not None else None
        if held is not None:
            held.add_times(task.resreq, times)

    def count(self, event: Event, times: int) -> None:
        job = self._ssn.jobs.get(event.task.job_id)
        if job is not None and job.queue in self.limited:
            self._add(self._rules[job.queue], event.task, times)


def _affinity_of(queue: Queue) -> Affinity | None:
    given = queue.object.spec.affinity
    if given is None:
        return None
    near = given.node_group_affinity or NodeGroupAffinity()
    far = given.node_group_anti_affinity or NodeGroupAffinity()
    return Affinity(tuple(near.required), tuple(near.preferred), tuple(far.required), tuple(far.preferred))


_LimitsText = dict[str, dict[str, str | int | float] | None]


def _limits_of(queue: Queue | None) -> dict[str, dict[str, float]] | None:
    """Limits by group and resource, of resources that the scheduler counts; None if the annotation cannot be read."""
    text = queue.object.metadata.annotations.get(LIMITS_ANNOTATION, "") if queue is not None else ""
    if not text:
        return {}
    try:
        given = msgspec.json.decode(text, type=_LimitsText | None) or {}
        return {group: dict(_amounts(named or {})) for group, named in given.items()}
    except (msgspec.DecodeError, QuantityError):
        return None


def _amounts(named: dict[str, str | int | float]) -> Iterable[tuple[str, float]]:
    for name, quantity in named.items():
        vector = Resources.from_list({name: quantity})
        if name in ("cpu", "memory") or vector.scalars:
            yield name, vector.get(name)


class NodeGroupFilter(NodeFilter):
    def __init__(self, ssn: Session, rules: QueueRules, plugin: str) -> None:
        self._ssn = ssn
        self._rules = rules
        self._plugin = plugin

    def codes(self, task: Task, rows: IntArray) -> IntArray:
        job = self._ssn.jobs.get(task.job_id)
        if job is None:
            return np.full(len(rows), NO_JOB, dtype=np.int64)
        rule = self._rules.of(job.queue)
        verdicts = rule.verdicts
        for group in rule.limits:
            i = self._rules.groups.index[group]
            if verdicts[i] == 0 and rule.exceeds(group, task.resreq):
                if verdicts is rule.verdicts:
                    verdicts = verdicts.copy()
                verdicts[i] = LIMIT_EXCEEDED
        return verdicts[self._rules.groups.of_row[rows]]

    def statuses(self, task: Task, code: int) -> tuple[Status, ...]:
        if code == NO_JOB:
            return (Status(Code.ERROR, f"job {task.job_id} not found in session", self._plugin),)
        return (Status(Code.UNRESOLVABLE, _REASONS[code], self._plugin),)


class NodeGroupScorer(NodeScorer):
    def __init__(self, ssn: Session, rules: QueueRules) -> None:
        self._ssn = ssn
        self._rules = rules

    def scores(self, task: Task, rows: IntArray) -> FloatArray:
        job = self._ssn.jobs.get(task.job_id)
        if job is None:
            return np.zeros(len(rows))
        return self._rules.of(job.queue).scores[self._rules.groups.of_row[rows]]
