"""Task statuses, status codes of filters, and votes: the enumerations that the whole scheduler speaks in."""

from __future__ import annotations

from enum import IntEnum


class TaskStatus(IntEnum):
    """Status of a task. The values are dense so that a job can count its tasks in a list; the bit values that the
    reference shows to extenders are ``1 << value`` (spec 01 §3.1)."""

    PENDING = 0
    ALLOCATED = 1
    PIPELINED = 2
    BINDING = 3
    BOUND = 4
    RUNNING = 5
    RELEASING = 6
    SUCCEEDED = 7
    FAILED = 8
    UNKNOWN = 9

    @property
    def text(self) -> str:
        return self.name.capitalize()


PENDING, ALLOCATED, PIPELINED, BINDING, BOUND, RUNNING, RELEASING, SUCCEEDED, FAILED, UNKNOWN = TaskStatus

#: Occupies resources of its node and counts in its queue's allocated sum.
ALLOCATED_STATUSES = frozenset({ALLOCATED, BINDING, BOUND, RUNNING})
#: Indexed by status: whether the status is in :data:`ALLOCATED_STATUSES`.
IS_ALLOCATED: tuple[bool, ...] = tuple(s in ALLOCATED_STATUSES for s in TaskStatus)
#: May be evicted.
PREEMPTABLE_STATUSES = frozenset({BOUND, RUNNING})


class Code(IntEnum):
    """What a filter answers about a node (spec 01 §7.1)."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5


class Vote(IntEnum):
    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class EvictionKind(IntEnum):
    """On whose behalf a gang eviction asks for victims (spec 01 §8)."""

    UNKNOWN = 0
    GANG_PREEMPT = 1
    GANG_RECLAIM = 2
    TASK_PREEMPT = 3
    TASK_RECLAIM = 4
