"""Objects out: YAML documents or a JSON list, as kubectl prints them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from vcscheduler.documents.dumping import dump_yaml
from vcscheduler.objects.kinds import to_manifest
from vcscheduler.objects.meta import KubernetesObject


def to_yaml(objects: Iterable[KubernetesObject]) -> str:
    """Multi-document YAML, the fields of each object in their usual order."""
    return dump_yaml((to_manifest(obj) for obj in objects), explicit_start=True)


def to_json(objects: Iterable[KubernetesObject], *, indent: int = 2) -> str:
    """One JSON object of kind List. `indent=0` writes it on one line."""
    listing = {"apiVersion": "v1", "kind": "List", "items": [to_manifest(obj) for obj in objects]}
    encoded = msgspec.json.encode(listing)
    return (msgspec.json.format(encoded, indent=indent) if indent else encoded).decode() + "\n"
