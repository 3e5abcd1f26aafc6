"""NodeVolumeLimits: how many volumes of a CSI driver a node can attach (spec 05 §4.6)."""

from __future__ import annotations

import numpy as np

from vcscheduler.model.listers import Listers
from vcscheduler.model.nodes import NodeTable
from vcscheduler.model.task import Task, TaskClass
from vcscheduler.objects import CSINode, PersistentVolume, Pod, Volume
from vcscheduler.placement.rules import IntArray, Reason
from vcscheduler.plugins.predicates.claims import ClaimProblem, claim_not_found, storage_class

MIGRATED_ANNOTATION = "storage.alpha.kubernetes.io/migrated-plugins"

#: In-tree plugin -> the CSI driver that serves its volumes.
MIGRATED = {
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
}

#: Volume id -> driver. An id is the driver and what the driver calls the volume.
Attached = dict[str, str]


def _in_tree(volume: Volume | PersistentVolume) -> tuple[str, str] | None:
    """(plugin, name of the disk) of a volume that a CSI driver may serve by now."""
    source = volume.spec if isinstance(volume, PersistentVolume) else volume
    if source.gce_persistent_disk is not None:
        return "kubernetes.io/gce-pd", source.gce_persistent_disk.pd_name
    if source.aws_elastic_block_store is not None:
        return "kubernetes.io/aws-ebs", source.aws_elastic_block_store.volume_id
    if source.azure_disk is not None:
        return "kubernetes.io/azure-disk", source.azure_disk.disk_uri
    if source.cinder is not None:
        return "kubernetes.io/cinder", source.cinder.volume_id
    return None


def attaches(cls: TaskClass) -> bool:
    """Whether the pods of a class may count towards a limit at all."""
    found = cls.derived.get("attaches")
    if found is None:
        found = any(
            v.persistent_volume_claim is not None or v.ephemeral is not None or _in_tree(v) is not None
            for v in cls.pod.spec.volumes
        )
        cls.derived["attaches"] = found
    return bool(found)


class VolumeUsers:
    """Listens to a Kubernetes view: pods that may attach volumes, by row."""

    def __init__(self, table: NodeTable) -> None:
        self.view = table.view
        self.by_row: dict[int, dict[Task, None]] = {}
        for node in table.nodes:
            for task in node.tasks.values():
                if task.view_row >= 0:
                    self.pod_added(task, task.view_row)
        table.view.listeners.append(self)

    def pod_added(self, task: Task, row: int) -> None:
        if attaches(task.cls):
            self.by_row.setdefault(row, {})[task] = None

    def pod_removed(self, task: Task, row: int) -> None:
        users = self.by_row.get(row)
        if users is not None and task in users:
            del users[task]
            if not users:
                del self.by_row[row]

    def rows_grown(self, rows: int) -> None:
        """Rows are keys here, their number does not matter."""


class VolumeLimits:
    """The rule, over one session."""

    def __init__(self, table: NodeTable, listers: Listers, store: dict[str, object]) -> None:
        self._table = table
        self._listers = listers
        self._store = store
        self._attachments: dict[str, Attached] | None = None

    def codes(self, task: Task, rows: IntArray) -> IntArray:
        """
        Raises:
            ClaimProblem: a claim of the pod does not exist.
        """
        codes = np.zeros(len(rows), dtype=np.int64)
        nodes, csi_nodes = self._table.nodes, self._listers.csi_nodes
        for i, row in enumerate(rows.tolist()):
            csi_node = csi_nodes.get(nodes[row].name)
            wanted = self._volumes(task.pod, csi_node, strict=True)
            limits = _limits(csi_node)
            if wanted and limits and self._exceeds(row, csi_node, wanted, limits):
                codes[i] = Reason.VOLUME_LIMITS
        return codes

    def _exceeds(self, row: int, csi_node: CSINode | None, wanted: Attached, limits: dict[str, int]) -> bool:
        there: Attached = {}
        for user in self._users().by_row.get(row, ()):
            there.update(self._volumes(user.pod, csi_node, strict=False))
        for id, driver in self._attached().get(self._table.nodes[row].name, {}).items():
            there.setdefault(id, driver)
        new = {id: driver for id, driver in wanted.items() if id not in there}
        for driver in set(new.values()):
            if driver not in limits:
                continue
            count = sum(d == driver for d in there.values()) + sum(d == driver for d in new.values())
            if count > limits[driver]:
                return True
        return False

    def _users(self) -> VolumeUsers:
        found = self._store.get("predicates.volume users")
        if not isinstance(found, VolumeUsers) or found.view is not self._table.view:
            found = self._store["predicates.volume users"] = VolumeUsers(self._table)
        return found

    def _volumes(self, pod: Pod, csi_node: CSINode | None, *, strict: bool) -> Attached:
        found: Attached = {}
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                name = volume.persistent_volume_claim.claim_name
            elif volume.ephemeral is not None:
                name = f"{pod.name}-{volume.name}"
            else:
                self._add(found, _migrated(volume, csi_node))
                continue
            claim = self._listers.claims.get(f"{pod.namespace}/{name}")
            if claim is None:
                if strict:
                    raise ClaimProblem(f"looking up PVC {pod.namespace}/{name}: {claim_not_found(name)}")
                continue
            bound = self._listers.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
            if bound is not None:
                self._add(found, _of_volume(bound, csi_node))
                continue
            # Not bound yet: it will be a volume of its class's driver, whatever its name.
            kind = storage_class(claim, self._listers)
            if kind is not None:
                driver: str | None = kind.provisioner
                if driver in MIGRATED:
                    driver = MIGRATED[driver] if _is_migrated(driver, csi_node) else None
                if driver:
                    found[f"{driver}/unbound-{claim.key}"] = driver
        return found

    def _add(self, found: Attached, volume: tuple[str, str] | None) -> None:
        if volume is not None:
            found[f"{volume[0]}/{volume[1]}"] = volume[0]

    def _attached(self) -> dict[str, Attached]:
        """Volumes that VolumeAttachments name, by node."""
        if self._attachments is None:
            self._attachments = {}
            for attachment in self._listers.attachments.values():
                name = attachment.spec.source.persistent_volume_name
                volume = self._listers.volumes.get(name) if name is not None else None
                if volume is None:
                    continue
                node = attachment.spec.node_name
                there = self._attachments.setdefault(node, {})
                self._add(there, _of_volume(volume, self._listers.csi_nodes.get(node)))
        return self._attachments


def _limits(csi_node: CSINode | None) -> dict[str, int]:
    if csi_node is None:
        return {}
    return {
        d.name: d.allocatable.count
        for d in csi_node.spec.drivers
        if d.allocatable is not None and d.allocatable.count is not None
    }


def _is_migrated(plugin: str, csi_node: CSINode | None) -> bool:
    if csi_node is None:
        return False
    return plugin in csi_node.metadata.annotations.get(MIGRATED_ANNOTATION, "").split(",")


def _migrated(volume: Volume | PersistentVolume, csi_node: CSINode | None) -> tuple[str, str] | None:
    found = _in_tree(volume)
    return (MIGRATED[found[0]], found[1]) if found is not None and _is_migrated(found[0], csi_node) else None


def _of_volume(volume: PersistentVolume, csi_node: CSINode | None) -> tuple[str, str] | None:
    if volume.spec.csi is not None:
        return volume.spec.csi.driver, volume.spec.csi.volume_handle
    return _migrated(volume, csi_node)
