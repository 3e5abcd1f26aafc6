"""What all API objects share: the struct base classes, object metadata, label selectors, conditions.

Field names are the snake_case form of the API's camelCase ones. Unknown fields are ignored when reading.
Fields that nothing in this package reads (environment variables, probes, managed fields ...) are left out on
purpose, which keeps reading a dump of a large cluster cheap; an object written back therefore lacks them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, TypeAlias

from msgspec import Meta, Struct, field

Time: TypeAlias = Annotated[datetime, Meta(tz=True)]
"""RFC 3339 point in time, always with a time zone."""


class ApiStruct(Struct, rename="camel", omit_defaults=True, gc=False):
    """Base of every struct in an API object.

    API objects are trees, never cyclic, so the garbage collector has nothing to find in them (``gc=False``);
    with tens of thousands of pods in memory this is worth a lot.
    """


class ApiValue(Struct, rename="camel", omit_defaults=True, gc=False, frozen=True):
    """Base of small immutable, hashable parts of API objects, such as taints and tolerations."""


class OwnerReference(ApiValue, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(ApiStruct):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    finalizers: list[str] = []


class KubernetesObject(ApiStruct):
    """Base of all top-level objects. Subclasses name their API version, kind and scope."""

    api_version: ClassVar[str]
    kind: ClassVar[str]
    namespaced: ClassVar[bool] = True

    metadata: ObjectMeta = field(default_factory=ObjectMeta)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def key(self) -> str:
        """``namespace/name``, or just ``name`` without a namespace."""
        namespace = self.metadata.namespace
        return f"{namespace}/{self.metadata.name}" if namespace else self.metadata.name


class LabelSelectorRequirement(ApiStruct):
    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(ApiStruct):
    """Empty selects everything; an absent selector (None) selects nothing."""

    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class Condition(ApiStruct):
    """A condition of an object's status; which fields are used depends on the kind."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None
    last_probe_time: Time | None = None
    last_heartbeat_time: Time | None = None
    observed_generation: int | None = None


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """The owner reference marked as controller, if any."""
    for owner in metadata.owner_references:
        if owner.controller:
            return owner
    return None
