"""Writes the parts of docs/ that repeat what the code says: commands, flags, arguments.

    python tools/docs.py           write them
    python tools/docs.py --check   exit 1 and name the files that are not up to date (the tests do the same)

A generated part stands between ``<!-- generated: NAME -->`` and ``<!-- end of generated part -->``.
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import typer
from typer.models import OptionInfo, ParameterInfo

from vcscheduler.cli.app import app
from vcscheduler.config.flags import COMMAND_LINE_FLAGS
from vcscheduler.config.model import FLAGS
from vcscheduler.config.options import DEFAULT_FEATURE_GATES

DOCS = Path(__file__).parents[1] / "docs"
_PART = re.compile(r"(<!-- generated: (?P<name>[\w-]+) -->\n).*?(<!-- end of generated part -->)", re.DOTALL)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    lines = [list(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def code(text: str) -> str:
    return f"`{text}`" if text else ""


# --- configuration ----------------------------------------------------------------------------------------------------


def enable_flags() -> str:
    return table(
        ("key", "default", "guards"),
        ((code(flag.key), str(flag.default).lower(), flag.guards) for flag in FLAGS.values()),
    )


def _flags(effect: bool) -> str:
    return table(
        ("flag", "type", "default", "meaning"),
        (
            (code(f"--{flag.name}"), flag.type, code(flag.default), flag.meaning)
            for flag in COMMAND_LINE_FLAGS.values()
            if flag.effect is effect
        ),
    )


def flags() -> str:
    return _flags(True)


def flags_without_effect() -> str:
    return _flags(False)


def feature_gates() -> str:
    return table(
        ("gate", "default"),
        ((code(name), str(on).lower()) for name, on in DEFAULT_FEATURE_GATES.items()),
    )


# --- commands ---------------------------------------------------------------------------------------------------------


def commands() -> str:
    """From the functions behind the commands, which do not change with the version of typer."""
    return "\n".join(
        part for path, function in sorted(_functions(app, "vcscheduler")) for part in _command(path, function)
    )


def _functions(group: typer.Typer, path: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    for command in group.registered_commands:
        assert command.callback is not None
        yield f"{path} {command.name or command.callback.__name__}", inspect.unwrap(command.callback)
    for below in group.registered_groups:
        assert below.typer_instance is not None
        yield from _functions(below.typer_instance, f"{path} {below.name}")


def _command(path: str, function: Callable[..., Any]) -> Iterator[str]:
    arguments: list[tuple[inspect.Parameter, object, ParameterInfo]] = []
    options: list[tuple[inspect.Parameter, object, ParameterInfo]] = []
    hints = typing.get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        kind, *notes = typing.get_args(hints[parameter.name]) or (None,)
        info = next((each for each in notes if isinstance(each, ParameterInfo)), None)
        if info is not None and not info.hidden:
            (options if isinstance(info, OptionInfo) else arguments).append((parameter, kind, info))
    yield f"## {path}\n"
    yield _paragraphs(inspect.getdoc(function) or "").rstrip() + "\n"
    words = [path, "[OPTIONS]", *(_argument(*each) for each in arguments)]
    yield f"    {' '.join(words)}\n"
    if arguments:
        rows = ((code(_argument(*each)), _text(each[2].help)) for each in arguments)
        yield table(("argument", "meaning"), rows)
    if options:
        yield table(("option", "value", "default", "meaning"), (_option(*each) for each in options))


def _argument(parameter: inspect.Parameter, kind: object, info: ParameterInfo) -> str:
    name = (info.metavar or parameter.name).strip("[].{}").upper() + ("..." if _is_list(kind) else "")
    return name if parameter.default is inspect.Parameter.empty else f"[{name}]"


def _option(parameter: inspect.Parameter, kind: object, info: ParameterInfo) -> tuple[str, str, str, str]:
    own = f"--{parameter.name.replace('_', '-')}"
    # In an annotation the first name stands where a default would.
    given = [each for each in (info.default, *(info.param_decls or ())) if isinstance(each, str)]
    names = ", ".join(given or ([own, own.replace("--", "--no-", 1)] if kind is bool else [own]))
    return code(names), _value(kind), _default(parameter.default, info), _text(info.help)


def _is_list(kind: object) -> bool:
    return typing.get_origin(kind) is list or any(_is_list(each) for each in typing.get_args(kind))


def _value(kind: object) -> str:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return code("|".join(str(each.value) for each in kind))
    if isinstance(kind, type):
        return {bool: "", str: "text", int: "number", float: "number", Path: "path"}[kind]
    parts = [each for each in typing.get_args(kind) if each is not type(None)]
    return _value(parts[0]) + (", repeatable" if typing.get_origin(kind) is list else "")


def _default(value: object, info: ParameterInfo) -> str:
    if isinstance(info.show_default, str):
        return code(info.show_default)
    if value in (None, "", False) or not info.show_default:
        return ""
    return code(str(value.value if isinstance(value, Enum) else value))


def _text(help_text: str | None) -> str:
    return " ".join((help_text or "").split())


def _paragraphs(text: str) -> str:
    return "".join(" ".join(each.split()) + "\n\n" for each in text.strip().split("\n\n"))


# --- files ------------------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "enable-flags": enable_flags,
    "feature-gates": feature_gates,
    "flags": flags,
    "flags-without-effect": flags_without_effect,
}


def renewed(text: str) -> str:
    """The text with its generated parts as the code has them now.

    Raises:
        KeyError: it has a part that nothing here makes.
    """
    return _PART.sub(lambda part: f"{part[1]}\n{PARTS[part['name']]().rstrip()}\n\n{part[3]}", text)


def stale() -> list[Path]:
    """Files with a part that is not up to date."""
    return [path for path in sorted(DOCS.glob("*.md")) if path.read_text() != renewed(path.read_text())]


def main() -> int:
    old = stale()
    if "--check" in sys.argv[1:]:
        for path in old:
            print(f"{path}: not up to date; run python tools/docs.py")
        return 1 if old else 0
    for path in old:
        path.write_text(renewed(path.read_text()))
        print(f"{path}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
