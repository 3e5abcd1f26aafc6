"""The scheduler's settings: the configuration file (actions, tiers of plugins, arguments) and the flags.

Reading is split by question: `parse` (is it a configuration?), `check` (will it do what its author thinks?),
`reload` (what is active while the file changes?), `flags` (how was the process started?).
"""

from vcscheduler.config.arguments import ArgumentError, ArgumentProblem, Arguments
from vcscheduler.config.findings import ConfigurationError, Finding
from vcscheduler.config.model import (
    FLAGS,
    ActionConfiguration,
    Flag,
    PluginOption,
    SchedulerConfiguration,
    Tier,
)
from vcscheduler.config.parse import ParsedConfiguration, configuration_from_value, parse_configuration

__all__ = [
    "FLAGS",
    "ActionConfiguration",
    "ArgumentError",
    "ArgumentProblem",
    "Arguments",
    "ConfigurationError",
    "Finding",
    "Flag",
    "ParsedConfiguration",
    "PluginOption",
    "SchedulerConfiguration",
    "Tier",
    "configuration_from_value",
    "parse_configuration",
]
