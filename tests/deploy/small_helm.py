"""As much of Helm as the chart uses: values, `if`, `range`, a few functions. What it does not know it refuses.

That it does what Helm does is tested where a helm binary is at hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

_ACTION = re.compile(r"\{\{(?P<left>-?)\s*(?P<body>.*?)\s*(?P<right>-?)\}\}", re.DOTALL)
_WORD = re.compile(r'"[^"]*"|\S+')


def _tokens(text: str) -> Iterator[tuple[bool, str]]:
    """Actions (True) and the text between them, with the white space taken away that they ask to have taken away."""
    at, trim = 0, False
    for found in _ACTION.finditer(text):
        between = text[at : found.start()]
        between = between.lstrip() if trim else between
        yield False, between.rstrip() if found["left"] else between
        yield True, found["body"]
        at, trim = found.end(), bool(found["right"])
    yield False, text[at:].lstrip() if trim else text[at:]


class _Template:
    def __init__(self, text: str, scope: dict[str, Any]) -> None:
        self._tokens = list(_tokens(text))
        self._scope = scope

    def render(self) -> str:
        text, rest = self._block(0, self._scope, show=True)
        assert rest == len(self._tokens), "an end without a beginning"
        return text

    def _block(self, at: int, scope: dict[str, Any], show: bool) -> tuple[str, int]:
        """Render up to the end of the block; the place after it."""
        out = []
        while at < len(self._tokens):
            is_action, body = self._tokens[at]
            at += 1
            if not is_action:
                out.append(body)
            elif body == "end":
                return "".join(out), at
            elif body.startswith("if "):
                wanted = show and bool(self._value(body[3:], scope))
                text, at = self._block(at, scope, wanted)
                out.append(text if wanted else "")
            elif body.startswith("range "):
                begin, each = at, self._value(body[6:], scope) if show else []
                _, at = self._block(begin, {**scope, ".": ""}, show=False)
                out.extend(self._block(begin, {**scope, ".": item}, show)[0] for item in each)
            elif show and not body.startswith("/*"):
                value = self._value(body, scope)
                out.append(("true" if value else "false") if isinstance(value, bool) else str(value))
        return "".join(out), at

    def _value(self, expression: str, scope: dict[str, Any]) -> Any:
        first, *filters = (_WORD.findall(part) for part in expression.split("|"))
        value = self._word(first[-1], scope)
        for name, *arguments in ([first[:-1]] if first[:-1] else []) + filters:
            match name:
                case "quote":
                    value = json.dumps(str(value))
                case "default":
                    value = value or self._word(arguments[0], scope)
                case "toYaml":
                    value = yaml.safe_dump(value).rstrip("\n")
                case "nindent":
                    value = "\n" + "\n".join(" " * int(arguments[0]) + line for line in str(value).split("\n"))
                case _:
                    raise AssertionError(f"unknown function {name} in {expression!r}")
        return value

    @staticmethod
    def _word(word: str, scope: dict[str, Any]) -> Any:
        if word == ".":
            return scope["."]
        assert word.startswith("."), f"unknown word {word!r}"
        value: Any = scope
        for name in word[1:].split("."):
            value = value[name]
        return value


def render(chart: Path, release: str, namespace: str, values: dict[str, Any] | None = None) -> dict[str, str]:
    """Each template's text by its file name. Given values replace whole top-level entries of the chart's own."""
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    scope = {
        "Values": {**yaml.safe_load((chart / "values.yaml").read_text()), **(values or {})},
        "Chart": {"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
        "Release": {"Name": release, "Namespace": namespace, "Service": "Helm"},
    }
    templates = sorted((chart / "templates").iterdir())
    return {each.name: _Template(each.read_text(), scope).render() for each in templates}


def manifests(rendered: dict[str, str]) -> list[dict[str, Any]]:
    texts = [text for name, text in rendered.items() if name.endswith(".yaml")]
    return [document for text in texts for document in yaml.safe_load_all(text) if document]
