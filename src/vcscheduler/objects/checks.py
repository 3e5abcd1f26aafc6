"""The small checks that validation is made of; each raises `InvalidField` with the path of the field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from vcscheduler.objects.affinity import NodeSelector, NodeSelectorTerm
from vcscheduler.objects.errors import InvalidField, Path, did_you_mean, show_value
from vcscheduler.objects.meta import LabelSelector
from vcscheduler.objects.names import (
    dns_label_problem,
    dns_subdomain_problem,
    label_value_problem,
    qualified_name_problem,
)
from vcscheduler.objects.quantity import MAX_INT64, QuantityError, QuantityLike, ResourceList, parse_quantity
from vcscheduler.objects.selectors import SelectorError, compile_label_selector, compile_node_selector_term

MAX_INT32: Final = 2**31 - 1
MIN_INT32: Final = -(2**31)


def one_of(path: Path, found: str | None, allowed: Sequence[str], *, required: bool = False) -> None:
    """`found` must be one of the `allowed` words; empty is fine unless `required`."""
    if not found:
        if required:
            raise InvalidField(path, f"missing, allowed are {', '.join(allowed)}")
        return
    if found not in allowed:
        hint = did_you_mean(found, allowed)
        raise InvalidField(path, f"found {show_value(found)}, allowed are {', '.join(allowed)}{hint}")


def at_least(path: Path, number: int | None, minimum: int = 0, maximum: int = MAX_INT32) -> None:
    """`number`, when given, must lie between `minimum` and `maximum`."""
    if number is not None and not minimum <= number <= maximum:
        upper = "" if number < minimum and maximum == MAX_INT32 else f" and at most {maximum}"
        raise InvalidField(path, f"found {number}, allowed is a number of at least {minimum}{upper}")


def required(path: Path, text: str) -> None:
    if not text:
        raise InvalidField(path, "missing")


@lru_cache(maxsize=65536, typed=True)
def _quantity_problem(text: QuantityLike) -> str:
    try:
        amount = parse_quantity(text)
    except QuantityError as error:
        return str(error)
    if amount < 0:
        return f"found {show_value(text)}, a quantity must not be negative"
    if amount > MAX_INT64:
        return f"found {show_value(text)}, which is more than a 64-bit number can hold"
    return ""


def quantity(path: Path, text: QuantityLike | None) -> None:
    """A quantity must parse, be non-negative and fit into int64."""
    if text is not None and (problem := _quantity_problem(text)):
        raise InvalidField(path, problem)


def quantities(path: Path, resources: ResourceList | None) -> None:
    """`quantity` for each entry of a resource list."""
    if resources:
        for name, text in resources.items():
            if problem := _quantity_problem(text):
                raise InvalidField((*path, name), problem)


def subdomain(path: Path, name: str | None) -> None:
    """A reference to an object by name; empty is fine."""
    if name and (problem := dns_subdomain_problem(name)):
        raise InvalidField(path, f"found {show_value(name)}, a name {problem}")


def dns_label(path: Path, name: str) -> None:
    if name and (problem := dns_label_problem(name)):
        raise InvalidField(path, f"found {show_value(name)}, a name {problem}")


def labels(path: Path, found: dict[str, str]) -> None:
    for key, value in found.items():
        if problem := qualified_name_problem(key):
            raise InvalidField((*path, key), f"the key {problem}", at_key=True)
        if problem := label_value_problem(value):
            raise InvalidField((*path, key), f"found {show_value(value)}, a label value {problem}")


def annotation_keys(path: Path, found: dict[str, str]) -> None:
    for key in found:
        if problem := qualified_name_problem(key):
            raise InvalidField((*path, key), f"the key {problem}", at_key=True)


def label_selector(path: Path, selector: LabelSelector | None) -> None:
    try:
        compile_label_selector(selector)
    except SelectorError as error:
        raise InvalidField(path, str(error)) from None


def node_selector_term(path: Path, term: NodeSelectorTerm) -> None:
    try:
        compile_node_selector_term(term)
    except SelectorError as error:
        raise InvalidField(path, str(error)) from None


def node_selector(path: Path, selector: NodeSelector | None) -> None:
    if selector is not None:
        for index, term in enumerate(selector.node_selector_terms):
            node_selector_term((*path, "nodeSelectorTerms", index), term)


def unique(path: Path, names: Iterable[str], field: str = "name") -> None:
    """No two items of the list at `path` may carry the same name; empty ones do not count."""
    seen: dict[str, int] = {}
    for index, name in enumerate(names):
        first = seen.setdefault(name, index)
        if name and first != index:
            raise InvalidField((*path, index, field), f"found {show_value(name)} again, item {first} has it too")
