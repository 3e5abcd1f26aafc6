"""What reading manifests gives: objects with their origin, what was left aside, and warnings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from vcscheduler.objects.meta import KubernetesObject

_T = TypeVar("_T", bound=KubernetesObject)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an object was read: file, line of its document, number in a list (both from 1, 0 if none)."""

    source: str
    line: int = 0
    item: int = 0

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.line else self.source
        return f"{place} (item {self.item})" if self.item else place


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object that was read, and from where."""

    obj: KubernetesObject
    origin: Origin


@dataclass(slots=True)
class Manifests:
    """Everything read, in the order of the files.

    `ignored` counts objects of kinds that play no part in scheduling, by ``apiVersion/kind``. `warnings` are
    finished sentences about things that were accepted but are probably not meant.
    """

    items: list[Manifest] = field(default_factory=list)
    ignored: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def objects(self) -> list[KubernetesObject]:
        return [item.obj for item in self.items]

    def of(self, cls: type[_T]) -> list[_T]:
        """The objects of one class, in order."""
        return [item.obj for item in self.items if isinstance(item.obj, cls)]

    def __iter__(self) -> Iterator[Manifest]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def describe(obj: KubernetesObject) -> str:
    """``Pod default/web-0``, the way messages name an object."""
    return f"{obj.kind} {obj.key}" if obj.metadata.name else obj.kind
