"""Task (one per pod) and task class (what all tasks with the same scheduling-relevant spec share)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from vcscheduler.model.requests import (
    HostPort,
    KubeRequest,
    host_ports,
    is_best_effort,
    kube_request,
    pod_resources,
)
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import (
    BOUND,
    FAILED,
    PENDING,
    RELEASING,
    RUNNING,
    SUCCEEDED,
    UNKNOWN,
    TaskStatus,
)
from vcscheduler.objects import Pod

if TYPE_CHECKING:
    from vcscheduler.model.job import SubJob

GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
ROLE_KEY = "volcano.sh/task-spec"
TASK_PRIORITY_ANNOTATION = "volcano.sh/task-priority"
PREEMPTABLE_KEY = "volcano.sh/preemptable"
REVOCABLE_ZONE_KEY = "volcano.sh/revocable-zone"
QUEUE_ALLOCATION_GATE = "scheduling.volcano.sh/queue-allocation-gate"

_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))
_INT32 = re.compile(r"[+-]?[0-9]+", re.ASCII)
_EPOCH = float("-inf")


def parse_bool(text: str) -> bool | None:
    """Go's ParseBool; None for anything that it refuses."""
    if text in _TRUE:
        return True
    return False if text in _FALSE else None


def timestamp(at: datetime | None) -> float:
    """Seconds since 1970; a missing time comes before every other."""
    return _EPOCH if at is None else at.timestamp()


class TaskClass:
    """The scheduling-relevant spec of a pod, interned: tasks of one class are alike for every rule that does not look
    at labels, job, queue or role. ``derived`` is room for what rules compute once a class; a rule keys it by its name.
    """

    __slots__ = (
        "best_effort",
        "derived",
        "has_affinity",
        "id",
        "kube",
        "namespace",
        "pod",
        "ports",
        "resreq",
        "vector",
    )

    def __init__(self, id: int, pod: Pod, resreq: Resources) -> None:
        self.id = id
        self.pod = pod
        self.namespace = pod.metadata.namespace
        self.resreq = resreq
        self.best_effort = is_best_effort(resreq)
        self.has_affinity = pod.spec.affinity is not None
        self.kube: KubeRequest = kube_request(pod)
        self.ports: tuple[HostPort, ...] = host_ports(pod)
        self.derived: dict[str, object] = {}
        self.vector: NDArray[np.float64] = np.empty(0)

    def __repr__(self) -> str:
        return f"TaskClass({self.id}: {self.resreq})"


class TaskClasses:
    """Interns task classes. One instance a cache; never forgets a class that a task holds."""

    def __init__(self, ignored: frozenset[str] = frozenset()) -> None:
        self._classes: dict[object, TaskClass] = {}
        self._encode = msgspec.msgpack.Encoder(order="deterministic").encode
        self.ignored = ignored

    def __len__(self) -> int:
        return len(self._classes)

    def of(self, pod: Pod, csi_volumes: Mapping[str, int] | None = None) -> TaskClass:
        """The class of a pod. ``csi_volumes`` as in :func:`~vcscheduler.model.requests.pod_resources`."""
        spec = pod.spec
        # The namespace matters only to rules about other pods and about claims.
        near = spec.affinity is not None or spec.topology_spread_constraints or spec.volumes
        key = self._encode(
            (
                spec.containers,
                spec.init_containers,
                spec.node_selector,
                spec.affinity,
                spec.tolerations,
                spec.topology_spread_constraints,
                spec.volumes,
                spec.overhead,
                spec.resources,
                spec.resource_claims,
                pod.metadata.namespace if near else None,
                [s for s in pod.status.container_statuses if s.resources is not None],
                [s for s in pod.status.init_container_statuses if s.resources is not None],
                _resize_reason(pod),
                csi_volumes,
            )
        )
        found = self._classes.get(key)
        if found is None:
            found = TaskClass(len(self._classes), pod, pod_resources(pod, csi_volumes, self.ignored))
            self._classes[key] = found
        return found


def _resize_reason(pod: Pod) -> str | None:
    if not pod.status.container_statuses:
        return None
    return next((c.reason for c in pod.status.conditions if c.type == "PodResizePending"), None)


@dataclass(frozen=True, slots=True)
class TransactionContext:
    """Where a task stood: node, status, and whether something was evicted for it (spec 01 §3.5)."""

    node_name: str
    status: TaskStatus
    eviction_occurred: bool


class Task:
    """One pod as the scheduler sees it.

    ``status`` and ``node_name`` change inside a session, through a Statement; ``counted`` is the status under which
    the node accounts the task at the moment (None: not on a node), ``view_row`` the row of the Kubernetes view that
    holds the pod (-1: none does).
    """

    __slots__ = (
        "cls",
        "counted",
        "created",
        "eviction_occurred",
        "index",
        "job_allocated_hyper_node",
        "job_id",
        "key",
        "last_transaction",
        "name",
        "namespace",
        "node_name",
        "pod",
        "preemptable",
        "priority",
        "revocable_zone",
        "role",
        "status",
        "sub_job",
        "uid",
        "view_row",
    )

    def __init__(self, pod: Pod, cls: TaskClass) -> None:
        meta = pod.metadata
        annotations = meta.annotations
        self.pod = pod
        self.cls = cls
        self.uid = meta.uid
        self.name = meta.name
        self.namespace = meta.namespace
        self.key = f"{meta.namespace}/{meta.name}"
        group = annotations.get(GROUP_ANNOTATION, "")
        self.job_id = f"{meta.namespace}/{group}" if group else ""
        self.role = annotations.get(ROLE_KEY) or meta.labels.get(ROLE_KEY, "")
        self.node_name = pod.spec.node_name
        self.status = status_of(pod)
        self.priority = _priority(pod)
        self.preemptable = preemptable(annotations, meta.labels, default=True)
        self.revocable_zone = revocable_zone(annotations)
        self.created = timestamp(meta.creation_timestamp)
        self.index = pod_index(meta.name)
        self.counted: TaskStatus | None = None
        self.view_row = -1
        self.eviction_occurred = False
        self.job_allocated_hyper_node = ""
        self.last_transaction: TransactionContext | None = None
        self.sub_job: SubJob | None = None

    @property
    def resreq(self) -> Resources:
        """What the task is accounted with. The request that fit checks use is the same (spec 01 §2.3)."""
        return self.cls.resreq

    @property
    def best_effort(self) -> bool:
        return self.cls.best_effort

    @property
    def gated(self) -> bool:
        return bool(self.pod.spec.scheduling_gates)

    @property
    def only_queue_gated(self) -> bool:
        gates = self.pod.spec.scheduling_gates
        return len(gates) == 1 and gates[0].name == QUEUE_ALLOCATION_GATE

    @property
    def context(self) -> TransactionContext:
        """The last transaction if one was undone, else the current state."""
        return self.last_transaction or self.current_context()

    def current_context(self) -> TransactionContext:
        return TransactionContext(self.node_name, self.status, self.eviction_occurred)

    @property
    def sort_key(self) -> tuple[str, str, str]:
        return (self.namespace, self.name, self.uid)

    def __repr__(self) -> str:
        return f"Task({self.key} {self.status.text}{' on ' + self.node_name if self.node_name else ''})"


def status_of(pod: Pod) -> TaskStatus:
    """Status from the pod's phase, deletion mark and node (spec 01 §3.2)."""
    phase = pod.status.phase
    if phase == "Running":
        return RELEASING if pod.metadata.deletion_timestamp is not None else RUNNING
    if phase == "Pending":
        if pod.metadata.deletion_timestamp is not None:
            return RELEASING
        return BOUND if pod.spec.node_name else PENDING
    if phase == "Succeeded":
        return SUCCEEDED
    return FAILED if phase == "Failed" else UNKNOWN


def preemptable(annotations: Mapping[str, str], labels: Mapping[str, str], *, default: bool) -> bool:
    """Annotation, then label; a value that is no boolean reads false."""
    for source in (annotations, labels):
        text = source.get(PREEMPTABLE_KEY)
        if text is not None:
            return parse_bool(text) or False
    return default


def revocable_zone(annotations: Mapping[str, str]) -> str:
    zone = annotations.get(REVOCABLE_ZONE_KEY)
    if zone is not None:
        return "*" if zone == "*" else ""
    text = annotations.get(PREEMPTABLE_KEY)
    return "*" if text is not None and parse_bool(text) else ""


def _priority(pod: Pod) -> int:
    priority = 1 if pod.spec.priority is None else pod.spec.priority
    text = pod.metadata.annotations.get(TASK_PRIORITY_ANNOTATION)
    if text is not None and _INT32.fullmatch(text):
        n = int(text)
        if -(2**31) <= n < 2**31:
            return n
    return priority


def pod_index(name: str) -> int | None:
    """The number after the last dash of a name with at least three dash-separated parts (spec 02 §6.2)."""
    if name.count("-") < 2:
        return None
    last = name[name.rfind("-") + 1 :]
    return int(last) if last.isascii() and last.isdigit() and len(last) < 19 else None
