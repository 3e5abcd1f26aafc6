"""nodeorder: Kubernetes' scores, by the examples of spec 05 §5."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from builders import World, affinity, expressions, node, pod, spread, term
from vcscheduler.objects import ReplicaSet, Service
from vcscheduler.placement.rules import ScoringFailed
from vcscheduler.plugins.nodeorder import NodeOrderPlugin
from vcscheduler.plugins.nodeorder.affinity import scaled
from vcscheduler.plugins.nodeorder.arithmetic import divide, normalised, rounded
from vcscheduler.plugins.nodeorder.spread import _scaled as spread_scaled
from vcscheduler.plugins.predicates import PredicatesPlugin

MI = 1024 * 1024
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
ALL = (
    "leastrequested", "mostrequested", "balancedresource", "nodeaffinity", "podaffinity", "tainttoleration",
    "podtopologyspread", "imagelocality",
)  # fmt: skip


def only(world: World, **weights: int) -> Any:
    """A session with just the scorers given, by name without ``.weight``."""
    arguments = {f"{name}.weight": weights.get(name, 0) for name in ALL}
    return world.session(PredicatesPlugin, NodeOrderPlugin, nodeorder=arguments)


# --- arithmetic -------------------------------------------------------------------------------------------------------


def test_division_goes_toward_zero() -> None:
    assert divide(np.array([7, -7, 6, -6, 0]), 2).tolist() == [3, -3, 3, -3, 0]
    assert divide(np.array([7, -7]), -2).tolist() == [-3, 3]


def test_default_normalisation() -> None:
    raws = np.array([80, 20, 0])
    assert normalised(raws, reverse=False).tolist() == [100, 25, 0]
    assert normalised(np.array([0, 1, 3]), reverse=True).tolist() == [100, 67, 0]
    assert normalised(np.array([0, 0]), reverse=True).tolist() == [100, 100]
    assert normalised(np.array([0, 0]), reverse=False).tolist() == [0, 0]


def test_pod_affinity_is_divided_first_and_then_cut_off() -> None:
    assert scaled(np.array([-30, -10, 40])).tolist() == [0, 28, 100]
    assert scaled(np.array([0, 29, 100])).tolist() == [0, 28, 100]
    assert scaled(np.array([5, 5])).tolist() == [0, 0]


def test_halves_are_rounded_away_from_zero() -> None:
    assert rounded(np.array([0.5, 1.5, 2.4, -0.5, 0.49999999999999994])).tolist() == [1, 2, 2, -1, 0]


def test_spread_is_scaled_between_smallest_and_largest() -> None:
    assert spread_scaled(np.array([3, 2, 0])).tolist() == [0, 33, 100]
    assert spread_scaled(np.array([4, 4])).tolist() == [100, 100]
    assert spread_scaled(np.array([0, 0])).tolist() == [100, 100]


# --- resources --------------------------------------------------------------------------------------------------------


def test_least_and_most_allocated() -> None:
    world = World(node("n1", cpu=4, memory="8Gi"))
    world.place(pod("old", cpu=1, memory="2Gi"), "n1")
    asked = pod(cpu="500m", memory="1Gi")
    assert only(world, leastrequested=1).scores(asked) == {"n1": 62}
    assert only(world, mostrequested=1).scores(asked) == {"n1": 37}
    full = pod(cpu="4", memory="1Gi")
    assert only(world, leastrequested=1).scores(full) == {"n1": 31}
    assert only(world, mostrequested=2).scores(full) == {"n1": 2 * 68}


def test_containers_without_requests_count_with_a_default() -> None:
    world = World(node("n1", cpu=1, memory="1000Mi"))
    assert only(world, leastrequested=1).scores(pod()) == {"n1": (90 + 80) // 2}
    world.place(pod("old"), "n1")
    assert only(world, leastrequested=1).scores(pod()) == {"n1": (80 + 60) // 2}


def test_pod_level_requests_are_scored_by_containers_and_accounted_by_pod() -> None:
    asked = pod("a", cpu=1, memory="1Gi", resources={"requests": {"cpu": "2"}})
    world = World(node("n1", cpu=4, memory="4Gi"))
    assert only(world, mostrequested=1).scores(asked) == {"n1": 25}
    world.place(asked, "n1")
    assert only(world, mostrequested=1).scores(pod("b", cpu=1, memory="1Gi")) == {"n1": (75 + 50) // 2}


@pytest.mark.parametrize(
    ("cpu", "memory", "used", "score"),
    [(2, "2Gi", None, 75), (4, "2Gi", None, 68), (8, "16Gi", ("4", "2Gi"), 73)],
)
def test_balanced_allocation(cpu: int, memory: str, used: tuple[str, str] | None, score: int) -> None:
    world = World(node("n1", cpu=cpu, memory=memory))
    if used:
        world.place(pod("old", cpu=used[0], memory=used[1]), "n1")
    assert only(world, balancedresource=1).scores(pod(cpu=1, memory="1Gi")) == {"n1": score}


def test_balance_with_gpus() -> None:
    gpu = {"nvidia.com/gpu": 1}
    world = World(node("n1", cpu=8, memory="8Gi", **{"nvidia.com__gpu": 4}))
    world.place(pod("old", cpu=1, memory="1Gi", requests=gpu), "n1")
    assert only(world, balancedresource=1).scores(pod(cpu=1, memory="1Gi", requests=gpu)) == {"n1": 72}


def test_balance_skips_a_pod_that_requests_nothing() -> None:
    assert only(World(node("n1")), balancedresource=1).scores(pod()) == {"n1": 0}


def test_default_weights() -> None:
    """Example of spec 05 §5.10."""
    world = World(node("n1", cpu=2, memory="4Gi"), node("n2", cpu=4, memory="8Gi"))
    found = world.session(PredicatesPlugin, NodeOrderPlugin).scores(pod(cpu=1, memory=10**9))
    assert found == {"n1": 431, "n2": 452}


# --- node affinity and taints -----------------------------------------------------------------------------------------


def test_preferred_node_affinity_is_scaled_over_the_candidates() -> None:
    world = World(node("n1", labels={"a": "1", "b": "1"}), node("n2", labels={"b": "1"}), node("n3"))
    wanted = affinity(
        prefer_nodes=[
            (60, expressions(("a", "Exists", []))),
            (20, expressions(("b", "In", ["1"]))),
            (50, {}),
        ]
    )
    session = only(world, nodeaffinity=2)
    assert session.scores(pod(affinity=wanted)) == {"n1": 200, "n2": 50, "n3": 0}
    assert session.scores(pod(affinity=wanted), "n2", "n3") == {"n2": 200, "n3": 0}


def test_an_unparsable_preference_fails_the_batch() -> None:
    wanted = affinity(prefer_nodes=[(5, expressions(("a", "Gt", ["x"])))])
    session = only(World(node("n1")), nodeaffinity=2)
    with pytest.raises(ScoringFailed):
        session.scores(pod(affinity=wanted))


def test_untolerated_soft_taints_count_against_a_node() -> None:
    soft = ["a:PreferNoSchedule", "b:PreferNoSchedule", "c:PreferNoSchedule"]
    world = World(node("n1"), node("n2", taints=soft[:1]), node("n3", taints=[*soft, "d:NoSchedule"]))
    session = only(world, tainttoleration=3)
    assert session.scores(pod()) == {"n1": 300, "n2": 201, "n3": 0}
    tolerant = pod(tolerations=[{"operator": "Exists", "effect": "PreferNoSchedule"}])
    assert session.scores(tolerant) == {"n1": 300, "n2": 300, "n3": 300}
    wrong = pod(tolerations=[{"operator": "Exists", "effect": "NoSchedule"}])
    assert session.scores(wrong) == {"n1": 300, "n2": 201, "n3": 0}


def test_negative_weights_subtract() -> None:
    assert only(World(node("n1")), tainttoleration=-3).scores(pod()) == {"n1": -300}


# --- pods about pods --------------------------------------------------------------------------------------------------


def zones(*names: str) -> World:
    return World(*(node(f"{z}1", labels={ZONE: z, HOST: f"{z}1"}) for z in names))


def test_preferences_of_the_pod_and_of_those_in_place() -> None:
    world = zones("a", "b", "c")
    world.place(pod("x", labels={"app": "x"}), "a1")
    world.place(pod("y", labels={"app": "y"}, affinity=affinity(prefer_off=[(30, term(ZONE, {"app": "q"}))])), "b1")
    session = only(world, podaffinity=1)
    wanted = affinity(prefer_to=[(40, term(ZONE, {"app": "x"}))], prefer_off=[(10, term(ZONE, {"app": "x"}))])
    assert session.scores(pod(labels={"app": "q"}, affinity=wanted)) == {"a1": 100, "b1": 0, "c1": 50}
    assert session.scores(pod(labels={"app": "q"})) == {"a1": 100, "b1": 0, "c1": 100}
    assert session.scores(pod(labels={"app": "other"})) == {"a1": 0, "b1": 0, "c1": 0}


def test_required_affinity_of_others_adds_nothing() -> None:
    world = zones("a", "b")
    world.place(pod("x", affinity=affinity(to=[term(ZONE, {"app": "q"})])), "a1")
    assert only(world, podaffinity=1).scores(pod(labels={"app": "q"})) == {"a1": 0, "b1": 0}


def test_preferences_placed_on_a_node_without_affinity_count_only_for_who_has_some() -> None:
    world = zones("a", "b")
    session = only(world, podaffinity=1)
    loves = affinity(prefer_to=[(10, term(ZONE, {"app": "q"}))])
    session.put(pod("new", affinity=loves), "a1")
    assert session.scores(pod("p1", labels={"app": "q"})) == {"a1": 0, "b1": 0}
    own = affinity(prefer_to=[(1, term(ZONE, {"app": "nobody"}))])
    assert session.scores(pod("p2", labels={"app": "q"}, affinity=own)) == {"a1": 100, "b1": 0}
    assert only(world, podaffinity=1).scores(pod("p3", labels={"app": "q"})) == {"a1": 100, "b1": 0}


# --- spread -----------------------------------------------------------------------------------------------------------


def spread_over(world: World, **counts: int) -> None:
    for zone, n in counts.items():
        for i in range(n):
            world.place(pod(f"{zone}{i}", labels={"app": "x"}), f"{zone}1")


def test_soft_spread() -> None:
    world = zones("a", "b", "c")
    world.add(node("bare"))
    spread_over(world, a=2, b=1)
    asked = pod(labels={"app": "x"}, topologySpreadConstraints=[spread(ZONE, {"app": "x"}, hard=False)])
    found = only(world, podtopologyspread=2).scores(asked)
    assert found == {"a1": 0, "b1": 66, "c1": 200, "bare": 0}


def test_hostname_counts_the_node_itself() -> None:
    world = zones("a", "b")
    spread_over(world, a=4, b=4)
    asked = pod(topologySpreadConstraints=[spread(HOST, {"app": "x"}, hard=False)])
    assert only(world, podtopologyspread=1).scores(asked) == {"a1": 100, "b1": 100}
    world.place(pod("more", labels={"app": "x"}), "b1")
    # ln 4 * (4, 5) rounds to 6 and 7
    assert only(world, podtopologyspread=1).scores(asked) == {"a1": 100, "b1": 100 * 6 // 7}


def service(world: World, name: str, selector: dict[str, str]) -> None:
    obj = msgspec.convert({"metadata": {"name": name, "namespace": "ns"}, "spec": {"selector": selector}}, Service)
    world.listers.services[obj.key] = obj


def test_pods_of_a_service_are_spread_by_default() -> None:
    world = zones("a", "b")
    spread_over(world, a=6)
    nothing = only(world, podtopologyspread=1)
    asked = pod(labels={"app": "x"})
    assert nothing.scores(asked) == {"a1": 0, "b1": 0}
    service(world, "svc", {"app": "x"})
    session = only(world, podtopologyspread=1)
    # a1: ln 4 * 6 + 2 + ln 4 * 6 + 4 = 22.6 -> 23; b1: 6; 100 * (29 - s) / 23
    assert session.scores(asked) == {"a1": 100 * 6 // 23, "b1": 100}
    assert session.scores(pod("other", labels={"app": "y"})) == {"a1": 0, "b1": 0}
    own = pod("own", labels={"app": "x"}, topologySpreadConstraints=[spread(ZONE, {"app": "x"}, 9)])
    assert session.scores(own) == {"a1": 0, "b1": 0}


def test_the_controller_of_a_pod_adds_its_selector() -> None:
    world = zones("a", "b")
    spread_over(world, a=6)
    selector = {"matchLabels": {"app": "x"}}
    obj = msgspec.convert({"metadata": {"name": "rs", "namespace": "ns"}, "spec": {"selector": selector}}, ReplicaSet)
    world.listers.replica_sets[obj.key] = obj
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "controller": True}
    session = only(world, podtopologyspread=1)
    assert session.scores(pod(labels={"app": "x"}, owner=owner)) == {"a1": 26, "b1": 100}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "rs", "controller": True}
    assert session.scores(pod("of-a-job", labels={"app": "x"}, owner=job)) == {"a1": 0, "b1": 0}


# --- images -----------------------------------------------------------------------------------------------------------


def test_image_locality_counts_size_and_spread() -> None:
    big, small = {"repo/big:1": 500 * MI}, {"repo/small:latest": 10 * MI}
    world = World(node("n1", images=big | small), node("n2"), node("n3"), node("n4"))
    session = only(world, imagelocality=1)
    assert session.scores(pod(image="repo/big:1"))["n1"] == 10
    assert session.scores(pod(image="repo/small"))["n1"] == 0
    everywhere = World(*(node(f"n{i}", images=big) for i in range(4)))
    found = only(everywhere, imagelocality=1).scores(pod(image="repo/big:1"))
    # Each node knows how many had the image when it came; only the last knows them all.
    assert found == {"n0": 10, "n1": 23, "n2": 36, "n3": 48}


# --- kernels ----------------------------------------------------------------------------------------------------------


def test_kernel_figures_where_scores_depend_on_nodes_alone() -> None:
    world = zones("a", "b")
    session = world.session(PredicatesPlugin, NodeOrderPlugin)
    image, batch = session.scorers
    assert image.batch is False
    assert batch.batch is True
    figures = batch.kernel(world.task(pod(cpu=1)))
    assert figures is not None
    assert (figures.least, figures.most, figures.balanced) == (1, 0, 1)
    assert [(n.weight, n.reverse) for n in figures.normalised] == [(3, True)]
    first = figures.normalised[0].raw
    again = batch.kernel(world.task(pod("other", cpu=2)))
    assert again is not None
    assert again.normalised[0].raw is first
    unbalanced = batch.kernel(world.task(pod("nothing")))
    assert unbalanced is not None
    assert unbalanced.balanced == 0
    assert batch.kernel(world.task(pod(affinity=affinity(prefer_to=[(1, term(ZONE, {}))])))) is None
    soft = [spread(ZONE, {"app": "x"}, hard=False)]
    assert batch.kernel(world.task(pod(topologySpreadConstraints=soft))) is None
    service(world, "svc", {"app": "x"})
    _, batch = world.session(PredicatesPlugin, NodeOrderPlugin).scorers
    assert batch.kernel(world.task(pod(labels={"app": "x"}))) is None
    assert batch.kernel(world.task(pod(labels={"app": "y"}))) is not None
