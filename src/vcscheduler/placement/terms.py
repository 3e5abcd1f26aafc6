"""Pod (anti-)affinity terms in their normal form, and finding the terms that match a pod (spec 05 §4.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from vcscheduler.model.task import Task
from vcscheduler.objects import Namespace, Pod, PodAffinity, PodAffinityTerm
from vcscheduler.objects.selectors import (
    NOTHING,
    Requirement,
    Selector,
    SelectorError,
    compile_label_selector,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PodTerm:
    """One term. It matches pods by namespace (listed, or selected by the namespace's labels) and labels."""

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector
    topology_key: str

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)

    def resolved(self, namespaces: Mapping[str, Namespace]) -> PodTerm:
        """The term of a pod to place: its namespace selector is replaced by the names that it selects now. One that
        selects everything stays."""
        chosen = self.namespace_selector
        if chosen.matches_nothing or chosen.matches_everything:
            return self
        names = {name for name, ns in namespaces.items() if chosen.matches(ns.metadata.labels)}
        return replace(self, namespaces=self.namespaces | names, namespace_selector=NOTHING)

    @property
    def selects_namespaces(self) -> bool:
        return not (self.namespace_selector.matches_nothing or self.namespace_selector.matches_everything)


@dataclass(frozen=True, slots=True)
class PodTerms:
    """All terms of one pod. ``error``: why they cannot be parsed. ``keys``: label keys of pods that they look at, as
    well as those of the pod itself that went into them."""

    affinity: tuple[PodTerm, ...] = ()
    anti: tuple[PodTerm, ...] = ()
    preferred: tuple[tuple[PodTerm, int], ...] = ()
    present: bool = False
    error: str = ""
    keys: frozenset[str] = frozenset()

    @property
    def held(self) -> bool:
        """Whether the pod, once placed, has a say about others."""
        return bool(self.anti or self.preferred)


NO_TERMS = PodTerms()


def pod_terms(task: Task) -> PodTerms:
    """The terms of a task's pod; preferred anti-affinity has a negative weight."""
    derived = task.cls.derived
    found = derived.get("pod terms")
    if found is None:
        affinity = task.cls.pod.spec.affinity
        if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
            found = NO_TERMS
        elif _merged_keys(affinity.pod_affinity) or _merged_keys(affinity.pod_anti_affinity):
            # Labels go into the terms, and a class does not look at labels.
            found = {}
        else:
            found = compile_terms(task.pod)
        derived["pod terms"] = found
    if isinstance(found, PodTerms):
        return found
    assert isinstance(found, dict)
    labels = frozenset(task.pod.metadata.labels.items())
    terms = found.get(labels)
    if terms is None:
        if len(found) > 4096:
            found.clear()
        terms = found[labels] = compile_terms(task.pod)
    return terms


def _merged_keys(affinity: PodAffinity | None) -> bool:
    if affinity is None:
        return False
    terms = [*affinity.required, *(w.pod_affinity_term for w in affinity.preferred)]
    return any(t.match_label_keys or t.mismatch_label_keys for t in terms)


def compile_terms(pod: Pod) -> PodTerms:
    affinity = pod.spec.affinity
    if affinity is None:
        return NO_TERMS
    to, off = affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity()
    try:
        required = tuple(_term(t, pod) for t in to.required)
        anti = tuple(_term(t, pod) for t in off.required)
        preferred = tuple((_term(w.pod_affinity_term, pod), w.weight) for w in to.preferred)
        preferred += tuple((_term(w.pod_affinity_term, pod), -w.weight) for w in off.preferred)
    except SelectorError as error:
        return PodTerms(present=True, error=str(error))
    keys: set[str] = set()
    for term in (*required, *anti, *(t for t, _ in preferred)):
        keys.update(r.key for r in term.selector.requirements or ())
    return PodTerms(required, anti, preferred, True, "", frozenset(keys))


def _term(term: PodAffinityTerm, pod: Pod) -> PodTerm:
    selector = with_label_keys(
        compile_label_selector(term.label_selector),
        pod.metadata.labels,
        term.match_label_keys,
        term.mismatch_label_keys,
    )
    if term.namespaces or term.namespace_selector is not None:
        names = frozenset(term.namespaces)
    else:
        names = frozenset((pod.metadata.namespace,))
    return PodTerm(names, compile_label_selector(term.namespace_selector), selector, term.topology_key)


def with_label_keys(
    selector: Selector, labels: Mapping[str, str], match: Iterable[str], mismatch: Iterable[str] = ()
) -> Selector:
    """``matchLabelKeys`` and ``mismatchLabelKeys`` merged into a selector, as the API server does when a pod is
    created; repeating it is harmless. An absent selector stays one."""
    if selector.requirements is None:
        return selector
    extra = [Requirement(k, "In", frozenset((labels[k],))) for k in match if k in labels]
    extra += [Requirement(k, "NotIn", frozenset((labels[k],))) for k in mismatch if k in labels]
    return Selector((*selector.requirements, *extra)) if extra else selector


class TermIndex(Generic[T]):
    """Things that have a selector, found by the labels of a pod that they may match.

    A selector that asks for certain values of a key is filed under those; only the few others are offered to every pod.
    """

    __slots__ = ("_by_label", "_general")

    def __init__(self) -> None:
        self._by_label: dict[tuple[str, str], dict[T, None]] = {}
        self._general: dict[T, None] = {}

    def add(self, item: T, selectors: Iterable[Selector]) -> None:
        for place in self._places(selectors):
            place[item] = None

    def discard(self, item: T, selectors: Iterable[Selector]) -> None:
        for place in self._places(selectors):
            place.pop(item, None)

    def _places(self, selectors: Iterable[Selector]) -> list[dict[T, None]]:
        for selector in selectors:
            if selector.requirements is None:
                return []
            for r in selector.requirements:
                if r.operator == "In":
                    return [self._by_label.setdefault((r.key, v), {}) for v in sorted(r.values)]
        return [self._general]

    def candidates(self, labels: Mapping[str, str]) -> Iterator[T]:
        """Each at most once: an item is filed under one key only."""
        yield from self._general
        by_label = self._by_label
        if by_label:
            for pair in labels.items():
                found = by_label.get(pair)
                if found:
                    yield from found
