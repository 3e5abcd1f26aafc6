"""Where in a file a field of an object stands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Final

from vcscheduler.documents import Document, DocumentError, load_documents
from vcscheduler.objects import Origin

_LARGEST: Final = 8 * 1024 * 1024
"""Files above this size are not read a second time to find a line."""


@lru_cache(maxsize=4)
def _documents(source: str) -> Sequence[Document]:
    try:
        if FilePath(source).stat().st_size > _LARGEST:
            return ()
        return load_documents(FilePath(source).read_bytes(), source)
    except (OSError, DocumentError):
        return ()


def position(origin: Origin, path: tuple[str | int, ...]) -> tuple[int, int]:
    """(line, column) from 1 of a field, or of the nearest part of the object that is written down. What cannot be read
    a second time, as standard input, has the line of its document only; (0, 0) if not even that is known."""
    prefix: tuple[str | int, ...] = ("items", origin.item - 1) if origin.item else ()
    for document in _documents(origin.source):
        if origin.line in (0, document.line):
            return document.key_mark((*prefix, *path))
    return origin.line, 1 if origin.line else 0
