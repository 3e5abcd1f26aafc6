"""predicates: Kubernetes' filters, and the Kubernetes view of the nodes kept current (spec 05 §3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcscheduler.framework.plugin import Event, EventHandler, Plugin, RunEvent
from vcscheduler.model.fit import Status
from vcscheduler.model.status import Code
from vcscheduler.model.task import Task
from vcscheduler.placement.affinity import AffinityState
from vcscheduler.placement.cluster import ClusterIndex
from vcscheduler.placement.node_rules import NodeRules
from vcscheduler.placement.spread import SpreadState, spread_constraints
from vcscheduler.placement.terms import pod_terms
from vcscheduler.plugins.predicates import reasons
from vcscheduler.plugins.predicates.filter import PredicatesFilter
from vcscheduler.plugins.predicates.options import KNOWN_ARGUMENTS, Options
from vcscheduler.plugins.predicates.state import PreState, find_state, put_state

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

NO_DYNAMIC_RESOURCES = "dynamic resource allocation is not supported yet"


class PredicatesPlugin(Plugin):
    name = "predicates"
    known_arguments = KNOWN_ARGUMENTS

    def on_session_open(self, ssn: Session) -> None:
        self.ssn = ssn
        self.options = Options.read(self.arguments)
        self.cluster = ClusterIndex.of(ssn.store, ssn.table, ssn.uid)
        ssn.add_pre_predicate_fn(self.name, self.pre_predicate, run=self.pre_predicated)
        ssn.add_filter(self.name, PredicatesFilter(ssn, self.cluster, self.options))
        ssn.add_event_handler(
            EventHandler(self.allocate, self.deallocate, self.allocate_run, self.deallocate_run)
        )

    # --- PrePredicate (spec 05 §3.3) --------------------------------------------------------------------------

    def pre_predicate(self, task: Task) -> Status | None:
        state = find_state(self.ssn, task)
        if state is None:
            state = PreState()
            put_state(self.ssn, task, state)
        failure = self._pre_filter(task, state)
        if failure is None:
            return None
        plugin, message = failure
        return Status(Code.ERROR, f"plugin {plugin} pre-predicates failed {message}", plugin)

    def _pre_filter(self, task: Task, state: PreState) -> tuple[str, str] | None:
        """Each rule's PreFilter in order; the first failure as (rule, message)."""
        options = self.options
        if options.node_affinity and NodeRules.of(task.cls).conflict:
            return reasons.NODE_AFFINITY, "pod affinity terms conflict"
        state.ran.add(reasons.NODE_PORTS)
        if options.pod_affinity:
            error = pod_terms(task).error
            if error:
                return reasons.INTER_POD_AFFINITY, f"parsing pod: {error}"
            self._pre_filter_affinity(task, state)
        if options.topology_spread:
            constraints = spread_constraints(task)
            if constraints.error:
                return reasons.POD_TOPOLOGY_SPREAD, constraints.error
            state.spread = SpreadState(task, self.cluster) if constraints.hard else None
            state.ran.add(reasons.POD_TOPOLOGY_SPREAD)
        if task.pod.spec.resource_claims:
            return reasons.DYNAMIC_RESOURCES, NO_DYNAMIC_RESOURCES
        state.ran.add(reasons.DYNAMIC_RESOURCES)
        return None

    def _pre_filter_affinity(self, task: Task, state: PreState) -> None:
        if state.skips_affinity:
            return
        terms = pod_terms(task)
        if not (terms.affinity or terms.anti or self.cluster.holders.anti):
            state.skips_affinity = True
            return
        found = AffinityState(task, self.cluster, self.ssn.listers)
        if found.needed:
            state.affinity = found
        else:
            state.skips_affinity = True

    def pre_predicated(self, tasks: list[Task]) -> None:
        first = find_state(self.ssn, tasks[0])
        if first is not None:
            for task in tasks[1:]:
                put_state(self.ssn, task, first)

    # --- events (spec 05 §3.6) --------------------------------------------------------------------------------

    def allocate(self, event: Event) -> None:
        task, table = event.task, self.ssn.table
        node = table.get(task.node_name)
        if node is None:
            return
        # Whoever never was pre-filtered in this session cannot be reserved for. So the victim of an eviction that is
        # undone stays out of the view (Quirk, spec 05 §2.1).
        state = find_state(self.ssn, task)
        if state is None or reasons.DYNAMIC_RESOURCES not in state.ran:
            event.error = f"pod {task.key} was not pre-filtered in this session"
            return
        self._add(task, node.row)

    def _add(self, task: Task, row: int) -> None:
        self.ssn.table.view.add(task, row)
        self.ssn.table.touch(row)

    def deallocate(self, event: Event) -> None:
        task, table = event.task, self.ssn.table
        row = task.view_row
        if row >= 0:
            table.view.remove(task)
            table.touch(row)

    def allocate_run(self, event: RunEvent) -> None:
        """The kernel that placed the run has brought the columns and the change log up to date."""
        view = self.ssn.table.view
        view.added_run(event.tasks, event.rows)
        if event.cls.ports:
            for row in event.rows:
                held = view.ports.setdefault(row, {})
                for port in event.cls.ports:
                    held[port] = held.get(port, 0) + 1

    def deallocate_run(self, event: RunEvent) -> None:
        for task in event.tasks:
            self.deallocate(Event(task))
