"""What the annotations of a PodGroup say about its roles: which belong together, which apart, which come first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from vcscheduler.model.job import Job
from vcscheduler.model.task import ROLE_KEY, Task

AFFINITY_ANNOTATION = "volcano.sh/task-topology-affinity"
ANTI_AFFINITY_ANNOTATION = "volcano.sh/task-topology-anti-affinity"
ORDER_ANNOTATION = "volcano.sh/task-topology-task-order"

_SELF_ANTI, _INTER, _SELF, _INTER_ANTI = 4, 3, 2, 1


def role_of(task: Task) -> str:
    """The role by the pod's annotation; unlike elsewhere, a label does not count here."""
    return task.pod.metadata.annotations.get(ROLE_KEY, "")


@dataclass(slots=True)
class Roles:
    """Relations between roles.

    Attributes:
        together, apart: ordered pairs of roles, (role, role) for a role with itself.
        priority: of the roles that some relation names; those relations weigh most that are hardest to keep.
        order: role -> how far it is from the end of the wanted order; 0 where that does not name it.
    """

    together: set[tuple[str, str]] = field(default_factory=set)
    apart: set[tuple[str, str]] = field(default_factory=set)
    priority: dict[str, int] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, job: Job) -> Roles | None:
        """None: the job has no topology, or one that names roles which the job does not have."""
        annotations = job.pod_group.metadata.annotations if job.pod_group is not None else {}
        near, far, order = (
            annotations.get(key) for key in (AFFINITY_ANNOTATION, ANTI_AFFINITY_ANNOTATION, ORDER_ANNOTATION)
        )
        if near is None and far is None and order is None:
            return None
        near_groups, far_groups = _groups(near), _groups(far)
        wanted = order.split(",") if order is not None else []
        known = {role_of(task) for task in job.tasks.values()}
        if not all(_valid(group, known) for group in (*near_groups, *far_groups, wanted)):
            return None
        roles = cls()
        roles._relate(roles.together, near_groups, _SELF, _INTER)
        roles._relate(roles.apart, far_groups, _SELF_ANTI, _INTER_ANTI)
        roles.order = {role: len(wanted) - i for i, role in enumerate(wanted)}
        return roles

    def _relate(self, pairs: set[tuple[str, str]], groups: list[list[str]], alone: int, between: int) -> None:
        for group in groups:
            if len(group) == 1:
                pairs.add((group[0], group[0]))
            else:
                pairs.update((a, b) for a in group for b in group if a != b)
            for role in group:
                self.priority[role] = max(self.priority.get(role, 0), alone if len(group) == 1 else between)

    def attraction(self, role: str, other: str) -> int:
        """What one task of ``other`` in a bucket adds to its attraction for a task of ``role``."""
        return ((role, other) in self.together) - ((role, other) in self.apart)

    def rank(self, role: str) -> tuple[int, int]:
        """Smaller = first: by the wanted order, then by priority."""
        return (-self.order.get(role, 0), -self.priority.get(role, 0))


def _groups(text: str | None) -> list[list[str]]:
    return [part.split(",") for part in text.split(";")] if text is not None else []


def _valid(group: Iterable[str], known: set[str]) -> bool:
    named = [role for role in group if role]
    return len(set(named)) == len(named) and known.issuperset(named)
