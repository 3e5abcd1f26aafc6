"""Answers of an inquiry as plain data, for ``-o json`` and ``-o yaml``. The keys are documented in docs/explain.md."""

from __future__ import annotations

from vcscheduler.explain.nodes import NodeExplanation
from vcscheduler.explain.pods import Change, NodeView
from vcscheduler.model.resources import Resources
from vcscheduler.simulator.inquiry import JobStory, PodStory
from vcscheduler.simulator.report import Plain, eviction_plain, resources


def pod_story(story: PodStory) -> Plain:
    view = story.view
    return {
        "pod": story.pod,
        "state": story.state,
        "job": story.job or None,
        "kind": story.kind or None,
        "queue": story.queue or None,
        "priority": story.priority,
        "asks": resources(story.asks),
        "node": story.node or None,
        "cycle": story.cycle or None,
        "scheduler": story.scheduler or None,
        "cause": None if story.reason is None else story.reason.cause.value,
        "message": None if story.reason is None else story.reason.message,
        "nodes": None if view is None else _view(view),
        "changes": [_change(each) for each in (*(view.changes if view is not None else ()), *story.tried)],
        "scores": [
            {"node": each.node, "total": round(each.total, 6), "parts": _rounded(each.parts)} for each in story.scores
        ],
        "evictions": [eviction_plain(each) for each in story.evictions],
    }


def job_story(story: JobStory) -> Plain:
    outcome, gang = story.outcome, story.gang
    plain: Plain = {
        "job": outcome.key,
        "kind": outcome.kind,
        "podGroup": outcome.pod_group,
        "queue": outcome.queue,
        "priority": outcome.priority,
        "phase": outcome.phase,
        "pods": outcome.pods,
        "podsWaiting": outcome.waiting,
        "placed": dict(sorted(outcome.placed.items())),
        "runningBefore": dict(sorted(outcome.running.items())),
        "cause": None if outcome.reason is None else outcome.reason.cause.value,
        "message": None if outcome.reason is None else outcome.reason.message,
        "gang": None,
        "waiting": [pod_story(each) for each in story.waiting],
        "evictions": [eviction_plain(each) for each in story.evictions],
    }
    if gang is not None:
        plain["gang"] = {
            "minimum": gang.minimum,
            "ready": gang.ready,
            "missing": gang.missing,
            "statuses": gang.statuses,
            "tasks": [
                {"task": each.role, "pods": each.pods, "ready": each.ready, "minimum": each.minimum}
                for each in gang.roles
            ],
            "asks": resources(gang.asks),
            "admission": _optional(gang.admission),
            "queueAllocated": _optional(gang.held),
            "queueDeserved": _optional(gang.deserved),
            "queueLimit": _optional(gang.limit),
        }
    return plain


def node_story(node: NodeExplanation) -> Plain:
    return {
        "node": node.name,
        "takesPods": node.takes_pods,
        "obstacles": list(node.obstacles),
        "labels": node.labels,
        "allocatable": resources(node.allocatable),
        "used": resources(node.used),
        "idle": resources(node.idle),
        "releasing": resources(node.releasing),
        "pods": [
            {
                "pod": each.pod,
                "job": each.job or None,
                "queue": each.queue or None,
                "priority": each.priority,
                "status": each.status,
                "request": resources(each.request),
            }
            for each in node.pods
        ],
    }


def _view(view: NodeView) -> Plain:
    return {
        "lookedAt": view.nodes,
        "fitting": list(view.fitting),
        "prevented": view.prevented or None,
        "refused": [
            {"rule": each.rule, "reason": each.reason, "nodes": each.nodes, "names": list(each.names)}
            for each in view.refusals
        ],
        "nearest": [{"node": each.node, "lacks": resources(each.lacks), "tooSmall": each.never} for each in view.near],
        "blocking": [
            {
                "job": each.job,
                "queue": each.queue,
                "priority": each.priority,
                "pods": each.pods,
                "nodes": each.nodes,
            }
            for each in view.blocking
        ],
    }


def _change(change: Change) -> Plain:
    return {
        "if": change.what,
        "helps": change.helps,
        "nodes": list(change.nodes),
        "outcome": change.outcome or None,
    }


def _optional(vector: Resources | None) -> dict[str, str] | None:
    return None if vector is None else resources(vector)


def _rounded(parts: dict[str, float]) -> dict[str, float]:
    return {name: round(points, 6) for name, points in parts.items()}
