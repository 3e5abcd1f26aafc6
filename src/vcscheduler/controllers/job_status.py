"""The status of a Volcano Job: pods counted, and how a new status is told from the one before (spec 07 §7.3, §8.5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime

from vcscheduler.controllers.job_phases import FINISHED
from vcscheduler.objects import Pod, VolcanoJob, VolcanoJobStatus
from vcscheduler.objects.batch import TaskState, VolcanoJobCondition
from vcscheduler.workloads.admission import changed
from vcscheduler.workloads.keys import TASK_SPEC

_OVER = ("Succeeded", "Failed")


def is_over(pod: Pod) -> bool:
    return pod.status.phase in _OVER


def is_leaving(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


@dataclass(slots=True)
class PodCounts:
    """Pods by what becomes of them; those that leave count as nothing else."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    unknown: int = 0
    terminating: int = 0
    by_task: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, pod: Pod) -> None:
        match pod.status.phase:
            case "Pending" | "":
                self.pending += 1
            case "Running":
                self.running += 1
            case "Succeeded":
                self.succeeded += 1
            case "Failed":
                self.failed += 1
            case _:
                self.unknown += 1
        task = pod.metadata.annotations.get(TASK_SPEC, "")
        phases = self.by_task.setdefault(task, {})
        phase = pod.status.phase or "Pending"
        phases[phase] = phases.get(phase, 0) + 1


def count(pods: Iterable[Pod], doomed: Collection[str] = ()) -> PodCounts:
    """`doomed`: names of pods that are being deleted now."""
    counts = PodCounts()
    for pod in pods:
        if is_leaving(pod) or pod.name in doomed:
            counts.terminating += 1
        else:
            counts.add(pod)
    return counts


def with_counts(status: VolcanoJobStatus, counts: PodCounts) -> VolcanoJobStatus:
    return changed(
        status,
        pending=counts.pending,
        running=counts.running,
        succeeded=counts.succeeded,
        failed=counts.failed,
        unknown=counts.unknown,
        terminating=counts.terminating,
        task_status_count={task: TaskState(phases) for task, phases in sorted(counts.by_task.items())},
    )


def in_phase(status: VolcanoJobStatus, phase: str, reason: str = "", message: str = "") -> VolcanoJobStatus:
    """The status in a phase, which may be the one it is in; a new phase tells why it was entered."""
    if phase == status.state.phase:
        return status
    return changed(status, state=changed(status.state, phase=phase, reason=reason, message=message))


def stamped(stored: VolcanoJob, status: VolcanoJobStatus, now: datetime) -> VolcanoJobStatus | None:
    """The status as it is to be written, None if it says nothing new. Each change moves its time, not only those of
    the phase (spec 07 §8.5)."""
    old = stored.status
    if status == old:
        return None
    now = now.replace(microsecond=0)
    new = copy(status)
    new.state = changed(status.state, last_transition_time=now)
    phase = new.state.phase
    if phase != old.state.phase or not any(each.status == phase for each in old.conditions):
        others = [each for each in old.conditions if each.status != phase]
        new.conditions = [*others, VolcanoJobCondition(phase, now)]
        created = stored.metadata.creation_timestamp
        if phase in FINISHED and created is not None:
            new.running_duration = go_duration(int((now - created).total_seconds()))
    return new


def go_duration(seconds: int) -> str:
    """Whole seconds as Go prints them, such as ``1h0m5s``."""
    minutes, seconds = divmod(max(0, seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{seconds}s"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
