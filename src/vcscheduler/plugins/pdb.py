"""pdb: no victim whose eviction would violate a PodDisruptionBudget (spec 04 §10).

Budgets are read anew in every call, so what was chosen on another node in the same session does not add up; a pod
that violates one budget still uses up the others that match it (Quirks).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from vcscheduler.framework.plugin import Plugin
from vcscheduler.model.status import Vote
from vcscheduler.model.task import Task
from vcscheduler.objects import PodDisruptionBudget
from vcscheduler.objects.selectors import Selector, SelectorError, compile_label_selector

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

Budget = tuple[PodDisruptionBudget, Selector]


class PdbPlugin(Plugin):
    name = "pdb"

    def on_session_open(self, ssn: Session) -> None:
        self.ssn = ssn
        self._budgets: dict[str, list[Budget]] | None = None
        ssn.add_victim_tasks_fn(self.name, [self.keep])
        ssn.add_preemptable_fn(self.name, self.evictable)
        ssn.add_reclaimable_fn(self.name, self.evictable)

    def budgets(self, namespace: str) -> list[Budget]:
        """Budgets of the namespace with a selector that selects something, by name. An empty selector selects
        nothing here, unlike in Kubernetes (Quirk)."""
        if self._budgets is None:
            self._budgets = {}
            for _, budget in sorted(self.ssn.listers.disruption_budgets.items()):
                try:
                    selector = compile_label_selector(budget.spec.selector)
                except SelectorError:
                    continue
                if not selector.matches_everything and not selector.matches_nothing:
                    self._budgets.setdefault(budget.metadata.namespace, []).append((budget, selector))
        return self._budgets.get(namespace, [])

    def evictable(self, task: Task, candidates: list[Task]) -> tuple[list[Task], Vote]:
        kept = self.keep(candidates)
        if self.ssn.explaining_victims:
            allowed = {t.uid for t in kept}
            for t in candidates:
                if t.uid in allowed:
                    text = "no disruption budget stands against it"
                elif t.pod.metadata.labels:
                    text = "a disruption budget would be violated"
                else:
                    text = "pods without labels are never victims while this plugin is on"
                self.ssn.explain_victim(self.name, task, t, t.uid in allowed, partial(str, text))
        return kept, Vote.PERMIT

    def keep(self, tasks: list[Task]) -> list[Task]:
        """Those that may be evicted together. Pods without labels are left out (Quirk)."""
        left: dict[int, int] = {}
        kept = []
        for task in tasks:
            labels = task.pod.metadata.labels
            if not labels:
                continue
            violated = False
            for budget, selector in self.budgets(task.namespace):
                if task.name in budget.status.disrupted_pods or not selector.matches(labels):
                    continue
                allowed = left.get(id(budget), budget.status.disruptions_allowed) - 1
                left[id(budget)] = allowed
                violated = violated or allowed < 0
            if not violated:
                kept.append(task)
        return kept
