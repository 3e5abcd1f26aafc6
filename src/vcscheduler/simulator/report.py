"""An outcome as plain data, for ``-o json`` and ``-o yaml``. The keys are documented in docs/simulate.md."""

from __future__ import annotations

from vcscheduler.explain.evictions import Eviction, Opinion, Spared
from vcscheduler.explain.pending import NoNode
from vcscheduler.explain.standing import QueueReport
from vcscheduler.framework.updater import resource_list
from vcscheduler.model.resources import CPU, MAX_FLOAT, MAX_SCALAR, MEMORY, Resources
from vcscheduler.simulator.outcome import JobOutcome, Outcome

Plain = dict[str, object]


def to_plain(outcome: Outcome, ignored: dict[str, int], warnings: list[str]) -> Plain:
    """Everything of an outcome except how long it took, which differs from run to run.

    Args:
        ignored: objects that play no part, by ``apiVersion/kind``.
        warnings: what was odd about the input.
    """
    return {
        "cycles": outcome.cycles,
        "settled": outcome.settled,
        "summary": {
            "nodes": outcome.nodes,
            "jobs": len(outcome.jobs),
            "jobsWaiting": len(outcome.waiting),
            "pods": sum(job.pods for job in outcome.jobs),
            "podsPlaced": outcome.placed,
            "podsRunningBefore": sum(len(job.running) for job in outcome.jobs),
            "podsWaiting": sum(job.waiting for job in outcome.jobs),
            "allocatable": resources(outcome.allocatable),
            "used": resources(outcome.used),
        },
        "jobs": [_job(job) for job in outcome.jobs],
        "queues": [_queue(queue) for queue in outcome.queues],
        "evictions": [eviction_plain(eviction) for eviction in outcome.evictions],
        "spared": [_spared(each) for each in outcome.spared],
        "refused": [
            {"object": each.obj, "field": each.field, "reason": each.reason, "origin": each.origin}
            for each in outcome.refused
        ],
        "otherSchedulers": outcome.other_schedulers,
        "ignored": dict(sorted(ignored.items())),
        "warnings": warnings,
    }


def resources(vector: Resources) -> dict[str, str]:
    """A resource list; what has no bound is left out."""
    bounded = Resources(
        0.0 if vector.cpu == MAX_FLOAT else vector.cpu,
        0.0 if vector.memory == MAX_FLOAT else vector.memory,
        {name: v for name, v in vector.scalar_items() if v < MAX_SCALAR and v != MAX_FLOAT},
    )
    listed = resource_list(bounded)
    for name, v in ((CPU, vector.cpu), (MEMORY, vector.memory)):
        if v == MAX_FLOAT:
            del listed[name]
    return listed


def _job(job: JobOutcome) -> Plain:
    plain: Plain = {
        "job": job.key,
        "kind": job.kind,
        "podGroup": job.pod_group,
        "queue": job.queue,
        "phase": job.phase,
        "priority": job.priority,
        "minAvailable": job.min_available,
        "pods": job.pods,
        "podsWaiting": job.waiting,
        "placed": dict(sorted(job.placed.items())),
        "runningBefore": dict(sorted(job.running.items())),
    }
    if job.reason is not None:
        plain["pending"] = {
            "cause": job.reason.cause.value,
            "message": job.reason.message,
            "couldPlace": job.reason.could_place,
            "noNode": [_no_node(each) for each in job.reason.no_node],
        }
    return plain


def _no_node(found: NoNode) -> Plain:
    return {
        "task": found.role,
        "pods": found.pods,
        "example": found.example,
        "nodes": found.nodes,
        "message": found.message,
        "refused": [
            {"rule": each.rule, "reason": each.reason, "nodes": each.nodes, "detail": each.detail}
            | ({"names": list(each.names)} if each.names else {})
            for each in found.refusals
        ],
    }


def _queue(queue: QueueReport) -> Plain:
    return {
        "queue": queue.name,
        "parent": queue.parent,
        "state": queue.state,
        "weight": queue.weight,
        "priority": queue.priority,
        "jobs": queue.jobs,
        "allocated": resources(queue.allocated),
        "deserved": None if queue.deserved is None else resources(queue.deserved),
        "capability": None if queue.capability is None else resources(queue.capability),
        "limit": None if queue.limit is None else resources(queue.limit),
        "guarantee": resources(queue.guarantee),
        "share": None if queue.share is None else round(queue.share, 6),
        "decidingResource": queue.deciding,
    }


def eviction_plain(eviction: Eviction) -> Plain:
    plain: Plain = {
        "cycle": eviction.cycle,
        "pod": eviction.pod,
        "node": eviction.node,
        "action": eviction.action,
    }
    if eviction.frees is None:
        return plain
    return {
        **plain,
        "job": eviction.job,
        "queue": eviction.queue,
        "priority": eviction.priority,
        "frees": resources(eviction.frees),
        "preemptor": eviction.preemptor or None,
        "preemptorJob": eviction.preemptor_job or None,
        "preemptorQueue": eviction.preemptor_queue or None,
        "preemptorAsks": None if eviction.asks is None else resources(eviction.asks),
        "rule": {
            "point": eviction.question or None,
            "tier": eviction.tier or None,
            "plugins": [each.plugin for each in eviction.rule],
        },
        "opinions": [_opinion(each) for each in eviction.opinions],
    }


def _opinion(opinion: Opinion) -> Plain:
    verdict = "abstains" if opinion.abstained else "may go" if opinion.allowed else "must stay"
    return {
        "tier": opinion.tier,
        "plugin": opinion.plugin,
        "verdict": verdict,
        "decided": opinion.decided,
        "why": opinion.why,
    }


def _spared(each: Spared) -> Plain:
    return {
        "cycle": each.cycle,
        "pod": each.pod,
        "node": each.node,
        "job": each.job,
        "queue": each.queue,
        "action": each.action,
        "preemptor": each.preemptor or None,
        "preemptorJob": each.preemptor_job or None,
        "preemptorTask": each.role or None,
        "protectedBy": [_opinion(opinion) for opinion in each.protected_by],
        "why": each.why,
    }
