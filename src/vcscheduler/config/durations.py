"""Durations as Go writes them (`1h30m`, `100ms`, `-1.5s`), which flags, arguments and annotations use."""

import re
from fractions import Fraction

_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?P<unit>[^0-9.]+)")
_MAX = 2**63 - 1


class DurationError(ValueError):
    """A text that is not a Go duration."""


def parse_nanoseconds(text: str) -> int:
    """The duration in nanoseconds; fractions of one are cut off. Raises `DurationError`."""
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    total, end = 0, 0
    for part in _PART.finditer(rest):
        unit = _NANOSECONDS.get(part["unit"])
        if part.start() != end or unit is None:
            break
        total += int(Fraction(part["number"]) * unit)
        end = part.end()
    if end == 0 or end != len(rest):
        raise DurationError(f"{text!r} is not a duration: write numbers with units, such as 1h30m, 5s or 100ms")
    if total > _MAX + negative:
        raise DurationError(f"{text!r} is longer than a duration can be (about 292 years)")
    return -total if negative else total


def parse_duration(text: str) -> float:
    """The duration in seconds. Raises `DurationError`."""
    return parse_nanoseconds(text) / 1e9
