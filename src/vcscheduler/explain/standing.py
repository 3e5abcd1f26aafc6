"""Where each queue stands: what it holds, deserves and may have at most, and which resource decides its share."""

from __future__ import annotations

from dataclasses import dataclass

from vcscheduler.framework.session import Session
from vcscheduler.model.amounts import names
from vcscheduler.model.queue import Queue
from vcscheduler.model.resources import EPSILON, Resources


@dataclass(frozen=True, slots=True)
class QueueReport:
    """One queue at the end of a cycle. `deserved`, `limit` and `share` are None for a queue that no plugin gives
    anything, for want of jobs or of such a plugin; `capability` and `guarantee` are those of its spec. `deciding`:
    the resource of which the queue holds the largest part of what it deserves, "" if it holds nothing."""

    name: str
    parent: str
    state: str
    weight: int
    priority: int
    jobs: int
    allocated: Resources
    capability: Resources | None
    guarantee: Resources
    deserved: Resources | None = None
    limit: Resources | None = None
    share: float | None = None
    deciding: str = ""


def queue_reports(ssn: Session) -> list[QueueReport]:
    """All queues by name."""
    jobs: dict[str, int] = {}
    held: dict[str, Resources] = {}
    for job in ssn.jobs.values():
        jobs[job.queue] = jobs.get(job.queue, 0) + 1
        held.setdefault(job.queue, Resources()).add(job.allocated)
    return [
        _report(ssn, queue, jobs.get(name, 0), held.get(name, Resources()))
        for name, queue in sorted(ssn.queues.items())
    ]


def _report(ssn: Session, queue: Queue, jobs: int, held: Resources) -> QueueReport:
    standing = ssn.queue_standing(queue)
    return QueueReport(
        name=queue.name,
        parent=queue.parent,
        state=queue.state,
        weight=queue.weight,
        priority=queue.priority,
        jobs=jobs,
        allocated=held if standing is None else standing.allocated.clone(),
        capability=queue.capability,
        guarantee=queue.guarantee,
        deserved=None if standing is None else standing.deserved.clone(),
        limit=None if standing is None else standing.capability.clone(),
        share=None if standing is None else standing.share,
        deciding="" if standing is None else deciding_resource(standing.allocated, standing.deserved),
    )


def deciding_resource(allocated: Resources, deserved: Resources) -> str:
    """The dimension with the largest part of deserved in use; the first of equal ones, "" if all are 0."""
    best, found = 0.0, ""
    for name in names(deserved):
        whole = deserved.get(name)
        part = allocated.get(name) / whole if whole >= EPSILON else 0.0
        if part > best:
            best, found = part, name
    return found
