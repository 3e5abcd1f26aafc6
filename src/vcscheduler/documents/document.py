"""One document of a text: its value, and the way back from a path in the value to a line and a column.

Positions are asked for only when something is wrong, so they are not kept while reading: the first question
reads the text a second time and remembers them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from vcscheduler.documents.places import Place

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class DuplicateKey:
    """A key given twice in one mapping. Only the later value is in the document. Lines and columns from 1."""

    key: str
    line: int
    column: int
    first_line: int


class Places:
    """Positions of the documents of one text, found when needed.

    Never looked for beyond the document in question: the text after it may not even be YAML.
    """

    __slots__ = ("_find", "_found", "_rest", "_text")

    def __init__(self, text: str, find: Callable[[str], Iterator[Place]]) -> None:
        self._text = text
        self._find = find
        self._found: list[Place] = []
        self._rest: Iterator[Place] | None = None

    def of(self, index: int) -> Place:
        if self._rest is None:
            self._rest = self._find(self._text)
        while len(self._found) <= index:
            self._found.append(next(self._rest))
        return self._found[index]


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A YAML or JSON document.

    `value` is plain data: mappings are dicts keyed by the text of their keys, timestamps are strings. A
    document with nothing in it (between two `---`) has the value None. Parts reached through an alias are
    shared objects: treat the value as read-only. `line` is where the content begins, from 1.
    """

    source: str
    line: int
    value: Any
    duplicates: tuple[DuplicateKey, ...] = ()
    _places: Places = field(repr=False, kw_only=True)
    _index: int = field(repr=False, kw_only=True)

    def mark(self, path: Path = ()) -> tuple[int, int]:
        """(line, column), from 1, of the value at `path`, or of the nearest parent that exists."""
        place = self._places.of(self._index)
        for step in path:
            child = place.child(step)
            if child is None:
                break
            place = child
        return place.line, place.column

    def scalar_text(self, path: Path) -> str | None:
        """The scalar at `path` as it was written (`yes`, `0x10`), or None where there is no scalar."""
        place: Place | None = self._places.of(self._index)
        for step in path:
            place = place.child(step) if place is not None else None
        return place.text if place is not None else None

    def key_mark(self, path: Path) -> tuple[int, int]:
        """(line, column), from 1, of the key that leads to `path` (of the item itself, in a list).

        When the path does not exist, the key of the nearest parent that does.
        """
        place = self._places.of(self._index)
        found = (place.line, place.column)
        for step in path:
            child = place.child(step)
            if child is None:
                break
            key = place.keys.get(step) if isinstance(step, str) else None
            found = key if key is not None else (child.line, child.column)
            place = child
        return found
