"""gang: readiness, victims beyond the minimum, what is written at close (spec 04 §3)."""

import pytest
from plugin_cluster import NOW, Cluster, in_order, names

from vcscheduler.model.job import Job
from vcscheduler.model.status import (
    ALLOCATED,
    FAILED,
    PENDING,
    PIPELINED,
    RELEASING,
    RUNNING,
    SUCCEEDED,
    EvictionKind,
)
from vcscheduler.model.task import TransactionContext
from vcscheduler.objects.meta import LabelSelector
from vcscheduler.objects.scheduling import SubGroupPolicy
from vcscheduler.plugins.gang import GangPlugin, job_ready, missing_tasks, tasks_until_ready


def test_a_gang_gives_away_only_what_is_above_its_minimum() -> None:
    """EX-GANG-1."""
    c = Cluster()
    job = c.job("j", minimum=3)
    running = c.tasks(job, "t1 t2 t3 t4", RUNNING)
    c.tasks(job, "done", SUCCEEDED)
    preemptor = c.task(c.job("p"), "p")
    ssn = c.session(GangPlugin)
    assert names(ssn.preemptable(preemptor, running[:3])) == ["t1", "t2"]
    assert names(ssn.reclaimable(preemptor, running[:3])) == ["t1", "t2"]
    assert names(ssn.unified_evictable(EvictionKind.GANG_PREEMPT, job, running)) == ["t1", "t2", "t3", "t4"]


def test_a_discarded_gang_tells_how_many_are_missing() -> None:
    """EX-GANG-2."""
    c = Cluster()
    job = c.job("j", minimum=4)
    c.tasks(job, "r", RUNNING, cpu=1)
    pending = c.tasks(job, "a b c d", PENDING, cpu=1)
    for t in pending[:2]:
        t.last_transaction = TransactionContext("n1", ALLOCATED, False)
    ssn = c.session(GangPlugin)
    assert missing_tasks(job) == 1
    ssn.plugins[0].on_session_close(ssn)
    (condition,) = job.conditions
    assert (condition.type, condition.status, condition.reason) == (
        "Unschedulable",
        "True",
        "NotEnoughResources",
    )
    assert (condition.transition_id, condition.last_transition_time) == ("session-1", NOW)
    assert condition.message == (
        "1/5 tasks in gang unschedulable: pod group is not ready, 1 Running, 4 Pending, 4 minAvailable; "
        "Pending: 2 Schedulable, 2 Unschedulable"
    )


def test_a_ready_gang_is_scheduled_and_keeps_its_other_condition() -> None:
    c = Cluster()
    job = c.job("j", minimum=2)
    tasks = c.tasks(job, "a b", cpu=1)
    ssn = c.session(GangPlugin)
    ssn.plugins[0].on_session_close(ssn)
    job.set_status_of(tasks, RUNNING)
    ssn.plugins[0].on_session_close(ssn)
    assert [(x.type, x.status, x.reason, x.message) for x in job.conditions] == [
        (
            "Unschedulable",
            "True",
            "NotEnoughResources",
            "2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; "
            "Pending: 2 Unschedulable",
        ),
        ("Scheduled", "True", "tasks in gang are ready to be scheduled", ""),
    ]


@pytest.mark.parametrize(("pending", "written"), [("", 0), ("p", 1)])
def test_nothing_is_said_of_a_gang_that_is_only_leaving(pending: str, written: int) -> None:
    """EX-GANG-3."""
    c = Cluster()
    c.node("n1", cpu=10)
    job = c.job("j", minimum=2)
    c.tasks(job, "r", RUNNING, node="n1", cpu=1)
    c.tasks(job, "leaving", RELEASING, node="n1", cpu=1)
    c.tasks(job, pending, cpu=1)
    ssn = c.session(GangPlugin)
    ssn.plugins[0].on_session_close(ssn)
    assert len(job.conditions) == written


def test_jobs_without_tasks_get_no_condition() -> None:
    c = Cluster()
    job = c.job("j", minimum=2)
    ssn = c.session(GangPlugin)
    ssn.plugins[0].on_session_close(ssn)
    assert job.conditions == []


def test_roles_count_unless_their_sum_exceeds_the_minimum() -> None:
    """EX-GANG-4."""
    c = Cluster()
    job = c.job("j", minimum=3, roles={"ps": 1, "worker": 2})
    c.tasks(job, "w1 w2 w3", RUNNING, role="worker")
    c.tasks(job, "ps", role="ps", cpu=1)
    skipped = c.job("k", minimum=3, roles={"ps": 1, "worker": 3})
    c.tasks(skipped, "v1 v2 v3", RUNNING, role="worker")
    ssn = c.session(GangPlugin)
    assert job.is_ready
    assert not ssn.job_ready(job)
    assert not ssn.job_pipelined(job)
    assert ssn.job_ready(skipped)


def test_validity_names_the_first_thing_wrong() -> None:
    c = Cluster()
    few = c.job("few", minimum=3)
    c.tasks(few, "a b", cpu=1)
    no_ps = c.job("no-ps", minimum=3, roles={"ps": 1, "worker": 2})
    c.tasks(no_ps, "w1 w2 w3", role="worker")
    c.tasks(no_ps, "ps", FAILED, role="ps")
    group = SubGroupPolicy(
        name="g", sub_group_size=1, min_sub_groups=2, label_selector=LabelSelector(), match_label_keys=["grp"]
    )
    one_group = c.job("one", minimum=1, policies=[group])
    c.tasks(one_group, "x", labels={"grp": "0"})
    fine = c.job("fine")
    c.tasks(fine, "y")
    ssn = c.session(GangPlugin)
    assert ssn.job_valid(few) == (
        "NotEnoughTasks",
        "Not enough valid tasks for gang-scheduling, valid: 2, min: 3",
    )
    assert ssn.job_valid(no_ps) == (
        "NotEnoughPodsOfTask",
        "Not enough valid pods of each task for gang-scheduling",
    )
    assert ssn.job_valid(one_group) == (
        "NotEnoughPodsOfTask",
        "Not enough valid subGroups of each task for gang-scheduling",
    )
    assert ssn.job_valid(fine) is None


def test_unready_jobs_come_first() -> None:
    c = Cluster()
    ready, waiting = c.job("ready"), c.job("waiting")
    c.tasks(ready, "r", RUNNING)
    c.tasks(waiting, "w", cpu=1)
    ssn = c.session(GangPlugin)
    assert in_order([ready, waiting], ssn.job_order.less) == ["waiting", "ready"]
    assert not ssn.job_starving(ready)
    assert ssn.job_starving(waiting)


def test_pipelined_tasks_complete_a_gang_for_pipelining_only() -> None:
    c = Cluster()
    job = c.job("j", minimum=2)
    c.tasks(job, "a", RUNNING, cpu=1)
    c.tasks(job, "b", PIPELINED, cpu=1)
    ssn = c.session(GangPlugin)
    assert ssn.job_pipelined(job)
    assert not ssn.job_ready(job)


def _until_ready_by_trial(job: Job, role: str) -> int | None:
    """Allocate tasks of the role one after the other and see when the job is ready."""
    placed = 0
    left = [t for t in job.tasks.values() if t.role == role and t.status is PENDING and not t.best_effort]
    while not job_ready(job):
        if not left:
            return None
        job.set_status(left.pop(), ALLOCATED)
        placed += 1
    return placed


@pytest.mark.parametrize(
    ("minimum", "roles", "running", "role", "expected"),
    [
        (3, {}, 0, "worker", 3),
        (3, {}, 2, "worker", 1),
        (3, {}, 3, "worker", 0),
        (3, {"ps": 1, "worker": 2}, 0, "worker", None),
        (3, {"worker": 3}, 0, "worker", 3),
        (4, {"worker": 2}, 0, "worker", 4),
        (2, {"worker": 3}, 0, "worker", 2),
    ],
)
def test_how_many_more_tasks_make_a_job_ready(
    minimum: int, roles: dict[str, int], running: int, role: str, expected: int | None
) -> None:
    c = Cluster()
    job = c.job("j", minimum=minimum, roles=roles)
    c.tasks(job, " ".join(f"r{i}" for i in range(running)), RUNNING, role="worker", cpu=1)
    pending = c.tasks(job, "a b c d e f", role="worker", cpu=1)
    c.tasks(job, "ps", role="ps", cpu=1)
    assert tasks_until_ready(job, pending[0]) == expected == _until_ready_by_trial(job, role)


def test_pending_best_effort_tasks_count_as_ready_already() -> None:
    c = Cluster()
    job = c.job("j", minimum=3)
    (best_effort,) = c.tasks(job, "be")
    asking = c.tasks(job, "a b c", cpu=1)
    assert tasks_until_ready(job, asking[0]) == 2
    assert tasks_until_ready(job, best_effort) is None
    job.set_status_of(asking[:2], ALLOCATED)
    assert tasks_until_ready(job, asking[2]) == 0


def test_sub_jobs_must_be_ready_one_by_one() -> None:
    c = Cluster()
    policy = SubGroupPolicy(
        name="g", sub_group_size=2, min_sub_groups=2, label_selector=LabelSelector(), match_label_keys=["grp"]
    )
    job = c.job("j", minimum=1, policies=[policy])
    first = c.tasks(job, "a0 a1", labels={"grp": "0"}, cpu=1)
    second = c.tasks(job, "b0 b1", labels={"grp": "1"}, cpu=1)
    ssn = c.session(GangPlugin)
    assert tasks_until_ready(job, first[0]) is None
    job.set_status_of(first, ALLOCATED)
    assert tasks_until_ready(job, first[0]) is None
    assert tasks_until_ready(job, second[0]) == 2
    assert not ssn.job_ready(job)
    job.set_status_of(second, ALLOCATED)
    assert tasks_until_ready(job, second[0]) == 0
    assert ssn.job_ready(job)
    assert all(ssn.sub_job_ready(s) and ssn.sub_job_pipelined(s) for s in job.sub_jobs.values())
