"""Matching labels against label selectors and node selectors, with the exact semantics of Kubernetes.

A selector is compiled once into a hashable value and then asked for many label maps:

    selector = compile_label_selector(pod_affinity_term.label_selector)
    selector.matches(pod.metadata.labels)

None (no selector) matches nothing; an empty label selector matches everything; a node selector term without
requirements matches nothing (spec 05 §4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from vcscheduler.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from vcscheduler.objects.meta import LabelSelector, LabelSelectorRequirement
from vcscheduler.objects.names import label_value_problem, qualified_name_problem
from vcscheduler.objects.quantity import MAX_INT64, MIN_INT64

LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
NODE_OPERATORS: Final = (*LABEL_OPERATORS, "Gt", "Lt")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)


class SelectorError(ValueError):
    """A selector is malformed. The message names the requirement and the rule it breaks."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label key. `bound` is the number that Gt and Lt compare with."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()
    bound: int = 0

    def matches(self, labels: Mapping[str, str]) -> bool:
        found = labels.get(self.key)
        match self.operator:
            case "In":
                return found is not None and found in self.values
            case "NotIn":
                return found is None or found not in self.values
            case "Exists":
                return found is not None
            case "DoesNotExist":
                return found is None
        number = None if found is None else _int64(found)
        if number is None:
            return False
        return number > self.bound if self.operator == "Gt" else number < self.bound


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold. None as requirements matches nothing, an empty tuple everything."""

    requirements: tuple[Requirement, ...] | None

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.requirements is None:
            return False
        return all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def matches_everything(self) -> bool:
        return self.requirements == ()

    @property
    def matches_nothing(self) -> bool:
        return self.requirements is None


NOTHING: Final = Selector(None)
EVERYTHING: Final = Selector(())


def _int64(text: str) -> int | None:
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if MIN_INT64 <= number <= MAX_INT64 else None


def compile_label_selector(selector: LabelSelector | None) -> Selector:
    """Compile a label selector.

    Raises:
        SelectorError: unknown operator, invalid key or value, or a wrong number of values.
    """
    if selector is None:
        return NOTHING
    requirements = [
        _requirement(key, "In", [value], LABEL_OPERATORS) for key, value in sorted(selector.match_labels.items())
    ]
    requirements += [
        _requirement(each.key, each.operator, each.values, LABEL_OPERATORS) for each in selector.match_expressions
    ]
    return Selector(tuple(requirements)) if requirements else EVERYTHING


def compile_label_map(labels: Mapping[str, str]) -> Selector:
    """Compile a plain `key: value` selector, as of a Service or a pod's `nodeSelector`; empty matches all."""
    return Selector(tuple(Requirement(key, "In", frozenset((value,))) for key, value in sorted(labels.items())))


def _requirement(key: str, operator: str, values: list[str], operators: tuple[str, ...]) -> Requirement:
    where = f'requirement "{key} {operator}"'
    if problem := qualified_name_problem(key):
        raise SelectorError(f'key "{key}" {problem}')
    if operator not in operators:
        raise SelectorError(f'key "{key}": operator "{operator}" is not one of {", ".join(operators)}')
    if operator in ("In", "NotIn"):
        if not values:
            raise SelectorError(f"{where} needs at least one value")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            raise SelectorError(f"{where} takes no values")
    else:
        bound = _int64(values[0]) if len(values) == 1 else None
        if bound is None:
            raise SelectorError(f"{where} needs exactly one value, an integer")
        return Requirement(key, operator, bound=bound)
    for value in values:
        if problem := label_value_problem(value):
            raise SelectorError(f'{where}: value "{value}" {problem}')
    return Requirement(key, operator, frozenset(values))


def label_selector_matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether `selector` selects an object with `labels`. Raises SelectorError if it is malformed."""
    return compile_label_selector(selector).matches(labels)


def with_requirement(selector: LabelSelector, key: str, operator: str, values: list[str]) -> LabelSelector:
    """A copy of `selector` that asks for one thing more; the original stays as it is."""
    extra = LabelSelectorRequirement(key=key, operator=operator, values=values)
    return LabelSelector(match_labels=selector.match_labels, match_expressions=[*selector.match_expressions, extra])


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """A compiled node selector term: requirements on the node's labels and on its name."""

    labels: tuple[Requirement, ...]
    names: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        if not self.labels and not self.names:
            return False
        if self.names:
            fields = {"metadata.name": node_name}
            if not all(requirement.matches(fields) for requirement in self.names):
                return False
        return all(requirement.matches(labels) for requirement in self.labels)


@dataclass(frozen=True, slots=True)
class NodeQuery:
    """A compiled node selector: a node matches if any term does."""

    terms: tuple[NodeTerm, ...]

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        return any(term.matches(labels, node_name) for term in self.terms)


def compile_node_selector_term(term: NodeSelectorTerm) -> NodeTerm:
    """Compile one term.

    Raises:
        SelectorError: a malformed requirement. Filters treat such a term as not matching, scorers fail on it.
    """
    labels = tuple(_requirement(e.key, e.operator, e.values, NODE_OPERATORS) for e in term.match_expressions)
    return NodeTerm(labels, tuple(_name_requirement(each) for each in term.match_fields))


def _name_requirement(requirement: NodeSelectorRequirement) -> Requirement:
    if requirement.key != "metadata.name":
        raise SelectorError(f'matchFields knows only the key "metadata.name", not "{requirement.key}"')
    if requirement.operator not in ("In", "NotIn"):
        raise SelectorError(f'matchFields: operator "{requirement.operator}" is not one of In, NotIn')
    if len(requirement.values) != 1:
        raise SelectorError("matchFields: metadata.name needs exactly one value")
    return Requirement(requirement.key, requirement.operator, frozenset(requirement.values))


def compile_node_selector(selector: NodeSelector) -> NodeQuery:
    """Compile a node selector. Malformed terms match no node and are left out (spec 05 §4.2)."""
    terms = []
    for term in selector.node_selector_terms:
        try:
            terms.append(compile_node_selector_term(term))
        except SelectorError:
            continue
    return NodeQuery(tuple(terms))


def node_selector_matches(selector: NodeSelector, labels: Mapping[str, str], node_name: str) -> bool:
    """Whether a node with these labels and this name is selected."""
    return compile_node_selector(selector).matches(labels, node_name)
