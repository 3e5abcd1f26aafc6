"""Plain data to YAML text that every reader takes for the same: the other direction of the rest of this room."""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from vcscheduler.documents.scalars import plain_value


class _Dumper(yaml.SafeDumper):
    """Quotes every text that a YAML reader of either version could take for something else, such as ``1e5``."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    quoted = bool(text) and not isinstance(plain_value(text), str)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'" if quoted else None)


_Dumper.add_representer(str, _text)


def dump_yaml(documents: Iterable[object], *, explicit_start: bool = False) -> str:
    """Documents one after the other, keys in their order."""
    text: str = yaml.dump_all(
        documents,
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=False,
        allow_unicode=True,
        explicit_start=explicit_start,
    )
    return text
