"""Events about objects, for people, damped as client-go damps them (spec 07 §4.5).

Repeats of an event are counted up in place. More than ten of a kind within ten minutes are merged into one. An object
that is talked about without end gets 25 events, then one in five minutes.
"""

from __future__ import annotations

import itertools
import os
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, Final, TypeAlias, TypeVar

import msgspec

from vcscheduler.cluster.live.access import Document
from vcscheduler.cluster.live.connection import MERGE_PATCH, Connection
from vcscheduler.cluster.live.failures import ApiFailure
from vcscheduler.cluster.live.queue import Lane, Write
from vcscheduler.objects import KINDS

_REMEMBERED: Final = 4096
_SIMILAR: Final = 10
_SIMILAR_SECONDS: Final = 600.0
_BURST: Final = 25.0
_REFILL_SECONDS: Final = 300.0
_COMBINED: Final = "(combined from similar events): "
_LONGEST_MESSAGE: Final = 1024
_LONGEST_STEM: Final = 230

_API_VERSIONS: Final = {kind: api_version for api_version, kind in KINDS}
_API_VERSIONS["Job"] = "batch.volcano.sh/v1alpha1"

V = TypeVar("V")
Uid: TypeAlias = Callable[[str, str, str], str]
"""(kind, namespace, name) -> uid of the object, empty if unknown."""


@dataclass(slots=True)
class Told:
    """One event as stored, or about to be."""

    kind: str
    namespace: str
    name: str
    uid: str
    type: str
    reason: str
    message: str
    event_name: str
    first: datetime
    last: datetime
    count: int = 1
    created: bool = False
    """Whether the server has it."""
    waiting: bool = False
    """Whether a write of it waits that will take along what is counted until then."""


@dataclass(slots=True)
class _Similar:
    messages: set[str]
    since: float


@dataclass(slots=True)
class _Allowance:
    left: float
    at: float


class Recorder:
    """Turns what is to be told into writes of events.

    Args:
        component: who tells.
        uid: see there; `kubectl describe` finds events by it.
        submit: takes a write to send, False if there is no room.
    """

    def __init__(self, component: str, uid: Uid, submit: Callable[[Write], bool]) -> None:
        self._component = component
        self._uid = uid
        self._submit = submit
        self._told: OrderedDict[tuple[str, ...], Told] = OrderedDict()
        self._similar: OrderedDict[tuple[str, ...], _Similar] = OrderedDict()
        self._allowances: OrderedDict[tuple[str, ...], _Allowance] = OrderedDict()
        self._numbers = itertools.count(int.from_bytes(os.urandom(6), "big"))
        self.suppressed = 0

    def record(self, kind: str, namespace: str, name: str, type: str, reason: str, message: str) -> None:
        now = time.monotonic()
        if not self._allowed((kind, namespace, name), now):
            self.suppressed += 1
            return
        message = message if len(message) <= _LONGEST_MESSAGE else message[: _LONGEST_MESSAGE - 3] + "..."
        alike = (kind, namespace, name, type, reason)
        key = (*alike, "") if self._is_one_of_many(alike, message, now) else (*alike, message)
        if not key[-1]:
            message = _COMBINED + message
        wall = datetime.now(UTC).replace(microsecond=0)
        told = self._told.get(key)
        if told is None:
            told = Told(
                kind,
                namespace,
                name,
                self._uid(kind, namespace, name),
                type,
                reason,
                message,
                f"{name[:_LONGEST_STEM].rstrip('-.')}.{next(self._numbers) & 0xFFFFFFFFFFFF:x}",
                wall,
                wall,
            )
            _remember(self._told, key, told)
        else:
            self._told.move_to_end(key)
            told.count += 1
            told.last = wall
            told.message = message
        if not told.waiting:
            told.waiting = self._submit(WriteEvent(told, self._component))

    def _allowed(self, about: tuple[str, ...], now: float) -> bool:
        allowance = self._allowances.get(about)
        if allowance is None:
            allowance = _Allowance(_BURST, now)
            _remember(self._allowances, about, allowance)
        allowance.left = min(_BURST, allowance.left + (now - allowance.at) / _REFILL_SECONDS)
        allowance.at = now
        if allowance.left < 1.0:
            return False
        allowance.left -= 1.0
        return True

    def _is_one_of_many(self, alike: tuple[str, ...], message: str, now: float) -> bool:
        similar = self._similar.get(alike)
        if similar is None or now - similar.since > _SIMILAR_SECONDS:
            similar = _Similar(set(), now)
            _remember(self._similar, alike, similar)
        similar.since = now
        if len(similar.messages) < _SIMILAR or message in similar.messages:
            similar.messages.add(message)
            return False
        return True


def _remember(memory: OrderedDict[tuple[str, ...], V], key: tuple[str, ...], value: V) -> None:
    memory[key] = value
    if len(memory) > _REMEMBERED:
        memory.popitem(last=False)


class WriteEvent(Write):
    """An event created, or its count brought up to date."""

    __slots__ = ("component", "told")
    lane: ClassVar[Lane] = Lane.EVENTS

    def __init__(self, told: Told, component: str) -> None:
        super().__init__(f"events/{told.namespace}/{told.event_name}")
        self.told = told
        self.component = component

    async def send(self, connection: Connection) -> None:
        told = self.told
        told.waiting = False
        namespace = told.namespace or "default"
        path = f"/api/v1/namespaces/{namespace}/events"
        if told.created:
            news: Document = {"count": told.count, "lastTimestamp": _time(told.last), "message": told.message}
            try:
                await connection.call("PATCH", f"{path}/{told.event_name}", msgspec.json.encode(news), MERGE_PATCH)
                return
            except ApiFailure as failure:
                if failure.status != 404:
                    raise
        try:
            await connection.call("POST", path, msgspec.json.encode(self._whole(namespace)))
        except ApiFailure as failure:
            if failure.reason != "AlreadyExists":
                raise
        told.created = True

    async def failed(self, failure: ApiFailure, connection: Connection) -> None:
        self.told.waiting = False

    def _whole(self, namespace: str) -> Document:
        told = self.told
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": told.event_name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": _API_VERSIONS.get(told.kind, "v1"),
                "kind": told.kind,
                "namespace": told.namespace,
                "name": told.name,
                "uid": told.uid,
            },
            "type": told.type,
            "reason": told.reason,
            "message": told.message,
            "count": told.count,
            "firstTimestamp": _time(told.first),
            "lastTimestamp": _time(told.last),
            "source": {"component": self.component},
            "reportingComponent": self.component,
        }


def _time(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
