"""Network topologies in a few words, and cluster T of spec 06: six nodes in three racks in two rows."""

from __future__ import annotations

from typing import Any

import msgspec

from lab import Lab, configuration
from vcscheduler.objects import HyperNode

PLUGIN = "network-topology-aware"


def hyper_node(name: str, tier: int, *members: str | dict[str, Any], tier_name: str = "") -> HyperNode:
    """Members: ``node/NAME``, ``hyper/NAME``, ``regex/PATTERN``, ``label/KEY=VALUE``, or a member as in YAML."""
    spec = {"tier": tier, "tierName": tier_name, "members": [_member(m) for m in members]}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, HyperNode)


def _member(text: str | dict[str, Any]) -> dict[str, Any]:
    if isinstance(text, dict):
        return text
    kind, _, value = text.partition("/")
    if kind == "regex":
        selector: dict[str, Any] = {"regexMatch": {"pattern": value}}
    elif kind == "label":
        key, _, wanted = value.partition("=")
        selector = {"labelMatch": {"matchLabels": {key: wanted}}}
    else:
        selector = {"exactMatch": {"name": value}}
    return {"type": "HyperNode" if kind == "hyper" else "Node", "selector": selector}


TREE = (
    hyper_node("A", 1, "node/a1", "node/a2", tier_name="rack"),
    hyper_node("B", 1, "node/b1", "node/b2", tier_name="rack"),
    hyper_node("C", 1, "node/c1", "node/c2", tier_name="rack"),
    hyper_node("P", 2, "hyper/A", "hyper/B", tier_name="row"),
    hyper_node("Q", 2, "hyper/C", tier_name="row"),
    hyper_node("R", 3, "hyper/P", "hyper/Q", tier_name="hall"),
)


def lab_t(plugins: Any = (), actions: str = "allocate", arguments: dict[str, Any] | None = None) -> Lab:
    """Cluster T with priority, gang and the topology plugin; ``plugins`` come in addition."""
    topology = {"name": PLUGIN, "arguments": arguments or {}}
    lab = Lab(configuration([["priority", "gang"], [topology, *plugins]], actions)).queue("q")
    for name in ("a1", "a2", "b1", "b2", "c1", "c2"):
        lab.node(name, cpu=4, memory="8Gi")
    return lab.add(*TREE)


def hard(tier: int) -> dict[str, Any]:
    return {"networkTopology": {"mode": "hard", "highestTierAllowed": tier}}


SOFT: dict[str, Any] = {"networkTopology": {"mode": "soft"}}
