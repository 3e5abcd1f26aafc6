"""Why a job waits, read from a session after its last action.

What allocate and backfill recorded comes first: which rule refused how many nodes. Where they never came to look at
nodes, the questions they asked before are asked again: is the queue open, was the PodGroup admitted, can its pods make
a gang, may the queue take more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from vcscheduler.framework.plugin import QueueStanding
from vcscheduler.framework.session import Session
from vcscheduler.model.amounts import amount, amounts, names
from vcscheduler.model.fit import FitErrors
from vcscheduler.model.job import Job
from vcscheduler.model.queue import Queue
from vcscheduler.model.resources import PODS, Resources
from vcscheduler.model.status import ALLOCATED_STATUSES, PENDING, PIPELINED
from vcscheduler.model.task import Task

_INSUFFICIENT = "Insufficient "


class Cause(StrEnum):
    """What holds a job back."""

    QUEUE_MISSING = "QueueMissing"
    QUEUE_NOT_OPEN = "QueueNotOpen"
    POD_GROUP_MISSING = "PodGroupMissing"
    NOT_ADMITTED = "NotAdmitted"
    NOT_ENOUGH_PODS = "NotEnoughPods"
    NO_NODE = "NoNode"
    QUEUE_LIMIT = "QueueLimit"
    GATED = "Gated"
    WAITS_FOR_RELEASE = "WaitsForRelease"
    OTHER = "Other"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rule that refused nodes. `detail` has the numbers behind it, where there are any; `names` are the nodes, in
    order, if they were asked for."""

    rule: str
    reason: str
    nodes: int
    detail: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoNode:
    """Why pods of one role found no node.

    role: task of the job's spec, may be empty. pods: how many of the role wait. example: the pod that was tried.
    nodes: how many nodes were looked at. refusals: the rules that refused them, most nodes first; a node may be refused
    by several. message: what was said instead, where no nodes were looked at.
    """

    role: str
    pods: int
    example: str
    nodes: int
    refusals: tuple[Refusal, ...]
    message: str = ""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a job waits: the cause, one sentence, and for Cause.NO_NODE the rules behind it. `could_place`: how many of
    the waiting pods had a node before the attempt was given up."""

    cause: Cause
    message: str
    no_node: tuple[NoNode, ...] = ()
    could_place: int = 0


class PendingReasons:
    """Asks one session, after its last action, why jobs of it wait. ``name_nodes``: say which nodes were refused."""

    def __init__(self, ssn: Session, name_nodes: bool = False) -> None:
        self._ssn = ssn
        self._name_nodes = name_nodes
        self._known_sizes: dict[str, tuple[float, float, float]] = {}

    def why(self, job: Job, said: Iterable[str] = ()) -> Reason:
        """The reason of a job that has Pending or Pipelined tasks, or is not admitted.

        Args:
            said: what plugins said when they refused to admit the job in this cycle.
        """
        ssn, queue = self._ssn, self._ssn.queues[job.queue]
        if not queue.is_open and not job.fit_errors:
            state = queue.state or "not open"
            return Reason(Cause.QUEUE_NOT_OPEN, f"queue {queue.name} is {state}: it starts no new work")
        if job.is_pending:
            return Reason(Cause.NOT_ADMITTED, _not_admitted(job, said))
        invalid = ssn.job_valid(job)
        if invalid is not None:
            return Reason(Cause.NOT_ENOUGH_PODS, invalid[1])
        could_place = sum(task.context.status in ALLOCATED_STATUSES for task in job.tasks_in(PENDING))
        no_node = self._no_node(job)
        if no_node:
            return Reason(Cause.NO_NODE, _no_node_message(job, no_node, could_place), no_node, could_place)
        waiting = list(job.tasks_in(PIPELINED))
        if waiting:
            return Reason(Cause.WAITS_FOR_RELEASE, _waits_for_release(waiting))
        pending = sorted(job.tasks_in(PENDING), key=lambda task: task.sort_key)
        if pending and all(task.gated for task in pending):
            gates = sorted({gate.name for task in pending for gate in task.pod.spec.scheduling_gates})
            return Reason(Cause.GATED, f"{_pods(len(pending))} held back by scheduling gates: {', '.join(gates)}")
        limit = _queue_limit(ssn, queue, pending)
        if limit:
            return Reason(Cause.QUEUE_LIMIT, limit, could_place=could_place)
        return Reason(Cause.OTHER, job.fit_text(), could_place=could_place)

    def _no_node(self, job: Job) -> tuple[NoNode, ...]:
        """One entry a role: pods of a role that was refused once are not tried again, so the first speaks for all."""
        first: dict[str, tuple[Task, FitErrors]] = {}
        failed = [job.tasks[uid] for uid in job.fit_errors if uid in job.tasks]
        for task in sorted(failed, key=lambda task: task.sort_key):
            errors = job.fit_errors[task.uid]
            known = first.get(task.role)
            if known is None or (not known[1].count and errors.count):
                first[task.role] = (task, errors)
        if not first:
            return ()
        waiting = Counter(task.role for task in job.tasks_in(PENDING))
        found = []
        for role, (task, errors) in sorted(first.items()):
            refusals = [
                Refusal(rule or "unnamed rule", reason, nodes, self._detail(task, reason), names)
                for (rule, reason), (nodes, names) in self._by_rule(errors).items()
                if reason
            ]
            refusals.sort(key=lambda refusal: (-refusal.nodes, refusal.rule, refusal.reason))
            message = "" if refusals else errors.text
            found.append(NoNode(role, waiting[role], task.key, errors.count, tuple(refusals), message))
        return tuple(found)

    def _by_rule(self, errors: FitErrors) -> dict[tuple[str, str], tuple[int, tuple[str, ...]]]:
        """By (plugin, reason): how many nodes, and which if that is wanted."""
        if not self._name_nodes:
            return {rule: (nodes, ()) for rule, nodes in errors.by_rule().items()}
        rows: dict[tuple[str, str], list[int]] = {}
        for failure in errors.failures:
            for row, code in zip(failure.rows.tolist(), failure.codes.tolist()):
                for status in failure.describe(code):
                    rows.setdefault((status.plugin, status.reason), []).append(row)
        nodes = self._ssn.table.nodes
        return {rule: (len(found), tuple(sorted(nodes[row].name for row in found))) for rule, found in rows.items()}

    def _detail(self, task: Task, reason: str) -> str:
        """The numbers of a lack of resources, as they stand at the end of the cycle."""
        if not reason.startswith(_INSUFFICIENT):
            return ""
        name = reason.removeprefix(_INSUFFICIENT)
        asked = task.resreq.get(name)
        largest, most, in_all = self._sizes(name)
        text = f"asks {amount(name, asked)}"
        if largest < asked:
            text += f"; the largest node has {amount(name, largest)}"
        elif most < asked:
            text += f"; most free on one node {amount(name, most)}, in all {amount(name, in_all)}"
        return text

    def _sizes(self, name: str) -> tuple[float, float, float]:
        """Of a resource: the most that a node has, the most that is idle on one, and all that is idle."""
        found = self._known_sizes.get(name)
        if found is None:
            table = self._ssn.table
            cells = table.dimension(name), table.ready_rows
            idle = table.idle[cells].clip(0.0)
            sizes = (table.allocatable[cells].max(initial=0.0), idle.max(initial=0.0), idle.sum())
            found = self._known_sizes[name] = (float(sizes[0]), float(sizes[1]), float(sizes[2]))
        return found


def _not_admitted(job: Job, said: Iterable[str]) -> str:
    why = "; ".join(dict.fromkeys(said)) or "a plugin said no and gave no reason"
    asks = "" if job.min_resources is None else f" (it asks {amounts(job.min_resources)} to begin with)"
    return f"not admitted by enqueue: {why}{asks}"


def _no_node_message(job: Job, no_node: tuple[NoNode, ...], could_place: int) -> str:
    nodes = max(each.nodes for each in no_node)
    text = f"none of {nodes} nodes fits" if nodes else "no node was found"
    missing = job.min_available - job.ready_tasks
    if missing > 1 and could_place:
        return f"the gang needs {missing} more pods at once, {could_place} could be placed; for the next, {text}"
    if missing > 1:
        return f"the gang needs {missing} more pods at once; {text}"
    return text


def _waits_for_release(waiting: list[Task]) -> str:
    nodes = sorted({task.node_name for task in waiting})
    shown = ", ".join(nodes[:4]) + (f" and {len(nodes) - 4} more nodes" if len(nodes) > 4 else "")
    return f"{_pods(len(waiting))} will start once others have left {shown}"


# --- queues -----------------------------------------------------------------------------------------------------------


def _queue_limit(ssn: Session, queue: Queue, pending: list[Task]) -> str:
    """What the queue may not exceed, if that is what stops the job."""
    standing = ssn.queue_standing(queue)
    if standing is None:
        refused = ssn.overused(queue) or any(not ssn.allocatable(queue, task) for task in pending)
        return f"queue {queue.name} may not take more" if refused else ""
    if ssn.overused(queue):
        return (
            f"queue {queue.name} has all that it deserves: "
            f"{amounts(standing.allocated)} of {amounts(standing.deserved)}"
        )
    wanted = Resources()
    for task in pending:
        wanted.add(task.resreq)
        over = _beyond(wanted, standing)
        if over:
            asks = ", ".join(_sum(name, wanted, standing) for name in over)
            return f"queue {queue.name} would exceed its limit: {asks}"
    return ""


def _beyond(wanted: Resources, standing: QueueStanding) -> list[str]:
    return [
        name
        for name in names(wanted)
        if name != PODS
        and wanted.get(name) > 0
        and standing.allocated.get(name) + wanted.get(name) > standing.ceiling.get(name)
    ]


def _sum(name: str, wanted: Resources, standing: QueueStanding) -> str:
    held, limit = standing.allocated.get(name), standing.ceiling.get(name)
    return f"{name} {amount(name, held)} held + {amount(name, wanted.get(name))} asked > {amount(name, limit)}"


def _pods(n: int) -> str:
    return "1 pod" if n == 1 else f"{n} pods"
