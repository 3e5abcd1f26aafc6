"""What a pod requests, and what a task reads off its pod (spec 01 §2.8)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import builders
from vcscheduler.model.requests import host_ports, is_best_effort, kube_request, pod_resources
from vcscheduler.model.status import TaskStatus
from vcscheduler.model.task import Task, TaskClasses, pod_index
from vcscheduler.objects import Pod


def pod(spec: dict[str, Any], status: dict[str, Any] | None = None, **metadata: Any) -> Pod:
    return msgspec.convert({"metadata": {"name": "p", **metadata}, "spec": spec, "status": status or {}}, Pod)


def container(name: str = "c", restart: str = "", **requests: object) -> dict[str, Any]:
    return {"name": name, "restartPolicy": restart, "resources": {"requests": {k: str(v) for k, v in requests.items()}}}


def test_t1_init_containers_and_sidecars() -> None:
    r = pod_resources(
        pod(
            {
                "containers": [container(cpu=1)],
                "initContainers": [
                    container("init-1", cpu=5),
                    container("sidecar-1", "Always", cpu=1),
                    container("sidecar-2", "Always", cpu=2),
                    container("init-2", cpu=5),
                    container("sidecar-3", "Always", cpu=3),
                ],
            }
        )
    )
    assert (r.cpu, r.scalars) == (8000, {"pods": 1})


def test_t2_pod_level_requests_and_overhead() -> None:
    spec = {
        "containers": [container("a", cpu=1, memory="1G"), container("b", cpu=2, memory="1G")],
        "resources": {"requests": {"cpu": "4"}},
        "overhead": {"cpu": "1", "memory": "1G"},
    }
    r = pod_resources(pod(spec))
    assert (r.cpu, r.memory, r.scalars) == (5000, 3e9, {"pods": 1})
    k = kube_request(pod(spec))
    # Scoring takes the containers alone, the node counts the pod's level (Quirk, spec 05 §5.3).
    assert (k.cpu, k.scored_cpu) == (5000, 4000)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (None, (2000, 2 * 2**30)),
        ({"type": "PodResizePending", "reason": "Deferred"}, (2000, 2 * 2**30)),
        ({"type": "PodResizePending", "reason": "Infeasible"}, (1000, 2**30)),
        ({"type": "PodResizeInProgress", "reason": "Infeasible"}, (2000, 2 * 2**30)),
    ],
)
def test_t3_a_resize_under_way(condition: dict[str, str] | None, expected: tuple[int, int]) -> None:
    status = {
        "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
        "conditions": [condition] if condition else [],
    }
    r = pod_resources(pod({"containers": [container(cpu=2, memory="2Gi")]}, status))
    assert (r.cpu, r.memory) == expected


def test_t4_best_effort() -> None:
    storage = pod({"containers": [{"name": "c", "resources": {"requests": {"ephemeral-storage": "1Mi"}}}]})
    assert not is_best_effort(pod_resources(storage))
    nothing = pod({"containers": [container()]})
    assert pod_resources(nothing).scalars == {"pods": 1}
    assert is_best_effort(pod_resources(nothing))
    volume = "attachable-volumes-csi-x"
    attached = pod_resources(nothing, {volume: 1})
    assert attached.scalars == {"pods": 1, volume: 1}
    assert not is_best_effort(attached)


@pytest.mark.parametrize(
    ("priority", "annotation", "expected"), [(1000, "5", 5), (1000, "5.5", 1000), (None, None, 1), (7, str(2**31), 7)]
)
def test_t5_priority(priority: int | None, annotation: str | None, expected: int) -> None:
    notes = {} if annotation is None else {"volcano.sh/task-priority": annotation}
    p = pod({"containers": [container()], "priority": priority}, annotations=notes)
    assert Task(p, TaskClasses().of(p)).priority == expected


def test_kubernetes_defaults_for_containers_that_request_nothing() -> None:
    k = kube_request(pod({"containers": [container("a"), container("b", cpu="200m")]}))
    assert (k.cpu, k.nonzero_cpu, k.nonzero_memory) == (200, 300, 2 * 200 * 2**20)


def test_host_ports_are_normalised() -> None:
    ports = [{"hostPort": 80}, {"containerPort": 9}, {"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]
    assert host_ports(builders.pod(ports=ports)) == (("0.0.0.0", "TCP", 80), ("10.0.0.1", "UDP", 53))


@pytest.mark.parametrize(
    ("phase", "node", "deleted", "expected"),
    [
        ("Pending", "", None, "PENDING"),
        ("Pending", "n1", None, "BOUND"),
        ("Pending", "n1", "2026-01-01T00:00:00Z", "RELEASING"),
        ("Running", "n1", None, "RUNNING"),
        ("Running", "n1", "2026-01-01T00:00:00Z", "RELEASING"),
        ("Succeeded", "n1", None, "SUCCEEDED"),
        ("Failed", "n1", None, "FAILED"),
        ("", "", None, "UNKNOWN"),
    ],
)
def test_status_of_a_pod(phase: str, node: str, deleted: str | None, expected: str) -> None:
    p = pod({"containers": [container()], "nodeName": node}, {"phase": phase}, deletionTimestamp=deleted)
    assert Task(p, TaskClasses().of(p)).status is TaskStatus[expected]


@pytest.mark.parametrize(
    ("annotation", "label", "expected"),
    [(None, None, True), ("false", None, False), ("soon", None, False), (None, "0", False), ("t", "false", True)],
)
def test_preemptable_unless_said_otherwise(annotation: str | None, label: str | None, expected: bool) -> None:
    def said(value: str | None) -> dict[str, str]:
        return {} if value is None else {"volcano.sh/preemptable": value}

    p = pod({"containers": [container()]}, annotations=said(annotation), labels=said(label))
    assert Task(p, TaskClasses().of(p)).preemptable is expected


@pytest.mark.parametrize(
    ("name", "index"), [("j-w-2", 2), ("j-w-010", 10), ("web-1", None), ("j-w-x", None), ("a-b-c-3", 3), ("j-w-", None)]
)
def test_index_in_a_pods_name(name: str, index: int | None) -> None:
    assert pod_index(name) == index


def test_alike_pods_share_a_class() -> None:
    classes = TaskClasses()
    a, b = builders.pod("a", cpu=1, labels={"x": "1"}), builders.pod("b", cpu=1, namespace="other")
    assert classes.of(a) is classes.of(b)
    assert classes.of(a) is not classes.of(builders.pod("c", cpu=2))
    # The namespace matters as soon as a rule about other pods may look at it.
    near = builders.affinity(off=[builders.term("zone", {"x": "1"})])
    assert classes.of(builders.pod("d", affinity=near)) is not classes.of(
        builders.pod("e", namespace="other", affinity=near)
    )
