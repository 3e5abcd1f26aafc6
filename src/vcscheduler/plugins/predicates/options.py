"""Arguments of the ``predicates`` plugin (spec 05 §3.1)."""

from __future__ import annotations

from dataclasses import dataclass

from vcscheduler.config import Arguments

KNOWN_ARGUMENTS = {
    "predicate.NodeAffinityEnable": "bool",
    "predicate.NodePortsEnable": "bool",
    "predicate.TaintTolerationEnable": "bool",
    "predicate.PodAffinityEnable": "bool",
    "predicate.NodeVolumeLimitsEnable": "bool",
    "predicate.VolumeZoneEnable": "bool",
    "predicate.PodTopologySpreadEnable": "bool",
    "predicate.VolumeBindingEnable": "bool",
    "predicate.DynamicResourceAllocationEnable": "bool",
    "predicate.CacheEnable": "bool",
    "volumebinding.bindTimeoutSeconds": "int",
    "volumebinding.weight": "int",
    "volumebinding.shape": "any",
    "dynamicresources.filterTimeoutSeconds": "int",
}


@dataclass(frozen=True, slots=True)
class Options:
    """Which rules are on. Cordons and the number of pods are always looked at, and whether DynamicResources is on is no
    matter of arguments (Quirk: ``predicate.DynamicResourceAllocationEnable`` is never read)."""

    node_affinity: bool
    node_ports: bool
    taint_toleration: bool
    pod_affinity: bool
    volume_limits: bool
    volume_zone: bool
    topology_spread: bool
    volume_binding: bool
    cache: bool
    bind_timeout_seconds: int

    @classmethod
    def read(cls, arguments: Arguments) -> Options:
        return cls(
            node_affinity=arguments.get_bool("predicate.NodeAffinityEnable", True),
            node_ports=arguments.get_bool("predicate.NodePortsEnable", True),
            taint_toleration=arguments.get_bool("predicate.TaintTolerationEnable", True),
            pod_affinity=arguments.get_bool("predicate.PodAffinityEnable", True),
            volume_limits=arguments.get_bool("predicate.NodeVolumeLimitsEnable", True),
            volume_zone=arguments.get_bool("predicate.VolumeZoneEnable", True),
            topology_spread=arguments.get_bool("predicate.PodTopologySpreadEnable", True),
            volume_binding=arguments.get_bool("predicate.VolumeBindingEnable", True),
            cache=arguments.get_bool("predicate.CacheEnable", False),
            bind_timeout_seconds=arguments.decode("volumebinding.bindTimeoutSeconds", int, 600),
        )
