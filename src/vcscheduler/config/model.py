"""The scheduler configuration as values: which actions run, and which plugins serve them, tier by tier.

Nothing here knows where a configuration came from. Flags that a file leaves out have their defaults already
(spec 02 §2.2), so readers never meet an unset flag.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from vcscheduler.config.arguments import Arguments


@dataclass(frozen=True, slots=True)
class PluginOption:
    """One plugin entry of a tier: its name, its arguments and which of its functions count.

    A flag's attribute is its key in the file in snake case; upstream's irregular spelling (`enable…`,
    `enabled…`) is kept.
    """

    name: str
    arguments: Arguments = field(default_factory=Arguments)
    enable_job_order: bool = True
    enable_hierarchy: bool = False
    enable_job_ready: bool = True
    enable_job_pipelined: bool = True
    enable_task_order: bool = True
    enable_preemptable: bool = True
    enable_reclaimable: bool = True
    enable_preemptive: bool = True
    enable_queue_order: bool = True
    enabled_cluster_order: bool = False
    enable_predicate: bool = True
    enable_best_node: bool = True
    enable_node_order: bool = True
    enable_target_job: bool = True
    enable_reserved_nodes: bool = True
    enable_job_enqueued: bool = True
    enabled_victim: bool = True
    enable_job_starving: bool = True
    enabled_overused: bool = True
    enabled_allocatable: bool = True
    enabled_hyper_node_order: bool = True
    enabled_sub_job_ready: bool = True
    enabled_sub_job_pipelined: bool = True
    enabled_sub_job_order: bool = True
    enabled_hyper_node_gradient: bool = True


@dataclass(frozen=True, slots=True)
class Flag:
    """An enable flag: its key in the file, its attribute of `PluginOption`, its default, what it guards."""

    key: str
    attribute: str
    default: bool
    guards: str


_GUARDS = {
    "enableJobOrder": "JobOrder",
    "enableHierarchy": "queue hierarchy of drf, capacity and nodegroup",
    "enableJobReady": "JobReady",
    "enableJobPipelined": "JobPipelined",
    "enableTaskOrder": "TaskOrder",
    "enablePreemptable": "Preemptable; SimulateAddTask and SimulateRemoveTask",
    "enableReclaimable": "Reclaimable",
    "enablePreemptive": "Preemptive",
    "enableQueueOrder": "QueueOrder",
    "enabledClusterOrder": "ClusterOrder (dormant)",
    "enablePredicate": "Predicate, PrePredicate, SimulatePredicate",
    "enableBestNode": "BestNode",
    "enableNodeOrder": "NodeOrder, BatchNodeOrder, NodeMap, NodeReduce",
    "enableTargetJob": "TargetJob (dormant)",
    "enableReservedNodes": "ReservedNodes (dormant)",
    "enableJobEnqueued": "JobEnqueueable and JobEnqueued",
    "enabledVictim": "VictimTasks",
    "enableJobStarving": "JobStarving",
    "enabledOverused": "Overused",
    "enabledAllocatable": "Allocatable, SimulateAllocatable; SimulateAddTask and SimulateRemoveTask",
    "enabledHyperNodeOrder": "HyperNodeOrder",
    "enabledSubJobReady": "SubJobReady",
    "enabledSubJobPipelined": "SubJobPipelined",
    "enabledSubJobOrder": "SubJobOrder",
    "enabledHyperNodeGradient": "HyperNodeGradientForJob, HyperNodeGradientForSubJob",
}


def _attribute(key: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: "_" + letter[0].lower(), key)


_DEFAULTS = {option.name: option.default for option in fields(PluginOption)}

FLAGS: Mapping[str, Flag] = {
    key: Flag(key, attribute, _DEFAULTS[attribute] is True, guards)
    for key, guards in _GUARDS.items()
    for attribute in (_attribute(key),)
}
"""Every enable flag by its key in the file (spec 02 §2.2)."""


@dataclass(frozen=True, slots=True)
class Tier:
    """Plugins that decide together; for victims, an earlier tier decides first."""

    plugins: tuple[PluginOption, ...] = ()


@dataclass(frozen=True, slots=True)
class ActionConfiguration:
    """The arguments of one action."""

    name: str
    arguments: Arguments = field(default_factory=Arguments)


@dataclass(frozen=True, slots=True)
class SchedulerConfiguration:
    """A whole scheduler configuration. `metrics` says where node load comes from (spec 02 §2.9)."""

    actions: tuple[str, ...]
    tiers: tuple[Tier, ...] = ()
    configurations: tuple[ActionConfiguration, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)

    def action_arguments(self, name: str) -> Arguments:
        """The arguments of an action: those of the first entry with its name, else none."""
        for entry in self.configurations:
            if entry.name == name:
                return entry.arguments
        return Arguments(owner=name)

    def plugins(self) -> Iterable[PluginOption]:
        """All plugin entries, in walk order."""
        for tier in self.tiers:
            yield from tier.plugins
