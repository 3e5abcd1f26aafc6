"""What is written to PodGroups, Queues, claims and volumes (spec 07 §3.3, §4.2, §4.4).

PodGroup and Queue status are the scheduler's own, so they are laid over whatever version of the object is the newest
when the write goes out; a conflict with somebody else's change is then no reason to give up.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from datetime import UTC
from typing import Final, Generic, Protocol, TypeVar, cast

import msgspec

from vcscheduler.cluster.interface import ClusterError
from vcscheduler.cluster.live.access import Document, ObjectAccess, merge_patch
from vcscheduler.cluster.live.connection import Connection
from vcscheduler.cluster.live.decoding import Decoder, NotDecodable
from vcscheduler.cluster.live.failures import ApiFailure
from vcscheduler.cluster.live.queue import Write
from vcscheduler.cluster.live.reflector import newer
from vcscheduler.cluster.live.resources import Resource
from vcscheduler.objects import KubernetesObject, PodGroup, Queue, to_manifest

K = TypeVar("K", bound=KubernetesObject)

_ALLOCATED_HYPERNODE: Final = "volcano.sh/job-allocated-hypernode"


class ObjectDesk(Protocol):
    """What writes to objects need of the cluster they belong to."""

    access: ObjectAccess

    def known(self, kind: type[K], key: str) -> K | None:
        """The object as last seen by the watch."""

    def object_refused(self, obj: KubernetesObject, error: ClusterError, stored: KubernetesObject | None) -> None: ...


class _Kept(Generic[K]):
    """A status that was handed over but is not seen to be stored yet."""

    __slots__ = ("version", "wanted")

    def __init__(self, wanted: K) -> None:
        self.wanted = wanted
        self.version = ""


class StatusBook(Generic[K]):
    """The statuses of one kind that are under way.

    Until the watch shows a written status, events of the object tell of earlier times: they are given the status that
    was written, so that nobody sees it go back and forth.
    """

    def __init__(self, resource: Resource, kind: type[K], lay_over: Callable[[K, K], K], subresource: str) -> None:
        self.resource = resource
        self.decoder = Decoder(kind)
        self.kind = kind
        self.lay_over = lay_over
        self.subresource = subresource
        self._kept: dict[str, _Kept[K]] = {}
        self._answers: dict[str, K] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def expect(self, wanted: K) -> None:
        self._kept[wanted.key] = _Kept(wanted)

    def shown(self, obj: K) -> K:
        """The object as it is to be told of: with the status that is under way."""
        key = obj.key
        answer = self._answers.get(key)
        if answer is not None and not newer(answer.metadata.resource_version, obj.metadata.resource_version):
            del self._answers[key]
        kept = self._kept.get(key)
        if kept is None:
            return obj
        if kept.version and not newer(kept.version, obj.metadata.resource_version):
            self._kept.pop(key, None)
            return obj
        return self.lay_over(obj, kept.wanted)

    def gone(self, key: str) -> None:
        self._kept.pop(key, None)
        self._answers.pop(key, None)

    def newest(self, known: K | None, key: str) -> K | None:
        """The newest version known, from the watch or from an answer to a write."""
        answer = self._answers.get(key)
        if known is None or answer is None or answer.metadata.uid != known.metadata.uid:
            return known
        return answer if newer(answer.metadata.resource_version, known.metadata.resource_version) else known

    def answered(self, stored: K, known: K | None) -> None:
        """The server told what it has; `known` is what the watch showed last."""
        if known is None or newer(stored.metadata.resource_version, known.metadata.resource_version):
            self._answers[stored.key] = stored

    def stored(self, wanted: K, version: str, known: K | None) -> None:
        """A status is written; the watch will show it as `version`, or has done so already."""
        kept = self._kept.get(wanted.key)
        if kept is None or kept.wanted is not wanted:
            return
        if known is not None and not newer(version, known.metadata.resource_version):
            self._kept.pop(wanted.key, None)
        else:
            kept.version = version

    def failed(self, wanted: K) -> None:
        kept = self._kept.get(wanted.key)
        if kept is not None and kept.wanted is wanted:
            self._kept.pop(wanted.key, None)


class WriteStatus(Write, Generic[K]):
    """The whole object, with the status that is wanted. Only the latest of an object is worth sending."""

    __slots__ = ("book", "desk", "wanted")

    def __init__(self, desk: ObjectDesk, book: StatusBook[K], wanted: K) -> None:
        super().__init__(f"{book.resource.label}/{wanted.key}")
        self.desk = desk
        self.book = book
        self.wanted = wanted

    def replaces(self, waiting: Write) -> bool:
        return isinstance(waiting, WriteStatus)

    async def send(self, connection: Connection) -> None:
        book, wanted = self.book, self.wanted
        current = book.newest(self._known(), wanted.key)
        if self.uncertain:
            current = await self._read()
            self.uncertain = False
        if current is None or current.metadata.uid != wanted.metadata.uid:
            raise ApiFailure(404, "NotFound", f'{book.resource.label} "{wanted.key}" not found')
        body = book.lay_over(current, wanted)
        if body == current:
            book.stored(wanted, current.metadata.resource_version, self._known())
            return
        try:
            answer = await connection.call(
                "PUT", book.resource.path_of(wanted, book.subresource), msgspec.json.encode(to_manifest(body))
            )
        except ApiFailure as failure:
            if failure.status != 409:
                raise
            await self._read()
            raise ApiFailure(503, failure.reason, failure.message) from failure
        try:
            stored = book.decoder.object(answer)
        except NotDecodable:
            return  # It is written; the watch shows it when it can be read again.
        known = self._known()
        book.answered(stored, known)
        book.stored(wanted, stored.metadata.resource_version, known)

    def _known(self) -> K | None:
        return self.desk.known(self.book.kind, self.wanted.key)

    async def _read(self) -> K | None:
        wanted, book = self.wanted, self.book
        found = await self.desk.access.read(
            book.resource, book.decoder, wanted.metadata.namespace, wanted.metadata.name
        )
        if found is not None:
            book.answered(found, self._known())
        return found

    async def failed(self, failure: ApiFailure, connection: Connection) -> None:
        book, wanted = self.book, self.wanted
        stored: KubernetesObject | None
        try:
            stored = await self._read()
        except ApiFailure:
            stored = book.newest(self._known(), wanted.key)
        book.failed(wanted)
        self.desk.object_refused(wanted, failure.as_cluster_error(), stored)


class PatchObject(Write):
    """What changed from one version of an object to another. Somebody else's change in between is a conflict."""

    __slots__ = ("desk", "kind", "new", "old", "resource")

    def __init__(self, desk: ObjectDesk, resource: Resource, old: KubernetesObject, new: KubernetesObject) -> None:
        super().__init__(f"{resource.label}/{new.key}")
        self.desk = desk
        self.resource = resource
        self.old = old
        self.new = new

    async def send(self, connection: Connection) -> None:
        patch = merge_patch(to_manifest(self.old), to_manifest(self.new))
        metadata = cast(Document, patch.setdefault("metadata", {}))
        metadata["resourceVersion"] = self.old.metadata.resource_version
        status = patch.pop("status", None)
        if self.uncertain:
            await self._settle(metadata)
        where = (self.resource, self.new.metadata.namespace, self.new.metadata.name)
        if len(patch) > 1 or len(metadata) > 1:
            answer = await self.desk.access.patch(*where, "", patch)
            metadata["resourceVersion"] = _version_of(answer)
        if status is not None:
            of_status: Document = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": status}
            await self.desk.access.patch(*where, "status", of_status)

    async def _settle(self, metadata: Document) -> None:
        """After a lost answer, start from the version that is stored if that already is, in part, what was wanted."""
        decoder: Decoder[KubernetesObject] = Decoder(self.resource.kind)
        stored = await self.desk.access.read(
            self.resource, decoder, self.new.metadata.namespace, self.new.metadata.name
        )
        if stored is None or stored.metadata.uid != self.old.metadata.uid:
            raise ApiFailure(404, "NotFound", f'{self.resource.label} "{self.new.key}" not found')
        self.uncertain = False
        if _without_version(stored) in (_without_version(self.new), _without_version(self._without_status())):
            metadata["resourceVersion"] = stored.metadata.resource_version

    def _without_status(self) -> KubernetesObject:
        half = copy(self.new)
        if hasattr(half, "status"):
            half.status = self.old.status  # type: ignore[attr-defined]
        return half

    async def failed(self, failure: ApiFailure, connection: Connection) -> None:
        stored = self.desk.known(self.resource.kind, self.new.key)
        self.desk.object_refused(self.new, failure.as_cluster_error(), stored)


def _version_of(answer: bytes) -> str:
    found = msgspec.json.decode(answer, type=dict[str, object]).get("metadata")
    return str(found.get("resourceVersion", "")) if isinstance(found, dict) else ""


def _without_version(obj: KubernetesObject) -> Document:
    plain = to_manifest(obj)
    metadata = plain.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("resourceVersion", None)
        metadata.pop("generation", None)
    return plain


def lay_over_pod_group(current: PodGroup, wanted: PodGroup) -> PodGroup:
    """The current PodGroup with the wanted status, and the one annotation that is the scheduler's."""
    metadata = current.metadata
    chosen = wanted.metadata.annotations.get(_ALLOCATED_HYPERNODE)
    if chosen is not None and metadata.annotations.get(_ALLOCATED_HYPERNODE) != chosen:
        metadata = copy(metadata)
        metadata.annotations = {**metadata.annotations, _ALLOCATED_HYPERNODE: chosen}
    return PodGroup(metadata=metadata, spec=current.spec, status=wanted.status)


def lay_over_queue(current: Queue, wanted: Queue) -> Queue:
    """The current queue with the wanted sums; its state belongs to the queue controller."""
    status = copy(current.status)
    status.allocated = wanted.status.allocated
    return Queue(metadata=current.metadata, spec=current.spec, status=status)


def as_written(pod_group: PodGroup) -> PodGroup:
    """The PodGroup as the API server will show it: times in whole seconds of UTC; of no stored version yet."""
    status = copy(pod_group.status)
    status.conditions = list(status.conditions)
    for index, condition in enumerate(status.conditions):
        time = condition.last_transition_time
        if time is not None and (time.microsecond or time.tzinfo is not UTC):
            condition = status.conditions[index] = copy(condition)
            condition.last_transition_time = time.astimezone(UTC).replace(microsecond=0)
    metadata = copy(pod_group.metadata)
    metadata.resource_version = ""
    return PodGroup(metadata=metadata, spec=pod_group.spec, status=status)
