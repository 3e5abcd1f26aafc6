"""rescheduling: evicts pods from busy nodes for idle ones to take, now and then (spec 05 §11).

The plugin only names victims; the shuffle action evicts them. Both need a source of measured load (``metrics``).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from vcscheduler.config import Arguments
from vcscheduler.config.durations import DurationError, parse_duration
from vcscheduler.framework.plugin import Plugin
from vcscheduler.model.nodes import Node
from vcscheduler.model.requests import QuantityMap
from vcscheduler.model.task import Task
from vcscheduler.objects.quantity import milli_value, value
from vcscheduler.plugins.usage.load import PERIOD, NodeLoad, node_loads

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

log = logging.getLogger(__name__)

LOW_NODE_UTILIZATION = "lowNodeUtilization"
RESOURCES = ("cpu", "memory")
_DEFAULT_INTERVAL = 300.0
_DEFAULT_THRESHOLD = 100.0
_QUALITIES = ("BestEffort", "Burstable", "Guaranteed")
_BEST_EFFORT, _BURSTABLE, _GUARANTEED = range(3)

Amounts = dict[str, float]
"""Something by resource, ``cpu`` and ``memory``."""


@dataclass(slots=True)
class _Strategy:
    name: str = ""
    params: dict[str, Any] = field(default_factory=dict)


class ReschedulingPlugin(Plugin):
    name = "rescheduling"
    known_arguments: ClassVar[dict[str, str]] = {"interval": "str", "metricsPeriod": "str", "strategies": "any"}

    def on_session_open(self, ssn: Session) -> None:
        loads = node_loads(ssn)
        if not self._due(ssn):
            return
        period = self.arguments.get_str("metricsPeriod", "5m")
        if period != PERIOD:
            # Every utilisation reads 0 then, and nobody is evicted (Quirk, spec 05 §11).
            log.warning("plugin rescheduling: load is kept for metricsPeriod %s only, not for %s", PERIOD, period)
            loads = {}
        rules = []
        for strategy in self.arguments.decode("strategies", list[_Strategy], []):
            if strategy.name == LOW_NODE_UTILIZATION:
                params = Arguments(strategy.params, f"strategy {strategy.name} of plugin {self.name}")
                rules.append(LowNodeUtilization(ssn, loads, params).victims)
            else:
                log.warning("plugin rescheduling: strategy %r is not known; it has no effect", strategy.name)
        ssn.add_victim_tasks_fn(self.name, list(rules))

    def _due(self, ssn: Session) -> bool:
        """Once an interval; the first one begins with the first session."""
        try:
            interval = parse_duration(self.arguments.decode("interval", str, "5m"))
        except DurationError as error:
            log.warning("plugin rescheduling: interval: %s; 5m is used", error)
            interval = _DEFAULT_INTERVAL
        last = ssn.store.setdefault("rescheduling.last", ssn.now)
        assert isinstance(last, datetime)
        if last + timedelta(seconds=interval) >= ssn.now:
            return False
        ssn.store["rescheduling.last"] = ssn.now
        return True


class LowNodeUtilization:
    """Victims on nodes above a target, as long as nodes below a threshold have room up to the target."""

    def __init__(self, ssn: Session, loads: Mapping[str, NodeLoad], params: Arguments) -> None:
        self._ssn = ssn
        self._loads = loads
        self._thresholds = _percents(params, "thresholds")
        self._targets = _percents(params, "targetThresholds")

    def victims(self, running: list[Task]) -> list[Task]:
        nodes = sorted(self._ssn.table, key=lambda n: n.name)
        use = {node.name: self._utilization(node) for node in nodes}
        low = [n for n in nodes if not n.unschedulable and _all_below(use[n.name], self._thresholds)]
        low_names = {n.name for n in low}
        high = [n for n in nodes if n.name not in low_names and _any_above(use[n.name], self._targets)]
        if not low or not high or len(low) == len(nodes):
            return []
        budget = self._budget(low, use)
        high.sort(key=lambda n: -(use[n.name]["cpu"] + use[n.name]["memory"]))
        by_name: dict[str, Task] = {}
        for task in running:
            # Pods of other namespaces with an equal name are taken for the same (Quirk).
            by_name.setdefault(task.name, task)
        return [victim for node in high for victim in self._from(node, use[node.name], budget, by_name)]

    def _utilization(self, node: Node) -> Amounts:
        load = self._loads.get(node.name)
        return {"cpu": load.cpu, "memory": load.memory} if load is not None else {"cpu": 0.0, "memory": 0.0}

    def _budget(self, low: list[Node], use: dict[str, Amounts]) -> Amounts:
        """What the low nodes can take until they reach the target."""
        budget: Amounts = dict.fromkeys(RESOURCES, 0.0)
        for node in low:
            assert node.object is not None
            capacity = _amounts(node.object.status.allocatable or node.object.status.capacity)
            for r in RESOURCES:
                budget[r] += int(self._targets[r] * capacity[r] * 0.01) - int(use[node.name][r] * capacity[r] * 0.01)
        return budget

    def _from(self, node: Node, use: Amounts, budget: Amounts, running: dict[str, Task]) -> list[Task]:
        """Victims of one node; ``use`` and ``budget`` go down with each. A budget that went below nothing ends
        nothing any more (Quirk)."""
        assert node.object is not None
        capacity = _amounts(node.object.status.capacity)
        victims = []
        for pod in sorted(node.sorted_tasks(), key=_eviction_rank):
            if not any(use[r] >= self._targets[r] for r in RESOURCES) or 0 in budget.values():
                break
            victim = running.get(pod.name)
            if victim is None:
                continue
            victims.append(victim)
            for r in RESOURCES:
                request = victim.resreq.get(r)
                budget[r] -= request
                if capacity[r]:
                    use[r] -= request * 100 / capacity[r]
        return victims


def _percents(params: Arguments, key: str) -> Amounts:
    given = params.decode(key, dict[str, float], {})
    return {r: given.get(r, _DEFAULT_THRESHOLD) for r in RESOURCES}


def _all_below(use: Amounts, limits: Amounts) -> bool:
    return all(use[r] < limits[r] for r in RESOURCES)


def _any_above(use: Amounts, limits: Amounts) -> bool:
    return any(use[r] > limits[r] for r in RESOURCES)


def _amounts(quantities: QuantityMap) -> Amounts:
    return {"cpu": float(milli_value(quantities.get("cpu", 0))), "memory": float(value(quantities.get("memory", 0)))}


def _eviction_rank(task: Task) -> tuple[bool, int, int]:
    """Pods without a priority first, then the lower one; of equal ones those with fewer promises."""
    priority = task.pod.spec.priority
    return (priority is not None, priority or 0, quality_of_service(task))


def quality_of_service(task: Task) -> int:
    """Kubernetes' class of the pod: nothing requested, something, or all of it with equal limits."""
    pod = task.pod
    if pod.status.qos_class in _QUALITIES:
        return _QUALITIES.index(pod.status.qos_class)
    parts = [c.resources for c in (*pod.spec.containers, *pod.spec.init_containers)]
    if pod.spec.resources is not None and (pod.spec.resources.requests or pod.spec.resources.limits):
        parts = [pod.spec.resources]
    requests = [_amounts(part.requests) for part in parts]
    limits = [_amounts(part.limits) for part in parts]
    if not any(amount for each in (*requests, *limits) for amount in each.values()):
        return _BEST_EFFORT
    guaranteed = all(
        limit[r] > 0 and (asked[r] == limit[r] or r not in part.requests)
        for part, asked, limit in zip(parts, requests, limits)
        for r in RESOURCES
    )
    return _GUARANTEED if guaranteed else _BURSTABLE
