"""Where each value of a text stands: a tree of positions in the shape of the value.

Built only when a position is asked for, from a text that has been read without errors before; so nothing is
checked here again. Anchors, aliases and merge keys lead to the place where the value was really written.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from vcscheduler.documents.parser import ParserProtocol, new_parser, position

Position = tuple[int, int]


class Place:
    """The position of one value, of its keys and of what is inside. Lines and columns count from 1.

    `text` is a scalar as it was written, without quotes.
    """

    __slots__ = ("children", "column", "items", "keys", "line", "text")

    def __init__(self, line: int, column: int) -> None:
        self.line = line
        self.column = column
        self.keys: dict[str, Position] = {}
        self.children: dict[str, Place] = {}
        self.items: list[Place] = []
        self.text: str | None = None

    def child(self, step: str | int) -> "Place | None":
        if isinstance(step, str):
            return self.children.get(step)
        return self.items[step] if 0 <= step < len(self.items) else None


def yaml_places(text: str) -> Iterator[Place]:
    """The places of the documents of a YAML text, one after the other."""
    parser = new_parser(text)
    while not isinstance(event := parser.get_event(), yaml.StreamEndEvent):
        if isinstance(event, yaml.DocumentStartEvent):
            yield _YamlPlaces(parser).node(parser.get_event())


class _YamlPlaces:
    def __init__(self, parser: ParserProtocol) -> None:
        self._next = parser.get_event
        self._anchors: dict[str, Place] = {}

    def node(self, event: Any) -> Place:
        anchor = event.anchor
        if isinstance(event, yaml.AliasEvent):
            return self._anchors[anchor]
        place = Place(*position(event))
        if anchor is not None:
            self._anchors[anchor] = place
        if isinstance(event, yaml.ScalarEvent):
            place.text = event.value
        elif isinstance(event, yaml.MappingStartEvent):
            self._mapping(place)
        elif isinstance(event, yaml.SequenceStartEvent):
            while not isinstance(item := self._next(), yaml.SequenceEndEvent):
                place.items.append(self.node(item))
        return place

    def _mapping(self, place: Place) -> None:
        merged: list[Place] = []
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self.node(event).text
            assert key is not None  # the text was read before: other keys have been refused
            if key == "<<" and isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
                source = self.node(self._next())
                merged.extend(source.items or [source])
                continue
            place.keys[key] = position(event)
            place.children[key] = self.node(self._next())
        for source in merged:
            for key, child in source.children.items():
                if key not in place.children:
                    place.keys[key] = source.keys[key]
                    place.children[key] = child


_JSON_TOKEN = re.compile(r'[{}\[\]:,]|"(?:[^"\\]|\\.)*"|[^\s{}\[\]:,"]+')


def json_places(text: str) -> Iterator[Place]:
    """The places of the documents of a text of one or more JSON values, one after the other."""
    tokens = _JsonTokens(text)
    for token in tokens:
        yield _json_place(tokens, token)


class _JsonTokens:
    """Tokens of a JSON text, with the position of the latest."""

    def __init__(self, text: str) -> None:
        self._matches = _JSON_TOKEN.finditer(text)
        self._text = text
        self._line = 1
        self._line_start = 0
        self._offset = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        match = next(self._matches)
        start = match.start()
        breaks = self._text.count("\n", self._offset, start)
        if breaks:
            self._line += breaks
            self._line_start = self._text.rindex("\n", self._offset, start) + 1
        self._offset = start
        return match[0]

    def place(self) -> Place:
        return Place(self._line, self._offset - self._line_start + 1)


def _json_place(tokens: _JsonTokens, token: str) -> Place:
    place = tokens.place()
    if token == "{":
        while (key := next(tokens)) != "}":
            if key == ",":
                continue
            key_place = tokens.place()
            name = json.loads(key)
            next(tokens)  # the colon
            place.keys[name] = (key_place.line, key_place.column)
            place.children[name] = _json_place(tokens, next(tokens))
    elif token == "[":
        while (item := next(tokens)) != "]":
            if item != ",":
                place.items.append(_json_place(tokens, item))
    else:
        place.text = json.loads(token) if token[0] == '"' else token
    return place
