"""vcscheduler: the Volcano batch scheduler in Python."""

__version__ = "0.1.0"
