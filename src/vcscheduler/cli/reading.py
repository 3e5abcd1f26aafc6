"""What commands that look at a cluster on paper read: its objects, a scheduler configuration, custom plugins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vcscheduler.cli.config import custom_registry as registry_of
from vcscheduler.cli.config import parse
from vcscheduler.cli.errors import warn

if TYPE_CHECKING:
    from vcscheduler.config import SchedulerConfiguration
    from vcscheduler.framework.registry import Registry
    from vcscheduler.objects import Manifests

__all__ = ["configuration_of", "manifests_of", "registry_of"]


def configuration_of(file: Path | None, registry: Registry) -> SchedulerConfiguration:
    """The configuration of a file, the built-in one without. A plugin that does not exist is an error here: what is
    shown without it would be something else.

    Raises:
        ConfigurationError: it has errors.
        typer.Exit: it cannot be read.
    """
    from vcscheduler.config import ConfigurationError, Finding, check_configuration, default_configuration

    if file is None:
        return default_configuration()
    parsed = parse(file, registry)
    findings = check_configuration(parsed, registry.action_names, registry.plugin_names)
    errors: list[Finding] = [each for each in findings if each.level == "error"]
    if errors:
        raise ConfigurationError(*errors)
    for each in findings:
        warn(str(each))
    return parsed.configuration


def manifests_of(paths: Sequence[str]) -> Manifests:
    """Objects of files and directories; ``-`` is standard input.

    Raises:
        ManifestError: the first mistake in them.
    """
    from vcscheduler.objects import read_manifests

    return read_manifests(list(paths), stdin=typer.get_binary_stream("stdin"))
