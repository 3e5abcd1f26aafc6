"""conformance: never evict what the cluster itself needs (spec 04 §4)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from vcscheduler.framework.plugin import Plugin
from vcscheduler.model.job import Job
from vcscheduler.model.status import EvictionKind, Vote
from vcscheduler.model.task import Task

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

_SYSTEM_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
_SYSTEM_NAMESPACE = "kube-system"


class ConformancePlugin(Plugin):
    """Looks at the name of the priority class and the namespace, not at priority values."""

    name = "conformance"

    def on_session_open(self, ssn: Session) -> None:
        self.ssn = ssn
        ssn.add_preemptable_fn(self.name, self.evictable, by_job=True)
        ssn.add_reclaimable_fn(self.name, self.evictable, by_job=True)
        ssn.add_unified_evictable_fn(self.name, self.unified_evictable)

    def evictable(self, task: Task, candidates: list[Task]) -> tuple[list[Task], Vote]:
        if self.ssn.explaining_victims:
            for t in candidates:
                critical = is_critical(t)
                why = partial("it is {} system pod".format, "a" if critical else "no")
                self.ssn.explain_victim(self.name, task, t, not critical, why)
        return _ordinary(candidates), Vote.PERMIT

    def unified_evictable(self, kind: EvictionKind, job: Job, candidates: list[Task]) -> tuple[list[Task], Vote]:
        return _ordinary(candidates), Vote.PERMIT


def _ordinary(tasks: list[Task]) -> list[Task]:
    return [
        t for t in tasks if t.namespace != _SYSTEM_NAMESPACE and t.pod.spec.priority_class_name not in _SYSTEM_CLASSES
    ]


def is_critical(task: Task) -> bool:
    return task.namespace == _SYSTEM_NAMESPACE or task.pod.spec.priority_class_name in _SYSTEM_CLASSES
