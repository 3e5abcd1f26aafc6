"""The ``predicates`` plugin: Kubernetes' filters over nodes (spec 05 §3-4)."""

from vcscheduler.plugins.predicates.plugin import PredicatesPlugin

__all__ = ["PredicatesPlugin"]
