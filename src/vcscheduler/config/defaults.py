"""The configuration that is active before any file has been read (spec 02 §2.6)."""

from vcscheduler.config.model import PluginOption, SchedulerConfiguration, Tier

_ACTIONS = ("enqueue", "allocate", "backfill")
_TIERS = (
    ("priority", "gang", "conformance"),
    ("overcommit", "drf", "predicates", "proportion", "nodeorder"),
)


def default_configuration() -> SchedulerConfiguration:
    """The built-in configuration: no arguments, every flag at its default."""
    tiers = tuple(Tier(tuple(PluginOption(name) for name in names)) for names in _TIERS)
    return SchedulerConfiguration(_ACTIONS, tiers)


def default_text() -> str:
    """The built-in configuration as a file would spell it."""
    lines = [f'actions: "{", ".join(_ACTIONS)}"', "tiers:"]
    for names in _TIERS:
        lines.append("- plugins:")
        lines.extend(f"  - name: {name}" for name in names)
    return "\n".join(lines) + "\n"
