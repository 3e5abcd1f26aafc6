"""Plain data into a wanted type, by the rules of upstream's structural decoder (spec 02 §2.7).

Numbers convert into each other (fractions are cut off), strings never convert, null gives the zero value,
lists and mappings decode recursively, and the fields of a class match its keys whatever their case.
"""

import dataclasses
import math
import types
import typing
from typing import Any, TypeVar, cast

import msgspec

_T = TypeVar("_T")

_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "float",
    str: "string",
    list: "list",
    dict: "mapping",
}


class DecodeError(ValueError):
    """A value that does not fit the wanted type."""


def type_name(value: object) -> str:
    """What YAML calls the type of a plain value."""
    return _NAMES.get(type(value), type(value).__name__)


def decode_value(value: object, wanted: type[_T], path: str = "") -> _T:
    """`value` as a `wanted`: bool, int, float, str, `list[X]`, `dict[str, X]`, `X | None`, Any, or a
    dataclass or msgspec struct of such fields. Raises `DecodeError`, which names the path inside the value.
    """
    return cast(_T, _decode(value, wanted, path))


def _decode(value: Any, wanted: Any, path: str) -> Any:
    if wanted is Any or wanted is object:
        return value
    origin, parameters = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        if value is None:
            return None
        inner = [parameter for parameter in parameters if parameter is not type(None)]
        if len(inner) == 1:
            return _decode(value, inner[0], path)
        raise TypeError(f"cannot decode into {wanted}")
    if wanted in (bool, int, float, str):
        return _decode_scalar(value, wanted, path)
    if origin is list:
        if value is None:
            return []
        if not isinstance(value, list):
            raise _mismatch(value, "a list", path)
        return [_decode(item, parameters[0], f"{path}[{index}]") for index, item in enumerate(value)]
    if origin is dict:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise _mismatch(value, "a mapping", path)
        return {key: _decode(item, parameters[1], _join(path, key)) for key, item in value.items()}
    return _decode_fields(value, wanted, path)


def _decode_scalar(value: Any, wanted: type, path: str) -> Any:
    if value is None:
        return wanted()
    if wanted is int and value.__class__ is float and math.isfinite(value):
        return int(value)
    if wanted is float and value.__class__ is int:
        return float(value)
    if value.__class__ is wanted:
        return value
    raise _mismatch(value, f"a {_NAMES[wanted]}" if wanted is not int else "an integer", path)


def _decode_fields(value: Any, wanted: Any, path: str) -> Any:
    if dataclasses.is_dataclass(wanted):
        names = [field.name for field in dataclasses.fields(wanted)]
    elif isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        names = list(wanted.__struct_fields__)
    else:
        raise TypeError(f"cannot decode into {wanted}")
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise _mismatch(value, "a mapping", path)
    hints = typing.get_type_hints(wanted)
    by_name = {key.replace("_", "").lower(): key for key in reversed(value)}
    fields: dict[str, Any] = {}
    for name in names:
        key = by_name.get(name.replace("_", "").lower())
        if key is not None:
            fields[name] = _decode(value[key], hints[name], _join(path, key))
    try:
        return wanted(**fields)
    except TypeError:
        missing = ", ".join(name for name in names if name not in fields)
        raise DecodeError(f"{path + ': ' if path else ''}missing: {missing}") from None


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _mismatch(value: object, wanted: str, path: str) -> DecodeError:
    where = f"{path}: " if path else ""
    return DecodeError(f"{where}expected {wanted}, found {type_name(value)} {value!r}")
