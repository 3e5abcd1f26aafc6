"""From API objects to the model: what each kind of event does to jobs, nodes and queues (spec 01 §2.7, §4.1, §5, §6).

Everything here runs between sessions. ``changed`` collects the jobs that anything happened to.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from vcscheduler.cache.claims import ClaimPending, csi_limits, csi_volumes
from vcscheduler.cache.network import Network
from vcscheduler.model.job import Job
from vcscheduler.model.listers import Listers
from vcscheduler.model.nodes import NodeConflict, NodeTable
from vcscheduler.model.queue import Queue
from vcscheduler.model.status import (
    ALLOCATED_STATUSES,
    BINDING,
    BOUND,
    FAILED,
    RELEASING,
    RUNNING,
    SUCCEEDED,
)
from vcscheduler.model.task import Task, TaskClasses
from vcscheduler.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    HyperNode,
    KubernetesObject,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceQuota,
    Service,
    StatefulSet,
    StorageClass,
    VolumeAttachment,
)
from vcscheduler.objects import Queue as QueueObject
from vcscheduler.placement.images import ImageTable

log = logging.getLogger(__name__)

_LISTED: dict[type[KubernetesObject], str] = {
    Namespace: "namespaces",
    Service: "services",
    ReplicationController: "replication_controllers",
    ReplicaSet: "replica_sets",
    StatefulSet: "stateful_sets",
    PersistentVolumeClaim: "claims",
    PersistentVolume: "volumes",
    StorageClass: "storage_classes",
    CSINode: "csi_nodes",
    CSIDriver: "csi_drivers",
    CSIStorageCapacity: "storage_capacities",
    VolumeAttachment: "attachments",
    ResourceQuota: "quotas",
    PodDisruptionBudget: "disruption_budgets",
    ResourceClaim: "resource_claims",
}
#: Kinds whose change can change what a pod with claims requests.
_CLAIM_KINDS = (PersistentVolumeClaim, PersistentVolume, StorageClass)

#: Statuses that a node accounts alike.
_PLACED = frozenset((BINDING, BOUND, RUNNING))
_OF_THE_POD = ("key", "job_id", "role", "priority", "preemptable", "revocable_zone", "created")


class ClusterState:
    """Jobs, nodes, queues and look-up objects, kept current from events.

    ``jobs`` holds only what a session may see: jobs with a PodGroup and an existing queue.
    """

    def __init__(
        self,
        scheduler_names: tuple[str, ...],
        default_queue: str,
        node_selector: tuple[str, ...] = (),
        ignored_provisioners: tuple[str, ...] = (),
    ) -> None:
        self._scheduler_names = frozenset(scheduler_names)
        self._default_queue = default_queue
        self._node_selector = tuple(
            (key, value) for key, _, value in (each.partition(":") for each in node_selector) if value
        )
        self._ignored_provisioners = frozenset((*ignored_provisioners, "rancher.io/local-path", "hostpath.csi.k8s.io"))
        self.table = NodeTable()
        self.network = Network(self.table)
        self.queues: dict[str, Queue] = {}
        self.jobs: dict[str, Job] = {}
        self.listers = Listers()
        #: Room for what lives as long as the scheduler: caches, process-wide state of plugins.
        self.store: dict[str, object] = {}
        self.images = ImageTable.of(self.store)
        self.changed: dict[str, Job] = {}
        self.left: list[str] = []
        self._all_jobs: dict[str, Job] = {}
        self._tasks: dict[str, Task] = {}
        self._classes = TaskClasses()
        self._priority_classes: dict[str, PriorityClass] = {}
        self._default_priority = 0
        self._claimants: dict[str, Task] = {}
        self._handlers: dict[
            type[KubernetesObject], Callable[[KubernetesObject | None, KubernetesObject | None], None]
        ] = {
            Pod: self._on_pod,
            Node: self._on_node,
            PodGroup: self._on_pod_group,
            QueueObject: self._on_queue,
            PriorityClass: self._on_priority_class,
            HyperNode: self.network.on_hyper_node,
            **dict.fromkeys(_LISTED, self._on_listed),
        }

    def handle(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        """One event: only ``new`` = added, both = updated, only ``old`` = deleted."""
        some = new if new is not None else old
        handler = self._handlers.get(type(some)) if some is not None else None
        if handler is not None:
            handler(old, new)

    # --- pods -------------------------------------------------------------------------------------------------------

    def _ours(self, pod: Pod) -> bool:
        return bool(pod.spec.node_name) or pod.spec.scheduler_name in self._scheduler_names

    def _on_pod(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        pod = new if isinstance(new, Pod) and self._ours(new) else None
        before = old if isinstance(old, Pod) else None
        reference = pod or before
        assert reference is not None or new is not None
        if reference is None:
            return
        task = self._tasks.get(_uid(reference))
        if task is not None and pod is not None:
            if task.status in ALLOCATED_STATUSES and not pod.spec.node_name:
                return  # A bind under way; the event tells of an earlier time (spec 01 §2.7).
            if task.status is RELEASING and pod.metadata.deletion_timestamp is None and pod.spec.node_name:
                # Our own eviction's condition update. Upstream falls back to Running here until the deletion is
                # seen; keeping Releasing is what it means to do (docs/differences.md).
                task.pod = pod
                return
        if task is not None and pod is not None and self._refresh(task, pod):
            return
        if task is not None:
            self._forget_task(task)
        if pod is not None:
            self._take_pod(pod)

    def _refresh(self, task: Task, pod: Pod) -> bool:
        """Take over a pod that differs only in what changes neither its place nor its part in any sum, such as a
        confirmed binding. Leaves the node's row alone, so nothing kept by row has to be computed again."""
        if task.uid in self._claimants or task.pod.metadata.labels != pod.metadata.labels:
            return False
        new = Task(pod, self._classes.of(pod))
        if (
            new.cls is not task.cls
            or new.node_name != task.node_name
            or new.gated != task.gated
            or any(getattr(new, each) != getattr(task, each) for each in _OF_THE_POD)
        ):
            return False
        if new.status is not task.status:
            if new.status not in _PLACED or task.status not in _PLACED or task.counted is None:
                return False
            job = self._all_jobs.get(task.job_id)
            if job is not None:
                job.set_status(task, new.status)
            else:
                task.status = new.status
            task.counted = new.status
        task.pod = pod
        job = self._all_jobs.get(task.job_id)
        if job is not None:
            self.changed[job.id] = job
        return True

    def _take_pod(self, pod: Pod) -> None:
        csi: dict[str, int] | None = None
        has_claims = any(v.persistent_volume_claim or v.ephemeral for v in pod.spec.volumes)
        if has_claims:
            try:
                csi = csi_volumes(pod, self.listers, self._ignored_provisioners)
            except ClaimPending:
                csi = None
        task = Task(pod, self._classes.of(pod, csi))
        if not task.uid:
            task.uid = task.key
        self._tasks[task.uid] = task
        if has_claims:
            self._claimants[task.uid] = task
        if task.node_name:
            node = self.table.placeholder(task.node_name)
            if task.status not in (SUCCEEDED, FAILED):
                try:
                    node.add(task)
                except NodeConflict as conflict:
                    log.warning("pod %s: %s", task.key, conflict)
                    return
                self.table.view.add(task, node.row)
        if task.job_id:
            job = self._job(task.job_id)
            job.add_task(task)
            self.changed[job.id] = job

    def _forget_task(self, task: Task) -> None:
        self._tasks.pop(task.uid, None)
        self._claimants.pop(task.uid, None)
        job = self._all_jobs.get(task.job_id)
        if job is not None and task.uid in job.tasks:
            job.remove_task(task)
            self.changed[job.id] = job
            self._drop_if_empty(job)
        node = self.table.by_name.get(task.node_name) if task.node_name else None
        if node is not None and node.tasks.get(task.key) is task:
            node.remove(task)
        self.table.view.remove(task)

    # --- jobs -------------------------------------------------------------------------------------------------------

    def _job(self, id: str) -> Job:
        job = self._all_jobs.get(id)
        if job is None:
            job = self._all_jobs[id] = Job(id)
        return job

    def _drop_if_empty(self, job: Job) -> None:
        if job.pod_group is None and not job.tasks:
            self._all_jobs.pop(job.id, None)

    def _on_pod_group(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        if isinstance(new, PodGroup):
            job = self._job(f"{new.namespace}/{new.name}")
            known = job.pod_group
            if known is not None and known.metadata.resource_version == new.metadata.resource_version != "":
                return
            if known is not None and _same_content(known, new):
                job.pod_group = new
                return
            job.set_pod_group(new, self._default_queue)
            job.priority = self._priority(new.spec.priority_class_name)
            self._admit(job)
            self.changed[job.id] = job
        elif isinstance(old, PodGroup):
            gone = self._all_jobs.get(f"{old.namespace}/{old.name}")
            if gone is not None:
                gone.unset_pod_group()
                self._admit(gone)
                self._drop_if_empty(gone)

    def _admit(self, job: Job) -> None:
        """Let the sessions see the job, or no longer."""
        if job.pod_group is not None and job.queue in self.queues:
            self.jobs[job.id] = job
        elif self.jobs.pop(job.id, None) is not None:
            self.left.append(job.id)
            self.changed.pop(job.id, None)

    def _priority(self, class_name: str) -> int:
        found = self._priority_classes.get(class_name)
        return found.value if found is not None else self._default_priority

    def _on_priority_class(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        if isinstance(old, PriorityClass):
            self._priority_classes.pop(old.name, None)
        if isinstance(new, PriorityClass):
            self._priority_classes[new.name] = new
        self._default_priority = next((c.value for c in self._priority_classes.values() if c.global_default), 0)
        for job in self._all_jobs.values():
            if job.pod_group is not None:
                job.priority = self._priority(job.pod_group.spec.priority_class_name)

    def _on_queue(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        if isinstance(new, QueueObject):
            known = self.queues.get(new.name)
            if known is not None and known.object.metadata.resource_version == new.metadata.resource_version != "":
                return
            self.queues[new.name] = Queue(new)
            if known is not None:
                return
            name = new.name
        else:
            assert old is not None
            name = old.name
            self.queues.pop(name, None)
        for job in self._all_jobs.values():
            if job.queue == name and job.pod_group is not None:
                self._admit(job)
                if job.id in self.jobs:
                    self.changed[job.id] = job

    # --- nodes ------------------------------------------------------------------------------------------------------

    def _on_node(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        self.network.on_node(old, new)
        if isinstance(new, Node):
            labels = new.metadata.labels
            if self._node_selector and not any(labels.get(k) == v for k, v in self._node_selector):
                return
            self._set_node(new)
        elif isinstance(old, Node):
            self.images.remove_node(old.name)
            for task in self.table.remove(old.name):
                # Its tasks go with it; later events of the pods bring them back on a placeholder.
                task.counted = None

    def _set_node(self, obj: Node) -> None:
        self.table.set_object(obj, csi_limits(self.listers.csi_nodes.get(obj.name)))
        self.images.set_node(obj)

    # --- objects that rules look up -----------------------------------------------------------------------------------

    def _on_listed(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        some = new if new is not None else old
        assert some is not None
        listed: dict[str, KubernetesObject] = getattr(self.listers, _LISTED[type(some)])
        if new is None:
            listed.pop(some.key, None)
        else:
            listed[some.key] = new
        self.listers.version += 1
        if isinstance(some, CSINode):
            node = self.table.get(some.name)
            if node is not None and node.object is not None:
                self._set_node(node.object)
        elif isinstance(some, _CLAIM_KINDS):
            for task in list(self._claimants.values()):
                if task.status not in ALLOCATED_STATUSES or task.pod.spec.node_name:
                    self._forget_task(task)
                    self._take_pod(task.pod)


def _same_content(a: PodGroup, b: PodGroup) -> bool:
    """Whether an update tells nothing new, as the echo of our own write."""
    mine, theirs = a.metadata, b.metadata
    return (
        a.spec == b.spec
        and a.status == b.status
        and mine.labels == theirs.labels
        and mine.annotations == theirs.annotations
        and mine.uid == theirs.uid
        and mine.creation_timestamp == theirs.creation_timestamp
    )


def _uid(pod: Pod) -> str:
    return pod.metadata.uid or pod.key
