"""`config check`: will a configuration do what its author thinks?

Parsing refuses only what upstream refuses. This goes on from there and says what upstream would take in
silence: names that nothing knows, arguments that nothing reads or can use, entries that have no effect, and
plugins that get in each other's way. Each question is one function in `_CHECKS`. What actions and plugins come to
together, such as which tier decides about victims, is judged in `meaning`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vcscheduler.config.arguments import Arguments, unusable
from vcscheduler.config.decoding import DecodeError, decode_value
from vcscheduler.config.durations import DurationError, parse_duration
from vcscheduler.config.findings import Finding, suggestion
from vcscheduler.config.meaning import check_meaning
from vcscheduler.config.model import PluginOption, SchedulerConfiguration
from vcscheduler.config.parse import Origin, ParsedConfiguration, Path
from vcscheduler.documents import nearest_name

KnownArguments = Mapping[str, Mapping[str, Any]]

_GETTER_TYPES = (bool, int, float, str)

_METRIC_TYPES = ("prometheus", "prometheus_adaptor", "elasticsearch", "file")
_METRIC_KEYS = (
    "type",
    "address",
    "interval",
    "tls.insecureSkipVerify",
    "elasticsearch.index",
    "elasticsearch.username",
    "elasticsearch.password",
    "elasticsearch.hostnameFieldName",
)


@dataclass(frozen=True, slots=True)
class _Subject:
    """What the checks look at."""

    configuration: SchedulerConfiguration
    origin: Origin
    known_actions: Collection[str]
    known_plugins: Collection[str]
    known_arguments: KnownArguments | None

    def plugins(self) -> Iterator[tuple[int, Path, PluginOption]]:
        """(tier, path, entry) of every plugin entry, in walk order."""
        for tier_index, tier in enumerate(self.configuration.tiers):
            for index, plugin in enumerate(tier.plugins):
                yield tier_index, ("tiers", tier_index, "plugins", index), plugin

    def error(self, path: Path, message: str, *, at_key: bool = False) -> Finding:
        return self.origin.finding("error", path, message, at_key=at_key)

    def warning(self, path: Path, message: str, *, at_key: bool = False) -> Finding:
        return self.origin.finding("warning", path, message, at_key=at_key)


def check_configuration(
    parsed: ParsedConfiguration,
    known_actions: Collection[str],
    known_plugins: Collection[str],
    known_arguments: KnownArguments | None = None,
    *,
    meaning: bool = False,
) -> list[Finding]:
    """Everything odd about a configuration that parses, in the order of the file.

    `known_arguments` gives the arguments of each plugin and action by name: key to the type its reader wants
    (bool, int, float, str as the getters take them, anything else as `Arguments.decode`). A key ending in `*`
    stands for all keys that begin so. Without it arguments are not looked at.
    `meaning`: say also what is legal and hardly meant.
    """
    subject = _Subject(parsed.configuration, parsed.origin, known_actions, known_plugins, known_arguments)
    findings = [warning for warning in parsed.warnings if not _is_plugin_name(warning)]
    for check in _CHECKS:
        findings.extend(check(subject))
    if meaning:
        findings.extend(check_meaning(parsed))
    return sorted(findings, key=lambda finding: (finding.line, finding.column))


def _is_plugin_name(finding: Finding) -> bool:
    # Parsing warns of unknown plugins already; here they are errors.
    return finding.field.startswith("tiers[") and finding.field.endswith("].name")


def _unknown_plugins(subject: _Subject) -> Iterator[Finding]:
    for _, path, plugin in subject.plugins():
        if not plugin.name:
            yield subject.error(path, "a plugin without a name: it is skipped")
        elif plugin.name not in subject.known_plugins:
            near = suggestion(nearest_name(plugin.name, subject.known_plugins))
            yield subject.error((*path, "name"), f"unknown plugin {plugin.name!r}, it is skipped{near}")


def _repeated_plugins(subject: _Subject) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for tier, path, plugin in subject.plugins():
        if plugin.name in first:
            before = "this tier" if first[plugin.name] == tier else f"tiers[{first[plugin.name]}]"
            message = f"the plugin {plugin.name!r} is in {before} already: the later one answers at both places"
            yield subject.warning((*path, "name"), message)
        elif plugin.name:
            first[plugin.name] = tier


def _empty_tiers(subject: _Subject) -> Iterator[Finding]:
    if not subject.configuration.tiers:
        yield subject.warning(("tiers",), "no tier: no plugin takes part in any decision")
    for index, tier in enumerate(subject.configuration.tiers):
        if not tier.plugins:
            yield subject.warning(("tiers", index), "the tier has no plugins")


def _clashing_plugins(subject: _Subject) -> Iterator[Finding]:
    first = {plugin.name: path for _, path, plugin in reversed(list(subject.plugins()))}
    hierarchical = any(plugin.name == "drf" and plugin.enable_hierarchy for plugin in subject.configuration.plugins())
    if hierarchical and "proportion" in first:
        # Upstream refuses the pair in one tier only (spec 02 §2.4); the shares conflict just the same.
        message = "proportion beside drf with enableHierarchy: both divide the cluster between queues"
        yield subject.warning((*first["proportion"], "name"), message)
    if "capacity" in first and "proportion" in first:
        message = "proportion beside capacity: both divide the cluster between queues, use one of them"
        yield subject.warning((*first["proportion"], "name"), message)


def _repeated_actions(subject: _Subject) -> Iterator[Finding]:
    actions = subject.configuration.actions
    for name in dict.fromkeys(actions):
        if actions.count(name) > 1:
            yield subject.warning(("actions",), f"the action {name!r} runs {actions.count(name)} times a cycle")


def _action_configurations(subject: _Subject) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, entry in enumerate(subject.configuration.configurations):
        path: Path = ("configurations", index, "name")
        if not entry.name:
            yield subject.error(("configurations", index), "an entry without the name of an action")
        elif entry.name not in subject.known_actions:
            near = suggestion(nearest_name(entry.name, subject.known_actions))
            yield subject.error(path, f"unknown action {entry.name!r}{near}")
        elif entry.name in seen:
            yield subject.warning(path, f"a second entry for {entry.name!r}: only the first is read")
        elif entry.name not in subject.configuration.actions:
            yield subject.warning(path, f"the action {entry.name!r} is not among the actions")
        seen.add(entry.name)


def _arguments(subject: _Subject) -> Iterator[Finding]:
    for _, path, plugin in subject.plugins():
        yield from _entry_arguments(subject, path, plugin.name, plugin.arguments)
    for index, entry in enumerate(subject.configuration.configurations):
        yield from _entry_arguments(subject, ("configurations", index), entry.name, entry.arguments)


def _entry_arguments(subject: _Subject, path: Path, name: str, arguments: Arguments) -> Iterator[Finding]:
    known = subject.known_arguments.get(name) if subject.known_arguments is not None else None
    if known is None:
        return
    for key, value in arguments.items():
        place = (*path, "arguments", key)
        pattern = _pattern(key, known)
        if pattern is None:
            near = suggestion(nearest_name(key, known))
            yield subject.warning(place, f"{name} reads no such argument, it has no effect{near}", at_key=True)
            continue
        problem, fatal = _unusable(value, known[pattern])
        if problem and fatal:
            yield subject.error(place, problem)
        elif problem:
            yield subject.warning(place, f"{problem}: the default is used")


def _pattern(key: str, known: Mapping[str, Any]) -> str | None:
    if key in known:
        return key
    return next((name for name in known if name.endswith("*") and key.startswith(name[:-1])), None)


def _unusable(value: object, wanted: Any) -> tuple[str | None, bool]:
    """What is wrong with a value for a reader of that type, and whether the reader would give up over it."""
    if wanted in _GETTER_TYPES:
        return unusable(value, wanted), False
    try:
        decode_value(value, wanted)
    except DecodeError as error:
        return str(error), True
    return None, False


def _metrics(subject: _Subject) -> Iterator[Finding]:
    metrics = subject.configuration.metrics
    for key in metrics:
        if key not in _METRIC_KEYS:
            near = suggestion(nearest_name(key, _METRIC_KEYS))
            yield subject.warning(("metrics", key), f"unknown key, it has no effect{near}", at_key=True)
    kind = metrics.get("type", "")
    if metrics and not kind:
        yield subject.warning(("metrics",), "without a type no load is collected")
    elif kind and kind not in _METRIC_TYPES:
        near = suggestion(nearest_name(kind, _METRIC_TYPES))
        message = f"unknown type {kind!r}{near}; allowed: {', '.join(_METRIC_TYPES)}"
        yield subject.error(("metrics", "type"), message)
    if "interval" in metrics and not _is_positive_duration(metrics["interval"]):
        message = f"{metrics['interval']!r} is not a duration above 0 such as 30s: 30s is used"
        yield subject.warning(("metrics", "interval"), message)


def _is_positive_duration(text: str) -> bool:
    try:
        return parse_duration(text) > 0
    except DurationError:
        return False


_CHECKS: tuple[Callable[[_Subject], Iterator[Finding]], ...] = (
    _unknown_plugins,
    _repeated_plugins,
    _empty_tiers,
    _clashing_plugins,
    _repeated_actions,
    _action_configurations,
    _arguments,
    _metrics,
)
