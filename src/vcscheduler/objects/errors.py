"""Mistakes in manifests: the error a person sees, and the paths that point into an object."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final, TypeAlias

_PLAIN_KEY: Final = re.compile(r"[\w-]+")

Path: TypeAlias = tuple[str | int, ...]
"""Keys and list indices that lead from an object to one of its fields."""


class InvalidField(ValueError):
    """A field of one object is wrong. Carries the path; the reader adds file, line and object."""

    def __init__(self, path: Path, message: str, *, at_key: bool = False) -> None:
        super().__init__(message)
        self.path = path
        self.message = message
        self.at_key = at_key
        """Whether the key that ends the path is at fault, rather than its value."""


class ManifestError(ValueError):
    """Manifests that cannot be used. `str()` is one line: file, line, object, field, found, allowed.

    Attributes:
        source: file name, or "<stdin>".
        line, column: from 1; 0 when unknown.
        obj: "Kind namespace/name", or "" when the mistake is not in one object.
        field: such as "spec.containers[0].name", or "".
        detail: the message without all that.
    """

    def __init__(
        self, source: str, detail: str, *, line: int = 0, column: int = 0, obj: str = "", field: str = ""
    ) -> None:
        place = source
        if line:
            place += f":{line}:{column}" if column else f":{line}"
        super().__init__(": ".join(part for part in (place, obj, field, detail) if part))
        self.source = source
        self.line = line
        self.column = column
        self.obj = obj
        self.field = field
        self.detail = detail


def show_path(path: Path) -> str:
    """``("spec", "tasks", 0, "name")`` -> ``spec.tasks[0].name``; other keys than plain words are put in brackets."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif not _PLAIN_KEY.fullmatch(step):
            text += f'["{step}"]'
        else:
            text += f".{step}" if text else step
    return text


def show_value(value: object) -> str:
    """A found value for a message: short, on one line, text in quotes."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = str(value)
    if len(text) > 60:
        text = text[:57] + "..."
    return f'"{text}"' if isinstance(value, str) else text


def nearest(word: str, allowed: Iterable[str], cutoff: float = 0.6) -> str:
    """The allowed word most like `word`, ignoring case; "" when none is near."""
    by_lower = {each.lower(): each for each in allowed if each}
    close = get_close_matches(word.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[close[0]] if close else ""


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """``; did you mean "X"?`` or ""."""
    found = nearest(word, allowed)
    return f'; did you mean "{found}"?' if found else ""
