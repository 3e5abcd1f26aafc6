"""Plugin ``network-topology-aware``: gangs kept close in the network (spec 06 §A7)."""

from vcscheduler.plugins.network_topology_aware.plugin import NetworkTopologyAwarePlugin

__all__ = ["NetworkTopologyAwarePlugin"]
