"""What pods use by the rules of Kubernetes quotas, and what a group of them needs to start (spec 07 §8.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final, TypeAlias

from vcscheduler.objects import Container, PodSpec, ResourceList, ResourceRequirements
from vcscheduler.objects.quantity import format_binary, format_decimal, parse_quantity

Amounts: TypeAlias = dict[str, Fraction]
"""Resource name -> exact amount in units."""

_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_LIMITED: Final = _COMPUTE
_MOST_USAGES: Final = 4096
_USAGES: Final[dict[tuple[object, ...], ResourceList]] = {}
"""Usage of a number of pods alike, by that number and what they ask for."""


def amounts(resources: Mapping[str, str | int | float]) -> Amounts:
    return {name: parse_quantity(quantity) for name, quantity in resources.items()}


def add(total: Amounts, more: Mapping[str, Fraction], times: int = 1) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Fraction(0)) + amount * times


def _raise_to(total: Amounts, floor: Mapping[str, Fraction]) -> None:
    for name, amount in floor.items():
        total[name] = max(amount, total.get(name, amount))


def container_amounts(spec: PodSpec, of: Callable[[ResourceRequirements], ResourceList]) -> Amounts:
    """Containers and sidecars together, or the peak of the init containers where that is more."""
    total: Amounts = {}
    for container in spec.containers:
        add(total, amounts(of(container.resources)))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        own = amounts(of(container.resources))
        if _is_sidecar(container):
            add(total, own)
            add(sidecars, own)
            _raise_to(peak, sidecars)
        else:
            add(own, sidecars)
            _raise_to(peak, own)
    _raise_to(total, peak)
    return total


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def is_pod_level(name: str) -> bool:
    """Whether a pod as a whole can request the resource."""
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _requests(spec: PodSpec) -> Amounts:
    total = container_amounts(spec, lambda resources: resources.requests)
    if spec.resources is not None:
        total.update((name, q) for name, q in amounts(spec.resources.requests).items() if is_pod_level(name))
    add(total, amounts(spec.overhead))
    return total


def _limits(spec: PodSpec) -> Amounts:
    total = container_amounts(spec, lambda resources: resources.limits)
    if spec.resources is not None:
        total.update((name, q) for name, q in amounts(spec.resources.limits).items() if is_pod_level(name))
    add(total, {name: amount for name, amount in amounts(spec.overhead).items() if total.get(name)})
    return total


def pod_usage(spec: PodSpec) -> Amounts:
    """What a pod counts for under a quota: each request under its plain name and under ``requests.<name>``."""
    usage = {"pods": Fraction(1), "count/pods": Fraction(1)}
    for name, amount in _requests(spec).items():
        usage[name] = usage[f"requests.{name}"] = amount
    usage.update((f"limits.{name}", amount) for name, amount in _limits(spec).items() if name in _LIMITED)
    return usage


def total_usage(pods: Iterable[tuple[PodSpec, int]]) -> ResourceList:
    """The usage of so many pods of each spec, as a resource list."""
    counted = [(spec, count) for spec, count in pods if count > 0]
    if len(counted) != 1:
        return _total_usage(counted)
    # Most groups are made for one pod, and thousands of pods ask for the same.
    spec, count = counted[0]
    key = (count, *_asked(spec))
    known = _USAGES.get(key)
    if known is None:
        if len(_USAGES) >= _MOST_USAGES:
            _USAGES.clear()
        known = _USAGES[key] = _total_usage(counted)
    return dict(known)


def _asked(spec: PodSpec) -> Iterator[object]:
    """All of a pod spec that its usage depends on."""
    for containers in (spec.containers, spec.init_containers):
        for each in containers:
            yield each.restart_policy
            yield tuple(each.resources.requests.items())
            yield tuple(each.resources.limits.items())
        yield None
    yield tuple(spec.overhead.items())
    if spec.resources is not None:
        yield tuple(spec.resources.requests.items())
        yield tuple(spec.resources.limits.items())


def _total_usage(pods: Iterable[tuple[PodSpec, int]]) -> ResourceList:
    total: Amounts = {}
    for spec, count in pods:
        add(total, pod_usage(spec), count)
    return to_resource_list(total)


def to_resource_list(total: Mapping[str, Fraction]) -> ResourceList:
    return {name: _quantity(name, amount) for name, amount in total.items()}


def _quantity(name: str, amount: Fraction) -> str:
    in_bytes = any(word in name for word in ("memory", "storage", "hugepages-"))
    return format_binary(int(amount)) if in_bytes and amount.denominator == 1 else format_decimal(amount)
