"""One cycle over a cluster of one node, before there is anything to decide.

What is loaded and compiled when it is first used (kernels, rarely imported modules) takes half a second, for which the
first gang would wait. It passes while the cluster is being listed, or another replica leads. So does the collection of
what loading left behind.
"""

from __future__ import annotations

import gc
import logging
from datetime import UTC, datetime

from vcscheduler.cache.cache import SchedulerCache
from vcscheduler.cluster.memory import MemoryCluster
from vcscheduler.config.defaults import default_configuration
from vcscheduler.framework.scheduler import Scheduler
from vcscheduler.objects import KubernetesObject
from vcscheduler.objects.kinds import from_value

log = logging.getLogger(__name__)

_AMOUNTS = {"cpu": "8", "memory": "32Gi", "pods": "110"}
_GANG = 3


def rehearse() -> int:
    """Schedule a gang of pods in memory, with the built-in configuration. Returns how many of them were bound."""
    now = datetime.now(UTC)
    cluster = MemoryCluster(lambda: now)
    scheduler = Scheduler(SchedulerCache(cluster, lambda: now), default_configuration(), clock=lambda: now)
    cluster.apply_all(_objects())
    times = scheduler.run_once()
    gc.collect()
    log.debug("rehearsed in %.0f ms", times.total * 1000)
    return len(cluster.bindings())


def _objects() -> list[KubernetesObject]:
    pod: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
        },
        "status": {"phase": "Pending"},
    }
    group = {"scheduling.k8s.io/group-name": "rehearsal"}
    documents: list[dict[str, object]] = [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "default"},
            "spec": {"weight": 1},
            "status": {"state": "Open"},
        },
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "rehearsal"},
            "status": {"allocatable": _AMOUNTS, "capacity": _AMOUNTS},
        },
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "rehearsal", "namespace": "default"},
            "spec": {"minMember": _GANG, "queue": "default"},
            "status": {"phase": "Pending"},
        },
        *(
            {**pod, "metadata": {"name": f"rehearsal-{number}", "namespace": "default", "annotations": group}}
            for number in range(_GANG)
        ),
    ]
    return [from_value(each) for each in documents]
