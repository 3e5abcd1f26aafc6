"""Reflector: a copy of one resource, kept equal to the API server's by list and watch.

What holds whatever the network does: every object of the server ends up in the copy, none stays that is gone, each
change is told once and in order. A watch resumes from the last version seen; where that is no longer possible
everything is listed again and the difference told as additions, updates and deletions.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from vcscheduler.cluster.live.backoff import Backoff
from vcscheduler.cluster.live.connection import Connection, query_of
from vcscheduler.cluster.live.decoding import (
    Decoder,
    Lines,
    NotDecodable,
    WatchEvent,
    decode_event,
    decode_list,
    decode_status,
    head_of,
)
from vcscheduler.cluster.live.failures import ApiFailure
from vcscheduler.cluster.live.resources import Resource
from vcscheduler.objects import KubernetesObject
from vcscheduler.objects.collector import collector_paused

log = logging.getLogger(__name__)

K = TypeVar("K", bound=KubernetesObject)

_PAGE: Final = 2500
"""Objects in one answer: fewer take the API server longer for a whole list, more are much to hold at a time."""
_GONE: Final = 410
_ALL_SENT: Final = "k8s.io/initial-events-end"


class Listener(Protocol):
    """Hears what a reflector finds."""

    def changed(self, old: KubernetesObject | None, new: KubernetesObject | None, /) -> None:
        """One change: only `new` = added, both = updated, only `old` = deleted."""

    def batch_ended(self) -> None:
        """No more changes are known right now."""


@dataclass(frozen=True, slots=True)
class WatchTiming:
    """Seconds. shortest, longest: how long a watch lasts before it is renewed, drawn at random between them.
    audit: after so long the next renewal compares everything with the server. silence: without a byte for so long a
    connection counts as dead. first_retry, last_retry: pauses between attempts."""

    shortest: float = 300.0
    longest: float = 600.0
    audit: float = 1800.0
    silence: float = 180.0
    first_retry: float = 0.1
    last_retry: float = 15.0


class Features:
    """How lists are asked for, as far as this API server supports it."""

    streaming_lists = True
    pages_first = True
    """Whether the first list comes in pages all the same."""


class _Gone(Exception):
    """The server no longer has the changes since the version asked for."""


class Reflector(Generic[K]):
    """One resource.

    Attributes that others read: `objects` by key; `synced` once everything was listed; `problem`: what keeps it from
    listing or watching now.

    Args:
        wanted: objects it refuses do not exist as far as anybody behind this reflector can tell.
        unchanged: tells updates that say nothing new from those that do; the former are not passed on.
    """

    def __init__(
        self,
        resource: Resource,
        kind: type[K],
        connection: Connection,
        listener: Listener,
        features: Features,
        timing: WatchTiming,
        wanted: Callable[[K], bool] | None = None,
        unchanged: Callable[[K, K], bool] | None = None,
    ) -> None:
        self.resource = resource
        self.objects: dict[str, K] = {}
        self.synced = False
        self.problem: ApiFailure | None = None
        self.relists = 0
        self._connection = connection
        self._listener = listener
        self._features = features
        self._timing = timing
        self._decoder = Decoder(kind)
        self._wanted = wanted
        self._unchanged = unchanged
        self._version = ""
        self._listed_at = 0.0

    async def run(self) -> None:
        """List and watch until cancelled."""
        pauses = Backoff(self._timing.first_retry, self._timing.last_retry)
        while True:
            try:
                await self._list_and_watch(pauses)
            except _Gone:
                log.info("%s: too far behind the API server, listing again", self.resource.label)
                self._version = ""
            except ApiFailure as failure:
                if failure.status == _GONE:
                    self._version = ""
                self._note(failure)
                pause = pauses.next()
                await asyncio.sleep(max(pause, failure.retry_after or 0.0))
            except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
                log.warning("%s: the API server's answer cannot be read: %s", self.resource.label, error)
                await asyncio.sleep(pauses.next())

    def _note(self, failure: ApiFailure) -> None:
        known = self.problem
        self.problem = failure
        level = logging.WARNING if known is None or known.status != failure.status else logging.DEBUG
        log.log(level, "%s: %s", self.resource.label, failure)

    async def _list_and_watch(self, pauses: Backoff) -> None:
        """The first list comes in pages: an API server has them ready in two thirds of the time that streaming takes.
        Later ones are not urgent, and streaming costs the server less memory."""
        overdue = time.monotonic() - self._listed_at > self._timing.audit
        if self._version and not overdue:
            await self._watch(pauses, initial=None)
        elif self._features.streaming_lists and (self.synced or not self._features.pages_first):
            try:
                await self._watch(pauses, initial={})
            except ApiFailure as failure:
                if failure.status not in (400, 422):
                    raise
                log.info("the API server does not stream lists: %s", failure)
                self._features.streaming_lists = False
        else:
            await self._list()
            pauses.reset()

    # --- listing ------------------------------------------------------------------------------------------------------

    async def _list(self) -> None:
        """Page by page; a page whose token has run out starts the list anew, in one piece."""
        for limit in (_PAGE, 0):
            try:
                found, version = await self._pages(limit)
            except ApiFailure as failure:
                if failure.status == _GONE and limit:
                    continue
                raise
            self._replace(found, version)
            return

    async def _pages(self, limit: int) -> tuple[dict[str, K], str]:
        found: dict[str, K] = {}
        token = ""
        while True:
            parameters = {"limit": str(limit)} if limit else {}
            if token:
                parameters["continue"] = token
            body = await self._connection.call(
                "GET", self.resource.collection(), query=query_of(parameters), timeout=120.0
            )
            with collector_paused():
                page = decode_list(body)
                for raw in page.items or ():
                    self._collect(found, raw)
            token = page.metadata.continue_
            if not token:
                return found, page.metadata.resource_version

    def _collect(self, found: dict[str, K], data: bytes | msgspec.Raw) -> None:
        try:
            obj = self._decoder.object(data)
        except NotDecodable as error:
            # What was readable before is better than nothing.
            kept = self.objects.get(error.head.key)
            if kept is not None:
                found[kept.key] = kept
            return
        found[obj.key] = obj

    def _replace(self, found: dict[str, K], version: str) -> None:
        """Take over a complete list and tell the difference."""
        self.relists += 1
        for key in [key for key in self.objects if key not in found]:
            self._remove(key)
        for key in sorted(found):
            self._put(found[key], complete=True)
        self._version = version
        self._listed_at = time.monotonic()
        self.synced = True
        self.problem = None
        self._listener.batch_ended()

    # --- watching -----------------------------------------------------------------------------------------------------

    async def _watch(self, pauses: Backoff, initial: dict[str, K] | None) -> None:
        """One watch, until the server ends it.

        Args:
            initial: None: changes since the last version. A dictionary: everything, collected there first.
        """
        timing = self._timing
        seconds = max(1, round(random.uniform(timing.shortest, timing.longest)))
        parameters = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        if initial is None:
            parameters["resourceVersion"] = self._version
        else:
            parameters["sendInitialEvents"] = "true"
            parameters["resourceVersionMatch"] = "NotOlderThan"
        lines = Lines()
        async with self._connection.stream(self.resource.collection(), query_of(parameters), timing.silence) as chunks:
            async for chunk in chunks:
                with collector_paused():
                    for line in lines.feed(chunk):
                        event = decode_event(line)
                        if initial is not None:
                            if self._initial_event(event, initial):
                                initial = None
                        else:
                            self._event(event)
                if initial is None:
                    pauses.reset()
                    self.problem = None
                    self._listener.batch_ended()
        if initial is not None:
            raise ApiFailure(0, "", f"{self.resource.label}: the list ended before it was complete")

    def _initial_event(self, event: WatchEvent, initial: dict[str, K]) -> bool:
        """Collect one object of a streaming list. True when it is complete."""
        if event.type == "ADDED" or event.type == "MODIFIED":
            self._collect(initial, event.object)
        elif event.type == "DELETED":
            initial.pop(head_of(event.object).key, None)
        elif event.type == "BOOKMARK":
            head = head_of(event.object)
            if head.annotations and head.annotations.get(_ALL_SENT) == "true":
                self._replace(initial, head.resource_version)
                return True
        else:
            self._error_event(event)
        return False

    def _event(self, event: WatchEvent) -> None:
        if event.type == "BOOKMARK":
            self._version = head_of(event.object).resource_version or self._version
            return
        if event.type not in ("ADDED", "MODIFIED", "DELETED"):
            self._error_event(event)
            return
        try:
            obj = self._decoder.object(event.object)
            key, version = obj.key, obj.metadata.resource_version
        except NotDecodable as error:
            obj, key, version = None, error.head.key, error.head.resource_version
        if not newer(version, self._version):
            return  # Seen before; watches that are cut and resumed may repeat themselves.
        self._version = version or self._version
        if event.type == "DELETED":
            self._remove(key)
        elif obj is not None:
            self._put(obj)

    def _error_event(self, event: WatchEvent) -> None:
        status = decode_status(event.object)
        if status.code == _GONE or status.reason == "Expired":
            raise _Gone
        raise ApiFailure(status.code, status.reason, f"{event.type}: {status.message}")

    # --- the copy -----------------------------------------------------------------------------------------------------

    def _put(self, obj: K, complete: bool = False) -> None:
        """Take an object in. In a complete list any other version than the known one counts, since a server that was
        restored from a backup counts from an earlier number."""
        key = obj.key
        old = self.objects.get(key)
        if self._wanted is not None and not self._wanted(obj):
            self._remove(key)
            return
        if old is not None and old.metadata.uid != obj.metadata.uid:
            self._remove(key)
            old = None
        if old is not None:
            before, now = old.metadata.resource_version, obj.metadata.resource_version
            if not (before != now if complete else newer(now, before)):
                return
        self.objects[key] = obj
        if old is None or self._unchanged is None or not self._unchanged(old, obj):
            self._listener.changed(old, obj)

    def _remove(self, key: str) -> None:
        old = self.objects.pop(key, None)
        if old is not None:
            self._listener.changed(old, None)


def newer(version: str, than: str) -> bool:
    """Whether a resourceVersion is later than another; unknown ones count as later."""
    if version.isdecimal() and than.isdecimal():
        return int(version) > int(than)
    return True
