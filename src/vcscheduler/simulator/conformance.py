"""Conformance cases: a cluster, a configuration, and what must come out of every scheduling cycle.

A case is one YAML (or JSON) file:

    id: preempt-0001
    about: one sentence
    varies: true                     # the reference's own outcome varies; `expect` has what does not
    now: 2026-11-29T16:15:00Z        # what the clock says, in all cycles
    config: {actions: ..., tiers: [...]}    # a scheduler configuration
    cycles: 1
    objects: [...]                   # manifests
    expect:                          # one entry a cycle; only the keys that are present are checked, exactly
      - binds: {ns/pod: node}        # or bindCount: 1
        evicts: [ns/pod]             # sorted; or evictCount: 1
        pipelined: {ns/pod: node}
        podGroupPhase: {ns/podgroup: Inqueue}
        taskStatus: {ns/podgroup: {Running: 2, Pipelined: 1}}
        conditions: {ns/podgroup: [{type: ..., status: ..., reason: ..., message: ...}]}

Objects stand as they are, with no defaulting and no checks beyond their types, so that odd input can be tried
too. Between two cycles the world moves one step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import msgspec

from vcscheduler.cluster.memory import Clock, MemoryCluster
from vcscheduler.documents import Document, DocumentError, load_documents, nearest_name
from vcscheduler.objects import KubernetesObject, from_value
from vcscheduler.objects.errors import Path as FieldPath
from vcscheduler.objects.errors import show_path, show_value
from vcscheduler.objects.kinds import without_nulls
from vcscheduler.objects.mistakes import invalid_field

_T = TypeVar("_T")
Text: TypeAlias = dict[str, str]


class CaseError(ValueError):
    """A case file that cannot be used; `str()` is one line with file, line and field."""


@dataclass(slots=True)
class CycleRecord:
    """What came out of one cycle; the fields are the keys that `expect` may have.

    pipelined and task_status are as of the end of the actions, pod_group_phase and conditions as of the close of
    the session. conditions leaves out PodGroups without any, and of a condition all fields that are empty; task
    status counts of zero are left out too.
    """

    binds: Text = field(default_factory=dict)
    evicts: list[str] = field(default_factory=list)
    pipelined: Text = field(default_factory=dict)
    pod_group_phase: Text = field(default_factory=dict)
    task_status: dict[str, dict[str, int]] = field(default_factory=dict)
    conditions: dict[str, list[Text]] = field(default_factory=dict)


class Engine(Protocol):
    """The scheduler under test, over one cluster."""

    def run_once(self) -> CycleRecord: ...


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `expect` has one entry a cycle: from the format's keys to the values that must come out."""

    source: str
    id: str
    about: str
    varies: bool
    now: datetime
    config: Mapping[str, object]
    cycles: int
    objects: tuple[KubernetesObject, ...]
    expect: tuple[Mapping[str, object], ...]


EngineFactory: TypeAlias = Callable[[Case, MemoryCluster, Clock], Engine]
"""Makes the engine over a cluster that is still empty; the case's objects come after, one by one."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One key of one cycle (from 1) whose value is not the expected one."""

    cycle: int
    key: str
    expected: object
    found: object

    def __str__(self) -> str:
        return f"cycle {self.cycle}: {self.key}: expected {self.expected}, found {self.found}"

    def entries(self) -> list[Difference]:
        """The entries that differ, where both sides are mappings: ``binds[ns/pod]``. Otherwise the whole."""
        if not isinstance(self.expected, Mapping) or not isinstance(self.found, Mapping):
            return [self]
        return [
            Difference(self.cycle, f"{self.key}[{name}]", self.expected.get(name), self.found.get(name))
            for name in sorted({*self.expected, *self.found})
            if self.expected.get(name) != self.found.get(name)
        ]


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of `expect`: the type of its value, and what stands for it in a record."""

    type: Any
    found: Callable[[CycleRecord], object]


_KEYS: Final[Mapping[str, _Key]] = {
    "binds": _Key(Text, lambda record: record.binds),
    "bindCount": _Key(int, lambda record: len(record.binds)),
    "evicts": _Key(list[str], lambda record: record.evicts),
    "evictCount": _Key(int, lambda record: len(record.evicts)),
    "pipelined": _Key(Text, lambda record: record.pipelined),
    "podGroupPhase": _Key(Text, lambda record: record.pod_group_phase),
    "taskStatus": _Key(dict[str, dict[str, int]], lambda record: record.task_status),
    "conditions": _Key(dict[str, list[Text]], lambda record: record.conditions),
}


def compare(expected: Mapping[str, object], record: CycleRecord, cycle: int) -> list[Difference]:
    """The keys of `expected` that do not hold. Keys that are absent are not looked at."""
    found = ((key, value, _KEYS[key].found(record)) for key, value in expected.items())
    return [Difference(cycle, key, value, have) for key, value, have in found if have != value]


def run_case(case: Case, new_engine: EngineFactory) -> list[Difference]:
    """Run all cycles of a case. What the engine raises passes through."""

    def clock() -> datetime:
        return case.now

    # Pods keep no nomination and no condition from one cycle to the next: that is how the cases were recorded.
    cluster = MemoryCluster(clock, keep_pod_conditions=False)
    engine = new_engine(case, cluster, clock)
    cluster.apply_all(case.objects)
    differences: list[Difference] = []
    for cycle, expected in enumerate(case.expect, 1):
        if cycle > 1:
            cluster.step()
        differences += compare(expected, engine.run_once(), cycle)
    return differences


# Reading a case


def read_case(path: Path) -> Case:
    """Read one case file.

    Raises:
        CaseError: the file cannot be read, or is not a case.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise CaseError(f"{path}: cannot be read: {error.strerror}") from None
    return parse_case(text, str(path))


def parse_case(text: bytes | str, source: str) -> Case:
    """Like `read_case`, of a text; `source` names it in errors."""
    try:
        documents = load_documents(text, source)
    except DocumentError as error:
        raise CaseError(str(error)) from None
    if len(documents) != 1:
        raise CaseError(f"{source}: found {len(documents)} documents, a case is one")
    if not isinstance(documents[0].value, dict):
        found = show_value(documents[0].value)
        raise CaseError(f"{source}: found {found}, a case is a mapping with id, now, objects and expect")
    return _CaseReader(documents[0]).read()


class _CaseFile(msgspec.Struct, forbid_unknown_fields=True):
    """The outer shape of a case file."""

    id: str
    now: datetime
    config: dict[str, object]
    cycles: int
    objects: list[dict[str, object]]
    expect: list[dict[str, object] | None]
    about: str = ""
    varies: bool = False


class _CaseReader:
    def __init__(self, document: Document) -> None:
        self._document = document

    def read(self) -> Case:
        value = self._document.value
        for key in value:
            self._known(key, _CaseFile.__struct_fields__, ())
        for key in _CaseFile.__struct_fields__:
            if key not in value and key not in ("about", "varies"):
                raise self._error((), f'the key "{key}" is missing')
        file = self._convert(value, _CaseFile, ())
        if file.now.tzinfo is None:
            raise self._error(("now",), "the time needs a time zone, such as the Z in 2026-11-29T16:15:00Z")
        if file.cycles < 1:
            raise self._error(("cycles",), f"found {file.cycles}, allowed is 1 or more")
        if len(file.expect) != file.cycles:
            raise self._error(
                ("expect",), f"found {len(file.expect)} entries, there must be one for each of {file.cycles} cycles"
            )
        return Case(
            source=self._document.source,
            id=file.id,
            about=file.about,
            varies=file.varies,
            now=file.now,
            config=file.config,
            cycles=file.cycles,
            objects=tuple(self._object(each, index) for index, each in enumerate(file.objects)),
            expect=tuple(self._expected(each or {}, index) for index, each in enumerate(file.expect)),
        )

    def _object(self, value: dict[str, object], index: int) -> KubernetesObject:
        place: FieldPath = ("objects", index)
        try:
            return self._typed(value, place)
        except msgspec.ValidationError as error:
            wrong = invalid_field(error, without_nulls(value))
            raise self._error((*place, *wrong.path), wrong.message, at_key=wrong.at_key) from None
        except ValueError as error:
            raise self._error(place, str(error)) from None

    def _typed(self, value: dict[str, object], place: FieldPath) -> KubernetesObject:
        """The object, taking an unquoted `y` or `n` as the text it is to the YAML writers that leave it unquoted."""
        while True:
            try:
                return from_value(value)
            except msgspec.ValidationError as error:
                path = invalid_field(error, without_nulls(value)).path
                text = self._document.scalar_text((*place, *path))
                if text not in ("y", "n", "Y", "N"):
                    raise
                value = _replaced(value, path, text)

    def _expected(self, entry: dict[str, object], index: int) -> Mapping[str, object]:
        for key in entry:
            self._known(key, _KEYS, ("expect", index))
            self._convert(entry[key], _KEYS[key].type, ("expect", index, key))
        return entry

    def _known(self, key: str, known: Collection[str], path: FieldPath) -> None:
        if key not in known:
            meant = nearest_name(key, known)
            hint = f'; did you mean "{meant}"?' if meant else f", allowed are {', '.join(known)}"
            raise self._error((*path, key), f"no such key{hint}", at_key=True)

    def _convert(self, value: object, shape: type[_T], path: FieldPath) -> _T:
        try:
            return msgspec.convert(value, shape)
        except msgspec.ValidationError as error:
            wrong = invalid_field(error, value)
            raise self._error((*path, *wrong.path), wrong.message, at_key=wrong.at_key) from None

    def _error(self, path: FieldPath, message: str, *, at_key: bool = False) -> CaseError:
        line, column = self._document.key_mark(path) if at_key else self._document.mark(path)
        place = f"{self._document.source}:{line}:{column}"
        return CaseError(": ".join(part for part in (place, show_path(path), message) if part))


def _replaced(value: Any, path: FieldPath, text: str) -> Any:
    """Plain data with the value at `path` replaced; parts may be shared with others, so they are copied."""
    if not path:
        return text
    changed = copy(value)
    changed[path[0]] = _replaced(value[path[0]], path[1:], text)
    return changed
