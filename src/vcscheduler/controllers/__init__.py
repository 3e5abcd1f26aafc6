"""Volcano's controllers for clusters that run without them: PodGroups, queue states, the life of Volcano Jobs."""

from vcscheduler.controllers.manager import ControllerManager

__all__ = ["ControllerManager"]
