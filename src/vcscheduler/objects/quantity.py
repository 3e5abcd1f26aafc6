"""Kubernetes quantity strings ("1500m", "1.5Gi", 2): exact parsing, rounding to integers, canonical printing.

Scheduling decisions depend on the last unit, so a quantity is an exact rational until it is rounded the way
Kubernetes rounds (spec 01 §1.2). The same few strings occur in every pod of a cluster, hence the caches.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

__all__ = [
    "MAX_INT64",
    "MIN_INT64",
    "QuantityError",
    "QuantityLike",
    "ResourceList",
    "format_binary",
    "format_decimal",
    "format_milli",
    "milli_value",
    "parse_quantity",
    "saturate",
    "value",
]

QuantityLike: TypeAlias = str | int | float
"""A quantity as it stands in a manifest: YAML and JSON allow bare numbers beside strings."""

ResourceList: TypeAlias = dict[str, str | int | float]
"""Resource name -> quantity, as decoded. Use `value` or `milli_value` to get numbers."""

MAX_INT64: Final = 2**63 - 1
MIN_INT64: Final = -(2**63)

_DECIMAL: Final = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18, "m": -3, "u": -6, "n": -9}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_GRAMMAR: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([A-Za-z]{0,2}|[eE][+-]?[0-9]+)", re.ASCII)
_NANO: Final = 10**9
_LONGEST: Final = 256
"""Longer texts are no quantities anyone means, and would make the big-integer arithmetic expensive."""
_LARGEST_EXPONENT: Final = 400


class QuantityError(ValueError):
    """A text is not a Kubernetes quantity. The message says what was found and what is allowed."""

    def __init__(self, text: object, hint: str = "") -> None:
        shown = str(text) if len(str(text)) <= 60 else str(text)[:57] + "..."
        message = f'"{shown}" is not a quantity'
        super().__init__(f"{message}: {hint}" if hint else message)


_ALLOWED: Final = (
    "allowed is a number with an optional suffix n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei "
    'or an exponent such as "1e3"'
)


@lru_cache(maxsize=65536, typed=True)
def parse_quantity(text: QuantityLike) -> Fraction:
    """The exact value of a quantity, in units (cores, bytes, pieces).

    Precision ends at one nano: finer digits are rounded away from zero. Values with a binary suffix are
    capped at 2**63 - 1, as Kubernetes does.

    Raises:
        QuantityError: `text` is not a quantity.
    """
    if isinstance(text, bool):
        raise QuantityError(text, _ALLOWED)
    if isinstance(text, int):
        return Fraction(text)
    if isinstance(text, float):
        # The shortest text that reads back as the same float is what stood in the file.
        text = repr(text)
    if len(text) > _LONGEST:
        raise QuantityError(text, "too long")
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        raise QuantityError(text, _ALLOWED)
    sign, whole, part, suffix = match.groups(default="")
    if not whole and not part:
        raise QuantityError(text, _ALLOWED)
    scaled = Fraction(int(whole + part), 10 ** len(part))
    binary = _BINARY.get(suffix)
    if binary is not None:
        scaled *= 1 << binary
    elif (decimal := _DECIMAL.get(suffix)) is not None:
        scaled *= Fraction(10) ** decimal
    else:
        scaled *= Fraction(10) ** _exponent(text, suffix)
    if scaled.denominator != 1:
        scaled = Fraction(_ceil(scaled * _NANO), _NANO)
    if binary is not None and scaled > MAX_INT64:
        scaled = Fraction(MAX_INT64)
    return -scaled if sign == "-" else scaled


def _exponent(text: str, suffix: str) -> int:
    if suffix == "K":
        raise QuantityError(text, 'the suffix for 1000 is "k", for 1024 it is "Ki"')
    if suffix[0] not in "eE" or not suffix[1:].lstrip("+-").isdigit():
        near = next((s for s in (*_DECIMAL, *_BINARY) if s and s.lower() == suffix.lower()), "")
        raise QuantityError(text, f'unknown suffix "{suffix}", did you mean "{near}"?' if near else _ALLOWED)
    exponent = int(suffix[1:])
    if abs(exponent) > _LARGEST_EXPONENT:
        raise QuantityError(text, f"the exponent must lie between -{_LARGEST_EXPONENT} and {_LARGEST_EXPONENT}")
    return exponent


def _ceil(number: Fraction) -> int:
    return -(-number.numerator // number.denominator)


def saturate(number: int) -> int:
    """`number` held within the range of a signed 64-bit integer."""
    return MIN_INT64 if number < MIN_INT64 else MAX_INT64 if number > MAX_INT64 else number


def _away_from_zero(number: Fraction) -> int:
    return saturate(_ceil(number) if number >= 0 else -_ceil(-number))


@lru_cache(maxsize=65536, typed=True)
def value(text: QuantityLike) -> int:
    """The quantity in whole units, rounded up away from zero ("Value"), held within int64.

    Example: ``value("1.5Gi") == 1610612736``, ``value("1.2") == 2``.
    """
    return _away_from_zero(parse_quantity(text))


@lru_cache(maxsize=65536, typed=True)
def milli_value(text: QuantityLike) -> int:
    """The quantity in thousandths, rounded up away from zero ("MilliValue"), held within int64.

    Example: ``milli_value("0.5") == 500``, ``milli_value("0.0001") == 1``.
    """
    return _away_from_zero(parse_quantity(text) * 1000)


def format_decimal(number: Fraction | int) -> str:
    """Canonical decimal form: the largest suffix that needs no fraction. ``format_decimal(2000) == "2k"``."""
    nanos = Fraction(number) * _NANO
    scaled = _ceil(nanos) if nanos >= 0 else -_ceil(-nanos)
    if scaled == 0:
        return "0"
    for suffix, power in sorted(_DECIMAL.items(), key=lambda item: -item[1]):
        whole, rest = divmod(scaled, 10 ** (power + 9))
        if rest == 0:
            return f"{whole}{suffix}"
    raise AssertionError("every whole number of nanos has a decimal form")


def format_milli(milli: int) -> str:
    """Canonical form of milli-units, as for CPU. ``format_milli(1500) == "1500m"``."""
    return format_decimal(Fraction(milli, 1000))


def format_binary(number: int) -> str:
    """Canonical binary form of whole units, as for memory. ``format_binary(1610612736) == "1536Mi"``.

    Amounts below 1024 have no binary form; Kubernetes prints them in decimal form.
    """
    if -1024 < number < 1024:
        return format_decimal(number)
    for suffix, power in sorted(_BINARY.items(), key=lambda item: -item[1]):
        whole, rest = divmod(number, 1 << power)
        if rest == 0:
            return f"{whole}{suffix}"
    return str(number)
