"""Everything that a cache, a session or its plugins know, as plain values that can be compared.

By names, never by row or class numbers, so that a cache that grew by events can be held against one built at once. A
scalar of which there is nothing is left out of a vector.
"""

from __future__ import annotations

from typing import Any

from lab import Lab
from vcscheduler.cache.cache import SchedulerCache
from vcscheduler.framework.session import Session
from vcscheduler.model.aggregates import Aggregates
from vcscheduler.model.job import Counts, Job
from vcscheduler.model.nodes import QUANTITIES, NodeTable
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import PENDING
from vcscheduler.model.task import Task

Digest = dict[str, Any]


def vector(r: Resources) -> dict[str, float]:
    return {n: v for n, v in (("cpu", r.cpu), ("memory", r.memory), *sorted(r.scalar_items())) if v != 0}


def task(t: Task, table: NodeTable, *, view: bool = True) -> Digest:
    found = {"status": t.status.name, "node": t.node_name, "counted": None if t.counted is None else t.counted.name}
    if view:
        found["viewed on"] = table.nodes[t.view_row].name if t.view_row >= 0 else None
    return found


def job(j: Job, table: NodeTable, *, view: bool = True) -> Digest:
    return {
        "queue": j.queue,
        "priority": j.priority,
        "phase": j.phase,
        "conditions": [(c.type, c.status, c.reason, c.message) for c in j.conditions],
        "counts": list(j.counts),
        "roles": _nonzero(j.role_counts),
        "allocated": vector(j.allocated),
        "pending": vector(j.pending_request),
        "total": vector(j.total_request),
        "tasks": {t.key: task(t, table, view=view) for t in sorted(j.tasks.values(), key=lambda t: t.key)},
        "sub-jobs": {
            s.id: (list(s.counts), sorted(t.key for t in s.tasks.values()), s.min_available)
            for s in sorted(j.sub_jobs.values(), key=lambda s: s.id)
            if s.tasks
        },
    }


def _nonzero(counts: dict[str, Counts]) -> dict[str, Counts]:
    return {role: list(n) for role, n in sorted(counts.items()) if any(n)}


def nodes(table: NodeTable, *, view: bool = True) -> Digest:
    found: Digest = {}
    for node in sorted(table.by_name.values(), key=lambda n: n.name):
        row = node.row
        one: Digest = {
            "ready": bool(table.ready[row]),
            "tasks": {k: t.counted and t.counted.name for k, t in sorted(node.tasks.items())},
        }
        for q in QUANTITIES:
            column = getattr(table, q)[:, row]
            one[q] = {n: float(column[d]) for d, n in enumerate(table.dimensions.names) if column[d] != 0}
        if view:
            v = table.view
            one["view"] = (
                int(v.pods[row]),
                int(v.max_pods[row]),
                v.requested[:, row].tolist(),
                v.nonzero[:, row].tolist(),
                v.allocatable[:, row].tolist(),
                sorted(v.ports.get(row, {}).items()),
            )
        found[node.name] = one
    found["total"] = vector(table.total)
    return found


def sums(aggregates: Aggregates) -> Digest:
    found: Digest = {"overcommit": vector(aggregates.overcommit_inqueue)}
    for name in sorted(aggregates.queues()):
        q = aggregates.queue(name)
        assert q is not None
        parts = (q.allocated, q.request, q.inqueue, q.elastic)
        found[name] = (*(vector(part) for part in parts), q.jobs)
    return found


def cache(c: SchedulerCache) -> Digest:
    """Between sessions, once the events are taken in."""
    return {
        "jobs": {id: job(j, c.table) for id, j in sorted(c.jobs.items())},
        "queues": sorted(c.queues),
        "nodes": nodes(c.table),
        "sums": sums(c.aggregates),
    }


def rebuilt(lab: Lab) -> SchedulerCache:
    """A cache made anew from what the lab's cluster holds; the lab's own goes on listening."""
    listening = lab.cluster._sink
    fresh = SchedulerCache(lab.cluster, lambda: lab.now)
    lab.cluster._sink = listening
    fresh.begin_session()
    return fresh


def session(ssn: Session, *, view: bool = True) -> Digest:
    """Jobs, nodes and columns, the Kubernetes view if asked for, and all that plugins answer."""
    return {
        "jobs": {id: job(j, ssn.table, view=view) for id, j in sorted(ssn.jobs.items())},
        "nodes": nodes(ssn.table, view=view),
        "answers": answers(ssn),
    }


def answers(ssn: Session) -> Digest:
    """Shares, standings and votes, which show every sum that a plugin keeps."""
    jobs = [j for _, j in sorted(ssn.jobs.items())]
    standings = {}
    for name, queue in sorted(ssn.queues.items()):
        s = ssn.queue_standing(queue)
        if s is not None:
            parts = (s.allocated, s.deserved, s.capability, s.ceiling)
            standings[name] = (*(vector(part) for part in parts), s.share)
    return {
        "standings": standings,
        "shares": {(a.id, b.id): ssn.job_order.compare(a, b) for a in jobs for b in jobs},
        "overused": {name: ssn.overused(q) for name, q in sorted(ssn.queues.items())},
        "votes": {j.id: (ssn.job_ready(j), ssn.job_pipelined(j), ssn.job_starving(j)) for j in jobs},
        "allocatable": {
            t.key: ssn.allocatable(ssn.queues[j.queue], t)
            for j in jobs
            for t in sorted(j.tasks_in(PENDING), key=lambda t: t.key)
        },
    }
