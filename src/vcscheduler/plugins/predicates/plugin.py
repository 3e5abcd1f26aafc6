"""predicates: Kubernetes' filters, and the Kubernetes view of the nodes kept current (spec 05 §3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcscheduler.framework.plugin import Event, EventHandler, Plugin, RunEvent
from vcscheduler.model.fit import Status
from vcscheduler.model.nodes import Node
from vcscheduler.model.status import PIPELINED, Code
from vcscheduler.model.task import Task
from vcscheduler.model.volume_plan import VolumePlan
from vcscheduler.placement.affinity import AffinityState
from vcscheduler.placement.cluster import ClusterIndex
from vcscheduler.placement.node_rules import NodeRules
from vcscheduler.placement.spread import SpreadState, spread_constraints
from vcscheduler.placement.terms import pod_terms
from vcscheduler.plugins.predicates import reasons
from vcscheduler.plugins.predicates.assumptions import Assumptions
from vcscheduler.plugins.predicates.claims import ClaimProblem, has_claims
from vcscheduler.plugins.predicates.filter import PredicatesFilter
from vcscheduler.plugins.predicates.options import KNOWN_ARGUMENTS, Options
from vcscheduler.plugins.predicates.simulation import Simulation
from vcscheduler.plugins.predicates.state import PreState, find_state, put_state
from vcscheduler.plugins.predicates.volume_binding import VolumeState, pod_claims
from vcscheduler.plugins.predicates.volume_zone import volume_topologies

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

NO_DYNAMIC_RESOURCES = "dynamic resource allocation is not supported yet"


class PredicatesPlugin(Plugin):
    name = "predicates"
    known_arguments = KNOWN_ARGUMENTS

    def on_session_open(self, ssn: Session) -> None:
        self.ssn = ssn
        self.options = Options.read(self.arguments)
        self.assumptions = Assumptions.of(ssn.store, self.options.bind_timeout_seconds)
        self.assumptions.drop_gone(ssn.listers)
        self.cluster = ClusterIndex.of(ssn.store, ssn.table, ssn.uid)
        ssn.add_pre_predicate_fn(self.name, self.pre_predicate, run=self.pre_predicated)
        ssn.add_filter(self.name, PredicatesFilter(ssn, self.cluster, self.options))
        Simulation(ssn, self.name, self.options)
        ssn.add_binder(self.name, self)
        option = ssn.plugin_option(self.name)
        if option is None or option.enable_predicate:
            ssn.add_event_handler(EventHandler(self.allocate, self.deallocate, self.allocate_run, self.deallocate_run))
        else:
            # No task is pre-filtered then, so the handler refuses each (Quirk, spec 05 §2.1); a run cannot be refused.
            ssn.add_event_handler(EventHandler(self.allocate, self.deallocate))

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
        if options.volume_zone and has_claims(task.cls):
            try:
                state.zones = volume_topologies(task.pod, self.ssn.listers)
            except ClaimProblem as problem:
                return reasons.VOLUME_ZONE, str(problem)
        if options.topology_spread:
            constraints = spread_constraints(task)
            if constraints.error:
                return reasons.POD_TOPOLOGY_SPREAD, constraints.error
            state.spread = SpreadState(task, self.cluster) if constraints.hard else None
            state.ran.add(reasons.POD_TOPOLOGY_SPREAD)
        if options.volume_binding:
            try:
                self._pre_filter_volumes(task, state)
            except ClaimProblem as problem:
                return reasons.VOLUME_BINDING, str(problem)
            state.ran.add(reasons.VOLUME_BINDING)
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

    def _pre_filter_volumes(self, task: Task, state: PreState) -> None:
        listers = self.ssn.listers
        claims = pod_claims(task.pod, listers) if has_claims(task.cls) else None
        if claims is None:
            state.volumes = None
        else:
            state.volumes = VolumeState(claims, self.cluster.columns, listers, self.assumptions)

    def pre_predicated(self, tasks: list[Task]) -> None:
        """The tasks come from a kernel, which takes none that has volumes."""
        first = find_state(self.ssn, tasks[0])
        if first is not None:
            for task in tasks[1:]:
                put_state(self.ssn, task, first.copy())

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
        if state.volumes is not None:
            self._reserve(task, node, state, state.volumes)
        table.view.add(task, node.row)
        table.touch(node.row)

    def _reserve(self, task: Task, node: Node, state: PreState, volumes: VolumeState) -> None:
        """Quirk: what is only pipelined is reserved for the node that the pod was allocated to before, if for any
        (spec 05 §3.6)."""
        if task.status is not PIPELINED:
            state.allocated_to = node.name
        target = self.ssn.table.get(state.allocated_to)
        if target is not None:
            volumes.reserve(target.name, target.row)

    def deallocate(self, event: Event) -> None:
        task, table = event.task, self.ssn.table
        state = find_state(self.ssn, task)
        if state is not None and state.volumes is not None:
            state.volumes.unreserve()
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

    # --- binding (spec 05 §3.9) -------------------------------------------------------------------------------

    def needs(self, task: Task) -> bool:
        """Whether something must be written before the pod can be bound."""
        return self.options.volume_binding and has_claims(task.cls)

    def plan(self, task: Task) -> VolumePlan | None:
        """What must be written, as reserved when the pod was allocated in this session; None = nothing."""
        state = find_state(self.ssn, task)
        return state.volumes.reserved if state is not None and state.volumes is not None else None
