"""Counts that are kept as pods come and go equal counts made anew, over whole sessions (spec 05 §15)."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_rules import PlainAffinity, PlainSpread, required

from builders import StubSession, World, affinity, node, pod, spread, term
from vcscheduler.model.status import TaskStatus
from vcscheduler.model.task import Task
from vcscheduler.objects import Pod
from vcscheduler.placement.affinity import AffinityState
from vcscheduler.placement.cluster import ClusterIndex
from vcscheduler.placement.rules import ConstraintKind, KernelFilter
from vcscheduler.placement.spread import SpreadState
from vcscheduler.plugins.predicates import PredicatesPlugin

HOST = "kubernetes.io/hostname"
APPS = ("x", "y", "z")
NAMESPACES = ("ns", "red", "blue")


class RandomPods:
    """Pods of a few labels and terms, so that they have much to do with each other."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.made = 0

    def term(self) -> dict[str, Any]:
        rng = self.rng
        other: dict[str, Any] = {}
        if rng.random() < 0.3:
            other["namespaces"] = [rng.choice(NAMESPACES)]
        if rng.random() < 0.3:
            other["namespaceSelector"] = rng.choice([{}, {"matchLabels": {"team": "r"}}])
        if rng.random() < 0.2:
            rule = {"key": "app", "operator": rng.choice(["NotIn", "In"]), "values": [rng.choice(APPS)]}
            return term(rng.choice([HOST, "zone"]), labelSelector={"matchExpressions": [rule]}, **other)
        return term(rng.choice([HOST, "zone"]), {"app": rng.choice(APPS)}, **other)

    def pod(self) -> Pod:
        rng = self.rng
        self.made += 1
        spec: dict[str, Any] = {}
        kind = rng.random()
        if kind < 0.2:
            spec["affinity"] = affinity(to=[self.term() for _ in range(rng.randint(1, 2))])
        elif kind < 0.6:
            spec["affinity"] = affinity(off=[self.term() for _ in range(rng.randint(1, 2))])
        elif kind < 0.8:
            spec["topologySpreadConstraints"] = [
                spread(rng.choice([HOST, "zone"]), rng.choice([{"app": rng.choice(APPS)}, None]), rng.randint(1, 2),
                       minDomains=rng.choice([None, 2, 4]))
                for _ in range(rng.randint(1, 2))
            ]  # fmt: skip
            if rng.random() < 0.3:
                spec["nodeSelector"] = {"zone": rng.choice("ab")}
        return pod(
            f"p{self.made}",
            namespace=rng.choice(NAMESPACES),
            labels={"app": rng.choice(APPS)} if rng.random() < 0.9 else {},
            deleted="2026-01-01T00:00:00Z" if rng.random() < 0.1 else None,
            **spec,
        )


def random_world(rng: random.Random) -> World:
    world = World()
    world.namespace("red", team="r")
    world.namespace("blue", team="b")
    for i in range(rng.randint(1, 7)):
        add_node(world, f"n{i}", rng)
    return world


def add_node(world: World, name: str, rng: random.Random) -> None:
    labels = {}
    if rng.random() < 0.9:
        labels[HOST] = name
    if rng.random() < 0.8:
        labels["zone"] = rng.choice("abc")
    world.add(node(name, labels=labels))


def frozen_nodes(world: World) -> set[str]:
    return {
        n.name
        for n in world.table
        if any(required(t.pod, "pod_anti_affinity") for t in n.tasks.values() if t.view_row == n.row)
    }


def check(world: World, session: StubSession, task: Task, frozen: set[str]) -> None:
    cluster = ClusterIndex.of(world.store, world.table, session.uid)
    rows = world.table.ready_rows
    kept = AffinityState(task, cluster, world.listers)
    plain = PlainAffinity(world, task, frozen)
    objects = [world.table.nodes[r].object for r in rows.tolist()]
    assert kept.codes(rows).tolist() == [plain.code(o) for o in objects if o is not None]
    assert kept.needed == bool(plain.to or plain.off or +plain.existing)
    spread_plain = PlainSpread(world, task)
    assert SpreadState(task, cluster).codes(rows).tolist() == [spread_plain.code(o) for o in objects if o is not None]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9))
def test_kept_counts_equal_counts_made_anew(seed: int) -> None:
    rng = random.Random(seed)
    world, pods = random_world(rng), RandomPods(rng)
    placed: list[Task] = []
    for _ in range(3):
        for _ in range(rng.randint(0, 6)):  # between sessions
            what = rng.random()
            if what < 0.6 or not placed:
                name = rng.choice([n.name for n in world.table.nodes])
                placed.append(world.place(pods.pod(), name))
            elif what < 0.8:
                world.remove(placed.pop(rng.randrange(len(placed))))
            elif what < 0.9:
                add_node(world, rng.choice([n.name for n in world.table.nodes]), rng)
            else:
                add_node(world, f"late{pods.made}{len(placed)}", rng)
        session = world.session(PredicatesPlugin)
        frozen = frozen_nodes(world)
        for _ in range(rng.randint(1, 8)):
            if rng.random() < 0.3 and placed:
                session.evict(placed.pop(rng.randrange(len(placed))))
            task = world.task(pods.pod())
            check(world, session, task, frozen)
            name = rng.choice([n.name for n in world.table])
            if session.pre_predicate(task) is None and rng.random() < 0.8:
                session.put(task, name, prepare=False)
                if rng.random() < 0.3:
                    session.take_back(task)
                else:
                    placed.append(task)
        for n in world.table:
            for task in list(n.tasks.values()):
                if task.status is TaskStatus.RELEASING:
                    world.remove(task)


def constraint_codes(kernel: KernelFilter, rows: Any) -> list[bool]:
    """Whether a kernel that reads the constraints as written in rules.py would let each row pass."""
    near = [c for c in kernel.constraints if c.kind is ConstraintKind.AFFINITY]
    empty = all(not c.counts.any() for c in near)
    passes = []
    for row in rows.tolist():
        ok = kernel.static[row] == 0
        for c in kernel.constraints:
            d = int(c.domain[row])
            n = int(c.counts[d]) if d >= 0 else 0
            if c.kind is ConstraintKind.AFFINITY:
                ok = ok and d >= 0 and (n > 0 or (empty and c.first_pod))
            elif c.kind is ConstraintKind.SPREAD:
                found = c.counts[: len(c.exists)][c.exists]
                smallest = int(found.min()) if len(found) >= max(c.min_domains, 1) else 0
                ok = ok and d >= 0 and n + c.self_match - smallest <= c.max_skew
            else:
                ok = ok and n == 0
        passes.append(bool(ok))
    return passes


def count_one_more(kernel: KernelFilter, row: int) -> None:
    for c in kernel.constraints:
        if c.domain[row] >= 0 and c.counted[row]:
            c.counts[c.domain[row]] += c.increment


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9))
def test_a_kernel_that_goes_on_counting_agrees_with_filtering_each_pod_anew(seed: int) -> None:
    rng = random.Random(seed)
    world, pods = random_world(rng), RandomPods(rng)
    for _ in range(rng.randint(0, 8)):
        world.place(pods.pod(), rng.choice([n.name for n in world.table]))
    session = world.session(PredicatesPlugin)
    (rule,) = session.filters
    template = pods.pod()
    template.metadata.deletion_timestamp = None
    rows = session.rows
    kernel = None
    for i in range(6):
        one = msgspec.convert(msgspec.to_builtins(template), Pod)
        one.metadata.name, one.metadata.uid = f"run-{i}", f"uid-run-{i}"
        task = world.task(one)
        if session.pre_predicate(task) is not None:
            return
        if kernel is None:
            kernel = rule.kernel(task)
            assert kernel is not None
        assert constraint_codes(kernel, rows) == (rule.codes(task, rows) == 0).tolist()
        row = int(rng.choice(rows.tolist()))
        session.put(task, world.table.nodes[row].name, prepare=False)
        count_one_more(kernel, row)


def test_a_world_without_terms_counts_nothing() -> None:
    world = World(node("n1"), node("n2"))
    session = world.session(PredicatesPlugin)
    for i in range(5):
        session.put(pod(f"p{i}", labels={"gang": str(i)}), "n1")
    cluster = ClusterIndex.of(world.store, world.table, session.uid)
    assert cluster._pods is None
    (rule,) = session.filters
    task = world.task(pod("q"))
    assert session.pre_predicate(task) is None
    kernel = rule.kernel(task)
    assert kernel is not None
    assert kernel.constraints == []


def test_the_static_part_is_one_array_until_it_changes() -> None:
    world = World(node("n1"), node("n2", labels={"a": "1"}))
    q = pod("q", nodeSelector={"a": "1"})

    def static() -> Any:
        session = world.session(PredicatesPlugin)
        task = world.task(q)
        assert session.pre_predicate(task) is None
        kernel = session.filters[0].kernel(task)
        assert kernel is not None
        return kernel.static

    first = static()
    world.add(node("n1", labels={"b": "2"}))
    assert static() is first
    world.add(node("n1", labels={"a": "1"}))
    changed = static()
    assert changed is not first
    assert np.flatnonzero(changed[:2]).tolist() == []


def test_equal_labels_make_kin_where_terms_look_at_them() -> None:
    world = World(node("n1", labels={"zone": "a"}))
    session = world.session(PredicatesPlugin)
    (rule,) = session.filters
    one, two = (world.task(pod(n, labels={"gang": n, "app": "x"})) for n in "ab")
    assert rule.kin(one) == rule.kin(two)  # type: ignore[attr-defined]
    world.place(pod("held", affinity=affinity(off=[term("zone", {"gang": "a"})])), "n1")
    assert rule.kin(one) != rule.kin(two)  # type: ignore[attr-defined]
