"""The filter of the ``predicates`` plugin: Kubernetes' rules about nodes, for many nodes at once (spec 05 §3.4)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

import numpy as np

from vcscheduler.model.fit import Status
from vcscheduler.model.requests import HostPort
from vcscheduler.model.status import Code
from vcscheduler.model.task import Task
from vcscheduler.placement.cluster import ClusterIndex
from vcscheduler.placement.node_rules import NodeRules
from vcscheduler.placement.rules import IntArray, KernelFilter, NodeFilter, Reason
from vcscheduler.placement.spread import spread_constraints
from vcscheduler.placement.terms import pod_terms
from vcscheduler.plugins.predicates import reasons
from vcscheduler.plugins.predicates.claims import ClaimProblem
from vcscheduler.plugins.predicates.options import Options
from vcscheduler.plugins.predicates.state import PreState, find_state
from vcscheduler.plugins.predicates.volume_limits import VolumeLimits, attaches
from vcscheduler.plugins.predicates.volume_zone import zone_codes

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

TEMPLATE_ANNOTATION = "volcano.sh/template-uid"

#: Reasons after which no further rule is asked.
_STOPPING = int(
    Reason.UNSCHEDULABLE
    | Reason.NODE_AFFINITY
    | Reason.TAINT
    | Reason.AFFINITY
    | Reason.VOLUME_ZONE
    | Reason.SPREAD_LABEL
    | Reason.VOLUME_NODE
    | Reason.VOLUME_BIND
    | Reason.VOLUME_SPACE
    | Reason.VOLUME_LOST
    | Reason.ERROR
    | reasons.CACHED
)
_TEXT_SHIFT = 24

Stage = Callable[[Task, PreState | None, IntArray], IntArray | None]


class PredicatesFilter(NodeFilter):
    """Codes are bits of Reason; with ERROR, the number of a status that has its own text stands in the bits above."""

    def __init__(self, ssn: Session, cluster: ClusterIndex, options: Options) -> None:
        self._ssn = ssn
        self._cluster = cluster
        self._options = options
        self._limits = VolumeLimits(ssn.table, ssn.listers, ssn.store)
        self._texts: list[Status] = []
        self._text_code: dict[Status, int] = {}
        #: template uid -> int8 [rows]: 0 unknown, 1 fits, -1 does not
        self._templates: dict[str, np.ndarray[tuple[int], np.dtype[np.int8]]] = {}
        stages: list[tuple[bool, Stage]] = [
            (options.node_ports, self._ports),
            (options.pod_affinity, self._affinity),
            (options.volume_limits, self._volume_limits),
            (options.volume_zone, self._volume_zone),
            (options.topology_spread, self._spread),
            (options.volume_binding, self._volume_binding),
            (True, self._resources),
        ]
        self._stages = [stage for on, stage in stages if on]

    # --- codes ------------------------------------------------------------------------------------------------

    def codes(self, task: Task, rows: IntArray) -> IntArray:
        view = self._cluster.view
        codes = np.where(view.pods[rows] >= view.max_pods[rows], int(Reason.POD_NUMBER), 0)
        codes |= self._stable(task, rows)
        state = find_state(self._ssn, task)
        for stage in self._stages:
            found = stage(task, state, rows)
            if found is not None:
                codes |= np.where(codes & _STOPPING, 0, found)
        return codes

    def statuses(self, task: Task, code: int) -> tuple[Status, ...]:
        found = reasons.statuses(code & ((1 << _TEXT_SHIFT) - 1))
        if code & Reason.ERROR:
            found = (*found, self._texts[code >> _TEXT_SHIFT])
        return found

    def _everywhere(self, rows: IntArray, status: Status) -> IntArray:
        """A status with a text of its own, for all rows."""
        number = self._text_code.get(status)
        if number is None:
            number = self._text_code[status] = len(self._texts)
            self._texts.append(status)
        return np.full(len(rows), int(Reason.ERROR) | number << _TEXT_SHIFT, dtype=np.int64)

    def _unprepared(self, plugin: str, rows: IntArray) -> IntArray:
        """A rule that needs PreFilter data cannot pass a task whose PrePredicate has not run (spec 05 §3.1)."""
        text = f'reading "PreFilter{plugin}" from cycleState: not found'
        return self._everywhere(rows, Status(Code.ERROR, text, plugin))

    def _static(self, task: Task) -> IntArray:
        options = self._options
        return self._cluster.rules.static(NodeRules.of(task.cls), options.node_affinity, options.taint_toleration)

    def _template(self, task: Task) -> str | None:
        return task.pod.metadata.annotations.get(TEMPLATE_ANNOTATION) if self._options.cache else None

    def _stable(self, task: Task, rows: IntArray) -> IntArray:
        codes = self._static(task)[rows]
        template = self._template(task)
        if template is None:
            return codes
        known = self._templates.get(template)
        if known is None:
            known = self._templates[template] = np.zeros(self._cluster.columns.capacity, dtype=np.int8)
        before = known[rows]
        known[rows] = np.where(before != 0, before, np.where(codes == 0, 1, -1))
        return np.where(before == 0, codes, np.where(before > 0, 0, reasons.CACHED))

    def _ports(self, task: Task, state: PreState | None, rows: IntArray) -> IntArray | None:
        if state is None or reasons.NODE_PORTS not in state.ran:
            return self._unprepared(reasons.NODE_PORTS, rows)
        conflicting = self._conflicting_rows(task)
        if not len(conflicting):
            return None
        return np.where(np.isin(rows, conflicting), int(Reason.PORTS), 0)

    def _conflicting_rows(self, task: Task) -> IntArray:
        wanted = task.cls.ports
        if not wanted:
            return np.empty(0, dtype=np.int64)
        rows = [row for row, used in self._cluster.view.ports.items() if _conflict(wanted, used)]
        return np.array(rows, dtype=np.int64)

    def _affinity(self, task: Task, state: PreState | None, rows: IntArray) -> IntArray | None:
        if state is not None and state.skips_affinity:
            return None
        if state is None or state.affinity is None:
            return self._unprepared(reasons.INTER_POD_AFFINITY, rows)
        return state.affinity.codes(rows)

    def _volume_limits(self, task: Task, state: PreState | None, rows: IntArray) -> IntArray | None:
        if not attaches(task.cls):
            return None
        try:
            return self._limits.codes(task, rows)
        except ClaimProblem as problem:
            return self._everywhere(rows, Status(Code.UNRESOLVABLE, str(problem), reasons.NODE_VOLUME_LIMITS))

    def _volume_zone(self, task: Task, state: PreState | None, rows: IntArray) -> IntArray | None:
        if state is None or not state.zones:
            return None
        return zone_codes(state.zones, self._cluster.columns, rows)

    def _volume_binding(self, task: Task, state: PreState | None, rows: IntArray) -> IntArray | None:
        if state is None or reasons.VOLUME_BINDING not in state.ran:
            return self._unprepared(reasons.VOLUME_BINDING, rows)
        if state.volumes is None:
            return None
        try:
            return state.volumes.codes(rows)
        except ClaimProblem as problem:
            return self._everywhere(rows, Status(Code.ERROR, str(problem), reasons.VOLUME_BINDING))

    def _spread(self, task: Task, state: PreState | None, rows: IntArray) -> IntArray | None:
        if state is None or reasons.POD_TOPOLOGY_SPREAD not in state.ran:
            return self._unprepared(reasons.POD_TOPOLOGY_SPREAD, rows)
        return None if state.spread is None else state.spread.codes(rows)

    def _resources(self, task: Task, state: PreState | None, rows: IntArray) -> IntArray | None:
        if state is None or reasons.DYNAMIC_RESOURCES not in state.ran:
            return self._unprepared(reasons.DYNAMIC_RESOURCES, rows)
        return None

    # --- for kernels ------------------------------------------------------------------------------------------

    def kernel(self, task: Task) -> KernelFilter | None:
        state = find_state(self._ssn, task)
        if state is None or reasons.DYNAMIC_RESOURCES not in state.ran:
            return None
        if self._template(task) is not None or attaches(task.cls):
            return None
        constraints = []
        if self._options.pod_affinity and not state.skips_affinity:
            if state.affinity is None:
                return None
            constraints += state.affinity.constraints()
        if state.spread is not None:
            constraints += state.spread.constraints()
        ports = self._options.node_ports and bool(task.cls.ports)
        return KernelFilter(
            self._static(task),
            constraints,
            self._conflicting_rows(task) if ports else np.empty(0, dtype=np.int64),
            ports,
        )

    def kin_of_class(self, task: Task) -> bool:
        return not (
            self._options.cache or self._cluster.holders.keys or pod_terms(task).keys or spread_constraints(task).keys
        )

    def kin(self, task: Task) -> Hashable:
        """Two tasks of one class and namespace with equal kin are the same to this filter: a class does not look at
        labels, but terms may."""
        terms, spread = pod_terms(task), spread_constraints(task)
        state = find_state(self._ssn, task)
        keys = terms.keys | spread.keys | self._cluster.holders.keys
        labels = task.pod.metadata.labels
        return (
            state is not None and state.skips_affinity,
            self._template(task),
            (terms, spread) if keys else None,
            tuple(labels.get(k) for k in sorted(keys)),
        )


def _conflict(wanted: tuple[HostPort, ...], used: dict[HostPort, int]) -> bool:
    for ip, protocol, port in wanted:
        for used_ip, used_protocol, used_port in used:
            if (
                port == used_port
                and protocol == used_protocol
                and (ip == used_ip or ip == "0.0.0.0" or used_ip == "0.0.0.0")
            ):
                return True
    return False
