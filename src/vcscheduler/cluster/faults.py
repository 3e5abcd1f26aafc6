"""Faults that the embedded cluster can be told to have: writes refused, effects seen late.

They exist to show what the scheduler does when a cluster misbehaves, in tests and in what-if runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TypeAlias

from vcscheduler.cluster.interface import ClusterError, ErrorReason
from vcscheduler.objects import KubernetesObject

Choice: TypeAlias = Callable[[KubernetesObject], bool] | str | None
"""Which objects a fault meets: a function, a pattern over ``namespace/name`` (``*``, ``?``), or None for all."""


class Operation(StrEnum):
    """What the scheduler and controllers do to a cluster, as far as it can fail."""

    READ_POD = "read pod"
    BIND = "bind"
    EVICT = "evict"
    UPDATE_POD_CONDITION = "update pod condition"
    UPDATE_POD_GROUP = "update pod group"
    UPDATE_QUEUE_STATUS = "update queue status"
    CREATE_QUEUE = "create queue"
    UPDATE_CLAIM = "update claim"
    UPDATE_VOLUME = "update volume"
    UPDATE_RESOURCE_CLAIM = "update resource claim"
    WRITE_OBJECT = "write object"
    """Whatever a controller writes; the object is the one to be written."""


def _chosen(choice: Choice, obj: KubernetesObject) -> bool:
    if choice is None:
        return True
    return fnmatchcase(obj.key, choice) if isinstance(choice, str) else choice(obj)


@dataclass(slots=True)
class _Refusal:
    operation: Operation
    when: Choice
    times: int | None
    error: ClusterError


@dataclass(slots=True)
class _Delay:
    operation: Operation
    steps: int
    when: Choice


class Faults:
    """The faults of one cluster, in the order they were asked for; the first that fits an object counts."""

    def __init__(self) -> None:
        self._refusals: list[_Refusal] = []
        self._delays: list[_Delay] = []

    @property
    def none(self) -> bool:
        """True when no write needs a closer look."""
        return not self._refusals and not self._delays

    def refuse(self, operation: Operation, when: Choice, times: int | None, error: ClusterError | None) -> None:
        if error is None:
            error = ClusterError(ErrorReason.INTERNAL, f"{operation}: refused on request")
        self._refusals.append(_Refusal(operation, when, times, error))

    def delay(self, operation: Operation, steps: int, when: Choice) -> None:
        if operation in (Operation.READ_POD, Operation.CREATE_QUEUE, Operation.WRITE_OBJECT):
            raise ValueError(f"the effect of {operation} cannot be delayed")
        self._delays.append(_Delay(operation, steps, when))

    def clear(self) -> None:
        self._refusals.clear()
        self._delays.clear()

    def refusal(self, operation: Operation, obj: KubernetesObject) -> ClusterError | None:
        """The error this write must fail with, if any. Uses one of the refusal's times up."""
        for refusal in self._refusals:
            if refusal.operation is operation and _chosen(refusal.when, obj):
                if refusal.times is not None:
                    refusal.times -= 1
                    if refusal.times <= 0:
                        self._refusals.remove(refusal)
                return refusal.error
        return None

    def check(self, operation: Operation, obj: KubernetesObject) -> None:
        """Raise the error this write must fail with, if any."""
        error = self.refusal(operation, obj) if self._refusals else None
        if error is not None:
            raise error

    def delay_of(self, operation: Operation, obj: KubernetesObject) -> int:
        """By how many steps the effect of this write comes late."""
        for delay in self._delays:
            if delay.operation is operation and _chosen(delay.when, obj):
                return delay.steps
        return 0
