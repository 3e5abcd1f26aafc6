"""Whether everything that decisions need is known, and if not, what stands in the way, in words that help."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from vcscheduler.cluster.live.reflector import Reflector
from vcscheduler.objects import Condition, Node


class NotSynced(Exception):
    """Not all resources could be listed; the message names each with the reason and the way out."""


@dataclass(frozen=True, slots=True)
class SyncProblems:
    """What is missing, one line a resource. hopeless: waiting longer will not help any of them."""

    lines: tuple[str, ...]
    hopeless: bool

    def text(self, server: str, waited: float | None) -> str:
        opening = f"after {waited:g} s not everything is known of" if waited is not None else "cannot schedule on"
        return "\n  ".join((f"{opening} the cluster at {server}:", *self.lines))


def sync_problems(reflectors: Iterable[Reflector[Any]]) -> SyncProblems:
    """The resources that are not synced."""
    missing = [each for each in reflectors if not each.synced]
    denied = [each for each in missing if each.problem is not None and each.problem.status in (401, 403, 404)]
    return SyncProblems(tuple(_line(each) for each in missing), bool(denied) and len(denied) == len(missing))


def _line(reflector: Reflector[Any]) -> str:
    resource, problem = reflector.resource, reflector.problem
    if problem is None:
        return f"{resource.label}: no complete list yet"
    if problem.status == 403:
        group = f"apiGroups [{resource.group!r}]"
        return f"{resource.label}: {problem}; the scheduler needs verbs list and watch on it ({group})"
    if problem.status == 404:
        version = resource.kind.api_version
        return f"{resource.label}: the server does not have it; install the CustomResourceDefinition for {version}"
    if problem.status == 401:
        return f"{resource.label}: the credentials are not accepted: {problem}"
    return f"{resource.label}: {problem}"


def nothing_new_in_node(old: Node, new: Node) -> bool:
    """Whether an update tells nothing but that the node is still alive."""
    return (
        old.spec == new.spec
        and old.metadata.labels == new.metadata.labels
        and old.metadata.annotations == new.metadata.annotations
        and old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
        and old.status.allocatable == new.status.allocatable
        and old.status.capacity == new.status.capacity
        and old.status.images == new.status.images
        and [_steady(each) for each in old.status.conditions] == [_steady(each) for each in new.status.conditions]
    )


def _steady(condition: Condition) -> tuple[str, str, str, str]:
    return condition.type, condition.status, condition.reason, condition.message
