"""A configuration file into a `SchedulerConfiguration`, accepting and refusing what upstream does.

The checks run in upstream's order (spec 02 §2.4): syntax and types, then drf with hierarchy beside
proportion, then the names of actions. Upstream takes everything else in silence: unknown keys, unknown
plugins, repeated keys. It is taken here too, but with a warning: nobody misspells a flag on purpose.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from vcscheduler.config.arguments import Arguments
from vcscheduler.config.decoding import type_name
from vcscheduler.config.findings import ConfigurationError, Finding, suggestion
from vcscheduler.config.model import FLAGS, ActionConfiguration, PluginOption, SchedulerConfiguration, Tier
from vcscheduler.documents import Document, DocumentError, iter_documents, nearest_name

Path = tuple[str | int, ...]

_TOP_KEYS = ("actions", "tiers", "configurations", "metrics")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a configuration was written: turns a path in it into a position for a finding."""

    source: str
    document: Document | None = None

    def finding(self, level: Any, path: Path, message: str, *, at_key: bool = False) -> Finding:
        line, column = 0, 0
        if self.document is not None:
            line, column = self.document.key_mark(path) if at_key else self.document.mark(path)
        return Finding(level, self.source, line, column, field_name(path), message)


@dataclass(frozen=True, slots=True)
class ParsedConfiguration:
    """A configuration that can be used, and what was odd about it."""

    configuration: SchedulerConfiguration
    warnings: tuple[Finding, ...]
    origin: Origin


def parse_configuration(
    text: str | bytes,
    source: str = "scheduler.conf",
    *,
    known_actions: Collection[str],
    known_plugins: Collection[str] | None = None,
) -> ParsedConfiguration:
    """Read the text of a configuration file. Raises `ConfigurationError`.

    Without `known_plugins` the names of plugins are not looked at.
    """
    documents = iter_documents(_trimmed(text), source, duplicate_keys="warn")
    try:
        document = next(documents, None)
    except DocumentError as error:
        raise ConfigurationError(Finding("error", source, error.line, error.column, "", error.message)) from None
    origin = Origin(source, document)
    warnings: list[Finding] = []
    if document is not None:
        for duplicate in document.duplicates:
            message = f"the key {duplicate.key!r} was given in line {duplicate.first_line} already: this one counts"
            warnings.append(Finding("warning", source, duplicate.line, duplicate.column, "", message))
        following = _next_line(documents)
        if following is not None:
            warnings.append(
                Finding("warning", source, following, 1, "", "only the first YAML document is read, this is not")
            )
    reader = _Reader(origin, document.value if document is not None else None)
    return reader.parsed(known_actions, known_plugins, warnings)


def configuration_from_value(
    value: object,
    source: str = "configuration",
    *,
    known_actions: Collection[str],
    known_plugins: Collection[str] | None = None,
) -> ParsedConfiguration:
    """Read a configuration that is plain data already. Raises `ConfigurationError`, without lines."""
    return _Reader(Origin(source), value).parsed(known_actions, known_plugins, [])


def field_name(path: Path) -> str:
    """`tiers[0].plugins[1].name` for ("tiers", 0, "plugins", 1, "name")."""
    name = ""
    for step in path:
        name += f"[{step}]" if isinstance(step, int) else f".{step}" if name else step
    return name


def _position(finding: Finding) -> tuple[int, int]:
    return finding.line, finding.column


def _trimmed(text: str | bytes) -> str | bytes:
    # Upstream trims the whole text first, so an indented first line is no mistake. Line breaks stay, for the
    # sake of line numbers.
    if isinstance(text, bytes):
        stripped = text.lstrip()
        return b"\n" * text[: len(text) - len(stripped)].count(b"\n") + stripped.rstrip()
    body = text.lstrip()
    return "\n" * text[: len(text) - len(body)].count("\n") + body.rstrip()


def _next_line(documents: Iterable[Document]) -> int | None:
    try:
        return next((document.line for document in documents), None)
    except DocumentError as error:
        return error.line


class _Reader:
    """Walks the plain data of one configuration, noting type errors and unknown keys as it goes."""

    def __init__(self, origin: Origin, value: object) -> None:
        self._origin = origin
        self._value = value
        self._errors: list[Finding] = []
        self._warnings: list[Finding] = []

    def parsed(
        self, known_actions: Collection[str], known_plugins: Collection[str] | None, warnings: list[Finding]
    ) -> ParsedConfiguration:
        top = self._mapping(self._value, (), _TOP_KEYS)
        actions_text = self._string(top, "actions", ())
        tiers = tuple(self._tier(item, ("tiers", index)) for index, item in enumerate(self._list(top, "tiers", ())))
        configurations = tuple(
            self._action_configuration(item, ("configurations", index))
            for index, item in enumerate(self._list(top, "configurations", ()))
        )
        metrics = self._metrics(top.get("metrics"))
        self._raise_errors()
        for index, tier in enumerate(tiers):
            self._check_hierarchy(tier, index)
        self._raise_errors()
        actions = self._actions(actions_text, known_actions)
        self._raise_errors()
        if known_plugins is not None:
            self._check_plugin_names(tiers, known_plugins)
        configuration = SchedulerConfiguration(actions, tiers, configurations, metrics)
        ordered = sorted([*warnings, *self._warnings], key=_position)
        return ParsedConfiguration(configuration, tuple(ordered), self._origin)

    def _raise_errors(self) -> None:
        if self._errors:
            raise ConfigurationError(*sorted(self._errors, key=_position))

    def _error(self, path: Path, message: str) -> None:
        self._errors.append(self._origin.finding("error", path, message))

    def _warn(self, path: Path, message: str, *, at_key: bool = False) -> None:
        self._warnings.append(self._origin.finding("warning", path, message, at_key=at_key))

    def _mapping(self, value: object, path: Path, known: Collection[str] | None) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._error(path, f"expected a mapping, found {_shown(value)}")
            return {}
        if known is not None:
            for key in value:
                if key not in known:
                    near = suggestion(nearest_name(key, known))
                    note = _old_spelling(key) or f"unknown key, it has no effect{near}"
                    self._warn((*path, key), note, at_key=True)
        return value

    def _list(self, parent: dict[str, Any], key: str, path: Path) -> list[Any]:
        value = parent.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self._error((*path, key), f"expected a list, found {_shown(value)}")
            return []
        return value

    def _string(self, parent: dict[str, Any], key: str, path: Path) -> str:
        """A string field: any scalar, as it was written (spec 02 §2.3)."""
        value = parent.get(key)
        if value is None or isinstance(value, str):
            return value or ""
        path = (*path, key)
        if isinstance(value, (dict, list)):
            self._error(path, f"expected a string, found {_shown(value)}")
            return ""
        document = self._origin.document
        written = document.scalar_text(path) if document is not None else None
        return written if written is not None else _yaml_text(value)

    def _tier(self, value: object, path: Path) -> Tier:
        entry = self._mapping(value, path, ("plugins",))
        return Tier(
            tuple(
                self._plugin(item, (*path, "plugins", index))
                for index, item in enumerate(self._list(entry, "plugins", path))
            )
        )

    def _plugin(self, value: object, path: Path) -> PluginOption:
        entry = self._mapping(value, path, ("name", "arguments", *FLAGS))
        name = self._string(entry, "name", path)
        flags: dict[str, bool] = {}
        for key, flag in FLAGS.items():
            setting = entry.get(key)
            if isinstance(setting, bool):
                flags[flag.attribute] = setting
            elif setting is not None:
                self._error((*path, key), f"expected true or false without quotes, found {_shown(setting)}")
        return PluginOption(name, self._arguments(entry, path, f"plugin {name}"), **flags)

    def _action_configuration(self, value: object, path: Path) -> ActionConfiguration:
        entry = self._mapping(value, path, ("name", "arguments"))
        name = self._string(entry, "name", path)
        return ActionConfiguration(name, self._arguments(entry, path, f"action {name}"))

    def _arguments(self, entry: dict[str, Any], path: Path, owner: str) -> Arguments:
        return Arguments(self._mapping(entry.get("arguments"), (*path, "arguments"), None), owner)

    def _metrics(self, value: object) -> dict[str, str]:
        entry = self._mapping(value, ("metrics",), None)
        return {key: self._string(entry, key, ("metrics",)) for key in entry}

    def _check_hierarchy(self, tier: Tier, index: int) -> None:
        proportion = any(plugin.name == "proportion" for plugin in tier.plugins)
        for position, plugin in enumerate(tier.plugins):
            if proportion and plugin.name == "drf" and plugin.enable_hierarchy:
                path = ("tiers", index, "plugins", position, "enableHierarchy")
                self._error(
                    path,
                    "drf with enableHierarchy conflicts with proportion in the same tier: remove one of them",
                )

    def _actions(self, text: str, known_actions: Collection[str]) -> tuple[str, ...]:
        names = tuple(name.strip() for name in text.split(","))
        for name in names:
            if name not in known_actions:
                self._error(("actions",), _unknown_action(name, text, known_actions))
        return names

    def _check_plugin_names(self, tiers: tuple[Tier, ...], known_plugins: Collection[str]) -> None:
        for tier_index, tier in enumerate(tiers):
            for index, plugin in enumerate(tier.plugins):
                if plugin.name not in known_plugins:
                    near = suggestion(nearest_name(plugin.name, known_plugins))
                    what = f"unknown plugin {plugin.name!r}" if plugin.name else "a plugin without a name"
                    path = ("tiers", tier_index, "plugins", index, "name")
                    self._warn(path, f"{what}, it is skipped{near}")


def _unknown_action(name: str, text: str, known_actions: Collection[str]) -> str:
    allowed = f"allowed: {', '.join(sorted(known_actions))}"
    if not text.strip():
        return f"no action is named; {allowed}"
    if not name:
        return f"an empty name in {text!r}: remove the comma too many; {allowed}"
    near = suggestion(nearest_name(name, known_actions))
    return f"unknown action {name!r}{near}; {allowed}"


def _old_spelling(key: str) -> str | None:
    """The note for `disableJobOrder` and the like, which an old design document showed but nothing reads."""
    if not key.startswith("disable"):
        return None
    for start in ("enable", "enabled"):
        flag = start + key.removeprefix("disable")
        if flag in FLAGS:
            return f"unknown key, it has no effect; write '{flag}: false'"
    return None


def _shown(value: object) -> str:
    if isinstance(value, (dict, list)):
        return f"a {type_name(value)}"
    return f"the string {value!r}" if isinstance(value, str) else _yaml_text(value)


def _yaml_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
