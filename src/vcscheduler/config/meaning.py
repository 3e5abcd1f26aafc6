"""What a configuration comes to: will anybody be evicted, who is protected, in which tier does that count?

`check` looks at entries one by one; this looks at actions and plugins together. What plugins do cannot be asked here,
where no plugin may be loaded, so the built-in ones are listed in `_POINTS`; tests hold that table to the plugins
themselves. Plugins that are not listed may do anything: nothing is said that they could make untrue.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from vcscheduler.config.findings import Finding
from vcscheduler.config.model import FLAGS, PluginOption, SchedulerConfiguration
from vcscheduler.config.parse import Origin, ParsedConfiguration, Path


class Point(Enum):
    """An extension point: its name, and the flag that guards it ("" if none does)."""

    PREEMPTABLE = ("Preemptable", "enablePreemptable")
    RECLAIMABLE = ("Reclaimable", "enableReclaimable")
    UNIFIED_EVICTABLE = ("UnifiedEvictable", "")
    VICTIM_TASKS = ("VictimTasks", "enabledVictim")
    JOB_STARVING = ("JobStarving", "enableJobStarving")
    JOB_READY = ("JobReady", "enableJobReady")
    JOB_ENQUEUEABLE = ("JobEnqueueable", "enableJobEnqueued")
    PREEMPTIVE = ("Preemptive", "enablePreemptive")
    PREDICATE = ("Predicate", "enablePredicate")

    @property
    def title(self) -> str:
        return self.value[0]

    @property
    def flag(self) -> str:
        return self.value[1]


_P = Point
_POINTS: Mapping[str, frozenset[Point]] = {
    "binpack": frozenset(),
    "capacity": frozenset({_P.RECLAIMABLE, _P.UNIFIED_EVICTABLE, _P.PREEMPTIVE, _P.JOB_ENQUEUEABLE}),
    "cdp": frozenset({_P.PREEMPTABLE, _P.RECLAIMABLE}),
    "conformance": frozenset({_P.PREEMPTABLE, _P.RECLAIMABLE, _P.UNIFIED_EVICTABLE}),
    "drf": frozenset({_P.PREEMPTABLE}),
    "gang": frozenset({_P.PREEMPTABLE, _P.RECLAIMABLE, _P.UNIFIED_EVICTABLE, _P.JOB_STARVING, _P.JOB_READY}),
    "network-topology-aware": frozenset(),
    "nodegroup": frozenset({_P.PREDICATE}),
    "nodeorder": frozenset(),
    "overcommit": frozenset({_P.JOB_ENQUEUEABLE}),
    "pdb": frozenset({_P.PREEMPTABLE, _P.RECLAIMABLE, _P.VICTIM_TASKS}),
    "predicates": frozenset({_P.PREDICATE}),
    "priority": frozenset({_P.PREEMPTABLE, _P.UNIFIED_EVICTABLE, _P.JOB_STARVING}),
    "proportion": frozenset({_P.RECLAIMABLE, _P.PREEMPTIVE, _P.JOB_ENQUEUEABLE}),
    "rescheduling": frozenset({_P.VICTIM_TASKS}),
    "resource-strategy-fit": frozenset(),
    "resourcequota": frozenset({_P.JOB_ENQUEUEABLE}),
    "sla": frozenset({_P.JOB_ENQUEUEABLE}),
    "task-topology": frozenset(),
    "tdm": frozenset({_P.PREEMPTABLE, _P.VICTIM_TASKS, _P.JOB_STARVING, _P.PREDICATE}),
    "usage": frozenset(),
}
"""What a built-in plugin takes part in as its arguments are by default. With ``enableHierarchy`` drf is also asked what
may be reclaimed."""

_EVICTING: Mapping[str, Point] = {
    "preempt": Point.PREEMPTABLE,
    "reclaim": Point.RECLAIMABLE,
    "gangpreempt": Point.UNIFIED_EVICTABLE,
    "gangreclaim": Point.UNIFIED_EVICTABLE,
    "shuffle": Point.VICTIM_TASKS,
}
_FOR_STARVING = ("preempt", "reclaim", "gangpreempt", "gangreclaim")
_PROTECTS: Mapping[str, str] = {
    "capacity": "what queues deserve and are guaranteed",
    "cdp": "pods in their cool-down time",
    "conformance": "system pods",
    "gang": "the minimum of running gangs",
    "pdb": "pods with a disruption budget",
    "proportion": "what queues deserve",
}
"""Whom a plugin spares when victims are chosen."""
_TOPOLOGY_AWARE = "enableTopologyAwarePreemption"
_ONLY_TOPOLOGY_AWARE = (
    "topologyAwarePreemptWorkerNum",
    "minCandidateNodesPercentage",
    "minCandidateNodesAbsolute",
    "maxCandidateNodesAbsolute",
)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A plugin where it stands."""

    tier: int
    path: Path
    option: PluginOption

    @property
    def name(self) -> str:
        return self.option.name

    @property
    def known(self) -> bool:
        return self.name in _POINTS

    def registers(self, point: Point) -> bool:
        hierarchy = self.name == "drf" and point is Point.RECLAIMABLE and self.option.enable_hierarchy
        return hierarchy or point in _POINTS.get(self.name, ())

    def answers(self, point: Point) -> bool:
        """Whether the plugin is asked at the point."""
        return self.registers(point) and self.allows(point)

    def allows(self, point: Point) -> bool:
        return not point.flag or bool(getattr(self.option, FLAGS[point.flag].attribute))


class _Subject:
    def __init__(self, configuration: SchedulerConfiguration, origin: Origin) -> None:
        self.configuration = configuration
        self.origin = origin
        self.entries = [
            _Entry(tier, ("tiers", tier, "plugins", index), option)
            for tier, of_tier in enumerate(configuration.tiers)
            for index, option in enumerate(of_tier.plugins)
        ]
        self.actions = configuration.actions
        self.custom = any(not entry.known for entry in self.entries)

    def has(self, point: Point) -> bool:
        """Whether anybody is asked at the point, custom plugins included, of which nobody knows."""
        return any(entry.answers(point) or (not entry.known and entry.allows(point)) for entry in self.entries)

    def entry(self, name: str) -> _Entry | None:
        return next((entry for entry in self.entries if entry.name == name), None)

    def warning(self, path: Path, message: str, *, at_key: bool = False) -> Finding:
        return self.origin.finding("warning", path, message, at_key=at_key)


def check_meaning(parsed: ParsedConfiguration) -> Iterator[Finding]:
    """What is legal and does something else than it seems to."""
    subject = _Subject(parsed.configuration, parsed.origin)
    for check in _CHECKS:
        yield from check(subject)


# --- actions ----------------------------------------------------------------------------------------------------------


def _order_of_actions(subject: _Subject) -> Iterator[Finding]:
    actions = subject.actions
    place: Path = ("actions",)
    if "allocate" not in actions:
        yield subject.warning(
            place, "without allocate no job is placed on free nodes; add allocate, after enqueue if that is there"
        )
        return
    allocate = actions.index("allocate")
    for name in dict.fromkeys(actions):
        at = actions.index(name)
        if name in _FOR_STARVING and at < allocate:
            yield subject.warning(
                place,
                f"{name} runs before allocate: it evicts for jobs that free nodes would hold; put it after allocate",
            )
        if name == "enqueue" and at > allocate:
            yield subject.warning(
                place, "enqueue runs after allocate: every job waits one cycle more; put it before allocate"
            )


def _enqueue_missing(subject: _Subject) -> Iterator[Finding]:
    if "enqueue" in subject.actions:
        return
    gates = [entry.name for entry in subject.entries if entry.answers(Point.JOB_ENQUEUEABLE)]
    effect = f", and what {_listed(gates)} would say about admission is never asked" if gates else ""
    yield subject.warning(
        ("actions",),
        "without enqueue no PodGroup is admitted before its pods exist: pods that a controller creates only for "
        f"admitted groups, as for Volcano Jobs, never come{effect}; begin the actions with enqueue",
    )


def _idle_actions(subject: _Subject) -> Iterator[Finding]:
    place: Path = ("actions",)
    for name in dict.fromkeys(subject.actions):
        point = _EVICTING.get(name)
        if point is not None and not subject.has(point):
            registering = [plugin for plugin, points in _POINTS.items() if point in points]
            off = [entry.name for entry in subject.entries if entry.registers(point) and not entry.allows(point)]
            switched = f" ({_listed(off)} would, but {point.flag} is false)" if off else ""
            yield subject.warning(
                place,
                f"{name} never evicts anybody: no plugin chooses victims at {point.title}{switched}; "
                f"add one of {', '.join(registering)}, or leave {name} out",
            )
        elif name in _FOR_STARVING and not subject.has(Point.JOB_STARVING):
            yield subject.warning(
                place,
                f"{name} does nothing: no plugin says which jobs starve; add gang or priority with "
                f"{Point.JOB_STARVING.flag}",
            )
        elif name in ("reclaim", "gangreclaim") and not subject.has(Point.PREEMPTIVE):
            yield subject.warning(
                place,
                f"{name} without proportion or capacity: no queue deserves anything, so every queue takes from "
                "every other and back; add one of them",
            )
    for entry in subject.entries:
        if entry.name == "rescheduling" and "shuffle" not in subject.actions:
            yield subject.warning(
                (*entry.path, "name"), "rescheduling only names victims for the action shuffle, which is not there"
            )


# --- victims ----------------------------------------------------------------------------------------------------------


def _tiers_out_of_reach(subject: _Subject) -> Iterator[Finding]:
    """The first tier whose plugins agree on any victims decides alone (spec 02 §5.2)."""
    for point, actions in _points_of_actions(subject):
        deciding = None
        for entry in subject.entries:
            if not entry.answers(point):
                continue
            if deciding is None:
                deciding = entry.tier
            if entry.tier == deciding:
                continue
            first = [e.name for e in subject.entries if e.tier == deciding and e.answers(point)]
            effect = f"it protects {_PROTECTS[entry.name]}" if entry.name in _PROTECTS else "it has a say"
            flag = f", or set its {point.flag} to false to say that this is meant" if point.flag else ""
            yield subject.warning(
                (*entry.path, "name"),
                f"{entry.name} is not asked about victims of {_listed(actions)} while tiers[{deciding}] "
                f"({', '.join(first)}) agrees on any: {effect} only where that tier finds nobody; "
                f"move it into tiers[{deciding}]{flag}",
            )


def _nobody_protected(subject: _Subject) -> Iterator[Finding]:
    for point, actions in _points_of_actions(subject):
        for entry in subject.entries:
            if entry.name in _PROTECTS and entry.registers(point) and not entry.allows(point):
                yield subject.warning(
                    (*entry.path, point.flag),
                    f"with {point.flag} false, {entry.name} does not protect {_PROTECTS[entry.name]} from "
                    f"{_listed(actions)}; take the flag out unless that is meant",
                    at_key=True,
                )


def _unranked_preemption(subject: _Subject) -> Iterator[Finding]:
    """Without a plugin that compares the two sides, jobs of equal rank evict one another in turn."""
    if "preempt" not in subject.actions or subject.custom:
        return
    answering = [entry.name for entry in subject.entries if entry.answers(Point.PREEMPTABLE)]
    if answering and not {"priority", "drf", "tdm"} & set(answering):
        yield subject.warning(
            ("actions",),
            f"preempt asks {_listed(answering)}, of which none compares the jobs: any job may evict any other of its "
            "queue, and be evicted by it in turn; add priority (or drf) with enablePreemptable",
        )


def _shuffled_budgets(subject: _Subject) -> Iterator[Finding]:
    """pdb names all that no budget protects, and whatever any plugin of a tier names goes (spec 02 §5.2)."""
    for entry in subject.entries:
        if entry.name == "pdb" and "shuffle" in subject.actions and entry.answers(Point.VICTIM_TASKS):
            yield subject.warning(
                (*entry.path, "name"),
                "pdb names every labelled pod that no disruption budget protects, so shuffle evicts all of these; "
                "set its enabledVictim to false",
            )


def _unused_arguments(subject: _Subject) -> Iterator[Finding]:
    for index, entry in enumerate(subject.configuration.configurations):
        if entry.name != "preempt" or str(entry.arguments.get(_TOPOLOGY_AWARE, "")).lower() in ("true", "t", "1"):
            continue
        for key in _ONLY_TOPOLOGY_AWARE:
            if key in entry.arguments:
                yield subject.warning(
                    ("configurations", index, "arguments", key),
                    f"it counts only for the topology-aware search; add {_TOPOLOGY_AWARE}: true, or leave it out",
                    at_key=True,
                )


# --- what is missing --------------------------------------------------------------------------------------------------


def _missing_rules(subject: _Subject) -> Iterator[Finding]:
    if not subject.entries:
        return
    tiers: Path = ("tiers",)
    predicates = subject.entry("predicates")
    if not subject.custom and (predicates is None or not predicates.answers(Point.PREDICATE)):
        yield subject.warning(
            tiers,
            "no plugin looks at taints, selectors, ports or volumes: pods land on nodes that refuse them; "
            "add predicates",
        )
    if not subject.has(Point.JOB_READY):
        yield subject.warning(
            tiers, "no plugin holds gangs together: jobs start with fewer pods than their minAvailable; add gang"
        )


def _points_of_actions(subject: _Subject) -> list[tuple[Point, list[str]]]:
    """The points at which victims are chosen among candidates, with the actions that ask there."""
    found: dict[Point, list[str]] = {}
    for name in dict.fromkeys(subject.actions):
        point = _EVICTING.get(name)
        if point is not None and point is not Point.VICTIM_TASKS:
            found.setdefault(point, []).append(name)
    return list(found.items())


def _listed(names: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


_CHECKS: tuple[Callable[[_Subject], Iterator[Finding]], ...] = (
    _order_of_actions,
    _enqueue_missing,
    _idle_actions,
    _tiers_out_of_reach,
    _nobody_protected,
    _unranked_preemption,
    _shuffled_budgets,
    _unused_arguments,
    _missing_rules,
)
