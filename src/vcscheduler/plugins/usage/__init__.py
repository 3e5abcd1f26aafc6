"""usage: nodes by their measured load (spec 05 §10).

``load`` keeps what was measured, ``sources`` and ``servers`` say where from, ``estimate`` guesses what pods will use
that were not measured yet, ``plugin`` filters and scores by both.
"""

from vcscheduler.plugins.usage.plugin import UsagePlugin

__all__ = ["UsagePlugin"]
