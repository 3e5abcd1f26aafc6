"""Arguments of a plugin or action: plain YAML data behind getters that take only what upstream takes.

A value that a getter cannot use keeps the caller's default (spec 02 §2.7). That is easily missed, so it is
logged once and remembered in `Arguments.problems` for whoever shows the state of the configuration.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from vcscheduler.config.decoding import DecodeError, decode_value, type_name

_LOG = logging.getLogger(__name__)

_T = TypeVar("_T")

TRUE_TEXTS = frozenset({"1", "t", "T", "TRUE", "true", "True"})
FALSE_TEXTS = frozenset({"0", "f", "F", "FALSE", "false", "False"})


@dataclass(frozen=True, slots=True)
class ArgumentProblem:
    """An argument whose value was not used, because it is not what the reader of that key takes."""

    key: str
    message: str


class ArgumentError(ValueError):
    """An argument that does not fit the type its reader insists on. Upstream stops the process here."""

    def __init__(self, owner: str, key: str, reason: str) -> None:
        of = f" of {owner}" if owner else ""
        super().__init__(f"argument {key!r}{of}: {reason}")
        self.key = key


class Arguments(Mapping[str, Any]):
    """The arguments of one plugin or action entry.

    A read-only mapping from key to plain data. `owner` names the entry in warnings.
    """

    __slots__ = ("_problems", "_values", "owner")

    def __init__(self, values: Mapping[str, Any] | None = None, owner: str = "") -> None:
        self._values: dict[str, Any] = dict(values or {})
        self._problems: dict[str, ArgumentProblem] = {}
        self.owner = owner

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Arguments({self._values!r})"

    @property
    def problems(self) -> tuple[ArgumentProblem, ...]:
        """What the getters could not use so far, one entry a key."""
        return tuple(self._problems.values())

    def get_int(self, key: str, default: int) -> int:
        """A YAML integer; `10.0` and `"10"` are not."""
        return self._get(key, int, default)

    def get_float(self, key: str, default: float) -> float:
        """A YAML float or integer."""
        return self._get(key, float, default)

    def get_bool(self, key: str, default: bool) -> bool:
        """A YAML boolean, or one of the strings that Go reads as one (`"true"`, `"T"`, `"0"` …)."""
        return self._get(key, bool, default)

    def get_str(self, key: str, default: str) -> str:
        """A string; numbers are not."""
        return self._get(key, str, default)

    def decode(self, key: str, wanted: type[_T], default: _T) -> _T:
        """The value structurally decoded into `wanted` (see `decode_value`), or `default` without the key.

        Raises `ArgumentError` when the value does not fit.
        """
        if key not in self._values:
            return default
        try:
            return decode_value(self._values[key], wanted)
        except DecodeError as error:
            raise ArgumentError(self.owner, key, str(error)) from None

    def _get(self, key: str, wanted: type[_T], default: _T) -> _T:
        if key not in self._values:
            return default
        value = self._values[key]
        converted = _converted(value, wanted)
        if converted is None:
            self._refuse(key, unusable(value, wanted) or "")
            return default
        return converted

    def _refuse(self, key: str, reason: str) -> None:
        if key not in self._problems:
            message = f"{reason}: the default is used"
            self._problems[key] = ArgumentProblem(key, message)
            _LOG.warning("argument %r%s: %s", key, f" of {self.owner}" if self.owner else "", message)


_WORDS: Mapping[type, str] = {int: "an integer", float: "a number", bool: "true or false", str: "a string"}


def unusable(value: object, wanted: type) -> str | None:
    """Why the getter for `wanted` (bool, int, float or str) would not use a value; None if it would."""
    if _converted(value, wanted) is not None:
        return None
    shown = "null" if value is None else f"the {type_name(value)} {value!r}"
    return f"expected {_WORDS[wanted]}, found {shown}"


def _converted(value: Any, wanted: type[_T]) -> _T | None:
    kind = value.__class__
    if wanted is float and kind is int:
        value = float(value)
    elif wanted is bool and kind is str and (value in TRUE_TEXTS or value in FALSE_TEXTS):
        value = value in TRUE_TEXTS
    elif kind is not wanted:
        return None
    return cast(_T, value)
