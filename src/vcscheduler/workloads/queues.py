"""Queues as Volcano's webhook and queue controller make them, and what the webhook refuses (spec 07 §8.2, §8.7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

from vcscheduler.objects import ObjectMeta, Queue, QueueSpec, QueueStatus, ResourceList
from vcscheduler.objects.errors import InvalidField, Path, did_you_mean, show_value
from vcscheduler.workloads.admission import DEFAULT_QUEUE, changed
from vcscheduler.workloads.identity import is_stored, uid_of
from vcscheduler.workloads.keys import HIERARCHY, HIERARCHY_WEIGHTS
from vcscheduler.workloads.usage import Amounts, add, amounts

ROOT: Final = "root"
_MAX_DEPTH: Final = 5


def default_queue(queue: Queue) -> Queue:
    """The queue as it stands in a cluster a moment after it was created."""
    spec, annotations = queue.spec, queue.metadata.annotations
    path = annotations.get(HIERARCHY, "")
    if path and HIERARCHY_WEIGHTS in annotations and not path.startswith(ROOT):
        weights = annotations[HIERARCHY_WEIGHTS]
        annotations = {**annotations, HIERARCHY: f"{ROOT}/{path}", HIERARCHY_WEIGHTS: f"1/{weights}"}
    return changed(
        queue,
        metadata=changed(queue.metadata, uid=uid_of(queue), annotations=annotations),
        spec=changed(
            spec,
            weight=spec.weight or 1,
            reclaimable=True if spec.reclaimable is None else spec.reclaimable,
            parent=spec.parent or ("" if queue.name == ROOT else ROOT),
            dequeue_strategy=spec.dequeue_strategy or "traverse",
        ),
        # Without the queue controller a queue would never open, and no job in it would run.
        status=changed(queue.status, state=queue.status.state or "Open"),
    )


def missing_queues(present: Mapping[str, Queue]) -> list[Queue]:
    """The queues that the scheduler makes when it starts (spec 07 §1.2), as far as they are not there."""
    made = []
    for name, reclaimable in ((ROOT, False), (DEFAULT_QUEUE, True)):
        if name not in present:
            queue = Queue(ObjectMeta(name=name), QueueSpec(weight=1, reclaimable=reclaimable), QueueStatus())
            made.append(default_queue(queue))
    return made


class QueueTree:
    """All queues of the input, for checks that look at more than one."""

    def __init__(self, queues: Iterable[Queue]) -> None:
        self.queues = {queue.name: queue for queue in queues}
        self._children: dict[str, list[Queue]] = {}
        for queue in self.queues.values():
            if queue.spec.parent:
                self._children.setdefault(queue.spec.parent, []).append(queue)

    def check(self, queue: Queue) -> None:
        """Raise `InvalidField` for what the webhook refuses in a new queue."""
        if is_stored(queue.metadata):
            return
        self._check_state(queue)
        self._check_place(queue)
        spec = queue.spec
        capability, deserved = amounts(spec.capability), amounts(spec.deserved)
        guarantee = amounts(spec.guarantee.resource)
        deserved_path: Path = ("spec", "deserved")
        guarantee_path: Path = ("spec", "guarantee", "resource")
        if deserved:
            _within(guarantee_path, guarantee, deserved, "deserved", listed=True)
        _within(deserved_path, deserved, capability, "capability")
        _within(guarantee_path, guarantee, capability, "capability")
        self._check_ancestors(queue, capability)
        children = self._children.get(queue.name, [])
        self._check_sum(deserved_path, deserved, [child.spec.deserved for child in children])
        self._check_sum(guarantee_path, guarantee, [child.spec.guarantee.resource for child in children])

    def check_use(self, name: str, path: Path, *, by_job: bool) -> None:
        """Raise `InvalidField` unless a new PodGroup, or Job, may name this queue."""
        queue = self.queues.get(name)
        if queue is None:
            raise InvalidField(path, f"found {show_value(name)}, no such queue{did_you_mean(name, self.queues)}")
        if queue.status.state != "Open":
            state = queue.status.state
            raise InvalidField(path, f"found {show_value(name)}, a queue whose state is {state}; it must be Open")
        if not by_job:
            return
        if name == ROOT:
            raise InvalidField(path, f'found "{ROOT}", which takes no jobs itself; name one of its children')
        if name in self._children:
            child = self._children[name][0].name
            raise InvalidField(
                path, f"found {show_value(name)}, which has child queues; name one of them, such as {show_value(child)}"
            )

    @staticmethod
    def _check_state(queue: Queue) -> None:
        if queue.status.state not in ("Open", "Closed"):
            raise InvalidField(
                ("status", "state"), f"found {show_value(queue.status.state)}, a new queue is Open or Closed"
            )

    def _check_place(self, queue: Queue) -> None:
        path: Path = ("spec", "parent")
        above, at = {queue.name: None}, queue  # in order; a list would be searched through at every step
        while at.spec.parent and at.name != ROOT:
            name = at.spec.parent
            parent = self.queues.get(name)
            if parent is None:
                if at is queue:
                    hint = did_you_mean(name, self.queues)
                    raise InvalidField(path, f"found {show_value(name)}, no such queue{hint}")
                return
            if name in above:
                raise InvalidField(path, f"the parents form a circle: {' -> '.join((*above, name))}")
            above[name] = None
            at = parent
        depth = len(above) - 1
        if depth > _MAX_DEPTH:
            raise InvalidField(path, f"the queue is {depth} levels below {ROOT}, allowed are {_MAX_DEPTH}")

    def _check_ancestors(self, queue: Queue, capability: Amounts) -> None:
        """No resource may have a higher ceiling than the nearest ancestor that limits it."""
        for name, amount in capability.items():
            seen, at = {queue.name}, self.queues.get(queue.spec.parent)
            while at is not None and at.name not in seen:
                if name in at.spec.capability:
                    ceiling = amounts(at.spec.capability)[name]
                    if amount > ceiling:
                        raise InvalidField(
                            ("spec", "capability", name),
                            f"found {show_value(queue.spec.capability[name])}, above the "
                            f"{at.spec.capability[name]} of queue {show_value(at.name)}",
                        )
                    break
                seen.add(at.name)
                at = self.queues.get(at.spec.parent)

    @staticmethod
    def _check_sum(path: Path, own: Amounts, of_children: list[ResourceList]) -> None:
        together: Amounts = {}
        for each in of_children:
            add(together, amounts(each))
        for name, amount in own.items():
            if together.get(name, Fraction(0)) > amount:
                raise InvalidField((*path, name), "the child queues together have more than this queue")


def _within(path: Path, lower: Amounts, upper: Amounts, upper_name: str, *, listed: bool = False) -> None:
    for name, amount in lower.items():
        if name not in upper:
            if listed:
                raise InvalidField((*path, name), f"{upper_name} must list this resource as well")
        elif amount > upper[name]:
            raise InvalidField((*path, name), f"it is more than the queue's {upper_name}")
