"""The state machine of Volcano Jobs as a table (spec 07 §8.5)."""

from __future__ import annotations

import pytest

from vcscheduler.controllers.job_phases import Deed, Move, move_of, phase_after
from vcscheduler.objects import TaskSpec, VolcanoJob, VolcanoJobSpec, VolcanoJobStatus
from vcscheduler.objects.batch import TaskState, VolcanoJobState

SYNC = Move(Deed.SYNC)
ENDING = Move(Deed.KILL, spare_finished=True)
RESTART = Move(Deed.KILL, phase="Restarting", retry=True)
RESTART_PART = Move(Deed.KILL_TARGET, phase="Restarting", retry=True)


@pytest.mark.parametrize("phase", ["", "Pending", "Running"])
@pytest.mark.parametrize(
    ("action", "move"),
    [
        ("SyncJob", SYNC),
        ("ResumeJob", SYNC),
        ("RestartJob", RESTART),
        ("RestartTask", RESTART_PART),
        ("RestartPod", RESTART_PART),
        ("RestartPartition", RESTART_PART),
        ("AbortJob", Move(Deed.KILL, spare_finished=True, phase="Aborting")),
        ("TerminateJob", Move(Deed.KILL, spare_finished=True, phase="Terminating")),
        ("CompleteJob", Move(Deed.KILL, spare_finished=True, phase="Completing")),
    ],
)
def test_what_an_action_does_to_a_job_that_goes_on(phase: str, action: str, move: Move) -> None:
    assert move_of(phase, action) == move


@pytest.mark.parametrize(
    ("phase", "action", "move"),
    [
        ("Restarting", "SyncJob", SYNC),
        ("Restarting", "RestartTask", Move(Deed.KILL_TARGET)),
        ("Restarting", "RestartJob", Move(Deed.KILL)),
        ("Restarting", "AbortJob", Move(Deed.KILL)),
        ("Aborting", "SyncJob", ENDING),
        ("Aborting", "RestartJob", ENDING),
        ("Aborting", "ResumeJob", Move(Deed.KILL, spare_finished=True, phase="Restarting", retry=True)),
        ("Aborted", "SyncJob", ENDING),
        ("Aborted", "ResumeJob", Move(Deed.KILL, spare_finished=True, phase="Restarting", retry=True)),
        ("Completing", "RestartJob", ENDING),
        ("Terminating", "ResumeJob", ENDING),
        ("Completed", "RestartJob", ENDING),
        ("Failed", "ResumeJob", ENDING),
        ("Terminated", "SyncJob", ENDING),
    ],
)
def test_what_an_action_does_to_a_job_that_stops(phase: str, action: str, move: Move) -> None:
    assert move_of(phase, action) == move


def after(
    phase: str, *, spec: dict[str, int] | None = None, tasks: str = "a:3", retries: int = 0, **counts: int
) -> str:
    """`tasks`: name:replicas or name:replicas/minimum, apart by spaces; all in `spec` over a minimum of 3."""
    made = []
    for text in tasks.split():
        name, _, numbers = text.partition(":")
        replicas, _, minimum = numbers.partition("/")
        made.append(TaskSpec(name=name, replicas=int(replicas), min_available=int(minimum or replicas)))
    job = VolcanoJob(spec=VolcanoJobSpec(tasks=made, **{"min_available": 3, "max_retry": 3, **(spec or {})}))
    succeeded = {key[3:]: value for key, value in counts.items() if key.startswith("of_")}
    plain = {key: value for key, value in counts.items() if not key.startswith("of_")}
    status = VolcanoJobStatus(
        state=VolcanoJobState(phase=phase),
        retry_count=retries,
        min_available=job.spec.min_available,
        task_status_count={name: TaskState({"Succeeded": value}) for name, value in succeeded.items()},
        **plain,
    )
    return phase_after(job, status)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (after("Pending", running=2), "Pending"),
        (after("Pending", running=1, succeeded=1, failed=1), "Running"),
        (after("Running", running=3), "Running"),
        (after("Running", tasks=""), "Running"),
        (after("Running", tasks="a:4", running=2, pending=2), "Pending"),
        (after("Running", tasks="a:4", running=3, pending=1), "Running"),
        (after("Running", succeeded=3, of_a=3), "Completed"),
        (after("Running", succeeded=2, failed=1, of_a=2), "Failed"),
        (after("Running", spec={"min_available": 2}, succeeded=2, failed=1, of_a=2), "Completed"),
        (after("Running", spec={"min_available": 2}, succeeded=1, failed=2, of_a=1), "Failed"),
        (after("Running", spec={"min_success": 1}, succeeded=1, running=2), "Completed"),
        (after("Running", spec={"min_success": 2, "min_available": 1}, succeeded=1, failed=2), "Failed"),
        (
            after("Running", spec={"min_available": 2}, tasks="a:2/1 b:2/1", succeeded=2, failed=2, of_a=2, of_b=0),
            "Failed",
        ),
        (
            after("Running", spec={"min_available": 1}, tasks="a:2/1 b:2/1", succeeded=2, failed=2, of_a=2, of_b=0),
            "Completed",
        ),
        (after("Restarting", terminating=1), "Restarting"),
        (after("Restarting", tasks="a:4", terminating=1), "Pending"),
        (after("Restarting", retries=2), "Pending"),
        (after("Restarting", retries=3), "Failed"),
        (after("Aborting", terminating=1), "Aborting"),
        (after("Aborting", succeeded=3), "Aborted"),
        (after("Completing", running=1), "Completing"),
        (after("Completing", failed=1), "Completed"),
        (after("Terminating", pending=1), "Terminating"),
        (after("Terminating"), "Terminated"),
        (after("Aborted"), "Aborted"),
        (after("Completed", running=3), "Completed"),
    ],
)
def test_which_phase_follows(found: str, expected: str) -> None:
    assert found == expected
