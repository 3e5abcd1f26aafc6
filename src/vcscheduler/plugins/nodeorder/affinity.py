"""Preferences between pods: those of the pod to place, and those that pods have about it (spec 05 §5.7)."""

from __future__ import annotations

import numpy as np

from vcscheduler.model.listers import Listers
from vcscheduler.model.task import Task
from vcscheduler.placement.affinity import at, namespace_labels, resolve
from vcscheduler.placement.cluster import ClusterIndex
from vcscheduler.placement.holders import HeldTerm
from vcscheduler.placement.rules import IntArray, ScoringFailed
from vcscheduler.placement.terms import pod_terms


def matching_preferences(task: Task, cluster: ClusterIndex, listers: Listers) -> list[HeldTerm]:
    """Preferred terms of pods in the view that match the pod."""
    if not cluster.holders.preferred:
        return []
    labels = task.pod.metadata.labels
    around = namespace_labels(listers, task.namespace)
    return list(cluster.holders.preferred.matching(task.namespace, labels, around))


def concerned(task: Task, cluster: ClusterIndex, listers: Listers) -> bool:
    """Whether anybody prefers anything here; without, the scorer is skipped."""
    terms = pod_terms(task)
    return bool(terms.preferred or terms.error or matching_preferences(task, cluster, listers))


def pod_affinity(task: Task, rows: IntArray, cluster: ClusterIndex, listers: Listers) -> IntArray:
    """Scores over exactly these candidates.

    A pod without preferences of its own looks only at pods on nodes that had pods with affinity when the session
    opened. Required affinity of others adds nothing: the hard affinity weight is 0 here (Quirk).
    """
    terms = pod_terms(task)
    if terms.error:
        raise ScoringFailed(f"failed to parse pod: {terms.error}")
    raw = np.zeros(len(rows), dtype=np.int64)
    for term, weight in terms.preferred:
        (wanted,) = resolve((term,), listers)
        column = cluster.columns.column(term.topology_key)
        query = cluster.pods.query((wanted,), terminating=True)
        counts = cluster.pods.count(query, term.topology_key, column.codes, column.domains)
        raw += weight * at(counts.values, column.codes[rows])
    frozen = None if terms.preferred else cluster.holders.frozen
    for held in matching_preferences(task, cluster, listers):
        column = cluster.columns.column(held.term.topology_key)
        raw += at(held.count(column, frozen).values, column.codes[rows])
    return scaled(raw)


def scaled(raw: IntArray) -> IntArray:
    """Between the smallest and the largest: divided first, in doubles, then cut off."""
    if not len(raw):
        return raw
    smallest, largest = int(raw.min()), int(raw.max())
    if largest <= smallest:
        return np.zeros(len(raw), dtype=np.int64)
    return (100.0 * ((raw - smallest) / float(largest - smallest))).astype(np.int64)
