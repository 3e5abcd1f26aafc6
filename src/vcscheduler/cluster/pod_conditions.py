"""Conditions of pods as the scheduler writes them, the same to every cluster."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from datetime import datetime

from vcscheduler.objects import Condition, Pod


def with_condition(conditions: Sequence[Condition], wanted: Condition, now: datetime) -> list[Condition]:
    """The list with `wanted` in place of the condition of its type, or appended.

    The transition time is kept while the status stays the same.
    """
    condition = copy(wanted)
    condition.last_transition_time = now
    result = list(conditions)
    for index, present in enumerate(result):
        if present.type == condition.type:
            if present.status == condition.status:
                condition.last_transition_time = present.last_transition_time
            result[index] = condition
            return result
    result.append(condition)
    return result


def eviction_conditions(pod: Pod, reason: str, now: datetime) -> list[Condition]:
    """The conditions of a pod that is about to be deleted to make room (spec 07 §3.6)."""
    ready = Condition("Ready", "False", "Evict", f"Pod is evicted, because of {reason}")
    disrupted = Condition(
        "DisruptionTarget",
        "True",
        "PreemptionByScheduler",
        f"{pod.spec.scheduler_name}: preempting to accommodate a higher priority pod",
    )
    return with_condition(with_condition(pod.status.conditions, ready, now), disrupted, now)
