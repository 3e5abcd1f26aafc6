"""Kubernetes' filters and scorers for one pod and one node at a time, straight from the texts (spec 05 §4-6).

Part of the oracle: every answer is worked out from the pods that are on the nodes at that moment. Nothing is kept in
columns, nothing is counted along, nothing here comes from the placement package.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from vcscheduler.config import Arguments
from vcscheduler.model.fit import Status
from vcscheduler.model.nodes import Node
from vcscheduler.model.requests import KubeRequest, host_ports, kube_request
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import PIPELINED, Code
from vcscheduler.model.task import Task
from vcscheduler.objects import Pod, PodAffinityTerm, TopologySpreadConstraint
from vcscheduler.objects.core import Taint
from vcscheduler.objects.quantity import milli_value, value
from vcscheduler.objects.selectors import label_selector_matches, node_selector_matches

U, UU = Code.UNSCHEDULABLE, Code.UNRESOLVABLE
HOSTNAME = "kubernetes.io/hostname"
GPU = "nvidia.com/gpu"


def request_of(pod: Pod) -> KubeRequest:
    return kube_request(pod)


@dataclass(slots=True)
class Place:
    """A node and the pods that Kubernetes would see there, in order of arrival."""

    node: Node
    tasks: list[Task] = field(default_factory=list)

    @property
    def labels(self) -> dict[str, str]:
        return self.node.labels

    def allocatable(self, name: str) -> int:
        assert self.node.object is not None
        q = self.node.object.status.allocatable.get(name, 0)
        return milli_value(q) if name == "cpu" else value(q)

    @property
    def taints(self) -> list[Taint]:
        assert self.node.object is not None
        return self.node.object.spec.taints


# --- terms --------------------------------------------------------------------------------------------------------


def required(pod: Pod, kind: str) -> list[PodAffinityTerm]:
    side = None if pod.spec.affinity is None else getattr(pod.spec.affinity, kind)
    return [] if side is None else side.required


def preferred(pod: Pod) -> list[tuple[int, PodAffinityTerm]]:
    """Preferred terms with their weight, those of anti-affinity negative."""
    found = []
    for kind, sign in (("pod_affinity", 1), ("pod_anti_affinity", -1)):
        side = None if pod.spec.affinity is None else getattr(pod.spec.affinity, kind)
        found += [] if side is None else [(sign * w.weight, w.pod_affinity_term) for w in side.preferred]
    return found


def has_affinity(pod: Pod) -> bool:
    a = pod.spec.affinity
    return a is not None and (a.pod_affinity is not None or a.pod_anti_affinity is not None)


def selects(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    """The random clusters have no namespace selectors; those are tested where they are implemented."""
    assert term.namespace_selector is None
    namespaces = term.namespaces or [owner.namespace]
    return other.namespace in namespaces and label_selector_matches(term.label_selector, other.metadata.labels)


def tolerates(pod: Pod, taint: Taint) -> bool:
    return any(
        (t.effect in ("", taint.effect))
        and (t.key in ("", taint.key))
        and (t.operator == "Exists" or (t.operator in ("", "Equal") and t.value == taint.value))
        for t in pod.spec.tolerations
    )


def untolerated(pod: Pod, taints: Iterable[Taint]) -> bool:
    return any(t.effect in ("NoSchedule", "NoExecute") and not tolerates(pod, t) for t in taints)


def affine(pod: Pod, node: Node) -> bool:
    if any(node.labels.get(k) != v for k, v in pod.spec.node_selector.items()):
        return False
    side = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    return side is None or side.required is None or node_selector_matches(side.required, node.labels, node.name)


# --- filters ------------------------------------------------------------------------------------------------------


def shortage(request: Resources, free: Resources) -> str | None:
    """The first resource of which there is not enough."""
    short = request.exceeding(free)
    return short[0] if short else None


class PreFiltered:
    """What PrePredicate finds out about a pod: pods by topology domain. ``frozen``: names of the nodes that had
    required anti-affinity when the session opened."""

    def __init__(self, task: Task, places: list[Place], frozen: set[str]) -> None:
        self.pod = pod = task.pod
        self.affinity, self.anti, self.existing = Counter[object](), Counter[object](), Counter[object]()
        to, off = required(pod, "pod_affinity"), required(pod, "pod_anti_affinity")
        for place in places:
            for other in (t.pod for t in place.tasks):
                labels = place.labels
                if to and all(selects(t, pod, other) for t in to):
                    self.affinity.update(
                        (t.topology_key, labels[t.topology_key]) for t in to if t.topology_key in labels
                    )
                self.anti.update(
                    (t.topology_key, labels[t.topology_key])
                    for t in off
                    if t.topology_key in labels and selects(t, pod, other)
                )
                if place.node.name in frozen:
                    self.existing.update(
                        (t.topology_key, labels[t.topology_key])
                        for t in required(other, "pod_anti_affinity")
                        if t.topology_key in labels and selects(t, other, pod)
                    )
        self.skips_affinity = not (self.existing or to or off)
        self.hard = [c for c in pod.spec.topology_spread_constraints if c.when_unsatisfiable == "DoNotSchedule"]
        self.domains = [self._domains(c, places) for c in self.hard]

    def _domains(self, c: TopologySpreadConstraint, places: list[Place]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for place in places:
            if all(k.topology_key in place.labels for k in self.hard) and included(c, self.pod, place):
                domain = place.labels[c.topology_key]
                counts[domain] = counts.get(domain, 0) + spread_count(c, self.pod, place)
        return counts


def included(c: TopologySpreadConstraint, pod: Pod, place: Place) -> bool:
    if (c.node_affinity_policy or "Honor") == "Honor" and not affine(pod, place.node):
        return False
    return not ((c.node_taints_policy or "Ignore") == "Honor" and untolerated(pod, place.taints))


def spread_count(c: TopologySpreadConstraint, pod: Pod, place: Place) -> int:
    s = c.label_selector
    if s is not None and not s.match_labels and not s.match_expressions:
        return 0
    return sum(
        t.pod.namespace == pod.namespace
        and t.pod.metadata.deletion_timestamp is None
        and label_selector_matches(s, t.pod.metadata.labels)
        for t in place.tasks
    )


def predicate(task: Task, place: Place, state: PreFiltered, *, skips_affinity: bool) -> list[Status]:
    """All that Kubernetes' filters have to say against the node, up to what no eviction can help."""
    pod, node, found = task.pod, place.node, []
    assert node.object is not None

    def stop(reason: str) -> list[Status]:
        return [*found, Status(UU, reason)]

    if place.allocatable("pods") <= len(place.tasks):
        found.append(Status(U, "node(s) pod number exceeded"))
    cordon = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    if node.object.spec.unschedulable and not tolerates(pod, cordon):
        return stop("node(s) were unschedulable")
    if not affine(pod, node):
        return stop("node(s) didn't match Pod's node affinity/selector")
    if untolerated(pod, place.taints):
        return stop("node(s) had untolerated taint(s)")
    used = [p for t in place.tasks for p in host_ports(t.pod)]
    if any(
        proto == proto2 and port == port2 and (ip == ip2 or "0.0.0.0" in (ip, ip2))
        for ip, proto, port in host_ports(pod)
        for ip2, proto2, port2 in used
    ):
        found.append(Status(U, "node(s) didn't have free ports for the requested pod ports"))
    if not skips_affinity:
        status = inter_pod(pod, place, state)
        if status is not None:
            found.append(status)
            if status.code is UU:
                return found
    for c, counts in zip(state.hard, state.domains):
        domain = place.labels.get(c.topology_key)
        text = "node(s) didn't match pod topology spread constraints"
        if domain is None:
            return stop(f"{text} (missing required label)")
        least = min(counts.values(), default=0) if len(counts) >= (c.min_domains or 1) else 0
        own = label_selector_matches(c.label_selector, pod.metadata.labels)
        if counts.get(domain, 0) + own - least > c.max_skew:
            found.append(Status(U, text))
            break
    return found


def inter_pod(pod: Pod, place: Place, state: PreFiltered) -> Status | None:
    labels, to = place.labels, required(pod, "pod_affinity")
    lacking = any(t.topology_key not in labels for t in to)
    if lacking or any(state.affinity[(t.topology_key, labels[t.topology_key])] <= 0 for t in to):
        first = not lacking and not state.affinity and all(selects(t, pod, pod) for t in to)
        if not first:
            return Status(UU, "node(s) didn't match pod affinity rules")
    for t in required(pod, "pod_anti_affinity"):
        if t.topology_key in labels and state.anti[(t.topology_key, labels[t.topology_key])] > 0:
            return Status(U, "node(s) didn't match pod anti-affinity rules")
    if any(state.existing[pair] > 0 for pair in labels.items()):
        return Status(U, "node(s) didn't satisfy existing pods anti-affinity rules")
    return None


# --- scores -------------------------------------------------------------------------------------------------------


def normalised(raw: list[int], *, reverse: bool) -> list[int]:
    largest = max(0, *raw)
    if largest == 0:
        return [100 if reverse else 0] * len(raw)
    return [100 - 100 * s // largest if reverse else 100 * s // largest for s in raw]


def evenness(used: list[int], caps: list[int]) -> int:
    f = [min(1.0, u / c) for u, c in zip(used, caps) if c > 0]
    std = 0.0
    if len(f) == 2:
        std = abs(f[0] - f[1]) / 2
    elif len(f) > 2:
        mean = sum(f) / len(f)
        std = math.sqrt(sum((x - mean) * (x - mean) for x in f) / len(f))
    return int((1.0 - std) * 100.0)


def resource_scores(pod: Pod, place: Place, least: int, most: int, balanced: int) -> int:
    r, held = request_of(pod), [request_of(t.pod) for t in place.tasks]
    caps = [place.allocatable("cpu"), place.allocatable("memory"), place.allocatable(GPU)]
    wants = [sum(h.nonzero_cpu for h in held) + r.scored_cpu, sum(h.nonzero_memory for h in held) + r.scored_memory]
    pairs = [(w, c) for w, c in zip(wants, caps) if c > 0]
    total = 0
    if pairs and least:
        total += least * (sum(50 * (0 if w > c else (c - w) * 100 // c) for w, c in pairs) // (50 * len(pairs)))
    if pairs and most:
        total += most * (sum(min(w, c) * 100 // c for w, c in pairs) // len(pairs))
    if balanced and (r.cpu or r.memory or r.gpu):
        before = [sum(h.cpu for h in held), sum(h.memory for h in held), sum(h.gpu for h in held)]
        after = [b + x for b, x in zip(before, (r.cpu, r.memory, r.gpu))]
        n = 3 if r.gpu else 2
        change = 50 + evenness(after[:n], caps[:n]) - evenness(before[:n], caps[:n])
        total += balanced * (50 + int(Fraction(change, 2)))
    return total


def pod_affinity_scores(task: Task, candidates: list[Place], places: list[Place], frozen: set[str]) -> list[int] | None:
    pod, terms = task.pod, preferred(task.pod)
    sums: Counter[tuple[str, str]] = Counter()
    touched = False
    for place in places:
        if not place.labels:
            continue
        for other in (t.pod for t in place.tasks):
            if not terms and (place.node.name not in frozen or not has_affinity(other)):
                continue
            pairs = [(w, t) for w, t in terms if selects(t, pod, other)]
            pairs += [(w, t) for w, t in preferred(other) if selects(t, other, pod)]
            for weight, term in pairs:
                if term.topology_key in place.labels:
                    sums[(term.topology_key, place.labels[term.topology_key])] += weight
                    touched = True
    if not touched:
        return None
    raw = [sum(sums[pair] for pair in place.labels.items()) for place in candidates]
    low, high = min(raw), max(raw)
    return [int(100.0 * ((x - low) / (high - low))) if high > low else 0 for x in raw]


def spread_scores(task: Task, candidates: list[Place], places: list[Place]) -> list[int] | None:
    """Of the pod's own soft constraints; the random clusters have no Services that would give it others."""
    pod = task.pod
    soft = [c for c in pod.spec.topology_spread_constraints if c.when_unsatisfiable == "ScheduleAnyway"]
    if not soft:
        return None

    def keyed(place: Place) -> bool:
        return all(c.topology_key in place.labels for c in soft)

    kept = [p for p in candidates if keyed(p)]
    figures = []
    for c in soft:
        key = c.topology_key
        domains = {p.labels[key] for p in kept}
        size = len(kept) if key == HOSTNAME else len(domains)
        counts: Counter[str] = Counter()
        if key != HOSTNAME:
            for p in places:
                if keyed(p) and included(c, pod, p) and p.labels[key] in domains:
                    counts[p.labels[key]] += spread_count(c, pod, p)
        figures.append((c, math.log(size + 2), counts))
    raw: dict[str, int] = {}
    for p in kept:
        score = 0.0
        for c, weight, counts in figures:
            n = spread_count(c, pod, p) if c.topology_key == HOSTNAME else counts[p.labels[c.topology_key]]
            score += n * weight + (c.max_skew - 1)
        raw[p.node.name] = math.floor(score + 0.5)
    high, low = max(raw.values(), default=0), min(raw.values(), default=0)
    return [
        0 if p.node.name not in raw else 100 if high == 0 else 100 * (high + low - raw[p.node.name]) // high
        for p in candidates
    ]


def nodeorder_scores(
    task: Task, candidates: list[Place], places: list[Place], arguments: Arguments, frozen: set[str]
) -> list[float]:
    """The batch part. Images are left out: the random clusters have none."""
    pod = task.pod
    weight = arguments.get_int
    least, most = weight("leastrequested.weight", 1), weight("mostrequested.weight", 0)
    balanced = weight("balancedresource.weight", 1)
    total = [resource_scores(pod, p, least, most, balanced) for p in candidates]

    def add(key: str, default: int, scores: list[int] | None) -> None:
        if scores is not None:
            for i, s in enumerate(scores):
                total[i] += weight(key, default) * s

    side = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if side is not None and side.preferred:
        raw = [
            sum(
                t.weight
                for t in side.preferred
                if all(e.matches(p.labels) for e in _requirements(t.preference.match_expressions))
                and t.preference.match_expressions
            )
            for p in candidates
        ]
        add("nodeaffinity.weight", 2, normalised(raw, reverse=False))
    soft = [
        sum(
            t.effect == "PreferNoSchedule" and not any(_tolerates_soft(x, t) for x in pod.spec.tolerations)
            for t in p.taints
        )
        for p in candidates
    ]
    add("tainttoleration.weight", 3, normalised(soft, reverse=True))
    add("podaffinity.weight", 2, pod_affinity_scores(task, candidates, places, frozen))
    add("podtopologyspread.weight", 2, spread_scores(task, candidates, places))
    return [float(t) for t in total]


@dataclass(frozen=True, slots=True)
class _Plain:
    key: str
    operator: str
    values: tuple[str, ...]

    def matches(self, labels: dict[str, str]) -> bool:
        v = labels.get(self.key)
        match self.operator:
            case "In":
                return v in self.values
            case "NotIn":
                return v not in self.values
            case "Exists":
                return v is not None
            case "DoesNotExist":
                return v is None
            case _:
                raise NotImplementedError(self.operator)


def _requirements(expressions: Iterable[object]) -> list[_Plain]:
    return [_Plain(e.key, e.operator, tuple(e.values)) for e in expressions]  # type: ignore[attr-defined]


def _tolerates_soft(toleration: object, taint: Taint) -> bool:
    pod = Pod()
    pod.spec.tolerations = [toleration]  # type: ignore[list-item]
    return toleration.effect in ("", "PreferNoSchedule") and tolerates(pod, taint)  # type: ignore[attr-defined]


def binpack_score(task: Task, node: Node, arguments: Arguments) -> float:
    def positive(key: str) -> int:
        n = arguments.get_int(key, 1)
        return n if n >= 0 else 1

    listed = [n.strip() for n in arguments.get_str("binpack.resources", "").split(",")]
    weights = {n: positive(f"binpack.resources.{n}") for n in sorted(filter(None, listed))}
    ordered = {"cpu": positive("binpack.cpu"), "memory": positive("binpack.memory")}
    ordered |= {n: w for n, w in weights.items() if n not in ordered}
    assert node.object is not None
    caps = Resources.from_list(node.object.status.allocatable)
    used = Resources(scalars={})
    for t in node.tasks.values():
        if t.status is not PIPELINED:
            used.add(t.resreq)
    score, total = 0.0, 0.0
    for name, w in ordered.items():
        wanted = task.resreq.get(name)
        if wanted < 0.1:
            continue
        total += w
        cap = caps.get(name)
        if cap == 0 or w == 0:
            continue
        if wanted + used.get(name) > cap:
            return 0.0
        score += (wanted + used.get(name)) * w / cap
    if total > 0:
        score /= total
    return score * (100.0 * arguments.get_int("binpack.weight", 1))
