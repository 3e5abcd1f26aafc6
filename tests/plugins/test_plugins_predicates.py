"""The predicates plugin: what each rule refuses, in which words, and how the Kubernetes view follows (spec 05 §3-4)."""

from __future__ import annotations

from typing import Any

import pytest

from builders import World, affinity, expressions, node, pod, spread, term
from vcscheduler.model.status import Code
from vcscheduler.plugins.predicates import PredicatesPlugin

POD_NUMBER = "node(s) pod number exceeded"
PORTS = "node(s) didn't have free ports for the requested pod ports"
CORDON = "node(s) were unschedulable"
SELECTOR = "node(s) didn't match Pod's node affinity/selector"
TAINT = "node(s) had untolerated taint(s)"
AFFINITY = "node(s) didn't match pod affinity rules"
ANTI = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
SPREAD = "node(s) didn't match pod topology spread constraints"
SPREAD_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"

HOST = "kubernetes.io/hostname"


def port(number: int = 80, **other: Any) -> list[dict[str, Any]]:
    return [{"hostPort": number, "containerPort": number, **other}]


def zoned(name: str, zone: str | None, **other: Any) -> Any:
    labels = {HOST: name} | ({"zone": zone} if zone else {})
    return node(name, labels=labels, **other)


def open_session(world: World, **arguments: Any) -> Any:
    return world.session(PredicatesPlugin, predicates=arguments)


# --- the chain (§3.4, §3.10) -----------------------------------------------------------------------------------------


def test_reasons_that_eviction_may_help_with_add_up() -> None:
    world = World(node("n1", pods=2))
    world.place(pod("a", ports=port()), "n1")
    world.place(pod("b"), "n1")
    found = open_session(world).statuses(pod(ports=port()))["n1"]
    assert [(s.code, s.reason) for s in found] == [(Code.UNSCHEDULABLE, POD_NUMBER), (Code.UNSCHEDULABLE, PORTS)]


def test_a_hopeless_reason_ends_the_chain() -> None:
    world = World(node("n1", pods=1, unschedulable=True, taints=["t:NoSchedule"]))
    world.place(pod("a", ports=port()), "n1")
    found = open_session(world).statuses(pod(ports=port()))["n1"]
    assert [(s.code, s.reason) for s in found] == [(Code.UNSCHEDULABLE, POD_NUMBER), (Code.UNRESOLVABLE, CORDON)]


def test_a_node_that_declares_no_pods_takes_none() -> None:
    assert open_session(World(node("n1", pods=None))).refusals(pod()) == {"n1": [POD_NUMBER]}


def test_without_pre_predicate_the_first_rule_that_needs_its_data_answers_error() -> None:
    world = World(node("n1"), node("n2", taints=["t:NoSchedule"]))
    found = open_session(world).statuses(pod(), prepare=False)
    assert [(s.code, s.plugin) for s in found["n1"]] == [(Code.ERROR, "NodePorts")]
    assert [s.reason for s in found["n2"]] == [TAINT]
    off = {f"predicate.{rule}Enable": False for rule in ("NodePorts", "PodAffinity", "PodTopologySpread")}
    assert open_session(world, **off).statuses(pod(), prepare=False)["n1"][0].plugin == "VolumeBinding"


def test_rules_can_be_switched_off() -> None:
    world = World(node("n1", taints=["t:NoSchedule"], labels={"a": "1"}))
    world.place(pod("x", labels={"app": "x"}, ports=port()), "n1")
    picky = pod(
        ports=port(), nodeSelector={"a": "2"}, affinity=affinity(off=[term("a", {"app": "x"})]),
        topologySpreadConstraints=[spread("zone", {"app": "x"})],
    )  # fmt: skip
    rules = ("NodeAffinity", "NodePorts", "TaintToleration", "PodAffinity", "PodTopologySpread")
    assert open_session(world, **{f"predicate.{r}Enable": False for r in rules}).refusals(picky) == {"n1": []}


# --- node objects (§4.1-4.3) ------------------------------------------------------------------------------------------


def test_a_cordoned_node_takes_only_who_tolerates_it() -> None:
    session = open_session(World(node("n1", unschedulable=True)))
    assert session.refusals(pod()) == {"n1": [CORDON]}
    key = "node.kubernetes.io/unschedulable"
    assert session.fitting(pod(tolerations=[{"key": key, "operator": "Exists"}])) == ["n1"]
    assert session.fitting(pod(tolerations=[{"key": key, "effect": "NoSchedule"}])) == ["n1"]
    assert session.fitting(pod(tolerations=[{"key": key, "operator": "Exists", "effect": "NoExecute"}])) == []


@pytest.mark.parametrize(
    ("labels", "fits"),
    [({"zone": "b", "gen": "4"}, True), ({"zone": "b", "gen": "3"}, False), ({"zone": "b", "gen": "x"}, False),
     ({"zone": "a"}, True), ({}, False)],
)  # fmt: skip
def test_node_affinity_terms_are_alternatives(labels: dict[str, str], fits: bool) -> None:
    wanted = affinity(nodes=[expressions(("zone", "In", ["a"])), expressions(("gen", "Gt", ["3"]))])
    found = open_session(World(node("n1", labels=labels))).refusals(pod(affinity=wanted))
    assert found == {"n1": [] if fits else [SELECTOR]}


def test_operators_of_node_affinity() -> None:
    world = World(node("n1", labels={"a": "1"}), node("n2", labels={"a": "2", "b": ""}), node("n3"))

    def fitting(*parts: tuple[str, str, list[str]]) -> list[str]:
        return open_session(world).fitting(pod(affinity=affinity(nodes=[expressions(*parts)])))

    assert fitting(("a", "In", ["1", "2", "9"])) == ["n1", "n2"]
    assert fitting(("a", "NotIn", ["1"])) == ["n2", "n3"]
    assert fitting(("b", "Exists", [])) == ["n2"]
    assert fitting(("a", "DoesNotExist", [])) == ["n3"]
    assert fitting(("a", "Lt", ["2"])) == ["n1"]
    assert fitting(("a", "In", ["2"]), ("b", "DoesNotExist", [])) == []
    assert fitting(("a", "Gt", ["one"])) == []


def test_required_affinity_without_terms_matches_no_node() -> None:
    session = open_session(World(node("n1")))
    assert session.refusals(pod(affinity=affinity(nodes=[]))) == {"n1": [SELECTOR]}
    assert session.refusals(pod(affinity=affinity(nodes=[{}]))) == {"n1": [SELECTOR]}


def test_node_names_in_terms() -> None:
    def named(operator: str, *names: str) -> dict[str, Any]:
        fields = [{"key": "metadata.name", "operator": operator, "values": [n]} for n in names]
        return {"matchFields": fields}

    session = open_session(World(node("n1"), node("n2")))
    assert session.fitting(pod(affinity=affinity(nodes=[named("In", "n2")]))) == ["n2"]
    assert session.fitting(pod(affinity=affinity(nodes=[named("NotIn", "n2")]))) == ["n1"]
    failure = session.pre_predicate(session.task(pod(affinity=affinity(nodes=[named("In", "n1", "n2")]))))
    assert failure is not None
    assert failure.code is Code.ERROR
    assert failure.reason == "plugin NodeAffinity pre-predicates failed pod affinity terms conflict"


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "no"}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "gpu", "operator": "Gt", "value": "0"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_taints_and_tolerations(toleration: dict[str, str], fits: bool) -> None:
    session = open_session(World(node("n1", taints=["gpu=yes:NoSchedule", "soft:PreferNoSchedule"])))
    assert session.refusals(pod(tolerations=[toleration])) == {"n1": [] if fits else [TAINT]}


# --- ports (§4.4) -----------------------------------------------------------------------------------------------------


def test_host_ports_conflict_by_protocol_number_and_address() -> None:
    world = World(node("n1"))
    world.place(pod("a", ports=port(hostIP="127.0.0.1")), "n1")
    session = open_session(world)
    assert session.refusals(pod(ports=port())) == {"n1": [PORTS]}
    assert session.refusals(pod(ports=port(hostIP="10.0.0.1"))) == {"n1": []}
    assert session.refusals(pod(ports=port(hostIP="127.0.0.1", protocol="UDP"))) == {"n1": []}
    assert session.refusals(pod(ports=port(hostIP="::"))) == {"n1": []}


# --- inter-pod affinity (§4.5) ----------------------------------------------------------------------------------------


def three_zones() -> World:
    return World(zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b"), zoned("x1", None))


def test_affinity_holds_over_the_zone_and_needs_its_label() -> None:
    world = three_zones()
    world.place(pod("db", labels={"app": "db"}), "a1")
    found = open_session(world).refusals(pod(affinity=affinity(to=[term("zone", {"app": "db"})])))
    assert found == {"a1": [], "a2": [], "b1": [AFFINITY], "x1": [AFFINITY]}


def test_the_first_pod_of_a_group_may_go_anywhere_with_the_label() -> None:
    first = pod(labels={"app": "db"}, affinity=affinity(to=[term("zone", {"app": "db"})]))
    assert open_session(three_zones()).fitting(first) == ["a1", "a2", "b1"]


def test_affinity_terms_must_be_matched_by_one_pod_together() -> None:
    world = three_zones()
    world.place(pod("p1", labels={"app": "x"}), "a1")
    world.place(pod("p2", labels={"tier": "y"}), "a2")
    terms = affinity(to=[term("zone", {"app": "x"}), term("zone", {"tier": "y"})])
    assert open_session(world).fitting(pod(affinity=terms)) == []
    both = pod(labels={"app": "x", "tier": "y"}, affinity=terms)
    assert open_session(world).fitting(both) == ["a1", "a2", "b1"]


def test_anti_affinity_passes_nodes_without_the_label() -> None:
    world = three_zones()
    world.place(pod("x", labels={"app": "x"}, deleted="2026-01-01T00:00:00Z"), "a2")
    found = open_session(world).refusals(pod(affinity=affinity(off=[term("zone", {"app": "x"})])))
    assert found == {"a1": [ANTI], "a2": [ANTI], "b1": [], "x1": []}


def test_pods_in_place_keep_others_off() -> None:
    world = three_zones()
    world.place(pod("x", affinity=affinity(off=[term("zone", {"app": "new"})])), "a1")
    session = open_session(world)
    assert session.refusals(pod(labels={"app": "new"})) == {"a1": [EXISTING], "a2": [EXISTING], "b1": [], "x1": []}
    assert session.fitting(pod(labels={"app": "other"})) == ["a1", "a2", "b1", "x1"]
    assert session.fitting(pod(labels={"app": "new"}, namespace="elsewhere")) == ["a1", "a2", "b1", "x1"]


def test_namespaces_of_a_term_are_listed_or_selected_by_label() -> None:
    world = three_zones()
    world.namespace("red", team="r")
    world.namespace("blue", team="b")
    world.place(pod("x", namespace="red", labels={"app": "x"}), "a1")

    def fitting(**other: Any) -> list[str]:
        return open_session(world).fitting(pod(affinity=affinity(off=[term("zone", {"app": "x"}, **other)])))

    away = ["b1", "x1"]
    everywhere = ["a1", "a2", "b1", "x1"]
    assert fitting() == everywhere
    assert fitting(namespaces=["red"]) == away
    assert fitting(namespaceSelector={"matchLabels": {"team": "r"}}) == away
    assert fitting(namespaceSelector={"matchLabels": {"team": "b"}}) == everywhere
    assert fitting(namespaceSelector={}) == away
    world.namespace("red", team="b")
    assert fitting(namespaceSelector={"matchLabels": {"team": "b"}}) == away


def test_label_keys_are_merged_into_the_selector() -> None:
    world = three_zones()
    world.place(pod("old", labels={"app": "x", "version": "1"}), "a1")
    keys = term("zone", {"app": "x"}, matchLabelKeys=["version", "absent"])
    session = open_session(world)
    same = pod("p1", labels={"app": "x", "version": "1"}, affinity=affinity(off=[keys]))
    assert session.fitting(same) == ["b1", "x1"]
    new = pod("p2", labels={"app": "x", "version": "2"}, affinity=affinity(off=[keys]))
    assert session.fitting(new) == ["a1", "a2", "b1", "x1"]
    other = term("zone", {"app": "x"}, mismatchLabelKeys=["version"])
    mine = pod("p3", labels={"app": "x", "version": "2"}, affinity=affinity(off=[other]))
    assert session.fitting(mine) == ["b1", "x1"]


def test_a_term_that_cannot_be_parsed_fails_the_pod() -> None:
    bad = {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}
    session = open_session(three_zones())
    failure = session.pre_predicate(session.task(pod(affinity=affinity(off=[term("zone", labelSelector=bad)]))))
    assert failure is not None
    assert failure.reason.startswith("plugin InterPodAffinity pre-predicates failed parsing pod: ")


def test_anti_affinity_placed_on_a_node_that_had_none_is_seen_in_the_next_session() -> None:
    world = three_zones()
    held = world.place(pod("old", affinity=affinity(off=[term(HOST, {"app": "b"})])), "a2")
    session = open_session(world)
    against_b = affinity(off=[term(HOST, {"app": "b"})])
    session.put(pod("a", affinity=against_b), "a1")
    assert session.refusals(pod("b1", labels={"app": "b"})) == {"a1": [], "a2": [EXISTING], "b1": [], "x1": []}
    # A node of the frozen list counts what comes and goes during the session.
    session.put(pod("a3", affinity=affinity(off=[term(HOST, {"app": "c"})])), "a2")
    assert session.fitting(pod("c", labels={"app": "c"})) == ["a1", "b1", "x1"]
    session.evict(held)
    assert session.fitting(pod("b2", labels={"app": "b"})) == ["a1", "a2", "b1", "x1"]
    later = open_session(world)
    assert later.fitting(pod("b3", labels={"app": "b"})) == ["a2", "b1", "x1"]


def test_who_was_skipped_once_is_skipped_for_the_session() -> None:
    world = three_zones()
    world.place(pod("old", affinity=affinity(off=[term(HOST, {"app": "never"})])), "a1")
    session = open_session(world)
    b = world.task(pod("b", labels={"app": "b"}))
    assert session.fitting(b) == ["a1", "a2", "b1", "x1"]
    session.put(pod("a", affinity=affinity(off=[term(HOST, {"app": "b"})])), "a1")
    assert session.fitting(b) == ["a1", "a2", "b1", "x1"]
    assert session.fitting(pod("b-too", labels={"app": "b"})) == ["a2", "b1", "x1"]


def test_counts_stand_as_they_were_when_the_pod_was_pre_filtered() -> None:
    world = three_zones()
    session = open_session(world)
    waiting = world.task(pod("w", affinity=affinity(off=[term("zone", {"app": "x"})])))
    assert session.fitting(waiting) == ["a1", "a2", "b1", "x1"]
    placed = session.put(pod("x", labels={"app": "x"}), "b1")
    assert session.refusals(waiting, prepare=False)["b1"] == []
    assert session.fitting(waiting) == ["a1", "a2", "x1"]
    session.take_back(placed)
    assert session.refusals(waiting, prepare=False)["b1"] == [ANTI]
    assert session.fitting(waiting) == ["a1", "a2", "b1", "x1"]


def test_the_gang_that_was_discarded_leaves_room() -> None:
    """Example 4 of spec 05 §3.10."""
    names = ("node1", "node2", "node3")
    world = World(*(node(n, cpu=14 if n == "node1" else 3, labels={HOST: n, "n": n}) for n in names))
    session = open_session(world)
    own = {"labels": {"role": "worker"}, "affinity": affinity(off=[term(HOST, {"role": "worker"})])}
    w1 = session.put(pod("w1", cpu=3, nodeSelector={"n": "node1"}, **own), "node1")
    assert session.refusals(pod("w2", cpu=5, **own))["node1"] == [ANTI]
    session.take_back(w1)
    assert session.fitting(pod("w3", cpu=4, **own)) == ["node1", "node2", "node3"]


# --- spread (§4.8) ----------------------------------------------------------------------------------------------------


def spread_world(**counts: int) -> World:
    world = World(*(zoned(f"{zone}1", zone) for zone in counts), zoned("x1", None))
    for zone, n in counts.items():
        for i in range(n):
            world.place(pod(f"{zone}-{i}", labels={"app": "x"}), f"{zone}1")
    return world


def test_spread_refuses_what_would_widen_the_skew() -> None:
    constrained = pod(labels={"app": "x"}, topologySpreadConstraints=[spread("zone", {"app": "x"})])
    found = open_session(spread_world(a=2, b=1, c=0)).refusals(constrained)
    assert found == {"a1": [SPREAD], "b1": [SPREAD], "c1": [], "x1": [SPREAD_LABEL]}


@pytest.mark.parametrize(("min_domains", "fitting"), [(3, []), (2, ["a1", "b1"])])
def test_too_few_domains_count_as_an_empty_one(min_domains: int, fitting: list[str]) -> None:
    constraint = spread("zone", {"app": "x"}, minDomains=min_domains)
    constrained = pod(labels={"app": "x"}, topologySpreadConstraints=[constraint])
    assert open_session(spread_world(a=1, b=1)).fitting(constrained) == fitting


def test_spread_does_not_count_terminating_pods_nor_other_namespaces() -> None:
    world = spread_world(a=0, b=0)
    world.place(pod("gone", labels={"app": "x"}, deleted="2026-01-01T00:00:00Z"), "a1")
    world.place(pod("far", labels={"app": "x"}, namespace="far"), "a1")
    constrained = pod(labels={"app": "x"}, topologySpreadConstraints=[spread("zone", {"app": "x"})])
    assert open_session(world).fitting(constrained) == ["a1", "b1"]


def test_an_empty_selector_counts_nobody() -> None:
    constrained = pod(topologySpreadConstraints=[spread("zone", None)])
    assert open_session(spread_world(a=5, b=0)).fitting(constrained) == ["a1", "b1"]


def test_domains_are_those_of_nodes_that_the_pod_may_use() -> None:
    world = World(zoned("a1", "a"), zoned("b1", "b", taints=["t:NoSchedule"]), zoned("c1", "c", unschedulable=True))
    world.place(pod("x", labels={"app": "x"}), "a1")

    def refusals(**policies: Any) -> Any:
        constraint = spread("zone", {"app": "x"}, **policies)
        selected = {"labels": {"app": "x"}, "topologySpreadConstraints": [constraint]}
        return open_session(world).refusals(pod(**selected))

    assert refusals() == {"a1": [SPREAD], "b1": [TAINT], "c1": [CORDON]}
    assert refusals(nodeTaintsPolicy="Honor")["a1"] == [SPREAD]  # the cordoned node is still an empty domain
    near = affinity(nodes=[expressions(("zone", "In", ["a", "b"]))])
    constraint = spread("zone", {"app": "x"}, nodeTaintsPolicy="Honor")
    only_a = pod(labels={"app": "x"}, topologySpreadConstraints=[constraint], affinity=near)
    assert open_session(world).refusals(only_a)["a1"] == []
    ignoring = spread("zone", {"app": "x"}, nodeAffinityPolicy="Ignore")
    wide = pod(labels={"app": "x"}, topologySpreadConstraints=[ignoring], affinity=near)
    assert open_session(world).refusals(wide)["a1"] == [SPREAD]


def test_nodes_must_carry_the_keys_of_all_hard_constraints() -> None:
    world = World(zoned("a1", "a"), node("a2", labels={"zone": "a"}), zoned("b1", "b"))
    world.place(pod("x", labels={"app": "x"}), "a2")
    both = [spread("zone", {"app": "x"}), spread(HOST, {"app": "x"}, max_skew=5)]
    found = open_session(world).refusals(pod(labels={"app": "x"}, topologySpreadConstraints=both))
    assert found == {"a1": [], "a2": [SPREAD_LABEL], "b1": []}


# --- the Kubernetes view (§2.1, §3.6) ---------------------------------------------------------------------------------


def test_pods_of_the_session_fill_and_free_slots() -> None:
    world = World(node("n1", pods=1))
    session = open_session(world)
    placed = session.put(pod("a"), "n1", pipelined=True)
    assert session.refusals(pod("b")) == {"n1": [POD_NUMBER]}
    session.take_back(placed)
    assert session.refusals(pod("b")) == {"n1": []}


def test_a_victim_leaves_at_once_and_does_not_come_back_in_the_session() -> None:
    world = World(node("n1", pods=1))
    victim = world.place(pod("victim", ports=port()), "n1")
    session = open_session(world)
    assert session.refusals(pod("b", ports=port())) == {"n1": [POD_NUMBER, PORTS]}
    session.evict(victim)
    assert session.refusals(pod("b", ports=port())) == {"n1": []}
    assert session.undo_evict(victim)
    assert session.refusals(pod("b", ports=port())) == {"n1": []}
    world.table.reconcile_view([victim])
    assert open_session(world).refusals(pod("b", ports=port())) == {"n1": [POD_NUMBER, PORTS]}


def test_a_pod_that_was_never_pre_filtered_cannot_be_reserved_for() -> None:
    world = World(node("n1"))
    session = open_session(world)
    task = world.task(pod("a"))
    session.put(task, "n1", prepare=False)
    assert task.view_row == -1
    off = open_session(world, **{"predicate.VolumeBindingEnable": False})
    second = world.task(pod("b"))
    off.put(second, "n1", prepare=False)
    assert second.view_row == -1


def test_changed_rows_are_logged() -> None:
    world = World(node("n1"), node("n2"))
    session = open_session(world)
    position = world.table.log_end
    session.put(pod("a"), "n2")
    changed = world.table.changed_since(position)
    assert changed is not None
    assert set(changed.tolist()) == {1}


# --- cache (§3.5), dynamic resources ----------------------------------------------------------------------------------


def test_the_predicate_cache_remembers_a_template_for_the_session() -> None:
    world = World(node("n1"), node("n2", taints=["t:NoSchedule"], pods=0))
    session = open_session(world, **{"predicate.CacheEnable": True})

    def of(name: str, template: str) -> Any:
        return pod(name, annotations={"volcano.sh/template-uid": template})

    assert session.refusals(of("p1", "t")) == {"n1": [], "n2": [POD_NUMBER, TAINT]}
    found = session.statuses(of("p2", "t"))
    assert found["n1"] == []
    assert [(s.code, s.reason) for s in found["n2"]] == [
        (Code.UNSCHEDULABLE, POD_NUMBER),
        (Code.ERROR, "plugin equivalence cache predicates failed"),
    ]
    assert session.refusals(of("p3", "other"))["n2"] == [POD_NUMBER, TAINT]


def test_pods_with_resource_claims_say_that_they_are_not_supported() -> None:
    session = open_session(World(node("n1")))
    failure = session.pre_predicate(session.task(pod(resourceClaims=[{"name": "gpu"}])))
    assert failure is not None
    assert (failure.code, failure.plugin) == (Code.ERROR, "DynamicResources")
    assert failure.reason.endswith("dynamic resource allocation is not supported yet")
