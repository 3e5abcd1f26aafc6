"""The plugin: gradients, scores of domains for a sub-job, scores of nodes for a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from vcscheduler.framework.plugin import Plugin
from vcscheduler.model.job import SubJob
from vcscheduler.placement.rules import FloatArray
from vcscheduler.plugins.network_topology_aware.books import DomainBooks
from vcscheduler.plugins.network_topology_aware.gradients import GradientSearch
from vcscheduler.plugins.network_topology_aware.options import Options
from vcscheduler.plugins.network_topology_aware.scorer import NetworkScorer

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session


class NetworkTopologyAwarePlugin(Plugin):
    name = "network-topology-aware"
    known_arguments: ClassVar[dict[str, str]] = {
        "weight": "int",
        "hypernode.binpack.cpu": "int",
        "hypernode.binpack.memory": "int",
        "hypernode.binpack.resources": "str",
        "hypernode.binpack.resources.*": "int",
        "hypernode.binpack.normal-pod.enable": "bool",
        "hypernode.binpack.normal-pod.fading": "float",
        "hypernode.gradient.evict.max-hypernodes": "int",
    }

    def on_session_open(self, ssn: Session) -> None:
        self.topology = ssn.topology
        self.options = Options.read(self.arguments)
        self.books = DomainBooks(ssn.table, self.topology, self.options.weights)
        search = GradientSearch(self.topology, self.books, self.options.max_evict_domains)
        ssn.add_hyper_node_gradient_for_job_fn(self.name, search.of_job)
        ssn.add_hyper_node_gradient_for_sub_job_fn(self.name, search.of_sub_job)
        ssn.add_hyper_node_order_fn(self.name, self.score, self.score_alone)
        ssn.add_scorer(self.name, NetworkScorer(self.topology, self.books, self.options))
        ssn.add_event_handler(self.books.handler())

    def score(self, sub_job: SubJob, domains: list[str]) -> dict[str, float]:
        """How full each domain would be with all tasks of the sub-job, those that run there counted twice (Quirk,
        spec 06 §A7.4). Among several fullest ones it also counts how much of the sub-job is there already."""
        places, values = self._packing(sub_job, domains)
        best = values == values.max()
        if best.sum() > 1:
            values[best] += self.books.placed(sub_job)[places][best] / len(sub_job.tasks)
        return dict(zip(domains, (self.options.scale * values).tolist()))

    def score_alone(self, sub_job: SubJob, domains: list[str]) -> dict[str, float]:
        _, values = self._packing(sub_job, domains)
        return dict(zip(domains, (self.options.scale * values).tolist()))

    def _packing(self, sub_job: SubJob, domains: list[str]) -> tuple[list[int], FloatArray]:
        places = [self.topology.index[name] for name in domains]
        return places, self.books.packing(sub_job.total_request)[places]
