"""The oracle: allocate as the plain serial loop that the specs describe (spec 03 §3, spec 02 §13).

One task at a time, every node looked at, every rule asked; no classes of tasks, no columns, no kernels, no queues
cleverer than the reference's heap. The only thing kept from task to task is the predicate error cache, which is part of
the behaviour. It runs as the action ``allocate`` of an otherwise real scheduler:

    lab.replace_action(OracleAllocate())

Votes and orders of plugins are asked as the real action asks them; nodes are judged by ``oracle_nodes``.
"""

from __future__ import annotations

import numpy as np

from oracle_nodes import (
    Place,
    PreFiltered,
    binpack_score,
    has_affinity,
    nodeorder_scores,
    predicate,
    required,
    shortage,
)
from vcscheduler.framework.action import Action
from vcscheduler.framework.heap import PriorityQueue
from vcscheduler.framework.session import Session
from vcscheduler.framework.statement import Statement
from vcscheduler.model.fit import CodedFailures, FitErrors, Status
from vcscheduler.model.job import Job
from vcscheduler.model.nodes import Node
from vcscheduler.model.queue import Queue
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import PENDING, PIPELINED, RELEASING, Code
from vcscheduler.model.task import Task

_HELD = ("ALLOCATED", "BINDING", "BOUND", "RUNNING", "SUCCEEDED")


class OracleAllocate(Action):
    name = "allocate"

    def __init__(self) -> None:
        self._error_cache = True

    def execute(self, ssn: Session) -> None:
        given = ssn.configuration.action_arguments(self.name)
        self._error_cache = given.get_bool("predicateErrorCacheEnable", self._error_cache)
        _Loop(ssn, self._error_cache).run()


class _Loop:
    def __init__(self, ssn: Session, error_cache: bool) -> None:
        self.ssn = ssn
        self.error_cache = error_cache
        self.places = [Place(node, list(node.tasks.values())) for node in ssn.table]
        self.by_node = {p.node.name: p for p in self.places}
        #: Lists of nodes that plugins make when the session opens (spec 05 §2).
        self.with_affinity = {p.node.name for p in self.places if any(has_affinity(t.pod) for t in p.tasks)}
        self.with_anti = {
            p.node.name for p in self.places if any(required(t.pod, "pod_anti_affinity") for t in p.tasks)
        }
        self.skips_affinity: set[str] = set()
        option = ssn.plugin_option("predicates")
        self.predicates = option is not None and option.enable_predicate

    # --- queues, jobs, tasks (spec 03 §3.1-3.2) ---------------------------------------------------------------------

    def run(self) -> None:
        ssn = self.ssn
        queues = PriorityQueue(ssn.queue_order.less)
        jobs: dict[str, PriorityQueue[Job]] = {}
        tasks: dict[str, PriorityQueue[Task]] = {}
        for job in sorted(ssn.jobs.values(), key=lambda j: j.id):
            assert not job.has_policies
            if job.phase in ("", "Pending"):
                if "enqueue" in ssn.actions:
                    continue
                ssn.set_phase(job, "Inqueue")
            if ssn.job_valid(job) is not None:
                continue
            waiting = [t for t in job.tasks.values() if t.status is PENDING and not t.best_effort]
            waiting = [t for t in waiting if not t.gated or t.only_queue_gated]
            if not waiting:
                continue
            tasks[job.id] = PriorityQueue(ssn.task_less, sorted(waiting, key=lambda t: t.key))
            if job.queue not in jobs:
                jobs[job.queue] = PriorityQueue(ssn.job_order.less)
                queues.push(ssn.queues[job.queue])
            jobs[job.queue].push(job)
        while (queue := queues.pop()) is not None:
            if ssn.overused(queue):
                continue
            next_job = jobs[queue.name].pop()
            if next_job is None:
                continue
            statement = self.place(queue, next_job, tasks[next_job.id])
            if statement is not None and ssn.job_ready(next_job):
                statement.commit()
                if len(tasks[next_job.id]):
                    jobs[queue.name].push(next_job)
            queues.push(queue)

    # --- placing (spec 03 §3.3) -------------------------------------------------------------------------------------

    def place(self, queue: Queue, job: Job, tasks: PriorityQueue[Task]) -> Statement | None:
        ssn, statement = self.ssn, Statement(self.ssn)
        refused: dict[str, dict[str, list[Status]]] = {}
        placed: list[tuple[Task, Place]] = []
        while (task := tasks.pop()) is not None:
            if not ssn.allocatable(queue, task) or task.gated:
                continue
            if task.role and task.role in self.failed_roles(job):
                text = f"Task {task.name} with role spec {task.role} has already predicated failed, skip"
                self.record(job, task, FitErrors(base=text))
                continue
            failure = ssn.pre_predicate(task)
            if failure is not None:
                self.record(job, task, self.errors({p.node.name: [failure] for p in self.places}))
                if self.goes_on(job):
                    continue
                break
            found = self.candidates(job, task, refused.setdefault(task.role, {}))
            if not found:
                if self.goes_on(job):
                    continue
                break
            place = self.choose(task, found)
            if place is not None and self.take(statement, task, place.node):
                placed.append((task, place))
                if self.predicates:
                    place.tasks.append(task)
                if ssn.job_ready(job):
                    return statement
        if ssn.job_ready(job) or ssn.job_pipelined(job):
            return statement
        statement.discard()
        for each, place in placed:
            if self.predicates:
                place.tasks.remove(each)
        return None

    def take(self, statement: Statement, task: Task, node: Node) -> bool:
        if shortage(task.resreq, self.free(node, future=False)) is None:
            return statement.allocate(task, node) is None
        return statement.pipeline(task, node, False) is None

    def record(self, job: Job, task: Task, errors: FitErrors) -> None:
        job.record_fit_errors(task, errors)
        self.ssn.touch(job)

    def failed_roles(self, job: Job) -> set[str]:
        return {job.tasks[uid].role for uid in job.fit_errors}

    def goes_on(self, job: Job) -> bool:
        """Whether tasks that follow a failed one may still make the job ready."""
        tasks, minimum, failed = list(job.tasks.values()), job.min_available, self.failed_roles(job)
        if minimum >= len(tasks):
            return False
        held = [t for t in tasks if t.status.name in _HELD]
        if minimum < sum(job.task_min_available.values()):
            return len(held) + sum(t.status is PENDING and t.role not in failed for t in tasks) >= minimum
        have = held + [t for t in tasks if t.status is PENDING and t.best_effort]
        return all(sum(t.role == role for t in have) >= job.task_min_available.get(role, 0) for role in failed)

    # --- nodes ------------------------------------------------------------------------------------------------------

    def free(self, node: Node, *, future: bool) -> Resources:
        assert node.object is not None
        left = Resources.from_list(node.object.status.allocatable)
        for t in node.tasks.values():
            gone, to_come = t.status is RELEASING, t.status is PIPELINED
            if (future and not gone) or (not future and not to_come):
                left.sub(t.resreq)
        return left

    def candidates(self, job: Job, task: Task, refused: dict[str, list[Status]]) -> list[Place]:
        """Nodes that the task fits; records why there are none."""
        found: list[Place] = []
        errors: dict[str, list[Status]] = {}
        nominated = self.by_node.get(task.pod.status.nominated_node_name)
        if nominated is not None and shortage(task.resreq, self.free(nominated.node, future=True)) is None:
            found = self.search(task, [nominated], refused, errors)
        if not found:
            errors = {}
            found = self.search(task, self.places, refused, errors)
        if not found:
            self.record(job, task, self.errors(errors))
        return found

    def search(
        self, task: Task, places: list[Place], refused: dict[str, list[Status]], errors: dict[str, list[Status]]
    ) -> list[Place]:
        state = PreFiltered(task, self.places, self.with_anti) if self.predicates else None
        if state is not None and state.skips_affinity:
            self.skips_affinity.add(task.uid)
        known = dict(refused) if self.error_cache and task.role else {}
        found = []
        for place in places:
            name = place.node.name
            against = known.get(name) or self.judge(task, place, state)
            if against:
                errors[name] = refused[name] = against
            else:
                found.append(place)
        return found

    def judge(self, task: Task, place: Place, state: PreFiltered | None) -> list[Status]:
        short = shortage(task.resreq, self.free(place.node, future=True))
        if short is not None:
            return [Status(Code.UNSCHEDULABLE, f"Insufficient {short}")]
        if state is None:
            return []
        return predicate(task, place, state, skips_affinity=task.uid in self.skips_affinity)

    def errors(self, by_node: dict[str, list[Status]]) -> FitErrors:
        failures = [
            CodedFailures(np.array([self.by_node[n].node.row]), np.array([1]), lambda _, s=tuple(statuses): s)
            for n, statuses in by_node.items()
        ]
        return FitErrors(failures)

    def choose(self, task: Task, found: list[Place]) -> Place | None:
        now = [p for p in found if shortage(task.resreq, self.free(p.node, future=False)) is None]
        for group in (now, [p for p in found if p not in now]):
            if len(group) == 1:
                return group[0]
            if group:
                scores = self.scores(task, group)
                best = max(scores)
                return min((p for p, s in zip(group, scores) if s == best), key=lambda p: p.node.name)
        return None

    def scores(self, task: Task, group: list[Place]) -> list[float]:
        each, batch = [0.0] * len(group), [0.0] * len(group)
        for option in self.ssn.configuration.plugins():
            if option.name == "binpack":
                if option.arguments.get_int("binpack.weight", 1) != 0:
                    each = [s + binpack_score(task, p.node, option.arguments) for s, p in zip(each, group)]
            elif option.name == "nodeorder":
                found = nodeorder_scores(task, group, self.places, option.arguments, self.with_affinity)
                batch = [a + b for a, b in zip(batch, found)]
        return [a + b for a, b in zip(each, batch)]
