"""What runs on a node, what is free there, and who may come."""

from __future__ import annotations

from dataclasses import dataclass

from vcscheduler.framework.session import Session
from vcscheduler.model.resources import Resources
from vcscheduler.objects import Node as NodeObject


@dataclass(frozen=True, slots=True)
class PodOnNode:
    """A pod on a node; ``queue`` is empty where it is of no job."""

    pod: str
    job: str
    queue: str
    priority: int
    status: str
    request: Resources


@dataclass(frozen=True, slots=True)
class NodeExplanation:
    """One node. ``takes_pods``: whether the scheduler considers it at all; ``obstacles``: what keeps pods away."""

    name: str
    takes_pods: bool
    obstacles: tuple[str, ...]
    labels: dict[str, str]
    allocatable: Resources
    used: Resources
    idle: Resources
    releasing: Resources
    pods: tuple[PodOnNode, ...]


def explain_node(ssn: Session, name: str) -> NodeExplanation | None:
    """None if there is no such node."""
    node = ssn.table.by_name.get(name)
    if node is None or node.object is None:
        return None
    pods = []
    for task in node.sorted_tasks():
        job = ssn.job_of(task)
        queue, priority = ("", task.priority) if job is None else (job.queue, job.priority)
        pods.append(PodOnNode(task.key, task.job_id, queue, priority, task.status.text, task.resreq))
    takes = any(each.name == name for each in ssn.table)
    return NodeExplanation(
        name,
        takes,
        _obstacles(node.object, takes),
        dict(sorted(node.object.metadata.labels.items())),
        node.allocatable.clone(),
        node.used.clone(),
        node.idle.clone(),
        node.releasing.clone(),
        tuple(pods),
    )


def _obstacles(node: NodeObject, takes: bool) -> tuple[str, ...]:
    found = [] if takes else ["it is not ready: no pod is placed on it"]
    if node.spec.unschedulable:
        found.append("it is cordoned")
    for taint in node.spec.taints:
        shown = f"{taint.key}={taint.value}" if taint.value else taint.key
        found.append(f"taint {shown}:{taint.effect}")
    return tuple(found)
