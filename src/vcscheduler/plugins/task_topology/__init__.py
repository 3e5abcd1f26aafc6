"""task-topology: tasks of one job drawn together or apart by role (spec 05 §9)."""

from vcscheduler.plugins.task_topology.plugin import TaskTopologyPlugin

__all__ = ["TaskTopologyPlugin"]
