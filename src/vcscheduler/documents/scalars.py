"""What an unquoted YAML scalar means: YAML 1.1 as upstream's Go reader takes it (spec 02 §2.3).

Kubernetes manifests and the scheduler configuration are read by the same rules upstream: one table for both.
Python's YAML readers follow another one (`y`, `1e3`, `1:30`, dates), so none of their typing is used.
"""

import math
import re

Scalar = str | int | float | bool | None

NULLS = frozenset({"", "~", "null", "Null", "NULL"})

_TRUE = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")

BOOLEANS: dict[str, bool] = dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False)

WORDS: dict[str, Scalar] = {
    **dict.fromkeys(NULLS),
    **BOOLEANS,
    **{sign + word: math.inf for sign in ("", "+") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
"""Words with a meaning of their own. Everything else that is not a number is a string."""

NUMBER_STARTS = frozenset("0123456789+-.")

_INTEGER = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO]?(?P<oct>[0-7]+)|(?P<dec>0|[1-9][0-9]*))"
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASES = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}

_INT64_MIN = -(2**63)
_INT64_MAX = 2**63 - 1
_UINT64_MAX = 2**64 - 1
_LONGEST_INTEGER = 64  # binary digits; what is longer is out of range in any base


def plain_value(text: str) -> Scalar:
    """The value of an unquoted scalar."""
    if text in WORDS:
        return WORDS[text]
    if text[0] not in NUMBER_STARTS:
        return text
    number = number_value(text)
    return text if number is None else number


def number_value(text: str) -> int | float | None:
    """The number that `text` spells, or None. Like upstream, `08` and integers beyond 64 bits are floats."""
    if text[0] == ".":
        digits = text  # upstream takes underscores out of a number only when it begins with a sign or digit
    else:
        digits = text.replace("_", "")
        integer = _integer_value(digits)
        if integer is not None:
            return integer
    if _FLOAT.fullmatch(digits):
        number = float(digits)
        return None if math.isinf(number) else number
    return None


def _integer_value(digits: str) -> int | None:
    match = _INTEGER.fullmatch(digits)
    if match is None:
        return None
    base = match.lastgroup
    if base is None:
        return None
    magnitude = match[base].lstrip("0") or "0"
    if len(magnitude) > _LONGEST_INTEGER:
        return None
    value = int(magnitude, _BASES[base])
    sign = match["sign"]
    if sign == "-":
        return -value if -value >= _INT64_MIN else None
    return value if value <= (_INT64_MAX if sign else _UINT64_MAX) else None
