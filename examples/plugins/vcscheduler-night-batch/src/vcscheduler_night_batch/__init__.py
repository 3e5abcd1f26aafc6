"""night-batch: jobs of some queues start only at night.

Two questions that the scheduler asks are answered here. ``JobEnqueueable``: may the job's PodGroup be admitted? A
refusal keeps it Pending, and its pods are not even created. ``JobValid``: may the job be considered at all? It catches
the jobs that ``enqueue`` lets in without asking anybody (those without minResources), and those that were admitted in
the evening and had not started by the morning.

The time is the session's, never the machine's, so simulations and tests choose it.
"""

from __future__ import annotations

from datetime import datetime, time
from zoneinfo import ZoneInfo

from vcscheduler.framework.plugin import Plugin
from vcscheduler.framework.registry import PluginError
from vcscheduler.framework.session import Session
from vcscheduler.model.job import Job
from vcscheduler.model.status import Vote

__all__ = ["NightBatch", "is_night"]

REASON = "OnlyAtNight"


class NightBatch(Plugin):
    name = "night-batch"

    def on_session_open(self, ssn: Session) -> None:
        self.queues = _names(self.arguments.get("queues"))
        self.start = _clock("from", self.arguments.get_str("from", "20:00"))
        self.end = _clock("until", self.arguments.get_str("until", "06:00"))
        zone = self.arguments.get_str("timezone", "UTC")
        try:
            self.now = ssn.now.astimezone(ZoneInfo(zone))
        except (OSError, ValueError, KeyError):
            raise PluginError(f"plugin {self.name}: timezone: {zone!r} is not known") from None
        if is_night(self.now.time(), self.start, self.end):
            return
        self.text = f"queue starts work only from {self.start:%H:%M} to {self.end:%H:%M} ({zone})"
        self.ssn = ssn
        ssn.add_job_enqueueable_fn(self.name, self.job_enqueueable)
        ssn.add_job_valid_fn(self.name, self.job_valid)

    def job_enqueueable(self, job: Job) -> Vote:
        if job.queue not in self.queues:
            return Vote.ABSTAIN
        # In this form simulate and kubectl describe show why the job waits.
        self.ssn.record_pod_group_event(job, "Normal", "Unschedulable", self.text)
        return Vote.REJECT

    def job_valid(self, job: Job) -> tuple[str, str] | None:
        if job.queue not in self.queues or job.allocated_tasks:
            return None
        return REASON, self.text


def is_night(now: time, start: time, end: time) -> bool:
    """Whether the time lies in the night, whose end does not belong to it. Equal ends: always."""
    if start < end:
        return start <= now < end
    return now >= start or now < end


def _names(value: object) -> frozenset[str]:
    names = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return frozenset(str(name).strip() for name in names)


def _clock(key: str, text: str) -> time:
    try:
        return datetime.strptime(text, "%H:%M").time()
    except ValueError:
        raise PluginError(f"plugin night-batch: {key}: {text!r} is not a time of day such as 20:00") from None
