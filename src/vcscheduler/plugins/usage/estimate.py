"""What a pod will use that was not measured yet: a part of what it requests, more on nodes that are loaded already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from vcscheduler.model.task import TaskClass
from vcscheduler.objects import Container
from vcscheduler.objects.quantity import milli_value, value
from vcscheduler.plugins.usage.options import Options

_KEY = "usage.limits"

QuantityMap = Mapping[str, str | int | float]
Convert = Callable[[str | int | float], int]


def estimate(cls: TaskClass, options: Options, risk: float) -> tuple[float, float]:
    """(milli-CPU, bytes). ``risk``: the factor of the node's load."""
    if cls.best_effort:
        return options.best_effort_cpu * risk, options.best_effort_memory * risk
    cpu_limit, memory_limit = pod_limits(cls)
    return (
        _estimate(cls.resreq.cpu, cpu_limit, options, risk),
        _estimate(cls.resreq.memory, memory_limit, options, risk),
    )


def _estimate(request: float, limit: int, options: Options, risk: float) -> float:
    most = float(limit) if limit > 0 and limit >= request else request
    amount = (request * options.request_ratio + (most - request) * options.burst_ratio) * risk
    return min(max(amount, 0.0), most)


def pod_limits(cls: TaskClass) -> tuple[int, int]:
    """Limits of CPU (milli) and memory (bytes) of a pod of the class, 0 = none (spec 01 §2.2)."""
    known = cls.derived.get(_KEY)
    if known is None:
        known = cls.derived[_KEY] = (_limit(cls, "cpu", milli_value), _limit(cls, "memory", value))
    return known  # type: ignore[return-value]


def _limit(cls: TaskClass, name: str, convert: Convert) -> int:
    pod, spec = cls.pod, cls.pod.spec
    statuses = {s.name: s.resources.limits for s in pod.status.container_statuses if s.resources is not None}
    init_statuses = {s.name: s.resources.limits for s in pod.status.init_container_statuses if s.resources is not None}

    def of(container: Container, resized: Mapping[str, QuantityMap]) -> int:
        # While a resize is under way, the larger limit holds.
        sources: Iterable[QuantityMap] = (container.resources.limits, resized.get(container.name, {}))
        return max(convert(source.get(name, 0)) for source in sources)

    total = sum(of(c, statuses) for c in spec.containers)
    sidecars = peak = 0
    for c in spec.init_containers:
        if c.restart_policy == "Always":
            amount = of(c, init_statuses)
            total += amount
            sidecars += amount
            peak = max(peak, sidecars)
        else:
            peak = max(peak, of(c, {}) + sidecars)
    total = max(total, peak)
    if spec.resources is not None and name in spec.resources.limits:
        total = convert(spec.resources.limits[name])
    if total and name in spec.overhead:
        total += convert(spec.overhead[name])
    return total
