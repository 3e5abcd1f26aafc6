"""The search: how many nodes, from where, what the error cache keeps, which node is best (spec 02 §13)."""

from __future__ import annotations

import random

import numpy as np
import pytest

import builders
from builders import World
from vcscheduler.model.fit import Status
from vcscheduler.model.nodes import Node
from vcscheduler.model.status import Code
from vcscheduler.model.task import ROLE_KEY, Task
from vcscheduler.placement.rules import FloatArray, IntArray, NodeFilter, NodeScorer, ScoringFailed
from vcscheduler.placement.search import Cursor, ErrorCache, Purpose, Sampling, Search


@pytest.mark.parametrize(
    ("nodes", "percentage", "minimum", "expected"),
    [
        (10, 0, 100, 10),
        (100, 0, 100, 100),
        (101, 0, 100, 100),
        (150, 0, 100, 100),
        (1000, 0, 100, 420),
        (5000, 0, 100, 500),
        (6000, 0, 100, 300),
        (1000, 40, 100, 400),
        (6000, 40, 100, 2400),
        (10, 40, 1, 4),
        (6000, 100, 100, 6000),
    ],
)
def test_how_many_nodes_are_enough(nodes: int, percentage: int, minimum: int, expected: int) -> None:
    assert Sampling(False, minimum, 5, percentage).wanted(nodes) == expected
    assert Sampling(True, minimum, 5, percentage).wanted(nodes) == nodes


class Only(NodeFilter):
    """Lets tasks on the nodes named; counts how often it was asked about a row."""

    def __init__(self, table: object, *names: str, code: Code = Code.UNSCHEDULABLE) -> None:
        self.nodes: list[Node] = table.nodes  # type: ignore[attr-defined]
        self.names = names
        self.code = code
        self.asked = 0

    def codes(self, task: Task, rows: IntArray) -> IntArray:
        self.asked += len(rows)
        return np.array([int(self.nodes[r].name not in self.names) for r in rows.tolist()], dtype=np.int64)

    def statuses(self, task: Task, code: int) -> tuple[Status, ...]:
        return (Status(self.code, "not chosen"),)


class Table(NodeScorer):
    """Scores by name."""

    def __init__(self, world: World, batch: bool = False, **scores: float) -> None:
        self.world = world
        self.batch = batch
        self.given = scores

    def scores(self, task: Task, rows: IntArray) -> FloatArray:
        return np.array([self.given[self.world.table.nodes[r].name] for r in rows.tolist()])


class Broken(NodeScorer):
    def __init__(self, batch: bool, rows: IntArray | None = None) -> None:
        self.batch = batch
        self.rows = rows

    def scores(self, task: Task, rows: IntArray) -> FloatArray:
        raise ScoringFailed("cannot tell", self.rows)


def world(n: int = 6) -> World:
    return World(*(builders.node(f"n{i}") for i in range(n)))


def search(
    w: World,
    *rules: NodeFilter,
    scorers: tuple[NodeScorer, ...] = (),
    sampling: Sampling | None = None,
    rng: random.Random | None = None,
) -> Search:
    return Search(w.table, list(rules), list(scorers), [], sampling or Sampling(), Cursor(), rng)


def found(s: Search, task: Task, rows: IntArray | None = None, purpose: Purpose = Purpose.ALLOCATE) -> list[str]:
    rows, _ = s.feasible(task, s.all_rows if rows is None else rows, ErrorCache(reads=False), purpose)
    return [s.table.nodes[r].name for r in rows.tolist()]


SAMPLED = Sampling(False, 2, 5, 34)


def test_sampling_goes_on_where_it_stopped() -> None:
    w = world()
    s, task = search(w, sampling=SAMPLED), w.task(builders.pod("p"))
    assert (found(s, task), s.cursor.at) == (["n0", "n1"], 3)
    assert (found(s, task), s.cursor.at) == (["n3", "n4"], 0)


def test_a_search_through_all_nodes_does_not_move_on() -> None:
    w = world()
    s = search(w, Only(w.table, "n1", "n4"), sampling=SAMPLED)
    assert (found(s, w.task(builders.pod("p"))), s.cursor.at) == (["n1", "n4"], 0)


def test_a_search_of_one_node_sets_the_cursor_back() -> None:
    w = world(200)
    s = search(w, sampling=Sampling(False))
    s.cursor.at = 150
    assert found(s, w.task(builders.pod("p")), np.array([7], dtype=np.int64)) == ["n7"]
    assert s.cursor.at == 0


def test_a_role_is_not_shown_a_node_twice_that_refused_it() -> None:
    w = world(3)
    rule = Only(w.table, "n0")
    s, cache = search(w, rule), ErrorCache(reads=True)
    with_role = [w.task(builders.pod(f"p{i}", annotations={ROLE_KEY: "worker"})) for i in range(2)]
    for task in with_role:
        rows, errors = s.feasible(task, s.all_rows, cache, Purpose.ALLOCATE)
        assert rows.tolist() == [0]
        assert errors.text == "0/2 nodes are unavailable: 2 not chosen."
    assert rule.asked == 3 + 1
    for i in range(2):
        s.feasible(w.task(builders.pod(f"x{i}")), s.all_rows, cache, Purpose.ALLOCATE)
    assert rule.asked == 4 + 2 * 3


@pytest.mark.parametrize(
    ("code", "passes"),
    [(Code.UNSCHEDULABLE, True), (Code.UNRESOLVABLE, False), (Code.ERROR, False), (Code.SKIP, False)],
)
def test_only_what_eviction_may_cure_passes_for_preemption(code: Code, passes: bool) -> None:
    w = world(2)
    s, task = search(w, Only(w.table, "n0", code=code)), w.task(builders.pod("p", cpu=99))
    assert found(s, task, purpose=Purpose.ALLOCATE) == []
    assert found(s, task, purpose=Purpose.BACKFILL) == ["n0"]
    assert found(s, task, purpose=Purpose.PREEMPT) == (["n0", "n1"] if passes else ["n0"])


def test_node_order_and_batch_are_added() -> None:
    w = World(builders.node("n1"), builders.node("n2"))
    task, rows = w.task(builders.pod("p")), w.table.ready_rows
    order = Table(w, n1=3.5, n2=4.0)
    assert search(w, scorers=(order, Table(w, True, n1=2, n2=1))).best(task, rows) == 0
    tied = search(w, scorers=(order, Table(w, True, n1=2, n2=1.5)))
    assert tied.best(task, rows) == 0
    by_lot = search(w, scorers=(order, Table(w, True, n1=2, n2=1.5)), rng=random.Random(1))
    assert {by_lot.best(task, rows) for _ in range(40)} == {0, 1}


def test_a_batch_that_fails_leaves_no_node_and_a_node_order_that_fails_no_score() -> None:
    w = World(builders.node("n1"), builders.node("n2"))
    task, rows = w.task(builders.pod("p")), w.table.ready_rows
    order = Table(w, n1=9, n2=4)
    assert search(w, scorers=(order, Broken(batch=True))).best(task, rows) is None
    assert search(w, scorers=(order, Broken(False, np.array([0])))).best(task, rows) == 1
    # Nobody scores a single candidate.
    assert search(w, scorers=(Broken(batch=True),)).best(task, rows[1:]) == 1


def test_a_score_that_is_no_number_is_never_chosen() -> None:
    w = World(builders.node("n1"), builders.node("n2"))
    task, rows = w.task(builders.pod("p")), w.table.ready_rows
    assert search(w, scorers=(Table(w, n1=float("nan"), n2=-5),)).best(task, rows) == 1
    nothing = search(w, scorers=(Table(w, n1=float("-inf"), n2=float("nan")),))
    assert nothing.best(task, rows) is None


def test_ranking_is_by_score_then_name() -> None:
    w = World(*(builders.node(n) for n in ("n10", "n9", "n2")))
    s = search(w, scorers=(Table(w, n10=1, n9=5, n2=1),))
    ranked = s.ranked(w.task(builders.pod("p")), w.table.ready_rows)
    assert [w.table.nodes[r].name for r in ranked.tolist()] == ["n9", "n10", "n2"]
