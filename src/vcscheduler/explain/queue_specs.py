"""Do the queues of some manifests add up, under the configuration that is to share the cluster between them?

Specs are read as they stand, without playing the webhook: what a dump of a cluster holds has passed it, and what it
refuses (or was given before it had a say) is named here with the reason why it matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from vcscheduler.config import SchedulerConfiguration
from vcscheduler.documents import nearest_name
from vcscheduler.objects import KubernetesObject, Manifest, Manifests, Node, Pod, PodGroup, Queue, VolcanoJob
from vcscheduler.workloads.keys import QUEUE_NAME
from vcscheduler.workloads.usage import add, amounts, to_resource_list

Path = tuple[str | int, ...]
_Amounts = dict[str, Fraction]

ROOT = "root"
_MADE = (ROOT, "default")
"""Queues that the scheduler makes if they are missing."""
_DESERVED: Path = ("spec", "deserved")
_GUARANTEE: Path = ("spec", "guarantee", "resource")
_CAPABILITY: Path = ("spec", "capability")


@dataclass(frozen=True, slots=True)
class SpecWarning:
    """One thing about one object: where in it, what it comes to and what to do."""

    manifest: Manifest
    path: Path
    message: str


def check_queues(manifests: Manifests, configuration: SchedulerConfiguration) -> list[SpecWarning]:
    """Everything odd about queues and what names them, in the order of the manifests."""
    subject = _Subject(manifests, configuration)
    found = [warning for check in _CHECKS for warning in check(subject)]
    place = {id(item): index for index, item in enumerate(manifests.items)}
    return sorted(found, key=lambda warning: place[id(warning.manifest)])


class _Subject:
    def __init__(self, manifests: Manifests, configuration: SchedulerConfiguration) -> None:
        self.items = manifests.items
        self.queues = {item.obj.name: (item, item.obj) for item in manifests if isinstance(item.obj, Queue)}
        plugins = {option.name: option for option in configuration.plugins()}
        self.plugin = next((name for name in ("capacity", "proportion") if name in plugins), "")
        self.tree = self.plugin == "capacity" and plugins["capacity"].enable_hierarchy
        self.reclaims = bool({"reclaim", "gangreclaim"} & set(configuration.actions))
        self.names = {*self.queues, *_MADE}
        self.children: dict[str, list[Queue]] = {}
        for _, queue in self.queues.values():
            if queue.name != ROOT:
                self.children.setdefault(queue.spec.parent or ROOT, []).append(queue)
        self.total: _Amounts = {}
        for item in self.items:
            if isinstance(item.obj, Node):
                add(self.total, amounts(item.obj.status.allocatable))

    def users(self) -> Iterator[tuple[Manifest, Path, str]]:
        """(object, where, queue) of everything that names a queue."""
        for item in self.items:
            obj: KubernetesObject = item.obj
            if isinstance(obj, (PodGroup, VolcanoJob)):
                if obj.spec.queue:
                    yield item, ("spec", "queue"), obj.spec.queue
            elif isinstance(obj, Pod) and QUEUE_NAME in obj.metadata.annotations:
                yield item, ("metadata", "annotations", QUEUE_NAME), obj.metadata.annotations[QUEUE_NAME]


def _missing_parents(subject: _Subject) -> Iterator[SpecWarning]:
    for item, queue in subject.queues.values():
        parent = queue.spec.parent
        if parent and parent not in subject.names and queue.name != ROOT:
            near = nearest_name(parent, subject.names)
            hint = f'; did you mean "{near}"?' if near else f"; there are {', '.join(sorted(subject.names))}"
            effect = (
                "capacity is not ready until it does, and nothing is admitted or allocated in any queue"
                if subject.tree
                else "the queue is outside of the tree"
            )
            yield SpecWarning(item, ("spec", "parent"), f'the queue "{parent}" does not exist: {effect}{hint}')


def _missing_queues(subject: _Subject) -> Iterator[SpecWarning]:
    for item, path, name in subject.users():
        if name not in subject.names:
            near = nearest_name(name, subject.names)
            hint = f'; did you mean "{near}"?' if near else f"; there are {', '.join(sorted(subject.names))}"
            yield SpecWarning(item, path, f'the queue "{name}" does not exist, so nothing of this is scheduled{hint}')


def _jobs_above_leaves(subject: _Subject) -> Iterator[SpecWarning]:
    if not subject.tree:
        return
    for item, path, name in subject.users():
        below = subject.children.get(name)
        if below:
            yield SpecWarning(
                item,
                path,
                f'the queue "{name}" has queues below it: with a job of its own capacity is not ready, and nothing is '
                f'admitted or allocated in any queue; name one of those below, such as "{below[0].name}"',
            )


def _order_of_limits(subject: _Subject) -> Iterator[SpecWarning]:
    for item, queue in subject.queues.values():
        spec = queue.spec
        guarantee, deserved, capability = (
            amounts(each) for each in (spec.guarantee.resource, spec.deserved, spec.capability)
        )
        for name in _more(deserved, capability):
            effect = "it is not cut to that in a tree, so others pay" if subject.tree else "it is cut to that"
            yield SpecWarning(
                item,
                (*_DESERVED, name),
                f"deserved {spec.deserved[name]} is more than the capability {spec.capability[name]}, which the queue "
                f"can never hold: {effect}; lower one or raise the other",
            )
        for name in _more(guarantee, capability):
            yield SpecWarning(
                item,
                (*_GUARANTEE, name),
                f"{spec.guarantee.resource[name]} is guaranteed, but the capability is {spec.capability[name]}: the "
                "rest is kept from other queues and can never be used; lower the guarantee",
            )
        for name in _more(guarantee, deserved):
            yield SpecWarning(
                item,
                (*_GUARANTEE, name),
                f"{spec.guarantee.resource[name]} is guaranteed, but only {spec.deserved[name]} deserved: the "
                "guarantee counts as deserved; raise deserved to it",
            )


def _sums_over_parents(subject: _Subject) -> Iterator[SpecWarning]:
    """What the queues below one have together, against what it has itself."""
    for name, children in subject.children.items():
        if name not in subject.queues:
            continue
        item, parent = subject.queues[name]
        limits = (
            ("guaranteed", _GUARANTEE, parent.spec.guarantee.resource, [q.spec.guarantee.resource for q in children]),
            ("deserved", _DESERVED, parent.spec.deserved, [q.spec.deserved for q in children]),
        )
        for word, path, own, below in limits:
            together = _sum(below)
            for resource in _more(together, amounts(own)):
                yield SpecWarning(
                    item,
                    (*path, resource),
                    f"the queues below it ({_named(children)}) have {_text(together, resource)} {word} together, more "
                    f"than its own {own[resource]}: not all of them can have it at once; lower theirs or raise this",
                )
        for child in children:
            for resource in _more(amounts(child.spec.capability), amounts(parent.spec.capability)):
                own_item = subject.queues[child.name][0]
                yield SpecWarning(
                    own_item,
                    (*_CAPABILITY, resource),
                    f"it is more than the {parent.spec.capability[resource]} of the queue {name} above it, which "
                    "stops it first; lower it",
                )


def _sums_over_the_cluster(subject: _Subject) -> Iterator[SpecWarning]:
    if not subject.total:
        return
    # In a tree those below are part of those above.
    counted = [q for _, q in subject.queues.values() if q.name != ROOT and (q.spec.parent or ROOT) == ROOT]
    if not subject.tree:
        counted = [q for _, q in subject.queues.values() if q.name not in subject.children or q.name == ROOT]
    limits = [("guaranteed", _GUARANTEE, [q.spec.guarantee.resource for q in counted])]
    if subject.plugin == "capacity":
        limits.append(("deserved", _DESERVED, [q.spec.deserved for q in counted]))
    for word, path, lists in limits:
        together = _sum(lists)
        for resource, amount in together.items():
            whole = subject.total.get(resource, Fraction(0))
            if amount <= whole:
                continue
            asking = [q for q, each in zip(counted, lists) if resource in each]
            item = subject.queues[asking[-1].name][0]
            yield SpecWarning(
                item,
                (*path, resource),
                f"the queues ({_named(asking)}) have {_text(together, resource)} {word} together, the nodes only "
                f"{_text({resource: whole}, resource)}: not all can have it at once; lower some",
            )


def _not_read(subject: _Subject) -> Iterator[SpecWarning]:
    """Fields that the configured share plugin does not look at."""
    for item, queue in subject.queues.values():
        spec = queue.spec
        if spec.deserved and subject.plugin != "capacity":
            who = "proportion divides by weight" if subject.plugin else "no plugin shares out the cluster"
            yield SpecWarning(item, _DESERVED, f"nobody reads it: {who}; use the plugin capacity, or leave it out")
        if spec.guarantee.resource and not subject.plugin:
            message = "nobody keeps it: no plugin shares out the cluster; add capacity or proportion"
            yield SpecWarning(item, ("spec", "guarantee"), message)
        if spec.weight > 1 and subject.plugin == "capacity":
            yield SpecWarning(
                item, ("spec", "weight"), "capacity does not read weights; say what the queue deserves instead"
            )
        if spec.parent not in ("", ROOT) and subject.plugin == "capacity" and not subject.tree:
            yield SpecWarning(
                item,
                ("spec", "parent"),
                "without enableHierarchy capacity knows no tree: the queue is not bounded by the one above it; "
                "set enableHierarchy: true for capacity",
            )


def _undeserving(subject: _Subject) -> Iterator[SpecWarning]:
    if subject.plugin != "capacity" or not subject.reclaims:
        return
    for item, queue in subject.queues.values():
        spec = queue.spec
        if queue.name in _MADE or queue.name in subject.children or spec.reclaimable is False:
            continue
        if not spec.deserved and not spec.guarantee.resource:
            yield SpecWarning(
                item,
                ("spec",),
                "it deserves nothing, so all that it holds may be reclaimed at any time; give it deserved unless that "
                "is meant",
            )


def _more(these: _Amounts, than: _Amounts) -> list[str]:
    """Resources that both list and of which the first have more; cpu or memory of 0 is no limit."""
    return [name for name, amount in these.items() if than.get(name) and amount > than[name]]


def _sum(lists: list[dict[str, str | int | float]]) -> _Amounts:
    total: _Amounts = {}
    for each in lists:
        add(total, amounts(each))
    return total


def _text(vector: _Amounts, name: str) -> str:
    return str(to_resource_list({name: vector[name]})[name])


def _named(queues: list[Queue]) -> str:
    names = [queue.name for queue in queues]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


_CHECKS: tuple[Callable[[_Subject], Iterator[SpecWarning]], ...] = (
    _missing_parents,
    _missing_queues,
    _jobs_above_leaves,
    _order_of_limits,
    _sums_over_parents,
    _sums_over_the_cluster,
    _not_read,
    _undeserving,
)
