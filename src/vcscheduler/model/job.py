"""Job (one per PodGroup) and its sub-jobs: task counts, readiness, resource sums, the text of what is wrong.

A job keeps counts by status rather than an index of tasks by status, so moving a whole gang costs a few additions;
tasks of one status are found by walking the job's own tasks when somebody needs them (spec 01 §4).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

from vcscheduler.model.fit import FitErrors, histogram
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import (
    ALLOCATED,
    BINDING,
    BOUND,
    FAILED,
    IS_ALLOCATED,
    PENDING,
    PIPELINED,
    RELEASING,
    RUNNING,
    SUCCEEDED,
    TaskStatus,
)
from vcscheduler.model.sub_groups import joined, match_values, policy_selector
from vcscheduler.model.task import Task, preemptable, timestamp
from vcscheduler.objects import NetworkTopologySpec, PodGroup, SubGroupPolicy
from vcscheduler.objects.meta import Time
from vcscheduler.objects.scheduling import PodGroupCondition
from vcscheduler.objects.selectors import Selector

#: Place in a list of counts, after the ten statuses: Pending tasks that request nothing.
PENDING_BEST_EFFORT = len(TaskStatus)
#: Place of the scheduling-gated tasks, in any status.
GATED = PENDING_BEST_EFFORT + 1
_COUNTS = GATED + 1

_READY = (BOUND, BINDING, RUNNING, ALLOCATED, SUCCEEDED)
_VALID = (*_READY, PIPELINED, PENDING)
_ROLE_READY = (*_READY, PENDING_BEST_EFFORT)

_STATUS_TEXTS = tuple(s.text for s in TaskStatus)

Counts = list[int]


def ready_count(counts: Counts) -> int:
    return counts[BOUND] + counts[BINDING] + counts[RUNNING] + counts[ALLOCATED] + counts[SUCCEEDED]


class SubJob:
    """Tasks of a job that belong together: those of one value of a sub-group policy, or the default rest.

    A job without policies has one sub-job, which shares the job's own tasks and counts.
    """

    __slots__ = (
        "allocated_hyper_node",
        "counts",
        "group_id",
        "hard_tier",
        "id",
        "job",
        "match_index",
        "min_available",
        "network_topology",
        "nominated_hyper_node",
        "priority",
        "tasks",
    )

    def __init__(self, job: Job, id: str, group_id: str, min_available: int, match_index: int = 0) -> None:
        self.job = job
        self.id = id
        self.group_id = group_id
        self.min_available = min_available
        self.match_index = match_index
        self.priority = 0
        self.tasks: dict[str, Task] = {}
        self.counts: Counts = [0] * _COUNTS
        self.network_topology: NetworkTopologySpec | None = None
        #: Set when a session opens: up to which tier the sub-job may spread; None = no limit of its own.
        self.hard_tier: int | None = None
        self.allocated_hyper_node = ""
        self.nominated_hyper_node = ""

    @property
    def total_request(self) -> Resources:
        """What all tasks ask for, in any status."""
        if self.tasks is self.job.tasks:
            return self.job.total_request
        total = Resources()
        for task in self.tasks.values():
            total.add(task.resreq)
        return total

    @property
    def pending_request(self) -> Resources:
        """What all Pending tasks ask for, also those that are gated."""
        if self.tasks is self.job.tasks:
            return self.job.pending_request
        total = Resources()
        for task in self.tasks.values():
            if task.status is PENDING:
                total.add(task.resreq)
        return total

    @property
    def is_ready(self) -> bool:
        return ready_count(self.counts) + self.counts[PENDING_BEST_EFFORT] >= self.min_available

    @property
    def is_pipelined(self) -> bool:
        c = self.counts
        return c[PIPELINED] + ready_count(c) + c[PENDING_BEST_EFFORT] >= self.min_available

    def __repr__(self) -> str:
        return f"SubJob({self.id})"


class Job:
    """A PodGroup with its tasks.

    ``phase``, ``conditions`` and the three counts are the session's view of the PodGroup's status: they start as the
    object says, actions and plugins change them, and the job updater writes them back.
    """

    def __init__(self, id: str) -> None:
        self.id = id
        self.namespace, _, self.name = id.partition("/")
        self.pod_group: PodGroup | None = None
        self.queue = ""
        self.priority = 0
        self.min_available = 0
        self.created = float("-inf")
        self.task_min_available: dict[str, int] = {}
        self.min_resources: Resources | None = None
        self.preemptable = False
        self.network_topology: NetworkTopologySpec | None = None
        self.hard_tier: int | None = None
        self.allocated_hyper_node = ""
        self.tasks: dict[str, Task] = {}
        self.counts: Counts = [0] * _COUNTS
        self.role_counts: dict[str, Counts] = {}
        self.allocated = Resources()
        self.total_request = Resources()
        self.pending_request = Resources()
        self.sub_jobs: dict[str, SubJob] = {}
        self.min_sub_jobs: dict[str, int] = {}
        self._policies: list[tuple[SubGroupPolicy, Selector | None]] = []
        # Of one session:
        self.phase = ""
        self.conditions: list[PodGroupCondition] = []
        self.fit_errors: dict[str, FitErrors] = {}
        self.fit_error = ""
        self._reset_sub_jobs()

    def __repr__(self) -> str:
        return f"Job({self.id})"

    # --- from the PodGroup ------------------------------------------------------------------------------------

    def set_pod_group(self, pg: PodGroup, default_queue: str) -> None:
        """Take over a new or changed PodGroup (spec 01 §4.1). Priority is the cache's to resolve."""
        old, spec = self.pod_group, pg.spec
        self.pod_group = pg
        self.queue = spec.queue or default_queue
        self.min_available = spec.min_member
        self.created = timestamp(pg.metadata.creation_timestamp)
        self.min_resources = None if spec.min_resources is None else Resources.from_list(spec.min_resources)
        self.preemptable = preemptable(pg.metadata.annotations, pg.metadata.labels, default=False)
        self.network_topology = spec.network_topology
        roles_changed = self.task_min_available != spec.min_task_member
        self.task_min_available = dict(spec.min_task_member)
        if roles_changed:
            self._recount_roles()
        if old is None or old.spec.sub_group_policy != spec.sub_group_policy:
            self._policies = [(p, policy_selector(p)) for p in spec.sub_group_policy]
            self._reset_sub_jobs()
        elif not self._policies:
            self.default_sub_job.min_available = self.min_available
        if self.id in self.sub_jobs:
            self.default_sub_job.network_topology = self.network_topology
        self.load_status()

    def unset_pod_group(self) -> None:
        self.pod_group = None
        self.network_topology = None
        self._policies = []
        self._reset_sub_jobs()

    def load_status(self) -> None:
        """Forget what a session made of the status and take the object's."""
        if self.pod_group is not None:
            self.phase = self.pod_group.status.phase
            self.conditions = list(self.pod_group.status.conditions)

    @property
    def has_policies(self) -> bool:
        return bool(self._policies)

    @property
    def has_network_topology(self) -> bool:
        return self.network_topology is not None or any(s.network_topology is not None for s in self.sub_jobs.values())

    @property
    def has_hard_topology(self) -> bool:
        """Whether the session holds the job or a sub-job of it to some tier (spec 06 §A5.4)."""
        return self.hard_tier is not None or any(s.hard_tier is not None for s in self.sub_jobs.values())

    @property
    def is_pending(self) -> bool:
        return self.pod_group is None or self.phase in ("", "Pending")

    # --- tasks ------------------------------------------------------------------------------------------------

    def add_task(self, task: Task) -> None:
        self.tasks[task.uid] = task
        self.total_request.add(task.resreq)
        self._count(task, 1)
        self._join_sub_job(task)

    def remove_task(self, task: Task) -> None:
        """Forget the stored task of this uid; nothing happens if there is none."""
        stored = self.tasks.pop(task.uid, None)
        if stored is None:
            return
        self.total_request.sub(stored.resreq)
        self._count(stored, -1)
        sub_job = stored.sub_job
        if sub_job is not None and sub_job.tasks is not self.tasks:
            sub_job.tasks.pop(task.uid, None)
            _count(sub_job.counts, stored, -1)
        stored.sub_job = None

    def set_status(self, task: Task, status: TaskStatus) -> None:
        self.set_status_of([task], status)

    def set_status_of(self, tasks: list[Task], status: TaskStatus) -> None:
        """Move tasks of one class, role, sub-job and status to another status."""
        first = tasks[0]
        k, old, cls = len(tasks), first.status, first.cls
        books = [self.counts]
        if first.sub_job is not None and first.sub_job.counts is not self.counts:
            books.append(first.sub_job.counts)
        if self.task_min_available:
            books.append(self.role_counts.setdefault(first.role, [0] * _COUNTS))
        for counts in books:
            counts[old] -= k
            counts[status] += k
            if cls.best_effort:
                if old is PENDING:
                    counts[PENDING_BEST_EFFORT] -= k
                if status is PENDING:
                    counts[PENDING_BEST_EFFORT] += k
        if IS_ALLOCATED[old] != IS_ALLOCATED[status]:
            self.allocated.add_times(cls.resreq, k if IS_ALLOCATED[status] else -k)
        if (old is PENDING) != (status is PENDING):
            self.pending_request.add_times(cls.resreq, k if status is PENDING else -k)
        for task in tasks:
            task.status = status

    def _count(self, task: Task, times: int) -> None:
        _count(self.counts, task, times)
        if self.task_min_available:
            _count(self.role_counts.setdefault(task.role, [0] * _COUNTS), task, times)
        if IS_ALLOCATED[task.status]:
            self.allocated.add_times(task.resreq, times)
        elif task.status is PENDING:
            self.pending_request.add_times(task.resreq, times)

    def _recount_roles(self) -> None:
        self.role_counts = {}
        if self.task_min_available:
            for task in self.tasks.values():
                _count(self.role_counts.setdefault(task.role, [0] * _COUNTS), task, 1)

    def tasks_in(self, *statuses: TaskStatus) -> Iterator[Task]:
        """Tasks in any of the statuses, in the order in which they were added."""
        return (t for t in self.tasks.values() if t.status in statuses)

    # --- sub-jobs (spec 01 §4.8) --------------------------------------------------------------------------------

    @property
    def default_sub_job(self) -> SubJob:
        return self.sub_jobs[self.id]

    def _reset_sub_jobs(self) -> None:
        self.min_sub_jobs = {f"{self.id}/{p.name}": p.min_sub_groups or 0 for p, _ in self._policies}
        self.sub_jobs = {}
        if not self._policies:
            default = SubJob(self, self.id, self.id, self.min_available)
            default.network_topology = self.network_topology
            default.tasks, default.counts = self.tasks, self.counts
            self.sub_jobs[self.id] = default
        for task in self.tasks.values():
            task.sub_job = None
        for task in self.tasks.values():
            self._join_sub_job(task)

    def drop_empty_sub_jobs(self) -> None:
        """A session sees only sub-jobs that have tasks (spec 06 §A6.3)."""
        if self._policies:
            self.sub_jobs = {id: s for id, s in self.sub_jobs.items() if s.tasks}

    def _join_sub_job(self, task: Task) -> None:
        sub_job = self._sub_job_for(task)
        task.sub_job = sub_job
        sub_job.priority = max(sub_job.priority, task.priority)
        if sub_job.tasks is not self.tasks:
            sub_job.tasks[task.uid] = task
            _count(sub_job.counts, task, 1)

    def _sub_job_for(self, task: Task) -> SubJob:
        for policy, selector in self._policies:
            values = match_values(policy, selector, task.pod.metadata.labels)
            if not values:
                continue
            group_id = f"{self.id}/{policy.name}"
            id = f"{group_id}-{joined(values)}"
            found = self.sub_jobs.get(id)
            if found is None:
                first = values[0]
                index = int(first) if first.isascii() and first.lstrip("+-").isdigit() else 0
                size = policy.sub_group_size
                found = SubJob(self, id, group_id, 1 if size is None else size, index)
                found.network_topology = policy.network_topology
                self.sub_jobs[id] = found
            return found
        found = self.sub_jobs.get(self.id)
        if found is None:
            found = SubJob(self, self.id, self.id, 1)
            found.network_topology = self.network_topology
            self.sub_jobs[self.id] = found
        return found

    # --- gang tests (spec 01 §4.3) ------------------------------------------------------------------------------

    @property
    def ready_tasks(self) -> int:
        return ready_count(self.counts)

    @property
    def waiting_tasks(self) -> int:
        return self.counts[PIPELINED]

    @property
    def allocated_tasks(self) -> int:
        c = self.counts
        return c[ALLOCATED] + c[BINDING] + c[BOUND] + c[RUNNING]

    @property
    def is_ready(self) -> bool:
        return ready_count(self.counts) + self.counts[PENDING_BEST_EFFORT] >= self.min_available

    @property
    def is_pipelined(self) -> bool:
        c = self.counts
        return c[PIPELINED] + ready_count(c) + c[PENDING_BEST_EFFORT] >= self.min_available

    @property
    def is_starving(self) -> bool:
        return self.counts[PIPELINED] + ready_count(self.counts) < self.min_available

    @property
    def has_pending_tasks(self) -> bool:
        return self.counts[PENDING] > 0

    @property
    def roles_checked(self) -> bool:
        """Role minimums count only while they do not exceed the job's own minimum (Quirk, spec 01 §4.3)."""
        return bool(self.task_min_available) and self.min_available >= sum(self.task_min_available.values())

    def _roles_have(self, statuses: Iterable[int], *, skip_zero: bool = False) -> bool:
        if not self.roles_checked:
            return True
        places = tuple(statuses)
        for role, minimum in self.task_min_available.items():
            if skip_zero and minimum == 0:
                continue
            counts = self.role_counts.get(role)
            if (sum(counts[s] for s in places) if counts else 0) < minimum:
                return False
        return True

    @property
    def tasks_valid(self) -> bool:
        return self._roles_have(_VALID, skip_zero=True)

    @property
    def tasks_ready(self) -> bool:
        return self._roles_have(_ROLE_READY)

    @property
    def tasks_pipelined(self) -> bool:
        return self._roles_have((*_ROLE_READY, PIPELINED))

    @property
    def sub_jobs_valid(self) -> bool:
        return all(
            sum(s.group_id == group for s in self.sub_jobs.values()) >= minimum
            for group, minimum in self.min_sub_jobs.items()
        )

    @property
    def sub_jobs_ready(self) -> bool:
        return all(
            sum(s.group_id == group and s.is_ready for s in self.sub_jobs.values()) >= minimum
            for group, minimum in self.min_sub_jobs.items()
            if minimum
        )

    @property
    def sub_jobs_pipelined(self) -> bool:
        return all(
            sum(s.group_id == group and s.is_pipelined for s in self.sub_jobs.values()) >= minimum
            for group, minimum in self.min_sub_jobs.items()
            if minimum
        )

    def role_ready(self, role: str) -> int:
        counts = self.role_counts.get(role)
        return sum(counts[s] for s in _ROLE_READY) if counts else 0

    # --- after a task found no node (spec 01 §4.4) --------------------------------------------------------------

    def failed_roles(self, sub_job: SubJob) -> set[str]:
        return {t.role for uid in self.fit_errors if (t := self.tasks.get(uid)) is not None and t.sub_job is sub_job}

    def role_has_fit_errors(self, sub_job: SubJob, task: Task) -> bool:
        return bool(task.role) and bool(self.fit_errors) and task.role in self.failed_roles(sub_job)

    def continues_after_failure(self, sub_job: SubJob) -> bool:
        """Whether other tasks of the job may still make it ready after one found no node."""
        if self.min_available == len(self.tasks):
            return False
        if sub_job.min_available >= len(sub_job.tasks):
            return False
        if self.has_policies:
            return True
        failed = self.failed_roles(sub_job)
        if self.min_available < sum(self.task_min_available.values()):
            left = sum(t.status is PENDING and t.role not in failed for t in self.tasks.values())
            return self.ready_tasks + left >= self.min_available
        return all(
            self.role_ready(role) >= self.task_min_available.get(role, 0)
            for role in failed
            if self.task_min_available.get(role, 0)
        )

    # --- resources ----------------------------------------------------------------------------------------------

    @property
    def minimum(self) -> Resources:
        """``spec.minResources`` as a vector, empty if unset."""
        return Resources() if self.min_resources is None else self.min_resources

    @property
    def elastic(self) -> Resources:
        """What the job holds above its minimum."""
        return self.allocated.above(self.minimum)

    @property
    def gated_request(self) -> Resources:
        total = Resources()
        if self.counts[GATED]:
            for t in self.tasks.values():
                if t.gated and not t.only_queue_gated:
                    total.add(t.resreq)
        return total

    def without_gated(self, amount: Resources) -> Resources:
        """``amount`` less what gated tasks ask for, never negative (``DeductSchGatedResources``)."""
        if not self.counts[GATED]:
            return amount
        gated = self.gated_request
        if gated.is_empty():
            return amount
        left = amount.clone()
        left.cpu = max(left.cpu - gated.cpu, 0.0)
        left.memory = max(left.memory - gated.memory, 0.0)
        if left.scalars and gated.scalars:
            for n in left.scalars:
                if n in gated.scalars:
                    left.scalars[n] = max(left.scalars[n] - gated.scalars[n], 0.0)
        return left

    # --- what users read (spec 01 §4.7) -------------------------------------------------------------------------

    def record_fit_errors(self, task: Task, errors: FitErrors) -> None:
        self.fit_errors[task.uid] = errors

    def scheduling_reason(self, task: Task) -> tuple[str, str, str]:
        """(reason, message, nominated node) for the pod's condition; an empty message stands for the job's own."""
        context = task.context
        where = f"Pod {task.key} can possibly be assigned to {context.node_name}, once"
        if context.status is ALLOCATED:
            return "Schedulable", f"{where} minAvailable is satisfied", ""
        if context.status is PIPELINED:
            nominated = context.node_name if context.eviction_occurred else ""
            return "Unschedulable", f"{where} resource is released and minAvailable is satisfied", nominated
        if context.status is PENDING:
            errors = self.fit_errors.get(task.uid)
            return "Unschedulable", errors.text if errors is not None else self.fit_error, ""
        return context.status.text, self.fit_error, ""

    def _pending_reason(self, task: Task) -> str:
        status = task.context.status
        if status is ALLOCATED:
            return "Schedulable"
        return "Unschedulable" if status in (PIPELINED, PENDING) else status.text

    def fit_text(self) -> str:
        text = _state_text(self.is_ready, tuple(self.counts[: len(TaskStatus)]), self.min_available)
        if self.counts[PENDING]:
            reasons: dict[str, int] = {}
            for t in self.tasks_in(PENDING):
                reason = self._pending_reason(t)
                reasons[reason] = reasons.get(reason, 0) + 1
            text += f"; Pending: {histogram(reasons)}"
        if self.fit_error:
            return f"{text}. Origin reason is: {self.fit_error}"
        failed = [self.tasks[uid] for uid in self.fit_errors if uid in self.tasks]
        if failed:
            first = min(failed, key=lambda t: t.sort_key)
            text += f". Origin reason is {first.name}: {self.fit_errors[first.uid].text}"
        return text

    # --- PodGroup phase (spec 02 §11.2) -------------------------------------------------------------------------

    @property
    def scheduled_tasks(self) -> int:
        """Running, Bound, Failed or Succeeded."""
        c = self.counts
        return c[RUNNING] + c[BOUND] + c[FAILED] + c[SUCCEEDED]

    @property
    def releasing_scheduled(self) -> int:
        """Releasing tasks that have a node."""
        if not self.counts[RELEASING]:
            return 0
        return sum(bool(t.node_name) for t in self.tasks_in(RELEASING))

    def next_phase(self, session_id: str) -> str:
        assert self.pod_group is not None
        unschedulable = any(
            c.type == "Unschedulable" and c.status == "True" and c.transition_id == session_id for c in self.conditions
        )
        if self.counts[RUNNING] > 0 and unschedulable:
            return "Unknown"
        scheduled = self.scheduled_tasks + self.releasing_scheduled
        if scheduled >= self.pod_group.spec.min_member:
            completed = self.counts[FAILED] + self.counts[SUCCEEDED]
            return "Completed" if scheduled == completed else "Running"
        return "Inqueue" if self.phase == "Inqueue" else "Pending"

    def set_condition(self, condition: PodGroupCondition) -> None:
        """Replace the first condition of the type, or append."""
        for i, old in enumerate(self.conditions):
            if old.type == condition.type:
                self.conditions[i] = condition
                return
        self.conditions.append(condition)


@functools.lru_cache(maxsize=1024)
def _state_text(ready: bool, counts: tuple[int, ...], min_available: int) -> str:
    """Whether a job is ready, and its tasks by status; many small jobs say the same."""
    items = {text: n for text, n in zip(_STATUS_TEXTS, counts) if n}
    items["minAvailable"] = min_available
    return f"pod group is {'ready' if ready else 'not ready'}, {histogram(items)}"


def new_condition(type: str, session_id: str, at: Time | None, reason: str, message: str = "") -> PodGroupCondition:
    return PodGroupCondition(
        type=type,
        status="True",
        transition_id=session_id,
        last_transition_time=at,
        reason=reason,
        message=message,
    )


def _count(counts: Counts, task: Task, times: int) -> None:
    counts[task.status] += times
    if task.status is PENDING and task.best_effort:
        counts[PENDING_BEST_EFFORT] += times
    if task.gated:
        counts[GATED] += times
