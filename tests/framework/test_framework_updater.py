"""Status of PodGroups and queues at the end of a session, conditions of pods, events (spec 02 §11-12)."""

from __future__ import annotations

from typing import Any

import pytest

from lab import Lab, configuration, member, pod_group
from vcscheduler.framework.updater import resource_list
from vcscheduler.model.job import Job, new_condition
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import BINDING, PENDING, RELEASING, RUNNING, SUCCEEDED, TaskStatus
from vcscheduler.model.task import Task, TaskClasses
from vcscheduler.objects import Queue

CLASSES = TaskClasses()


@pytest.mark.parametrize(
    ("minimum", "tasks", "phase", "expected"),
    [
        (1, [(RELEASING, "n1")], "Running", "Running"),
        (2, [(RUNNING, "n1"), (RELEASING, "n2")], "Running", "Running"),
        (2, [(RELEASING, ""), (PENDING, "")], "Pending", "Pending"),
        (2, [(SUCCEEDED, "n1"), (SUCCEEDED, "n1")], "Running", "Completed"),
        (2, [(RELEASING, "n1")], "Running", "Pending"),
        (3, [(BINDING, "n1")] * 3, "Inqueue", "Inqueue"),
        (0, [], "Pending", "Completed"),
        (2, [(SUCCEEDED, "n1"), (SUCCEEDED, "n1"), (PENDING, "")], "Running", "Completed"),
    ],
)
def test_phase(minimum: int, tasks: list[tuple[TaskStatus, str]], phase: str, expected: str) -> None:
    assert _job(minimum, tasks, phase).next_phase("this session") == expected


def test_a_running_gang_found_unschedulable_in_this_session_is_unknown() -> None:
    job = _job(2, [(RUNNING, "n1"), (PENDING, "")], "Running")
    job.conditions = [new_condition("Unschedulable", "this session", None, "NotEnoughResources")]
    assert job.next_phase("this session") == "Unknown"
    assert job.next_phase("another session") == "Pending"


def _job(minimum: int, tasks: list[tuple[TaskStatus, str]], phase: str) -> Job:
    job = Job("ns/pg")
    job.set_pod_group(pod_group("pg", minimum, phase=phase), "default")
    for i, (status, node) in enumerate(tasks):
        pod = member("pg", f"p{i}", node=node)
        task = Task(pod, CLASSES.of(pod))
        task.status = status
        job.add_task(task)
    return job


def allocated(lab: Lab) -> dict[str, Any]:
    return {q.name: q.status.allocated for q in lab.cluster.objects(Queue)}


def test_queues_count_their_own_jobs_and_everything_below() -> None:
    lab = Lab(configuration([["gang"]], "allocate")).queue("root", parent="").queue("a", parent="root")
    lab.queue("b", parent="a").node("n1", cpu=8)
    lab.job("jb", tasks=2, queue="b", on="n1").job("ja", tasks=1, queue="a", on="n1")
    lab.cycle()
    one, three = {"cpu": "2", "memory": "2Gi", "pods": "2"}, {"cpu": "3", "memory": "3Gi", "pods": "3"}
    assert allocated(lab) == {"b": one, "a": three, "root": three}


def test_an_idle_queue_is_written_once() -> None:
    lab = Lab().queue("q").node("n1").job("a", tasks=1, cpu=9)
    lab.cycle()
    assert allocated(lab) == {"q": {"cpu": "0", "memory": "0"}}
    before = lab.versions()
    lab.cycle()
    assert lab.versions() == before


def test_vectors_as_lists() -> None:
    r = Resources(1500.7, 2**30, {"pods": 3, "nvidia.com/gpu": 2000, "hugepages-2Mi": 500})
    assert resource_list(r) == {
        "cpu": "1500m",
        "memory": "1Gi",
        "hugepages-2Mi": "500m",
        "nvidia.com/gpu": "2",
        "pods": "3",
    }


def events(lab: Lab, kind: str) -> list[tuple[str, str, str, str, int]]:
    return [(e.name, e.type, e.reason, e.message, e.count) for e in lab.cluster.events() if e.kind == kind]


def test_a_gang_that_waits_says_so_every_cycle_and_its_pods_once() -> None:
    lab = Lab(configuration([["gang", "predicates"]], "allocate")).queue("q").node("n1", cpu=1)
    lab.job("a", minimum=2, tasks=2).cycles(3)
    text = (
        "2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 Schedulable, "
        "1 Unschedulable. Origin reason is a-w-1: 0/1 nodes are unavailable: 1 Insufficient cpu."
    )
    assert events(lab, "PodGroup") == [("a", "Warning", "Unschedulable", text, 3)]
    short = "0/1 nodes are unavailable: 1 Insufficient cpu."
    placed = "Pod ns/a-w-0 can possibly be assigned to n1, once minAvailable is satisfied"
    assert events(lab, "Pod") == [
        ("a-w-0", "Warning", "FailedScheduling", placed, 1),
        ("a-w-1", "Warning", "FailedScheduling", short, 1),
    ]
    assert lab.pod_conditions() == {
        "ns/a-w-0": ("Schedulable", placed, ""),
        "ns/a-w-1": ("Unschedulable", short, ""),
    }


def test_a_gang_that_runs_says_so_once() -> None:
    lab = Lab().queue("q").node("n1").job("a", minimum=1, tasks=1)
    lab.cycles(4)
    ready = [e for e in events(lab, "PodGroup") if e[2] == "Scheduled"]
    assert ready == [("a", "Normal", "Scheduled", "pod group is ready", 1)]


def test_gated_pods_get_no_condition() -> None:
    lab = Lab().queue("q").node("n1").job("a", minimum=1, tasks=1, schedulingGates=[{"name": "example.com/wait"}])
    lab.cycle()
    assert lab.pod_conditions() == {}
