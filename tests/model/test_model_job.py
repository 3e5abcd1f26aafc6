"""Jobs: gang tests, continuing after a failure, texts, sub-jobs (spec 01 §4.9)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab import member, pod_group
from vcscheduler.model.fit import CodedFailures, FitErrors, Status
from vcscheduler.model.job import Job
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import (
    ALLOCATED,
    FAILED,
    PENDING,
    PIPELINED,
    RUNNING,
    SUCCEEDED,
    Code,
    TaskStatus,
)
from vcscheduler.model.task import Task, TaskClasses, TransactionContext

GPU = "nvidia.com/gpu"
CLASSES = TaskClasses()


def job(minimum: int = 1, **spec: Any) -> Job:
    j = Job("ns/pg")
    j.set_pod_group(pod_group("pg", minimum, **spec), "default")
    return j


def add(j: Job, name: str, status: TaskStatus = PENDING, **how: Any) -> Task:
    pod = member("pg", name, **how)
    task = Task(pod, CLASSES.of(pod))
    task.status = status
    j.add_task(task)
    return task


def fit_errors(**nodes_by_reason: int) -> FitErrors:
    """Keyword ``too_many`` reads "too many"."""
    failures = []
    at = 0
    for reason, n in nodes_by_reason.items():
        status = (Status(Code.UNSCHEDULABLE, reason.replace("_", " ")),)
        rows = np.arange(at, at + n)
        failures.append(CodedFailures(rows, np.ones_like(rows), lambda _, s=status: s))
        at += n
    return FitErrors(failures)


def test_j1_gang_tests() -> None:
    j = job(5)
    for status in (PENDING, PIPELINED, RUNNING):
        add(j, f"free-{status}", status, cpu=None, memory=None)
        add(j, f"paid-{status}", status, cpu="100m")
    assert (j.is_ready, j.is_pipelined, j.is_starving) == (False, True, True)
    j.min_available = 3
    assert (j.is_ready, j.is_pipelined, j.is_starving) == (True, True, False)


def test_j2_fit_text_of_a_job() -> None:
    j = job(4)
    for i in range(2):
        add(j, f"r{i}", RUNNING)
    for i in (1, 2, 3):
        add(j, f"p{i}")
    j.record_fit_errors(next(t for t in j.tasks.values() if t.name == "p3"), fit_errors(Insufficient_cpu=3))
    assert j.fit_text() == (
        "pod group is not ready, 2 Running, 3 Pending, 4 minAvailable; Pending: 3 Unschedulable. "
        "Origin reason is p3: 0/3 nodes are unavailable: 3 Insufficient cpu."
    )


def test_j3_tasks_of_an_undone_attempt_are_schedulable() -> None:
    j = job(6)
    tasks = [add(j, f"task-{i}") for i in range(1, 7)]
    for i, task in enumerate(tasks[2:5], 1):
        task.last_transaction = TransactionContext(f"node{i}", ALLOCATED, False)
    errors = fit_errors(node_pod_number_exceeded=1, node_resource_fit_failed=2)
    j.record_fit_errors(tasks[5], errors)
    assert j.fit_text() == (
        "pod group is not ready, 6 Pending, 6 minAvailable; Pending: 3 Schedulable, 3 Unschedulable. Origin reason is "
        "task-6: 0/3 nodes are unavailable: 1 node pod number exceeded, 2 node resource fit failed."
    )
    assert j.scheduling_reason(tasks[2]) == (
        "Schedulable",
        "Pod ns/task-3 can possibly be assigned to node1, once minAvailable is satisfied",
        "",
    )


def test_j4_minimums_of_roles() -> None:
    for roles, valid in (({"ps": 1, "worker": 2}, False), ({"ps": 2, "worker": 2}, True)):
        j = job(3, roles=roles)
        add(j, "ps", FAILED, role="ps")
        add(j, "w0", RUNNING, role="worker")
        add(j, "w1", role="worker")
        add(j, "w2", role="worker")
        assert j.tasks_valid is valid


def test_j5_continuing_after_a_failure() -> None:
    def continues(roles: dict[str, int]) -> bool:
        j = job(3, roles=roles)
        add(j, "ps0", role="ps")
        add(j, "ps1", role="ps")
        add(j, "w0", RUNNING, role="worker")
        failed = add(j, "w1", role="worker")
        add(j, "w2", role="worker")
        j.record_fit_errors(failed, fit_errors(full=1))
        return j.continues_after_failure(j.default_sub_job)

    assert continues({})
    assert not continues({"ps": 1, "worker": 2})
    assert continues({"ps": 2, "worker": 3})


def test_no_continuing_where_every_task_is_needed() -> None:
    j = job(2)
    first = add(j, "a")
    add(j, "b")
    j.record_fit_errors(first, fit_errors(full=1))
    assert not j.continues_after_failure(j.default_sub_job)


def test_j6_gated_tasks_are_deducted_unless_volcano_holds_them() -> None:
    j = job(1, min_resources={"cpu": 4, "memory": "8e9", GPU: 2})
    for i, gate in enumerate(("other", "other", "scheduling.volcano.sh/queue-allocation-gate")):
        add(j, f"p{i}", cpu=3, memory="1e9", schedulingGates=[{"name": gate}])
    left = j.without_gated(j.minimum)
    assert (left.cpu, left.memory, left.scalars) == (0, 6e9, {GPU: 2000})
    assert j.minimum.cpu == 4000


def test_j7_elastic_part() -> None:
    j = job(1, min_resources={"cpu": 1, "memory": "4e9", GPU: 4})
    j.allocated = Resources(3000, 4e9, {GPU: 2000, "pods": 2})
    assert (j.elastic.cpu, j.elastic.memory, j.elastic.scalars) == (2000, 0, {"pods": 2})


def test_j8_sub_jobs() -> None:
    policy = {
        "name": "task",
        "subGroupSize": 2,
        "minSubGroups": 2,
        "labelSelector": {"matchLabels": {"role": "worker"}},
        "matchLabelKeys": ["grp"],
    }
    j = job(4, subGroupPolicy=[policy])
    for name, group in (("w0", "0"), ("w1", "0"), ("w2", "1")):
        add(j, name, RUNNING, labels={"role": "worker", "grp": group})
    add(j, "m0", RUNNING)
    found = {
        s.id: (s.min_available, s.match_index, sorted(t.name for t in s.tasks.values())) for s in j.sub_jobs.values()
    }
    assert found == {
        "ns/pg/task-0": (2, 0, ["w0", "w1"]),
        "ns/pg/task-1": (2, 1, ["w2"]),
        "ns/pg": (1, 0, ["m0"]),
    }
    assert (j.sub_jobs_valid, j.sub_jobs_ready) == (True, False)
    add(j, "w3", RUNNING, labels={"role": "worker", "grp": "1"})
    assert j.sub_jobs_ready


def test_j8_long_values_are_hashed() -> None:
    j = job(1, subGroupPolicy=[{"name": "t", "matchLabelKeys": ["x", "y"]}])
    add(j, "p", labels={"x": "a" * 80, "y": "b" * 80})
    assert "ns/pg/t-f9787d84d" in j.sub_jobs


def test_counts_follow_every_move_and_sums_come_back() -> None:
    j = job(2, roles={"w": 2})
    tasks = [add(j, f"p{i}", role="w", cpu=2) for i in range(3)]
    j.set_status_of(tasks[:2], ALLOCATED)
    assert (j.ready_tasks, j.allocated.cpu, j.pending_request.cpu, j.role_ready("w")) == (2, 4000, 2000, 2)
    j.set_status(tasks[0], PIPELINED)
    assert (j.ready_tasks, j.waiting_tasks, j.allocated.cpu) == (1, 1, 2000)
    j.remove_task(tasks[0])
    j.set_status(tasks[1], SUCCEEDED)
    assert (j.waiting_tasks, j.allocated.cpu, j.total_request.cpu, j.scheduled_tasks) == (0, 0, 4000, 1)


def test_a_job_level_error_is_the_reason_of_its_tasks() -> None:
    j = job(1)
    task = add(j, "p")
    assert j.scheduling_reason(task) == ("Unschedulable", "", "")
    j.fit_error = "queue is closed"
    assert j.scheduling_reason(task) == ("Unschedulable", "queue is closed", "")
    assert j.fit_text().endswith("Origin reason is: queue is closed")
