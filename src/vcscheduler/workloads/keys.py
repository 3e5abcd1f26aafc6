"""Annotations and labels that Volcano's controllers and webhooks read and write (spec 07 §8)."""

from __future__ import annotations

from typing import Final

GROUP_NAME: Final = "scheduling.k8s.io/group-name"
QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"
GROUP_MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"

JOB_NAME: Final = "volcano.sh/job-name"
JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
JOB_VERSION: Final = "volcano.sh/job-version"
JOB_RETRY_COUNT: Final = "volcano.sh/job-retry-count"
JOB_QUEUE: Final = "volcano.sh/queue-name"
TASK_SPEC: Final = "volcano.sh/task-spec"
TASK_INDEX: Final = "volcano.sh/task-index"
TEMPLATE_UID: Final = "volcano.sh/template-uid"
PARTITION_ID: Final = "volcano.sh/partition-id"
NUMA_POLICY: Final = "volcano.sh/numa-topology-policy"

PREEMPTABLE: Final = "volcano.sh/preemptable"
COOLDOWN_TIME: Final = "volcano.sh/cooldown-time"
REVOCABLE_ZONE: Final = "volcano.sh/revocable-zone"
BUDGET_MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
BUDGET_MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"

TOPOLOGY_MODE: Final = "volcano.sh/network-topology-mode"
TOPOLOGY_TIER: Final = "volcano.sh/network-topology-highest-tier"

HIERARCHY: Final = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS: Final = "volcano.sh/hierarchy-weights"


def eviction_settings(annotations: dict[str, str]) -> dict[str, str]:
    """Of an object's annotations those about eviction, which its pods and groups take over.

    Of the two budgets the first given counts.
    """
    found: dict[str, str] = {}
    for key in (PREEMPTABLE, COOLDOWN_TIME, REVOCABLE_ZONE):
        if key in annotations:
            found[key] = annotations[key]
    for key in (BUDGET_MIN_AVAILABLE, BUDGET_MAX_UNAVAILABLE):
        if key in annotations:
            found[key] = annotations[key]
            break
    return found


def eviction_labels(labels: dict[str, str]) -> dict[str, str]:
    """Of an object's labels those about eviction, which its pods and groups take over."""
    return {key: labels[key] for key in (PREEMPTABLE, COOLDOWN_TIME) if key in labels}
