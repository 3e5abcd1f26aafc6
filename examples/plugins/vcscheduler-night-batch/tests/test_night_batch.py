"""night-batch by itself: the clock, and the two questions that the scheduler asks."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from typing import Any

import pytest
from vcscheduler_night_batch import NightBatch, is_night

from vcscheduler.config import Arguments
from vcscheduler.framework.registry import PluginError
from vcscheduler.model.status import Vote


@dataclass
class Recorder:
    """As much of a session as the plugin touches."""

    now: datetime
    functions: dict[str, Any] = field(default_factory=dict)
    events: list[tuple[str, str]] = field(default_factory=list)

    def add_job_enqueueable_fn(self, name: str, fn: Any) -> None:
        self.functions["enqueueable"] = fn

    def add_job_valid_fn(self, name: str, fn: Any) -> None:
        self.functions["valid"] = fn

    def record_pod_group_event(self, job: Any, type: str, reason: str, message: str) -> None:
        self.events.append((reason, message))


@dataclass
class FakeJob:
    queue: str
    allocated_tasks: int = 0


def at(hour: int, **arguments: Any) -> Recorder:
    session = Recorder(datetime(2026, 12, 1, hour, tzinfo=UTC))
    plugin = NightBatch(Arguments({"queues": ["batch"], **arguments}))
    plugin.on_session_open(session)  # type: ignore[arg-type]
    return session


@pytest.mark.parametrize(
    ("now", "start", "end", "expected"),
    [
        ("23:00", "20:00", "06:00", True),
        ("05:59", "20:00", "06:00", True),
        ("06:00", "20:00", "06:00", False),
        ("12:00", "20:00", "06:00", False),
        ("13:00", "12:00", "14:00", True),
        ("14:00", "12:00", "14:00", False),
        ("09:00", "00:00", "00:00", True),
    ],
)
def test_a_night_may_pass_midnight(now: str, start: str, end: str, expected: bool) -> None:
    assert is_night(*(time.fromisoformat(each) for each in (now, start, end))) is expected


def test_by_day_a_job_of_the_queue_is_refused_and_told_why() -> None:
    session = at(12)
    assert session.functions["enqueueable"](FakeJob("batch")) is Vote.REJECT
    assert session.events == [("Unschedulable", "queue starts work only from 20:00 to 06:00 (UTC)")]


def test_by_day_other_queues_are_left_alone() -> None:
    session = at(12)
    assert session.functions["enqueueable"](FakeJob("online")) is Vote.ABSTAIN
    assert session.functions["valid"](FakeJob("online")) is None


def test_a_job_that_holds_pods_goes_on_by_day() -> None:
    valid = at(12).functions["valid"]
    assert valid(FakeJob("batch", allocated_tasks=1)) is None
    assert valid(FakeJob("batch"))[0] == "OnlyAtNight"


def test_at_night_the_plugin_has_no_say() -> None:
    assert at(23).functions == {}


def test_the_zone_decides_when_it_is_night() -> None:
    assert at(19, timezone="Europe/Berlin").functions == {}
    assert at(19, timezone="UTC").functions != {}


@pytest.mark.parametrize("wrong", [{"from": "8 pm"}, {"until": "25:00"}, {"timezone": "Mars/Olympus"}])
def test_an_argument_that_cannot_be_used_is_named(wrong: dict[str, str]) -> None:
    with pytest.raises(PluginError, match=f"night-batch: {next(iter(wrong))}"):
        at(12, **wrong)
