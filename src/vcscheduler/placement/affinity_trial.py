"""Inter-pod affinity of one pod to place, with some pods gone in thought (spec 05 §3.8, §4.5)."""

from __future__ import annotations

from vcscheduler.model.listers import Listers
from vcscheduler.model.task import Task
from vcscheduler.placement.affinity import AffinityCounts, AffinityState, namespace_labels, resolve
from vcscheduler.placement.terms import pod_terms


class AffinityTrial:
    """Counts by domain that follow pods as they go and come back, apart from the session's own."""

    def __init__(self, task: Task, state: AffinityState, listers: Listers) -> None:
        terms = pod_terms(task)
        self._task = task
        self._listers = listers
        self._counts: AffinityCounts = state.counts()
        self._wanted = resolve(terms.affinity, listers)
        self._anti = resolve(terms.anti, listers)

    def change(self, pod: Task, row: int, n: int) -> None:
        """``n`` = -1: the pod leaves the node, 1: it is back."""
        counts = self._counts
        namespace, labels = pod.namespace, pod.pod.metadata.labels
        if self._wanted and all(t.matches(namespace, labels, {}) for t in self._wanted):
            for pods in counts.affinity:
                pods.change(row, n)
        for term, pods in zip(self._anti, counts.anti, strict=True):
            if term.matches(namespace, labels, {}):
                pods.change(row, n)
        own = self._task
        around = namespace_labels(self._listers, own.namespace)
        for term in pod_terms(pod).anti:
            # What the pod holds counts here even where the session does not look for holders (spec 05 §4.5). A key
            # without any count cannot come to refuse a node, since pods only return that left before.
            existing = counts.existing.get(term.topology_key)
            if existing is not None and term.matches(own.namespace, own.pod.metadata.labels, around):
                existing.change(row, n)

    def passes(self, row: int) -> bool:
        counts = self._counts
        if any(pods.at(row) > 0 for pods in (*counts.existing.values(), *counts.anti)):
            return False
        if not counts.affinity:
            return True
        if any(pods.domain[row] < 0 for pods in counts.affinity):
            return False
        if all(pods.at(row) > 0 for pods in counts.affinity):
            return True
        return counts.first_pod and not any(pods.values.any() for pods in counts.affinity)
