"""Queue: the scheduler's view of a Volcano Queue (spec 01 §6.1)."""

from __future__ import annotations

from vcscheduler.model.resources import Resources
from vcscheduler.model.task import timestamp
from vcscheduler.objects import Queue as QueueObject

HIERARCHY = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS = "volcano.sh/hierarchy-weights"


class Queue:
    """A queue, with the vectors of its spec parsed once. ``capability``: None if unset."""

    __slots__ = (
        "capability",
        "created",
        "deserved",
        "guarantee",
        "name",
        "object",
        "parent",
        "priority",
        "reclaimable",
        "reported",
        "weight",
    )

    def __init__(self, obj: QueueObject) -> None:
        spec = obj.spec
        self.name = obj.metadata.name
        self.object = obj
        self.weight = spec.weight
        self.priority = spec.priority
        self.parent = spec.parent
        self.created = timestamp(obj.metadata.creation_timestamp)
        self.reclaimable = spec.reclaimable is None or spec.reclaimable
        self.capability = Resources.from_list(spec.capability) if spec.capability else None
        self.deserved = Resources.from_list(spec.deserved)
        #: What ``status.allocated`` is known to say, None before anybody looked.
        self.reported: Resources | None = None
        self.guarantee = Resources.from_list(spec.guarantee.resource)

    @property
    def state(self) -> str:
        return self.object.status.state

    @property
    def is_open(self) -> bool:
        return self.state == "Open"

    @property
    def hierarchy(self) -> str:
        return self.object.metadata.annotations.get(HIERARCHY, "")

    @property
    def hierarchy_weights(self) -> str:
        return self.object.metadata.annotations.get(HIERARCHY_WEIGHTS, "")

    def __repr__(self) -> str:
        return f"Queue({self.name})"
