"""The command-line flags of vc-scheduler (spec 02 §1.4), klog's included, and ours.

A deployment written for upstream must start unchanged, so every flag is accepted; those without effect are
taken and do nothing, each for the reason in its meaning. Spelling follows upstream's flag library:
`--flag=value` or `--flag value`, booleans also bare, underscores as dashes, the last of repeated flags wins.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from vcscheduler.config.arguments import FALSE_TEXTS, TRUE_TEXTS
from vcscheduler.config.durations import DurationError, parse_duration
from vcscheduler.config.findings import suggestion
from vcscheduler.config.options import DEFAULT_FEATURE_GATES, SchedulerOptions
from vcscheduler.documents import nearest_name
from vcscheduler.documents.scalars import number_value

FlagType = Literal["string", "int", "float", "bool", "duration", "strings", "list", "gates"]


class FlagError(ValueError):
    """A command line that cannot be used."""


@dataclass(frozen=True, slots=True)
class CommandLineFlag:
    """One flag. `option` is the field of `SchedulerOptions` that it sets; flags without effect set none.

    Types: `strings` is repeatable, each use one value; `list` is repeatable and split at commas.
    """

    name: str
    type: FlagType
    default: str
    meaning: str
    option: str | None = None

    @property
    def effect(self) -> bool:
        """Whether the flag changes anything here."""
        return self.option is not None


def _flag(name: str, type_: FlagType, default: str, meaning: str, option: str | None = None) -> CommandLineFlag:
    return CommandLineFlag(name, type_, default, meaning, option or name.replace("-", "_"))


def _ignored(name: str, type_: FlagType, default: str, meaning: str) -> CommandLineFlag:
    return CommandLineFlag(name, type_, default, meaning)


_ALL = (
    _flag("master", "string", "", "address of the API server; wins over the kubeconfig"),
    _flag("kubeconfig", "string", "", "path of the kubeconfig; empty, with no master: in-cluster"),
    _flag("kube-api-qps", "float", "2000", "requests a second to the API server"),
    _flag("kube-api-burst", "int", "2000", "requests to the API server in one burst"),
    _flag("ca-cert-file", "string", "", "CA of the health server's TLS; used with certificate and key"),
    _flag("tls-cert-file", "string", "", "certificate of the health server"),
    _flag("tls-private-key-file", "string", "", "private key of the health server"),
    _flag(
        "scheduler-name",
        "strings",
        "volcano",
        "schedulerName of the pods that are ours; repeatable",
        "scheduler_names",
    ),
    _flag("scheduler-conf", "string", "", "path of the configuration file"),
    _flag("disable-default-scheduler-config", "bool", "false", "no built-in configuration; a bad file is fatal"),
    _flag("schedule-period", "duration", "1s", "pause between two cycles"),
    _ignored("resync-period", "duration", "0", "resync period of informers; watches here need none"),
    _flag("resource-sync-timeout", "duration", "60s", "how long to wait for the first objects; 0: do not wait"),
    _flag("default-queue", "string", "default", "queue of pod groups that name none; created at start"),
    _flag("minimum-feasible-nodes", "int", "100", "feasible nodes to find at least, when sampling"),
    _flag("minimum-percentage-nodes-to-find", "int", "5", "lowest adaptive percentage of nodes, when sampling"),
    _flag("percentage-nodes-to-find", "int", "0", "percentage of nodes to find, when sampling; 0: adaptive"),
    _flag("plugins-dir", "string", "", "directory of custom plugins"),
    _flag("node-selector", "list", "", "key:value pairs; only nodes that carry one of them are used"),
    _ignored("node-worker-threads", "int", "20", "workers for node events; they are handled in order here"),
    _flag("ignored-provisioners", "list", "", "volume provisioners without a capacity check"),
    _flag("csi-storage", "bool", "true", "watch CSIDriver and CSIStorageCapacity"),
    _flag("priority-class", "bool", "true", "watch PriorityClass"),
    _flag("scheduler-sharding-mode", "string", "none", "none, hard or soft"),
    _flag("scheduler-sharding-name", "string", "volcano", "NodeShard of this scheduler"),
    _flag("gate-removal-worker-num", "int", "5", "concurrent removals of scheduling gates"),
    _flag("cache-dumper", "bool", "true", "dump the cache on SIGUSR1 and SIGUSR2"),
    _flag("cache-dump-dir", "string", "/tmp", "directory of cache dumps"),
    _flag("listen-address", "string", ":8080", "address of the metrics server"),
    _flag("enable-metrics", "bool", "false", "serve /metrics"),
    _ignored("enable-pprof", "bool", "false", "serve /debug/pprof, which is Go's own profiler"),
    _flag("enable-healthz", "bool", "false", "serve /healthz"),
    _flag("healthz-address", "string", ":11251", "address of the health server"),
    _flag("leader-elect", "bool", "true", "schedule only while being the leader"),
    _flag("leader-elect-lease-duration", "duration", "15s", "when others may take over a lease"),
    _flag("leader-elect-renew-deadline", "duration", "10s", "how long the leader tries to renew"),
    _flag("leader-elect-retry-period", "duration", "2s", "pause between two tries"),
    _ignored("leader-elect-resource-lock", "string", "leases", "kind of the lock; it is always a Lease"),
    # The default stays "volcano" whatever --scheduler-name says, as upstream (spec 02 §1.4).
    _flag("leader-elect-resource-name", "string", "volcano", "name of the Lease"),
    _flag("leader-elect-resource-namespace", "string", "volcano-system", "namespace of the Lease"),
    _flag("lock-object-namespace", "string", "", "deprecated: the namespace of the Lease, wins when set"),
    _flag("feature-gates", "gates", "", "Name=true|false pairs, separated by commas"),
    _ignored("log-flush-frequency", "duration", "5s", "pause between two flushes of the log; it is never held back"),
    _flag("version", "bool", "false", "print the version and exit"),
    _flag("v", "int", "0", "how much is logged", "verbosity"),
    _ignored("vmodule", "string", "", "klog: log level by source file of the Go program"),
    _ignored("logtostderr", "bool", "true", "klog: log to standard error; this is always so"),
    _ignored("alsologtostderr", "bool", "false", "klog: log to standard error as well as to files"),
    _ignored("stderrthreshold", "string", "INFO", "klog: level from which files are echoed to standard error"),
    _ignored("log-dir", "string", "", "klog: directory of log files; none are written"),
    _ignored("log-file", "string", "", "klog: the log file; none is written"),
    _ignored("log-file-max-size", "int", "1800", "klog: size of a log file in megabytes"),
    _ignored("log-backtrace-at", "string", "", "klog: source line of the Go program that logs its stack"),
    _ignored("add-dir-header", "bool", "false", "klog: directory of the Go source file in each line"),
    _ignored("skip-headers", "bool", "false", "klog: no headers in log lines"),
    _ignored("skip-log-headers", "bool", "false", "klog: no headers in log files"),
    _ignored("one-output", "bool", "false", "klog: each line only to the file of its own level"),
    _flag("exact-search", "bool", "true", "search all nodes; off when a flag of the sampling is set"),
    _flag("tie-break", "string", "first", "among equal nodes take the first by name, or one at random"),
    _flag("seed", "int", "", "seed of --tie-break random"),
    _flag("log-format", "string", "logfmt", "logfmt (key=value) or json"),
    _flag("debug-address", "string", "127.0.0.1:11252", "address of the /debug views; empty: none"),
    _flag("with-controllers", "bool", "false", "play Volcano's controllers too (docs/controllers.md)"),
    _flag(
        "disable-failing-plugins",
        "bool",
        "false",
        "leave a plugin that fails out of the cycle instead of giving the cycle up",
    ),
)

COMMAND_LINE_FLAGS: Mapping[str, CommandLineFlag] = {flag.name: flag for flag in _ALL}
"""Every flag by its name, dashes only."""

_SAMPLING = ("minimum-feasible-nodes", "minimum-percentage-nodes-to-find", "percentage-nodes-to-find")
_CHOICES = {"tie-break": ("first", "random"), "log-format": ("logfmt", "json")}


def parse_flags(arguments: Sequence[str]) -> SchedulerOptions:
    """The options that a command line sets. Raises `FlagError`."""
    settings: dict[str, Any] = {}
    given: set[str] = set()
    rest = list(arguments)
    while rest:
        flag, text = _take(rest)
        value = _value(flag, text)
        if flag.option is not None:
            if flag.type in ("strings", "list") and flag.name in given:
                value = (*settings[flag.option], *value)
            elif flag.type == "gates":
                value = {**settings.get(flag.option, DEFAULT_FEATURE_GATES), **value}
            settings[flag.option] = value
        given.add(flag.name)
    if "exact-search" not in given and not given.isdisjoint(_SAMPLING):
        settings["exact_search"] = False
    return SchedulerOptions(**settings)


def parse_feature_gates(text: str) -> dict[str, bool]:
    """`A=true,B=false` as a mapping. Kubernetes' own gates are taken as they come. Raises `FlagError`."""
    gates: dict[str, bool] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, separator, setting = pair.partition("=")
        if not separator:
            raise FlagError(f"--feature-gates: expected Name=true or Name=false, found {pair!r}")
        gates[name.strip()] = _boolean(f"--feature-gates: {name.strip()}", setting.strip())
    return gates


def _take(rest: list[str]) -> tuple[CommandLineFlag, str]:
    """Take one flag with its value off the front of the command line."""
    word = rest.pop(0)
    if word.startswith("--") and len(word) > 2:
        name, separator, text = word[2:].partition("=")
    elif word.startswith("-v"):
        name, separator, text = "v", word[2:3], word[2:].removeprefix("=")
    else:
        raise FlagError(f"unexpected argument {word!r}: flags begin with --")
    flag = COMMAND_LINE_FLAGS.get(name.replace("_", "-"))
    if flag is None:
        raise FlagError(f"unknown flag --{name}{suggestion(nearest_name(name, COMMAND_LINE_FLAGS))}")
    if separator:
        return flag, text
    if flag.type == "bool":
        return flag, "true"
    if not rest:
        raise FlagError(f"--{flag.name}: a value is missing")
    return flag, rest.pop(0)


def _value(flag: CommandLineFlag, text: str) -> Any:
    label = f"--{flag.name}"
    match flag.type:
        case "bool":
            return _boolean(label, text)
        case "int":
            number = number_value(text) if text else None
            if not isinstance(number, int):
                raise FlagError(f"{label}: expected an integer, found {text!r}")
            return number
        case "float":
            number = number_value(text) if text else None
            if number is None:
                raise FlagError(f"{label}: expected a number, found {text!r}")
            return float(number)
        case "duration":
            try:
                return parse_duration(text)
            except DurationError as error:
                raise FlagError(f"{label}: {error}") from None
        case "strings":
            return (text,)
        case "list":
            return tuple(next(csv.reader([text]), ()))
        case "gates":
            return parse_feature_gates(text)
        case "string":
            choices = _CHOICES.get(flag.name)
            if choices is not None and text not in choices:
                raise FlagError(f"{label}: expected {' or '.join(choices)}, found {text!r}")
            return text


def _boolean(label: str, text: str) -> bool:
    if text in TRUE_TEXTS:
        return True
    if text in FALSE_TEXTS:
        return False
    raise FlagError(f"{label}: expected true or false, found {text!r}")
