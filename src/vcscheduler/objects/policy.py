# ruff: noqa: RUF012 - msgspec gives every instance its own copy of an empty list or dict default.
"""Pod disruption budgets."""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from vcscheduler.objects.meta import ApiStruct, KubernetesObject, LabelSelector, Time


class PodDisruptionBudgetSpec(ApiStruct):
    min_available: int | str | None = None
    """A number of pods or a percentage such as ``50%``; the same holds for `max_unavailable`."""
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(ApiStruct):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, Time] = {}


class PodDisruptionBudget(KubernetesObject):
    api_version: ClassVar[str] = "policy/v1"
    kind: ClassVar[str] = "PodDisruptionBudget"

    spec: PodDisruptionBudgetSpec = field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = field(default_factory=PodDisruptionBudgetStatus)
