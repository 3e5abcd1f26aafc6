"""What the scheduler is allowed to do in a cluster: the one list behind the ClusterRole, the chart and their tests.

A verb stands here because some request in ``cluster/live`` or ``server/live`` needs it; nothing is granted in advance.
Two things may be asked for without being granted: a ``get`` becomes a list of one and a ``patch`` a read and an
``update`` where they are refused, so Volcano's own ClusterRole, which has other verbs, serves as well (spec 07 §6.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_SEEN: Final = ("list", "watch")
_SCHEDULING: Final = "scheduling.volcano.sh"


@dataclass(frozen=True, slots=True)
class Permission:
    """Verbs on resources of one API group. `why` says what fails without it."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str

    def pairs(self) -> set[tuple[str, str, str]]:
        """Each (group, resource, verb)."""
        return {(self.group, resource, verb) for resource in self.resources for verb in self.verbs}


REQUIRED_PERMISSIONS: Final = (
    Permission("", ("pods",), ("get", *_SEEN, "delete"), "see pods, settle a write by reading, evict"),
    Permission("", ("pods/binding",), ("create",), "bind pods"),
    Permission("", ("pods/status",), ("patch",), "say why a pod waits or was evicted, and its nominated node"),
    Permission("", ("events",), ("create", "patch"), "events, and the counts of those that repeat"),
    Permission(
        "", ("nodes", "namespaces", "services", "replicationcontrollers", "resourcequotas"), _SEEN, "where pods may run"
    ),
    Permission(
        "",
        ("persistentvolumeclaims", "persistentvolumes"),
        ("get", *_SEEN, "patch"),
        "bind volumes, choose the node of claims that wait for it",
    ),
    Permission("apps", ("replicasets", "statefulsets"), _SEEN, "spread pods of one owner"),
    Permission("policy", ("poddisruptionbudgets",), _SEEN, "respect budgets when choosing victims"),
    Permission("scheduling.k8s.io", ("priorityclasses",), _SEEN, "priorities of PodGroups"),
    Permission(
        "storage.k8s.io",
        ("storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments"),
        _SEEN,
        "which nodes a pod's volumes can be used on",
    ),
    Permission("resource.k8s.io", ("resourceclaims", "resourceslices", "deviceclasses"), _SEEN, "see claimed devices"),
    Permission(_SCHEDULING, ("podgroups",), ("get", *_SEEN, "update"), "gangs, and their status"),
    Permission(_SCHEDULING, ("queues",), ("get", *_SEEN, "create"), "queues; the root and default ones are created"),
    Permission(_SCHEDULING, ("queues/status",), ("update",), "what is allocated in a queue"),
    Permission("topology.volcano.sh", ("hypernodes",), _SEEN, "network topology"),
    Permission("nodeinfo.volcano.sh", ("numatopologies",), _SEEN, "NUMA topology of nodes"),
    Permission("shard.volcano.sh", ("nodeshards",), _SEEN, "--scheduler-sharding-mode"),
)
"""In the whole cluster."""

CONTROLLER_PERMISSIONS: Final = (
    Permission("", ("pods",), ("create", "patch"), "make the pods of Volcano Jobs, note PodGroups on others"),
    Permission(
        "", ("persistentvolumeclaims", "services", "configmaps"), ("create",), "what volumes and svc of a Job need"
    ),
    Permission(_SCHEDULING, ("podgroups",), ("create", "patch", "delete"), "make PodGroups and remove them"),
    Permission(_SCHEDULING, ("queues", "queues/status"), ("patch",), "open and close queues"),
    Permission("batch.volcano.sh", ("jobs",), ("get", *_SEEN, "delete"), "Volcano Jobs, removed after their time"),
    Permission("batch.volcano.sh", ("jobs/status",), ("patch",), "how Volcano Jobs fare"),
    Permission("bus.volcano.sh", ("commands",), (*_SEEN, "delete"), "Commands to jobs and queues"),
    Permission("apps", ("daemonsets",), _SEEN, "annotations of owners of pods"),
    Permission("batch", ("jobs",), _SEEN, "annotations of owners of pods"),
)
"""In the whole cluster, beside the required ones, with ``--with-controllers``."""

LEASE_PERMISSIONS: Final = (
    Permission("coordination.k8s.io", ("leases",), ("get", "create", "update"), "leader election"),
)
"""In the namespace of the lease only."""
