"""What the codes of the ``predicates`` filter mean: status code, text, and the Kubernetes plugin that says so."""

from __future__ import annotations

from vcscheduler.model.fit import Status
from vcscheduler.model.status import Code
from vcscheduler.placement.rules import Reason

NODE_AFFINITY = "NodeAffinity"
NODE_PORTS = "NodePorts"
INTER_POD_AFFINITY = "InterPodAffinity"
NODE_VOLUME_LIMITS = "NodeVolumeLimits"
VOLUME_ZONE = "VolumeZone"
POD_TOPOLOGY_SPREAD = "PodTopologySpread"
VOLUME_BINDING = "VolumeBinding"
DYNAMIC_RESOURCES = "DynamicResources"

#: A code of the filter's own, beside those of Reason: the predicate cache says no (spec 05 §3.5).
CACHED = 1 << 20

_U, _UU = Code.UNSCHEDULABLE, Code.UNRESOLVABLE

_STATUS: dict[int, Status] = {
    Reason.POD_NUMBER: Status(_U, "node(s) pod number exceeded", "predicates"),
    CACHED: Status(Code.ERROR, "plugin equivalence cache predicates failed", "predicate.CacheEnable"),
    Reason.UNSCHEDULABLE: Status(_UU, "node(s) were unschedulable", "NodeUnschedulable"),
    Reason.NODE_AFFINITY: Status(_UU, "node(s) didn't match Pod's node affinity/selector", NODE_AFFINITY),
    Reason.TAINT: Status(_UU, "node(s) had untolerated taint(s)", "TaintToleration"),
    Reason.PORTS: Status(_U, "node(s) didn't have free ports for the requested pod ports", NODE_PORTS),
    Reason.AFFINITY: Status(_UU, "node(s) didn't match pod affinity rules", INTER_POD_AFFINITY),
    Reason.ANTI_AFFINITY: Status(_U, "node(s) didn't match pod anti-affinity rules", INTER_POD_AFFINITY),
    Reason.EXISTING_ANTI_AFFINITY: Status(
        _U, "node(s) didn't satisfy existing pods anti-affinity rules", INTER_POD_AFFINITY
    ),
    Reason.VOLUME_LIMITS: Status(_U, "node(s) exceed max volume count", NODE_VOLUME_LIMITS),
    Reason.VOLUME_ZONE: Status(_UU, "node(s) had no available volume zone", VOLUME_ZONE),
    Reason.SPREAD_LABEL: Status(
        _UU,
        "node(s) didn't match pod topology spread constraints (missing required label)",
        POD_TOPOLOGY_SPREAD,
    ),
    Reason.SPREAD: Status(_U, "node(s) didn't match pod topology spread constraints", POD_TOPOLOGY_SPREAD),
}

#: One rule gives these, all that apply in one status, in this order (spec 05 §4.9).
_VOLUME_BINDING: dict[int, str] = {
    Reason.VOLUME_NODE: "node(s) had volume node affinity conflict",
    Reason.VOLUME_BIND: "node(s) didn't find available persistent volumes to bind",
    Reason.VOLUME_SPACE: "node(s) did not have enough free storage",
    Reason.VOLUME_LOST: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}

_KNOWN: dict[int, tuple[Status, ...]] = {}


def statuses(code: int) -> tuple[Status, ...]:
    """Statuses behind a code, in the order in which the rules are asked; without the text of Reason.ERROR."""
    found = _KNOWN.get(code)
    if found is None:
        found = tuple(status for bit, status in _STATUS.items() if code & bit)
        volumes = [text for bit, text in _VOLUME_BINDING.items() if code & bit]
        if volumes:
            found = (*found, Status(_UU, ", ".join(volumes), VOLUME_BINDING))
        _KNOWN[code] = found
    return found
