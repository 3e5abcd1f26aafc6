"""The state machine of a Volcano Job: what an action means in a phase, and which phase follows (spec 07 §8.5).

Nothing here looks at a cluster. `move_of` says what to do, `phase_after` what comes of the counts that follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from vcscheduler.objects import VolcanoJob, VolcanoJobStatus

SYNC: Final = "SyncJob"
ABORT: Final = "AbortJob"
RESTART: Final = "RestartJob"
RESTART_TASK: Final = "RestartTask"
RESTART_POD: Final = "RestartPod"
RESTART_PARTITION: Final = "RestartPartition"
TERMINATE: Final = "TerminateJob"
COMPLETE: Final = "CompleteJob"
RESUME: Final = "ResumeJob"

TARGETED: Final = frozenset((RESTART_TASK, RESTART_POD, RESTART_PARTITION))
"""Actions that restart a part of a job only."""
ACTIONS: Final = frozenset((ABORT, RESTART, TERMINATE, COMPLETE, RESUME)) | TARGETED
"""What policies and Commands may ask for."""

FINISHED: Final = frozenset(("Completed", "Failed", "Terminated"))
DEFAULT_MAX_RETRY: Final = 3

_STOPS: Final = {ABORT: "Aborting", TERMINATE: "Terminating", COMPLETE: "Completing"}
_STOPPED: Final = {"Aborting": "Aborted", "Terminating": "Terminated", "Completing": "Completed"}


class Deed(Enum):
    SYNC = "sync"
    """Make the pods that are missing, remove those too many."""
    KILL = "kill"
    KILL_TARGET = "kill target"


@dataclass(frozen=True, slots=True)
class Move:
    """What to do to a job.

    Attributes:
        spare_finished: pods that succeeded or failed are left alone.
        phase: the phase that is entered; "" leaves it to `phase_after`.
        retry: this is one of the restarts that `maxRetry` limits.
    """

    deed: Deed
    spare_finished: bool = False
    phase: str = ""
    retry: bool = False


_SYNC: Final = Move(Deed.SYNC)
_KEEP_KILLING: Final = Move(Deed.KILL, spare_finished=True)


def move_of(phase: str, action: str) -> Move:
    """What an action means to a job in that phase."""
    match phase:
        case "" | "Pending" | "Running":
            if action in _STOPS:
                return Move(Deed.KILL, spare_finished=True, phase=_STOPS[action])
            if action == RESTART:
                return Move(Deed.KILL, phase="Restarting", retry=True)
            if action in TARGETED:
                return Move(Deed.KILL_TARGET, phase="Restarting", retry=True)
            return _SYNC
        case "Restarting":
            if action in TARGETED:
                return Move(Deed.KILL_TARGET)
            return _SYNC if action == SYNC else Move(Deed.KILL)
        case "Aborting" | "Aborted" if action == RESUME:
            return Move(Deed.KILL, spare_finished=True, phase="Restarting", retry=True)
        case _:
            return _KEEP_KILLING


def phase_after(job: VolcanoJob, status: VolcanoJobStatus) -> str:
    """The phase that follows from a status whose counts are up to date."""
    phase = status.state.phase or "Pending"
    alive = status.pending + status.running + status.terminating
    match phase:
        case "Pending":
            started = status.running + status.succeeded + status.failed
            return "Running" if started >= job.spec.min_available else phase
        case "Running":
            return _after_running(job, status)
        case "Restarting":
            if status.retry_count >= max_retry(job):
                return "Failed"
            return "Pending" if _total(job) - status.terminating >= status.min_available else phase
        case "Aborting" | "Terminating" | "Completing":
            return phase if alive else _STOPPED[phase]
        case _:
            return phase


def _after_running(job: VolcanoJob, status: VolcanoJobStatus) -> str:
    spec, total = job.spec, _total(job)
    if total == 0:
        return "Running"
    enough = spec.min_success is None or status.succeeded >= spec.min_success
    if spec.min_success is not None and enough:
        return "Completed"
    if status.succeeded + status.failed == total:
        if _task_fell_short(job, status) or not enough or status.succeeded < spec.min_available:
            return "Failed"
        return "Completed"
    return "Pending" if status.pending > total - spec.min_available else "Running"


def _task_fell_short(job: VolcanoJob, status: VolcanoJobStatus) -> bool:
    """Whether all tasks are needed, and one of them has too few successes."""
    tasks = job.spec.tasks
    if job.spec.min_available < sum(task.min_available or 0 for task in tasks):
        return False
    for task in tasks:
        counted = status.task_status_count.get(task.name)
        if counted is not None and counted.phase.get("Succeeded", 0) < (task.min_available or 0):
            return True
    return False


def _total(job: VolcanoJob) -> int:
    return sum(task.replicas for task in job.spec.tasks)


def max_retry(job: VolcanoJob) -> int:
    return job.spec.max_retry or DEFAULT_MAX_RETRY
