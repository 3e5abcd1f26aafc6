"""What controllers do to a cluster: create, change and delete objects (the scheduler's own door is interface.py).

A write is a value, so that deciding what to write and writing it stay apart. Each names the very object it means by
its UID, and where somebody else's change must not be overwritten, the version it was decided on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from vcscheduler.cluster.interface import ClusterError
from vcscheduler.objects import KubernetesObject


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the template stands that an object is made from: objects here carry only what scheduling reads, so a
    cluster with machines takes everything else (commands, probes, mounts ...) from the template as it is stored.

    Attributes:
        owner: the object that holds the template.
        path: the way there, such as ``("spec", "tasks", 0, "template")``.
        mounts: volume name -> path, to be mounted in every container of a pod.
        env: to be set in every container of a pod.
    """

    owner: KubernetesObject
    path: tuple[str | int, ...]
    mounts: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Create:
    """A new object. `more`: further fields, as a manifest has them, that the kind has no attribute for."""

    obj: KubernetesObject
    origin: Origin | None = None
    more: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Update:
    """What differs between two versions of an object, status apart; refused if it was changed since the old one."""

    old: KubernetesObject
    new: KubernetesObject


@dataclass(frozen=True, slots=True)
class UpdateStatus:
    """What differs between the statuses of two versions. `checked`: refused if the object was changed since the old
    one; otherwise the fields that differ are the writer's own, and nobody else's change is in the way."""

    old: KubernetesObject
    new: KubernetesObject
    checked: bool = True


@dataclass(frozen=True, slots=True)
class Annotate:
    """Set annotations, whatever else was changed."""

    obj: KubernetesObject
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete this very object. `foreground`: it stays until everything that it owns is gone."""

    obj: KubernetesObject
    foreground: bool = False


Write: TypeAlias = Create | Update | UpdateStatus | Annotate | Delete
Outcome: TypeAlias = KubernetesObject | ClusterError
"""The object as stored (of a deletion: as it was), or why nothing was done."""


def object_of(write: Write) -> KubernetesObject:
    """The object a write is about."""
    return write.new if isinstance(write, Update | UpdateStatus) else write.obj


class ObjectStore(Protocol):
    """The cluster as controllers see it."""

    def write(self, writes: Sequence[Write]) -> list[Outcome]:
        """Carry out writes that do not depend on each other, many at a time, and wait for the answers. The outcome of
        each, in order. Raises nothing for a write that fails."""

    def record_event(self, kind: str, namespace: str, name: str, type: str, reason: str, message: str) -> None:
        """Tell of something about an object, for people. Never fails, never waits."""
