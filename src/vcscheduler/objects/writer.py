"""Objects out: YAML documents or a JSON list, as kubectl prints them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import yaml

from vcscheduler.documents import plain_value
from vcscheduler.objects.kinds import to_manifest
from vcscheduler.objects.meta import KubernetesObject


class _Dumper(yaml.SafeDumper):
    """Quotes every text that a YAML reader of either version could take for something else."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    quoted = bool(text) and not isinstance(plain_value(text), str)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'" if quoted else None)


_Dumper.add_representer(str, _text)


def to_yaml(objects: Iterable[KubernetesObject]) -> str:
    """Multi-document YAML, the fields of each object in their usual order."""
    return yaml.dump_all(
        (to_manifest(obj) for obj in objects),
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=False,
        allow_unicode=True,
        explicit_start=True,
    )


def to_json(objects: Iterable[KubernetesObject], *, indent: int = 2) -> str:
    """One JSON object of kind List. `indent=0` writes it on one line."""
    listing = {"apiVersion": "v1", "kind": "List", "items": [to_manifest(obj) for obj in objects]}
    encoded = msgspec.json.encode(listing)
    return (msgspec.json.format(encoded, indent=indent) if indent else encoded).decode() + "\n"
