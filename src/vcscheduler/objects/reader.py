"""Reading manifests: files, directories and standard input into checked, typed objects.

Texts go through the document reader, which knows the line of every field. Large JSON lists, as kubectl dumps
them, take a road of their own: the items are decoded straight into structs, without plain data in between.
Only when one of them is wrong is the text read again to find the line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path as FilePath
from typing import BinaryIO, Final

import msgspec

from vcscheduler.documents import Document, DocumentError, load_documents
from vcscheduler.objects.collector import collector_paused
from vcscheduler.objects.core import Event
from vcscheduler.objects.errors import InvalidField, ManifestError, Path, nearest, show_path, show_value
from vcscheduler.objects.files import read_texts
from vcscheduler.objects.kinds import KINDS, convert, json_decoder, without_nulls
from vcscheduler.objects.manifests import Manifest, Manifests, Origin, describe
from vcscheduler.objects.meta import KubernetesObject
from vcscheduler.objects.mistakes import invalid_field, misspelt_fields
from vcscheduler.objects.scheduling import Queue
from vcscheduler.objects.validate import queue_cycle, validate

_NOT_READ: Final = (Event,)
"""Kinds that exist for writing only."""
_LARGE: Final = 256 * 1024
"""JSON texts from this size on take the quick road."""
_LARGEST_LOCATED: Final = 8 * 1024 * 1024
"""JSON texts above this size are not read a second time to find a line; object and field have to do."""

_Locate = Callable[[Path, bool], tuple[int, int]]
"""(path, whether the key is meant) -> (line, column)."""


class _Header(msgspec.Struct, rename="camel"):
    """The outside of a list, its items still undecoded."""

    api_version: str | None = None
    kind: str | None = None
    items: list[msgspec.Raw] | None = None


class _ItemHeader(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None


_HEADER: Final = msgspec.json.Decoder(_Header)
_ITEM_HEADER: Final = msgspec.json.Decoder(_ItemHeader)


def read_manifests(paths: Sequence[str | FilePath], *, stdin: BinaryIO | None = None) -> Manifests:
    """Read and check all objects of files and directories (recursively, sorted); ``-`` reads `stdin`.

    Namespaced objects without namespace get ``default``. Objects of kinds that play no part are counted, not
    read.

    Raises:
        ManifestError: the first mistake, with file, line or object, field, what was found and allowed.
    """
    reader = _Reader()
    with collector_paused():
        for source, data in read_texts(paths, stdin):
            reader.read(source, data)
    return reader.finish()


def read_manifest_text(text: str | bytes, source: str = "<text>") -> Manifests:
    """`read_manifests` for a text at hand."""
    reader = _Reader()
    reader.read(source, text.encode() if isinstance(text, str) else text)
    return reader.finish()


class _Reader:
    """Collects the objects of several texts and checks what can only be seen across them."""

    def __init__(self) -> None:
        self._manifests = Manifests()
        self._seen: dict[tuple[type[KubernetesObject], str], Origin] = {}
        self._generated: dict[tuple[type[KubernetesObject], str], int] = {}

    def read(self, source: str, data: bytes) -> None:
        if len(data) >= _LARGE and data[:64].lstrip()[:1] == b"{" and self._read_large_json(source, data):
            return
        try:
            documents = load_documents(data, source)
        except DocumentError as error:
            raise ManifestError(source, error.message, line=error.line, column=error.column) from None
        for document in documents:
            if document.value is not None:
                self._read_value(document, document.value, (), (None, None))

    def finish(self) -> Manifests:
        self._warn_of_unknown_kinds()
        queues = {queue.name: queue for queue in self._manifests.of(Queue)}
        circle = queue_cycle(queues)
        if circle:
            origin = self._seen[Queue, circle[0]]
            shown = " -> ".join((*circle, circle[0]))
            raise ManifestError(
                str(origin),
                f'the parents form a circle: {shown}; one of these needs another parent, such as "root"',
                obj=f"Queue {circle[0]}",
                field="spec.parent",
            )
        return self._manifests

    # The quick road: large JSON

    def _read_large_json(self, source: str, data: bytes) -> bool:
        """Read a large JSON object. False if something about it needs the document reader's closer look."""
        try:
            header = _HEADER.decode(data)
            implied = _item_kind(header.api_version, header.kind)
            kinds = []
            for raw in header.items or ():
                item = _ITEM_HEADER.decode(raw)
                kinds.append((item.api_version or implied[0], item.kind or implied[1]))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        if not header.kind or not header.kind.endswith("List") or header.items is None:
            return False
        if not all(version and kind and not kind.endswith("List") for version, kind in kinds):
            return False
        for index, (raw, (version, kind)) in enumerate(zip(header.items, kinds, strict=True)):
            cls = self._class_of(version, kind)
            if cls is not None:
                self._read_raw(source, data, raw, index, cls)
        return True

    def _read_raw(self, source: str, data: bytes, raw: msgspec.Raw, index: int, cls: type[KubernetesObject]) -> None:
        def locate(path: Path, at_key: bool) -> tuple[int, int]:
            if len(data) > _LARGEST_LOCATED:
                return 0, 0
            document = load_documents(data, source)[0]
            return _locator(document, ("items", index))(path, at_key)

        origin = Origin(source, item=index + 1)
        try:
            obj = json_decoder(cls).decode(raw)
        except msgspec.ValidationError:
            obj = self._convert(msgspec.json.decode(raw), cls, origin, locate)
        self._add(obj, origin, locate)

    # The road with line numbers: YAML and small JSON

    def _read_value(
        self, document: Document, value: object, prefix: Path, implied: tuple[str | None, str | None]
    ) -> None:
        origin = Origin(document.source, document.line, _item_number(prefix))
        locate = _locator(document, prefix)
        if not isinstance(value, dict):
            raise self._error(
                origin,
                InvalidField((), f"found {_article(value)}, allowed is an object with apiVersion and kind"),
                locate,
            )
        version, kind = (
            self._word(value, name, default, origin, locate)
            for name, default in zip(("apiVersion", "kind"), implied, strict=True)
        )
        items = value.get("items")
        if kind.endswith("List") and (isinstance(items, list) or kind == "List"):
            if items is not None and not isinstance(items, list):
                wrong = InvalidField(("items",), f"found {show_value(items)}, allowed is a list")
                raise self._error(origin, wrong, locate)
            for index, item in enumerate(items or ()):
                self._read_value(document, item, (*prefix, "items", index), _item_kind(version, kind))
            return
        cls = self._class_of(version, kind)
        if cls is None:
            return
        obj = self._convert(value, cls, origin, locate)
        self._add(obj, origin, locate)
        for path, meant in misspelt_fields(value, cls):
            line, _ = locate(path, True)
            self._manifests.warnings.append(
                f"{document.source}:{line}: {describe(obj)}: {show_path(path)}: unknown field, ignored; "
                f'did you mean "{meant}"?'
            )

    def _word(self, value: dict[str, object], name: str, default: str | None, origin: Origin, locate: _Locate) -> str:
        word = value.get(name) or default
        if isinstance(word, str):
            return word
        if word is None:
            known = ("apiVersion", "kind", "metadata", "spec")
            near = next((key for key in value if key not in known and nearest(str(key), [name], 0.8)), "")
            hint = f'; write "{near}" as "{name}"' if near else ", every object needs apiVersion and kind"
            raise self._error(origin, InvalidField((name,), f"missing{hint}"), locate)
        raise self._error(origin, InvalidField((name,), f"found {show_value(word)}, allowed is text"), locate)

    # Both

    def _class_of(self, version: str | None, kind: str | None) -> type[KubernetesObject] | None:
        cls = KINDS.get((version or "", kind or ""))
        if cls is None or cls in _NOT_READ:
            name = f"{version}/{kind}"
            self._manifests.ignored[name] = self._manifests.ignored.get(name, 0) + 1
            return None
        return cls

    def _convert(self, value: object, cls: type[KubernetesObject], origin: Origin, locate: _Locate) -> KubernetesObject:
        try:
            return convert(value, cls)
        except msgspec.ValidationError as error:
            wrong = invalid_field(error, without_nulls(value))
            raise self._error(origin, wrong, locate, _describe_value(value, cls)) from None

    def _add(self, obj: KubernetesObject, origin: Origin, locate: _Locate) -> None:
        metadata, cls = obj.metadata, type(obj)
        if not cls.namespaced and metadata.namespace:
            self._manifests.warnings.append(
                f"{origin}: {cls.kind} {metadata.name}: metadata.namespace: ignored, "
                f"objects of this kind belong to no namespace"
            )
            metadata.namespace = ""
        elif cls.namespaced and not metadata.namespace:
            metadata.namespace = "default"
        if not metadata.name and metadata.generate_name:
            metadata.name = self._generate_name(cls, metadata.namespace, metadata.generate_name)
        try:
            validate(obj)
        except InvalidField as wrong:
            raise self._error(origin, wrong, locate, describe(obj)) from None
        first = self._seen.setdefault((cls, obj.key), origin)
        if first is not origin:
            again = InvalidField(("metadata", "name"), f"the same object was already given at {first}")
            raise self._error(origin, again, locate, describe(obj))
        self._manifests.items.append(Manifest(obj, origin))

    def _generate_name(self, cls: type[KubernetesObject], namespace: str, stem: str) -> str:
        """What an API server does with `generateName`, but counting: every run gives the same names."""
        number = self._generated.get((cls, f"{namespace}/{stem}"), 0) + 1
        self._generated[cls, f"{namespace}/{stem}"] = number
        return f"{stem}{number:05d}"

    def _error(self, origin: Origin, wrong: InvalidField, locate: _Locate, obj: str = "") -> ManifestError:
        line, column = locate(wrong.path, wrong.at_key)
        source, name = origin.source, obj
        if not line and origin.item:
            source = str(origin)
        return ManifestError(source, wrong.message, line=line, column=column, obj=name, field=show_path(wrong.path))

    def _warn_of_unknown_kinds(self) -> None:
        for name in self._manifests.ignored:
            version, _, kind = name.rpartition("/")
            if (version, kind) in KINDS:
                continue
            meant = _known_like(version, kind)
            if meant:
                self._manifests.warnings.append(f"objects of kind {name} are ignored; did you mean {'/'.join(meant)}?")


def _known_like(version: str, kind: str) -> tuple[str, str] | None:
    """A known kind that differs only in its version or in the spelling of its name."""
    group = version.rpartition("/")[0]
    for known in KINDS:
        same_group = known[0].rpartition("/")[0] == group
        if same_group and (known[1] == kind or nearest(kind, [known[1]], cutoff=0.85)):
            return known
    return None


def _item_kind(version: str | None, kind: str | None) -> tuple[str | None, str | None]:
    """What items of a list may leave out: those of a PodList from the API are Pods without saying so."""
    if not kind or kind == "List":
        return None, None
    return version, kind.removesuffix("List")


def _item_number(prefix: Path) -> int:
    index = prefix[-1] if prefix else None
    return index + 1 if isinstance(index, int) else 0


def _locator(document: Document, prefix: Path) -> _Locate:
    def locate(path: Path, at_key: bool) -> tuple[int, int]:
        whole = (*prefix, *path)
        return document.key_mark(whole) if at_key else document.mark(whole)

    return locate


def _describe_value(value: object, cls: type[KubernetesObject]) -> str:
    """``Pod default/a`` for plain data that could not be decoded."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return cls.kind
    namespace = metadata.get("namespace") or "default"
    return f"{cls.kind} {namespace}/{metadata['name']}" if cls.namespaced else f"{cls.kind} {metadata['name']}"


def _article(value: object) -> str:
    return "text" if isinstance(value, str) else show_value(value)
