"""Validation of what pods are scheduled by and onto: queues, pod groups, nodes, topology, quotas, budgets."""

from __future__ import annotations

from typing import Final

from vcscheduler.objects import checks
from vcscheduler.objects.core import Node, ResourceQuota, Taint
from vcscheduler.objects.errors import InvalidField, Path, show_value
from vcscheduler.objects.names import label_value_problem, qualified_name_problem
from vcscheduler.objects.pod_checks import PREEMPTION_POLICIES, TAINT_EFFECTS
from vcscheduler.objects.policy import PodDisruptionBudget
from vcscheduler.objects.scheduling import NetworkTopologySpec, PodGroup, PriorityClass, Queue
from vcscheduler.objects.topology import HyperNode, Numatopology

_POD_GROUP_PHASES: Final = ("Pending", "Running", "Unknown", "Inqueue", "Completed")
_QUEUE_STATES: Final = ("Open", "Closed", "Closing", "Unknown")
_LARGEST_USER_PRIORITY: Final = 1_000_000_000


def check_node(node: Node) -> None:
    checks.quantities(("status", "capacity"), node.status.capacity)
    checks.quantities(("status", "allocatable"), node.status.allocatable)
    for index, taint in enumerate(node.spec.taints):
        _check_taint(("spec", "taints", index), taint)
    for index, image in enumerate(node.status.images):
        if image.size_bytes < 0:
            raise InvalidField(("status", "images", index, "sizeBytes"), f"found {image.size_bytes}, below 0")


def _check_taint(path: Path, taint: Taint) -> None:
    checks.required((*path, "key"), taint.key)
    if problem := qualified_name_problem(taint.key):
        raise InvalidField((*path, "key"), f"found {show_value(taint.key)}, a taint key {problem}")
    if problem := label_value_problem(taint.value):
        raise InvalidField((*path, "value"), f"found {show_value(taint.value)}, a taint value {problem}")
    checks.one_of((*path, "effect"), taint.effect, TAINT_EFFECTS, required=True)


def check_resource_quota(quota: ResourceQuota) -> None:
    checks.quantities(("spec", "hard"), quota.spec.hard)
    checks.quantities(("status", "hard"), quota.status.hard)
    checks.quantities(("status", "used"), quota.status.used)


def check_network_topology(path: Path, topology: NetworkTopologySpec | None) -> None:
    if topology is None:
        return
    checks.one_of((*path, "mode"), topology.mode, ("hard", "soft"))
    checks.at_least((*path, "highestTierAllowed"), topology.highest_tier_allowed)
    if topology.highest_tier_allowed is not None and topology.highest_tier_name:
        raise InvalidField(path, "only one of highestTierAllowed and highestTierName may be given")


def check_pod_group(group: PodGroup) -> None:
    spec = group.spec
    checks.at_least(("spec", "minMember"), spec.min_member)
    for task, number in spec.min_task_member.items():
        checks.at_least(("spec", "minTaskMember", task), number)
    checks.subdomain(("spec", "queue"), spec.queue)
    checks.subdomain(("spec", "priorityClassName"), spec.priority_class_name)
    checks.quantities(("spec", "minResources"), spec.min_resources)
    check_network_topology(("spec", "networkTopology"), spec.network_topology)
    for index, policy in enumerate(spec.sub_group_policy):
        path: Path = ("spec", "subGroupPolicy", index)
        checks.at_least((*path, "subGroupSize"), policy.sub_group_size, 1)
        checks.at_least((*path, "minSubGroups"), policy.min_sub_groups)
        checks.label_selector((*path, "labelSelector"), policy.label_selector)
        check_network_topology((*path, "networkTopology"), policy.network_topology)
    checks.unique(("spec", "subGroupPolicy"), (policy.name for policy in spec.sub_group_policy))
    checks.one_of(("status", "phase"), group.status.phase, _POD_GROUP_PHASES)


def check_queue(queue: Queue) -> None:
    spec = queue.spec
    checks.at_least(("spec", "weight"), spec.weight, 0, 65535)
    checks.quantities(("spec", "capability"), spec.capability)
    checks.quantities(("spec", "deserved"), spec.deserved)
    checks.quantities(("spec", "guarantee", "resource"), spec.guarantee.resource)
    checks.at_least(("spec", "priority"), spec.priority)
    checks.subdomain(("spec", "parent"), spec.parent)
    if spec.parent and spec.parent == queue.name:
        raise InvalidField(("spec", "parent"), f"found {show_value(spec.parent)}, which is the queue itself")
    checks.one_of(("spec", "dequeueStrategy"), spec.dequeue_strategy, ("fifo", "traverse"))
    for index, cluster in enumerate(spec.extend_clusters):
        checks.at_least(("spec", "extendClusters", index, "weight"), cluster.weight)
        checks.quantities(("spec", "extendClusters", index, "capacity"), cluster.capacity)
    checks.one_of(("status", "state"), queue.status.state, _QUEUE_STATES)
    checks.quantities(("status", "allocated"), queue.status.allocated)


def check_priority_class(priority: PriorityClass) -> None:
    highest = checks.MAX_INT32 if priority.name.startswith("system-") else _LARGEST_USER_PRIORITY
    checks.at_least(("value",), priority.value, checks.MIN_INT32, highest)
    checks.one_of(("preemptionPolicy",), priority.preemption_policy, PREEMPTION_POLICIES)


def check_hyper_node(hyper_node: HyperNode) -> None:
    checks.at_least(("spec", "tier"), hyper_node.spec.tier)
    for index, member in enumerate(hyper_node.spec.members):
        path: Path = ("spec", "members", index)
        checks.one_of((*path, "type"), member.type, ("Node", "HyperNode"), required=True)
        selector = member.selector
        given = [
            each for each in (selector.exact_match, selector.regex_match, selector.label_match) if each is not None
        ]
        if len(given) != 1:
            raise InvalidField(
                (*path, "selector"), "exactly one of exactMatch, regexMatch and labelMatch must be given"
            )
        if selector.exact_match is not None:
            checks.required((*path, "selector", "exactMatch", "name"), selector.exact_match.name)
            checks.subdomain((*path, "selector", "exactMatch", "name"), selector.exact_match.name)
        if selector.regex_match is not None:
            checks.required((*path, "selector", "regexMatch", "pattern"), selector.regex_match.pattern)
        checks.label_selector((*path, "selector", "labelMatch"), selector.label_match)


def check_numatopology(topology: Numatopology) -> None:
    checks.quantities(("spec", "resReserved"), dict(topology.spec.res_reserved))
    for name, resource in topology.spec.numares.items():
        checks.at_least(("spec", "numares", name, "capacity"), resource.capacity)


def check_disruption_budget(budget: PodDisruptionBudget) -> None:
    spec = budget.spec
    if spec.min_available is not None and spec.max_unavailable is not None:
        raise InvalidField(("spec",), "only one of minAvailable and maxUnavailable may be given")
    for name, amount in (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable)):
        if isinstance(amount, int):
            checks.at_least(("spec", name), amount)
        elif amount is not None and not (amount.endswith("%") and amount[:-1].isdecimal()):
            raise InvalidField(
                ("spec", name),
                f'found {show_value(amount)}, allowed is a number or a percentage such as "50%"',
            )
    checks.label_selector(("spec", "selector"), spec.selector)
