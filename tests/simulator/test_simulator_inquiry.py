"""Questions about pods, jobs and nodes: what is said is what really happens when it is done."""

# ruff: noqa: E501 - manifests and tables read best with one case a line

from __future__ import annotations

import pytest

from vcscheduler.config import SchedulerOptions, default_configuration, parse_configuration
from vcscheduler.explain.pods import Change
from vcscheduler.framework.registry import Registry
from vcscheduler.objects import read_manifest_text
from vcscheduler.simulator.inquiry import Inquiry, UnknownObject

REGISTRY = Registry.default()


def node(name: str, cpu: int, spec: str = "", labels: str = "") -> str:
    return (
        f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{{labels}}}}}\nspec: {{{spec}}}\n"
        f"status: {{allocatable: {{cpu: {cpu}, memory: 64Gi, pods: 110}}}}\n"
    )


def pod(name: str, cpu: int = 1, spec: str = "", meta: str = "") -> str:
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}{meta}}}\n"
        f"spec: {{schedulerName: volcano, {spec} containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}\n"
    )


def queue(name: str, spec: str) -> str:
    return f"apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"


def ask(*documents: str, config: str = "", trials: int = 6) -> Inquiry:
    configuration = default_configuration()
    if config:
        known = {"known_actions": REGISTRY.action_names, "known_plugins": REGISTRY.plugin_names}
        configuration = parse_configuration(config, **known).configuration
    manifests = read_manifest_text("---\n".join(documents))
    return Inquiry(manifests, configuration, SchedulerOptions(), REGISTRY, trials=trials)


def whats(changes: tuple[Change, ...]) -> list[tuple[str, tuple[str, ...]]]:
    return [(change.what, change.nodes) for change in changes]


def test_what_a_pod_lacks_and_on_which_nodes() -> None:
    story = ask(node("n1", 4), node("n2", 8), pod("old", 5), pod("new", 6)).pod("new")
    assert story.state == "is placed", "the larger one came first"
    story = ask(node("n1", 4), node("n2", 8), pod("a", 10)).pod("a")
    assert story.view is not None
    assert [(each.node, each.lacks.cpu, each.never) for each in story.view.near] == [
        ("n2", 2000, True),
        ("n1", 6000, True),
    ]
    assert whats(story.view.changes) == [("the pod asked for cpu 2 less", ("n2",))]


@pytest.mark.parametrize(
    ("nodes", "pod_spec", "change", "opened"),
    [
        ([node("n1", 4, "taints: [{key: gpu, value: a, effect: NoSchedule}]")], "", "tolerated the taint gpu=a:NoSchedule", ("n1",)),
        ([node("n1", 4, "unschedulable: true")], "", "could go to nodes that are cordoned", ("n1",)),
        ([node("n1", 4), node("n2", 4)], "nodeSelector: {disk: ssd},", "did not select disk=ssd", ("n1", "n2")),
        ([node("n1", 4)], "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}},", "had no required node affinity", ("n1",)),
        ([node("n1", 4)], "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}],", "were not to spread over zone", ("n1",)),
    ],
)  # fmt: skip
def test_one_demand_less(nodes: list[str], pod_spec: str, change: str, opened: tuple[str, ...]) -> None:
    story = ask(*nodes, pod("a", 1, pod_spec)).pod("a")
    assert story.view is not None
    assert (f"the pod {change}", opened) in whats(story.view.changes)


def test_two_demands_at_a_time_where_one_is_not_enough() -> None:
    taint = "taints: [{key: gpu, effect: NoSchedule}]"
    story = ask(node("n1", 4, taint), pod("a", 1, "nodeSelector: {disk: ssd},")).pod("a")
    assert story.view is not None
    assert whats(story.view.changes) == [
        ("the pod did not select disk=ssd and tolerated the taint gpu:NoSchedule", ("n1",))
    ]
    story = ask(node("n1", 4, taint), pod("a", 6)).pod("a")
    assert story.view is not None
    assert whats(story.view.changes) == [
        ("the pod tolerated the taint gpu:NoSchedule and asked for cpu 2 less", ("n1",))
    ]


def test_a_job_in_the_way_is_taken_out_and_the_cluster_scheduled_anew() -> None:
    running = pod("old", 3, "nodeName: n1,").rstrip() + "\nstatus: {phase: Running}\n"
    story = ask(node("n1", 4), running, pod("new", 3)).pod("new")
    change = story.tried[-1]
    assert change.what.startswith("job default/old (queue default, priority 0, 1 pod) were gone")
    assert (change.nodes, change.outcome, change.helps) == (("n1",), "it would run on n1", True)


def test_a_larger_queue_is_tried_as_large_as_it_takes() -> None:
    group = ", annotations: {scheduling.volcano.sh/queue-name: q}"
    story = ask(
        node("n1", 8), queue("q", "weight: 1, capability: {cpu: 3}"), pod("a", 2, meta=group), pod("b", 2, meta=group)
    ).pod("b")
    [change] = story.tried
    assert (change.what, change.helps, change.nodes) == ("queue q might hold cpu 1 more", True, ("n1",))


def test_no_trials_no_schedulings() -> None:
    running = pod("old", 3, "nodeName: n1,").rstrip() + "\nstatus: {phase: Running}\n"
    assert ask(node("n1", 4), running, pod("new", 3), trials=0).pod("new").tried == ()


def test_a_placed_pod_has_the_points_of_the_best_nodes() -> None:
    story = ask(node("n1", 4), node("n2", 16), pod("a", 2)).pod("a")
    assert (story.state, story.node, story.cycle) == ("is placed", "n2", 1)
    assert [each.node for each in story.scores] == ["n2", "n1"]
    for each in story.scores:
        assert each.total == sum(each.parts.values())
    assert story.scores[0].parts["nodeorder: LeastAllocated"] > story.scores[1].parts["nodeorder: LeastAllocated"]


def test_preemption_names_whom_it_cost() -> None:
    config = "actions: 'enqueue, allocate, preempt'\ntiers:\n- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: nodeorder}]\n"
    low = pod(
        "old",
        3,
        "nodeName: n1, priority: 1,",
        ", uid: o, creationTimestamp: '2026-01-01T00:00:00Z', annotations: {scheduling.k8s.io/group-name: g}",
    )
    group = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g, namespace: default}\nspec: {minMember: 0, queue: default}\nstatus: {phase: Running}\n"
    high = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 100\n"
    inquiry = ask(
        node("n1", 4),
        high,
        group,
        low.rstrip() + "\nstatus: {phase: Running}\n",
        pod("new", 3, "priorityClassName: high,"),
        config=config,
    )
    story = inquiry.pod("new")
    assert (story.state, story.node, [each.pod for each in story.evictions]) == ("is placed", "n1", ["default/old"])


def test_names_that_mean_nothing_or_too_much() -> None:
    inquiry = ask(node("n1", 4), pod("a"), pod("a", meta=", namespace: other"))
    with pytest.raises(UnknownObject, match=r'pod "a" is there 2 times: default/a, other/a; say which'):
        inquiry.pod("a")
    assert inquiry.pod("a", "other").pod == "other/a"
    with pytest.raises(UnknownObject, match=r'there is no job "b"; there is default/a, other/a'):
        inquiry.job("b")
    with pytest.raises(UnknownObject, match=r'there is no node "n2"; there is n1'):
        inquiry.node("n2")
