"""Turning a failed decode into words, and finding misspelt field names.

msgspec says "Expected `str`, got `int` - at `$.metadata.labels[...]`". A person needs the key, the value and
the way out, so the path is followed through the plain data to find them.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from functools import cache
from typing import Final, Union, get_args, get_origin

import msgspec

from vcscheduler.objects.errors import InvalidField, Path, nearest, show_value
from vcscheduler.objects.meta import ApiStruct, KubernetesObject, ObjectMeta
from vcscheduler.objects.pod import Container, PodSpec

_MESSAGE: Final = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`)?", re.DOTALL)
_TYPES: Final = re.compile(r"Expected `(?P<expected>[^`]*)`, got `(?P<got>[^`]*)`")
_WHOLE: Final = re.compile(r"-?[0-9]{1,19}")
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")

_WORDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
    "datetime": "a time such as 2026-01-31T12:00:00Z",
}


def invalid_field(error: msgspec.ValidationError, value: object) -> InvalidField:
    """What `error`, raised while decoding the plain data `value`, means for its reader."""
    match = _MESSAGE.fullmatch(str(error))
    if match is None:
        return InvalidField((), str(error))
    types_ = _TYPES.match(match["what"])
    got = types_["got"] if types_ else ""
    path, found = _follow(value, _steps(match["path"] or ""), got)
    shown = show_value(found)
    if types_ is None:
        return InvalidField(path, f"found {shown}: {_plain(match['what'])}")
    if match["key"]:
        return InvalidField(path, "every key must be text")
    expected = [each for each in types_["expected"].split(" | ") if each != "null"]
    if "float" in expected and "int" in expected:
        expected.remove("int")
    allowed = " or ".join(_WORDS.get(each, each) for each in expected)
    message = f"found {shown}, allowed is {allowed}"
    if expected == ["str"] and isinstance(found, bool):
        message += "; put it in quotes (unquoted y, n, yes, no, on and off mean true and false)"
    elif expected == ["str"] and isinstance(found, int | float):
        message += f'; put it in quotes: "{shown}"'
    elif expected[0] == "int" and isinstance(found, str) and _WHOLE.fullmatch(found.strip()):
        message += f"; write it without quotes: {found.strip()}"
    return InvalidField(path, message)


def _plain(what: str) -> str:
    if "datetime" in what:
        return "allowed is a time with a time zone such as 2026-01-31T12:00:00Z"
    return what


def _steps(text: str) -> list[str | int]:
    return [int(index) if index.isdigit() else (name or "...") for name, index in _STEP.findall(text)]


def _follow(value: object, steps: list[str | int], got: str) -> tuple[Path, object]:
    """The path and the value that `steps` lead to; a step "..." is a key the message does not name."""
    if not steps:
        return (), value
    step, rest = steps[0], steps[1:]
    if step == "..." and isinstance(value, dict):
        candidates = [(str(key), *_follow(item, rest, got)) for key, item in value.items()]
        chosen = next((each for each in candidates if _json_type(each[2]) == got), None)
        if chosen is None:
            return (), value
        return (chosen[0], *chosen[1]), chosen[2]
    child: object = None
    if isinstance(value, dict) and isinstance(step, str):
        child = value.get(step)
    elif isinstance(value, list) and isinstance(step, int) and step < len(value):
        child = value[step]
    path, found = _follow(child, rest, got)
    return (step, *path), found


def _json_type(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "object"
    return {bool: "bool", int: "int", float: "float", str: "str", list: "array"}.get(type(value), "")


_UNREAD: Final[dict[type, frozenset[str]]] = {
    KubernetesObject: frozenset({"apiVersion", "kind"}),
    ObjectMeta: frozenset({"managedFields", "selfLink"}),
    PodSpec: frozenset(
        [
            "ephemeralContainers",
            "dnsPolicy",
            "dnsConfig",
            "serviceAccount",
            "automountServiceAccountToken",
            "hostPID",
            "hostIPC",
            "hostUsers",
            "hostAliases",
            "hostnameOverride",
            "shareProcessNamespace",
            "securityContext",
            "imagePullSecrets",
            "readinessGates",
            "enableServiceLinks",
            "setHostnameAsFQDN",
            "os",
            "workloadRef",
            "schedulingGroup",
        ]
    ),
    Container: frozenset(
        [
            "command",
            "args",
            "workingDir",
            "envFrom",
            "env",
            "resizePolicy",
            "restartPolicyRules",
            "volumeMounts",
            "volumeDevices",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
            "lifecycle",
            "terminationMessagePath",
            "terminationMessagePolicy",
            "imagePullPolicy",
            "securityContext",
            "stdin",
            "stdinOnce",
            "tty",
        ]
    ),
}
"""Fields of the API that scheduling does not read, and that must not be taken for misspelt ones."""


def misspelt_fields(value: object, cls: type[KubernetesObject]) -> Iterator[tuple[Path, str]]:
    """(path, nearest known name) of each unknown field that closely resembles a known one not given.

    Like kubectl the reader ignores unknown fields; without this warning a typo would go unnoticed.
    """
    yield from _misspelt(value, cls, ())


def _misspelt(value: object, cls: type, path: Path) -> Iterator[tuple[Path, str]]:
    if not isinstance(value, dict):
        return
    known = _known_fields(cls)
    for key, item in value.items():
        if key in known:
            part = known[key]
            if part is None or (not path and key == "status"):
                continue
            inner, is_list, is_map = part
            if is_list:
                for index, each in enumerate(item if isinstance(item, list) else ()):
                    yield from _misspelt(each, inner, (*path, key, index))
            elif is_map:
                for name, each in (item if isinstance(item, dict) else {}).items():
                    yield from _misspelt(each, inner, (*path, key, str(name)))
            else:
                yield from _misspelt(item, inner, (*path, key))
        elif not any(issubclass(cls, each) and key in names for each, names in _UNREAD.items()):
            meant = nearest(str(key), (name for name in known if name not in value), cutoff=0.8)
            if meant:
                yield (*path, str(key)), meant


@cache
def _known_fields(cls: type[ApiStruct]) -> dict[str, tuple[type, bool, bool] | None]:
    """Field name -> (struct class inside, in a list, in a map), or None for a field without structs."""
    return {each.encode_name: _struct_inside(each.type) for each in msgspec.structs.fields(cls)}


def _struct_inside(hint: object) -> tuple[type, bool, bool] | None:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return hint, False, False
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return next((found for each in get_args(hint) if (found := _struct_inside(each))), None)
    if origin in (list, dict):
        inner = _struct_inside(get_args(hint)[-1])
        return (inner[0], origin is list, origin is dict) if inner else None
    return None
