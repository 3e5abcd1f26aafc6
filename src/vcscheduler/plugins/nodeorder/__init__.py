"""The ``nodeorder`` plugin: Kubernetes' scorers over nodes (spec 05 §5)."""

from vcscheduler.plugins.nodeorder.plugin import NodeOrderPlugin

__all__ = ["NodeOrderPlugin"]
