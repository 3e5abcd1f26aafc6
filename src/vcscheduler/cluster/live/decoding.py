"""From the API's bytes to objects: lists, watch events, single objects.

Objects are decoded straight into structs. One that cannot be decoded is reported once and passed over; it must not
keep the others from being seen.
"""

from __future__ import annotations

import logging
from typing import Final, Generic, TypeVar

import msgspec

from vcscheduler.cluster.live.failures import ApiStatus
from vcscheduler.objects import KubernetesObject, Node, Pod
from vcscheduler.objects.kinds import convert, json_decoder

log = logging.getLogger(__name__)

K = TypeVar("K", bound=KubernetesObject)

_LARGEST_EVENT: Final = 64 * 1024 * 1024
_REMEMBERED: Final = 1000
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_TRIMMED: Final = (Pod, Node)
"""Kinds of which there are many and which are never written back whole."""


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class ObjectList(msgspec.Struct, rename="camel"):
    """A list with its items still undecoded."""

    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


class WatchEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class Head(msgspec.Struct, rename="camel"):
    """What is needed of an object that cannot be decoded as a whole, and of bookmarks."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class _Headed(msgspec.Struct):
    metadata: Head = msgspec.field(default_factory=Head)


_LIST: Final = msgspec.json.Decoder(ObjectList)
_EVENT: Final = msgspec.json.Decoder(WatchEvent)
_HEADED: Final = msgspec.json.Decoder(_Headed)
_STATUS: Final = msgspec.json.Decoder(ApiStatus)


class NotDecodable(Exception):
    """An object whose fields are not what its kind has; `head` says which one as far as that can be read."""

    def __init__(self, head: Head, message: str) -> None:
        super().__init__(message)
        self.head = head


class Decoder(Generic[K]):
    """Decodes objects of one kind."""

    def __init__(self, kind: type[K]) -> None:
        self._kind = kind
        self._decode = json_decoder(kind).decode
        self._trims = issubclass(kind, _TRIMMED)
        self._reported: set[str] = set()

    def object(self, data: bytes | msgspec.Raw) -> K:
        """One object.

        Raises:
            NotDecodable: its fields are of other types than the kind's; reported in the log, once per object.
        """
        try:
            obj = self._decode(data)
        except msgspec.ValidationError:
            obj = self._closer_look(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._report(Head(), error) from error
        if self._trims and obj.metadata.annotations:
            obj.metadata.annotations.pop(_LAST_APPLIED, None)
        return obj  # type: ignore[return-value]

    def _closer_look(self, data: bytes | msgspec.Raw) -> KubernetesObject:
        """Go prints null where it means absent, in custom resources above all."""
        try:
            return convert(msgspec.json.decode(data), self._kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._report(head_of(data), error) from error

    def _report(self, head: Head, error: Exception) -> NotDecodable:
        name = head.uid or head.key
        if name not in self._reported:
            if len(self._reported) >= _REMEMBERED:
                self._reported.clear()
            self._reported.add(name)
            log.error("%s %s cannot be read and is passed over: %s", self._kind.kind, head.key or "(?)", error)
        return NotDecodable(head, str(error))


def head_of(data: bytes | msgspec.Raw) -> Head:
    """Name and version of an object; empty where even they cannot be read."""
    try:
        return _HEADED.decode(data).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Head()


def decode_list(data: bytes) -> ObjectList:
    """
    Raises:
        msgspec.DecodeError: this is not a list.
    """
    return _LIST.decode(data)


def decode_event(line: bytes) -> WatchEvent:
    """
    Raises:
        msgspec.DecodeError: this is no watch event.
    """
    return _EVENT.decode(line)


def decode_status(data: msgspec.Raw) -> ApiStatus:
    return _STATUS.decode(data)


class Lines:
    """Cuts a stream of bytes into lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes.

        Raises:
            ValueError: a line grew beyond every bound.
        """
        end = data.rfind(b"\n")
        if end < 0:
            self._rest += data
            if len(self._rest) > _LARGEST_EVENT:
                raise ValueError(f"a watch event of more than {_LARGEST_EVENT} bytes")
            return []
        lines = (self._rest + data[:end]).split(b"\n")
        self._rest = data[end + 1 :]
        return [line for line in lines if line]
