"""What the predicates would say with some pods gone from a node: only inter-pod affinity is asked again (spec 05 §3.8).

Ports, spreading, volumes and the number of pods are not (Quirk).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcscheduler.model.fit import Status
from vcscheduler.model.nodes import Node
from vcscheduler.model.status import Code
from vcscheduler.model.task import Task
from vcscheduler.placement.affinity_trial import AffinityTrial
from vcscheduler.plugins.predicates import reasons
from vcscheduler.plugins.predicates.options import Options
from vcscheduler.plugins.predicates.state import find_state

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session
    from vcscheduler.framework.simulation_points import State

_TRIAL = "predicates trial"


class Simulation:
    """Registers for one session; counts in the states that it is handed."""

    def __init__(self, ssn: Session, name: str, options: Options) -> None:
        self._ssn = ssn
        self._options = options
        ssn.add_simulate_predicate_fn(name, self.predicate)
        ssn.add_simulate_remove_task_fn(name, lambda state, task, pod, node: self.change(state, task, pod, node, -1))
        ssn.add_simulate_add_task_fn(name, lambda state, task, pod, node: self.change(state, task, pod, node, 1))

    def predicate(self, state: State, task: Task, node: Node) -> Status | None:
        if not self._options.pod_affinity or self._silent(task):
            return None
        trial = self._trial(state, task)
        if trial is None:
            text = f'reading "PreFilter{reasons.INTER_POD_AFFINITY}" from cycleState: not found'
            return Status(Code.ERROR, text, reasons.INTER_POD_AFFINITY)
        if trial.passes(node.row):
            return None
        return Status(Code.UNSCHEDULABLE, "pod affinity keeps the pod away", reasons.INTER_POD_AFFINITY)

    def change(self, state: State, task: Task, pod: Task, node: Node, n: int) -> str | None:
        if not self._options.pod_affinity or self._silent(task):
            return None
        trial = self._trial(state, task)
        if trial is None:
            return f"pod {task.key} was not pre-filtered in this session"
        trial.change(pod, node.row, n)
        return None

    def _silent(self, task: Task) -> bool:
        found = find_state(self._ssn, task)
        return found is not None and found.skips_affinity

    def _trial(self, state: State, task: Task) -> AffinityTrial | None:
        trial = state.get(_TRIAL)
        if isinstance(trial, AffinityTrial):
            return trial
        found = find_state(self._ssn, task)
        if found is None or found.affinity is None:
            return None
        trial = state[_TRIAL] = AffinityTrial(task, found.affinity, self._ssn.listers)
        return trial
