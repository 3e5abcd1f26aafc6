"""Reading a text into documents: one pass over the parser's events, checking while the values are built.

Refused, with the position: syntax errors, duplicate keys (unless only a warning is wanted), keys that are
lists or mappings, tags beyond the plain core ones, aliases that blow up or contain themselves, deep nesting.

Texts that are plain JSON take Python's JSON reader instead, which is far quicker on dumps of a large cluster.
Should it object to anything, the YAML reader decides: nearly all JSON is YAML, and it knows positions.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Literal

import yaml

from vcscheduler.documents.document import Document, DuplicateKey, Places
from vcscheduler.documents.errors import DocumentError
from vcscheduler.documents.parser import MAX_DEPTH, ParserProtocol, new_parser, position
from vcscheduler.documents.places import json_places, yaml_places
from vcscheduler.documents.scalars import BOOLEANS, NULLS, NUMBER_STARTS, WORDS, number_value
from vcscheduler.documents.syntax import decode_text, syntax_error

MAX_ALIASED_VALUES = 1_000_000

_TAG_PREFIX = "tag:yaml.org,2002:"
_CORE_TAGS = "!!str, !!int, !!float, !!bool, !!null, !!map, !!seq"

DuplicateKeys = Literal["error", "warn"]


def load_documents(text: str | bytes, source: str, *, duplicate_keys: DuplicateKeys = "error") -> list[Document]:
    """The YAML documents (or JSON values, one after the other) of a text; none if there are only comments.

    `source` names the text in errors. With `duplicate_keys="warn"` the last of several equal keys wins and
    `Document.duplicates` lists them. Raises `DocumentError`.
    """
    return list(iter_documents(text, source, duplicate_keys=duplicate_keys))


def iter_documents(text: str | bytes, source: str, *, duplicate_keys: DuplicateKeys = "error") -> Iterator[Document]:
    """Like `load_documents`, but each document as soon as it is read: what follows it is not judged yet."""
    text = decode_text(text, source)
    json_error: json.JSONDecodeError | None = None
    if text.lstrip()[:1] in ("{", "["):
        try:
            yield from _load_json(text, source)
            return
        except json.JSONDecodeError as error:
            json_error = error
        except (_NotPlainJson, RecursionError):
            pass
    try:
        yield from _iter_yaml(text, source, duplicate_keys)
    except DocumentError as error:
        if json_error is not None and (json_error.lineno, json_error.colno) > (error.line, error.column):
            message = json_error.msg[:1].lower() + json_error.msg[1:]
            raise DocumentError(source, json_error.lineno, json_error.colno, message) from None
        raise


class _NotPlainJson(Exception):
    """JSON that needs the YAML reader's closer look (duplicate keys, extreme numbers, deep nesting)."""


def _json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _NotPlainJson
    return result


def _json_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _NotPlainJson
    return number


def _json_int(text: str) -> int:
    if len(text) > 18 and number_value(text).__class__ is not int:
        raise _NotPlainJson
    return int(text)


def _json_constant(name: str) -> float:
    raise _NotPlainJson


_JSON = json.JSONDecoder(
    object_pairs_hook=_json_object,
    parse_float=_json_float,
    parse_int=_json_int,
    parse_constant=_json_constant,
)
_BLANKS = re.compile(r"[ \t\n\r]*")


def _load_json(text: str, source: str) -> list[Document]:
    places = Places(text, json_places)
    documents: list[Document] = []
    offset, line = 0, 1
    while True:
        match = _BLANKS.match(text, offset)
        start = match.end() if match else offset
        if start == len(text):
            return documents
        if text[start] not in "{[":
            raise json.JSONDecodeError("unexpected text after the end of the JSON value", text, start)
        line += text.count("\n", offset, start)
        value, offset = _JSON.raw_decode(text, start)
        if _too_deep(value):
            raise _NotPlainJson
        documents.append(Document(source, line, value, _places=places, _index=len(documents)))
        line += text.count("\n", start, offset)


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for container in level:
            for child in container.values() if container.__class__ is dict else container:
                if child.__class__ is dict or child.__class__ is list:
                    inner.append(child)
        if not inner:
            return False
        level = inner
    return True


def _iter_yaml(text: str, source: str, duplicate_keys: DuplicateKeys) -> Iterator[Document]:
    places = Places(text, yaml_places)
    index = 0
    try:
        parser = new_parser(text)
        while (event := parser.get_event()).__class__ is not yaml.StreamEndEvent:
            if event.__class__ is not yaml.DocumentStartEvent:
                continue
            root = parser.get_event()
            builder = _Builder(parser, source, duplicate_keys)
            value = builder.node(root, 1)
            duplicates = tuple(builder.duplicates)
            line = position(root)[0]
            yield Document(source, line, value, duplicates, _places=places, _index=index)
            index += 1
    except yaml.YAMLError as error:
        raise syntax_error(error, text, source) from None


class _Pending:
    """Stands for an anchored value that is still being built, to recognise aliases to itself."""


_PENDING = _Pending()


class _Builder:
    """Builds the value of one document from the parser's events."""

    def __init__(self, parser: ParserProtocol, source: str, duplicate_keys: DuplicateKeys) -> None:
        self._next = parser.get_event
        self._source = source
        self._tolerant = duplicate_keys == "warn"
        self._anchors: dict[str, tuple[Any, str | None, int]] = {}  # value, text of a scalar, values inside
        self._values = 0
        self._aliased = 0
        self.duplicates: list[DuplicateKey] = []

    def _error(self, event: Any, message: str) -> DocumentError:
        return DocumentError(self._source, *position(event), message)

    def node(self, event: Any, depth: int) -> Any:
        kind = event.__class__
        if kind is yaml.ScalarEvent:
            value = self._scalar(event)
            if event.anchor is not None:
                self._anchors[event.anchor] = value, event.value, 1
            return value
        if kind is yaml.AliasEvent:
            return self._alias(event)[0]
        if depth > MAX_DEPTH:
            raise self._error(event, f"nesting deeper than {MAX_DEPTH} levels")
        anchor = event.anchor
        if anchor is not None:
            self._anchors[anchor] = _PENDING, None, 0
        before = self._values
        if kind is yaml.MappingStartEvent:
            if event.tag is not None:
                self._collection_tag(event, "map")
            value = self._mapping(depth)
        else:
            if event.tag is not None:
                self._collection_tag(event, "seq")
            value = self._sequence(depth)
        if anchor is not None:
            self._anchors[anchor] = value, None, self._values - before + 1
        return value

    def _sequence(self, depth: int) -> list[Any]:
        result: list[Any] = []
        read, node = self._next, self.node
        while (event := read()).__class__ is not yaml.SequenceEndEvent:
            result.append(node(event, depth + 1))
        self._values += len(result)
        return result

    def _mapping(self, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        keys: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        read = self._next
        inner = depth + 1
        while (event := read()).__class__ is not yaml.MappingEndEvent:
            if event.__class__ is yaml.ScalarEvent:
                key = event.value
                if event.implicit[0]:
                    if key == "<<":
                        if merged:
                            raise self._error(event, "a second '<<' in one mapping: merge a list instead")
                        merged = self._merge_sources(read(), inner)
                        continue
                    if key in NULLS:
                        raise self._error(event, "the key is null: write a name, in quotes if need be")
                elif event.tag is not None:
                    self._scalar(event)
                if event.anchor is not None:
                    self._anchors[event.anchor] = self._scalar(event), key, 1
            else:
                key = self._odd_key(event)
            if key in keys:
                self._duplicate(event, key, keys[key])
            keys[key] = event
            value_event = read()
            if value_event.__class__ is yaml.ScalarEvent:
                value = self._scalar(value_event)
                if value_event.anchor is not None:
                    self._anchors[value_event.anchor] = value, value_event.value, 1
            else:
                value = self.node(value_event, inner)
            result[key] = value
        self._values += len(result)
        for source in merged:
            for key, value in source.items():
                result.setdefault(key, value)
        return result

    def _duplicate(self, event: Any, key: str, first: Any) -> None:
        first_line = position(first)[0]
        if not self._tolerant:
            raise self._error(event, f"duplicate key {key!r}: first given in line {first_line}")
        self.duplicates.append(DuplicateKey(key, *position(event), first_line))

    def _odd_key(self, event: Any) -> str:
        if event.__class__ is yaml.AliasEvent:
            text = self._alias(event)[1]
            if text is not None:
                return text
        raise self._error(event, "a key must be a plain name, not a list or a mapping")

    def _merge_sources(self, event: Any, depth: int) -> list[dict[str, Any]]:
        source = self.node(event, depth)
        sources = source if isinstance(source, list) else [source]
        for mapping in sources:
            if not isinstance(mapping, dict):
                raise self._error(event, "'<<' merges a mapping or a list of mappings")
        self._expand(event, sum(map(len, sources)))
        return sources

    def _alias(self, event: Any) -> tuple[Any, str | None, int]:
        found = self._anchors.get(event.anchor)
        if found is None:
            raise self._error(event, f"the alias '*{event.anchor}' has no anchor '&{event.anchor}' before it")
        if found[0] is _PENDING:
            raise self._error(event, f"the alias '*{event.anchor}' stands inside the value that it names")
        self._expand(event, found[2])
        return found

    def _expand(self, event: Any, values: int) -> None:
        self._values += values
        self._aliased += values
        if self._aliased > MAX_ALIASED_VALUES:
            raise self._error(event, f"aliases expand to more than {MAX_ALIASED_VALUES:,} values")

    def _scalar(self, event: Any) -> Any:
        text = event.value
        if event.implicit[0] and event.tag is None:
            if text in WORDS:
                return WORDS[text]
            if text[0] not in NUMBER_STARTS:
                return text
            number = number_value(text)
            return text if number is None else number
        return text if event.tag is None else self._tagged(event, text)

    def _tagged(self, event: Any, text: str) -> Any:
        kind = event.tag.removeprefix(_TAG_PREFIX)
        if event.tag == "!" or kind == "str":
            return text
        if kind == "null" and text in NULLS:
            return None
        if kind == "bool" and text in BOOLEANS:
            return BOOLEANS[text]
        if kind in ("int", "float"):
            number = WORDS.get(text) if text in WORDS else number_value(text)
            if kind == "int" and number.__class__ is int:
                return number
            if kind == "float" and (number.__class__ is int or number.__class__ is float):
                return float(number)
        if kind in ("null", "bool", "int", "float"):
            raise self._error(event, f"{text!r} cannot be read as !!{kind}")
        raise self._tag_error(event)

    def _collection_tag(self, event: Any, expected: str) -> None:
        if event.tag not in ("!", _TAG_PREFIX + expected):
            raise self._tag_error(event)

    def _tag_error(self, event: Any) -> DocumentError:
        tag = event.tag
        if tag in (_TAG_PREFIX + "map", _TAG_PREFIX + "seq"):
            return self._error(event, f"the tag !!{tag[-3:]} does not fit this value")
        shown = "!!" + tag.removeprefix(_TAG_PREFIX) if tag.startswith(_TAG_PREFIX) else tag
        return self._error(event, f"the tag {shown} is not supported here: only {_CORE_TAGS} are")
