"""Rules about other pods as plain loops, to hold the counting ones against (spec 05 §4.5, §4.8)."""

from __future__ import annotations

from collections import Counter

from builders import World
from vcscheduler.model.task import Task
from vcscheduler.objects import Node, Pod, PodAffinityTerm
from vcscheduler.objects.selectors import label_selector_matches
from vcscheduler.placement.rules import Reason


def matches(term: PodAffinityTerm, owner: Pod, other: Pod, world: World, own: bool) -> bool:
    if term.namespaces or term.namespace_selector is not None:
        namespaces = set(term.namespaces)
    else:
        namespaces = {owner.namespace}
    known = world.listers.namespaces.get(other.namespace)
    around = known.metadata.labels if known is not None else {}
    selector = term.namespace_selector
    everything = selector is not None and not selector.match_labels and not selector.match_expressions
    selected = everything or (
        selector is not None and (known is not None or not own) and label_selector_matches(selector, around)
    )
    if other.namespace not in namespaces and not selected:
        return False
    return label_selector_matches(term.label_selector, other.metadata.labels)


def required(pod: Pod, kind: str) -> list[PodAffinityTerm]:
    affinity = pod.spec.affinity
    side = None if affinity is None else getattr(affinity, kind)
    return [] if side is None else list(side.required)


class PlainAffinity:
    """State of one pod at the moment of its PreFilter. ``frozen``: names of nodes that had required anti-affinity when
    the session opened."""

    def __init__(self, world: World, task: Task, frozen: set[str]) -> None:
        q = self.pod = task.pod
        self.affinity: Counter[tuple[str, str]] = Counter()
        self.anti: Counter[tuple[str, str]] = Counter()
        self.existing: Counter[tuple[str, str]] = Counter()
        to, off = required(q, "pod_affinity"), required(q, "pod_anti_affinity")
        for node in world.table:
            labels = node.labels
            for other in (t.pod for t in node.tasks.values() if t.view_row == node.row):
                if to and all(matches(t, q, other, world, True) for t in to):
                    keys = [t.topology_key for t in to if t.topology_key in labels]
                    self.affinity.update((k, labels[k]) for k in keys)
                for t in off:
                    if matches(t, q, other, world, True) and t.topology_key in labels:
                        self.anti[(t.topology_key, labels[t.topology_key])] += 1
                if node.name in frozen:
                    for t in required(other, "pod_anti_affinity"):
                        if matches(t, other, q, world, False) and t.topology_key in labels:
                            self.existing[(t.topology_key, labels[t.topology_key])] += 1
        self.first = bool(to) and all(matches(t, q, q, world, True) for t in to)
        self.to, self.off = to, off

    def code(self, node: Node) -> int:
        labels = node.metadata.labels
        if any(t.topology_key not in labels for t in self.to):
            return Reason.AFFINITY
        near = all(self.affinity[(t.topology_key, labels[t.topology_key])] > 0 for t in self.to)
        if not near and not (not +self.affinity and self.first):
            return Reason.AFFINITY
        keys = [t.topology_key for t in self.off if t.topology_key in labels]
        if any(self.anti[(k, labels[k])] > 0 for k in keys):
            return Reason.ANTI_AFFINITY
        if any(self.existing[pair] > 0 for pair in labels.items()):
            return Reason.EXISTING_ANTI_AFFINITY
        return 0


class PlainSpread:
    """Hard constraints of one pod; node inclusion by labels only."""

    def __init__(self, world: World, task: Task) -> None:
        self.pod = task.pod
        self.hard = [c for c in self.pod.spec.topology_spread_constraints if c.when_unsatisfiable == "DoNotSchedule"]
        self.counts: list[Counter[str]] = []
        selector = self.pod.spec.node_selector
        for c in self.hard:
            counts: Counter[str] = Counter()
            for node in world.table:
                if not all(k.topology_key in node.labels for k in self.hard):
                    continue
                if any(node.labels.get(k) != v for k, v in selector.items()):
                    continue
                own = c.label_selector
                empty = own is not None and not own.match_labels and not own.match_expressions
                counts[node.labels[c.topology_key]] += sum(
                    t.pod.namespace == self.pod.namespace
                    and t.pod.metadata.deletion_timestamp is None
                    and not empty
                    and label_selector_matches(own, t.pod.metadata.labels)
                    for t in node.tasks.values()
                    if t.view_row == node.row
                )
            self.counts.append(counts)

    def code(self, node: Node) -> int:
        for c, counts in zip(self.hard, self.counts):
            value = node.metadata.labels.get(c.topology_key)
            if value is None:
                return Reason.SPREAD_LABEL
            smallest = min(counts.values(), default=0)
            if len(counts) < (c.min_domains or 1):
                smallest = 0
            own = label_selector_matches(c.label_selector, self.pod.metadata.labels)
            if counts[value] + own - smallest > c.max_skew:
                return Reason.SPREAD
        return 0
