"""The scheduler's settings: the configuration file (actions, tiers of plugins, arguments) and the flags.

Reading is split by question: `parse` (is it a configuration?), `check` (will it do what its author thinks?),
`reload` (what is active while the file changes?), `flags` (how was the process started?).
"""

from vcscheduler.config.arguments import ArgumentError, ArgumentProblem, Arguments
from vcscheduler.config.check import check_configuration
from vcscheduler.config.defaults import default_configuration, default_text
from vcscheduler.config.durations import DurationError, parse_duration, parse_nanoseconds
from vcscheduler.config.findings import ConfigurationError, Finding
from vcscheduler.config.flags import COMMAND_LINE_FLAGS, CommandLineFlag, FlagError, parse_flags
from vcscheduler.config.model import FLAGS, ActionConfiguration, Flag, PluginOption, SchedulerConfiguration, Tier
from vcscheduler.config.options import SchedulerOptions
from vcscheduler.config.parse import ParsedConfiguration, configuration_from_value, parse_configuration
from vcscheduler.config.reload import ConfigurationFile, LoadResult

__all__ = [
    "COMMAND_LINE_FLAGS",
    "FLAGS",
    "ActionConfiguration",
    "ArgumentError",
    "ArgumentProblem",
    "Arguments",
    "CommandLineFlag",
    "ConfigurationError",
    "ConfigurationFile",
    "DurationError",
    "Finding",
    "Flag",
    "FlagError",
    "LoadResult",
    "ParsedConfiguration",
    "PluginOption",
    "SchedulerConfiguration",
    "SchedulerOptions",
    "Tier",
    "check_configuration",
    "configuration_from_value",
    "default_configuration",
    "default_text",
    "parse_configuration",
    "parse_duration",
    "parse_flags",
    "parse_nanoseconds",
]
