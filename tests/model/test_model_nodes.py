"""Nodes in columns: the accounting of spec 01 §5.10, rows that come and go, the change log."""

from __future__ import annotations

import numpy as np
import pytest

import builders
from builders import World
from vcscheduler.model.nodes import Node, NodeConflict, NodeTable
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import ALLOCATED, BOUND, PENDING, PIPELINED, RELEASING, RUNNING, TaskStatus
from vcscheduler.model.task import Task


def amounts(r: Resources) -> tuple[float, float, float]:
    return r.cpu, r.memory, r.get("pods")


def put(world: World, node: Node, name: str, status: TaskStatus, cpu: object, memory: object) -> Task:
    task = world.task(builders.pod(name, cpu=cpu, memory=memory), status)
    node.add(task)
    return task


def test_n1_accounting_by_status() -> None:
    world = World(builders.node("n1", cpu=8, memory="16e9", pods=10))
    n = world.table.by_name["n1"]
    a = put(world, n, "a", RUNNING, 2, "4e9")
    put(world, n, "b", BOUND, 1, "1e9")
    put(world, n, "c", PIPELINED, 3, "2e9")
    assert amounts(n.used) == (3000, 5e9, 2)
    assert amounts(n.idle) == (5000, 11e9, 8)
    assert amounts(n.pipelined) == (3000, 2e9, 1)
    assert amounts(n.future_idle) == (2000, 9e9, 7)
    a.status = RELEASING
    n.update(a)
    assert (amounts(n.idle), amounts(n.used)) == ((5000, 11e9, 8), (3000, 5e9, 2))
    assert amounts(n.releasing) == (2000, 4e9, 1)
    assert amounts(n.future_idle) == (4000, 13e9, 8)
    n.remove(a)
    assert amounts(n.releasing) == (0, 0, 0)
    assert (amounts(n.idle), amounts(n.used)) == ((7000, 15e9, 9), (1000, 1e9, 1))


def test_n2_only_a_bind_is_checked_against_what_is_idle() -> None:
    world = World(builders.node("n1", cpu="500m"))
    n = world.table.by_name["n1"]
    task = world.task(builders.pod("a", cpu=1))
    assert n.refuses_binding(task) == ["cpu"]
    task.status = ALLOCATED
    n.add(task)
    assert n.idle.cpu == -500


def test_what_only_the_session_allocated_does_not_count_against_a_bind() -> None:
    world = World(builders.node("n1", cpu=1))
    n = world.table.by_name["n1"]
    first = put(world, n, "a", ALLOCATED, 1, None)
    assert n.refuses_binding(first) == []
    first.status = RUNNING
    n.update(first)
    assert n.refuses_binding(world.task(builders.pod("b", cpu=1))) == ["cpu"]


def test_n3_a_node_that_shrinks_below_its_use_stays_ready() -> None:
    world = World(builders.node("n1", cpu=10, memory="10G", pods=15))
    n = world.table.by_name["n1"]
    for i in range(3):
        put(world, n, f"p{i}", RUNNING, 3, "3G")
    world.add(builders.node("n1", cpu=8, memory="8G", pods=10))
    assert (n.ready, amounts(n.idle), n.allocatable.max_tasks) == (True, (-1000, -1e9, 7), 10)
    world.add(builders.node("n1", cpu=10, memory="10G", pods=15))
    assert amounts(n.idle) == (1000, 1e9, 12)


def test_n4_oversubscription_is_lent_on_top() -> None:
    obj = builders.node("n1", cpu=4)
    obj.metadata.annotations = {"volcano.sh/oversubscription-cpu": "2000", "volcano.sh/oversubscription-memory": "x"}
    n = World(obj).table.by_name["n1"]
    assert (n.allocatable.cpu, n.idle.cpu, n.capacity.cpu) == (6000, 6000, 6000)


def test_conflicts_change_nothing() -> None:
    world = World(builders.node("n1"), builders.node("n2"))
    one, two = world.table.by_name["n1"], world.table.by_name["n2"]
    task = put(world, one, "a", RUNNING, 1, None)
    before = one.idle
    with pytest.raises(NodeConflict, match="task <ns/a> already on different node <n1>"):
        two.add(task)
    with pytest.raises(NodeConflict, match="task <ns/a> already on node <n1>"):
        one.add(task)
    assert one.idle.same(before)
    assert two.idle.cpu == 4000


def test_a_placeholder_keeps_tasks_until_its_object_comes() -> None:
    world = World()
    task = world.place(builders.pod("a", cpu=1), "later")
    node = world.table.by_name["later"]
    assert (node.ready, world.table.get("later"), len(world.table.ready_rows)) == (False, None, 0)
    assert node.used.is_empty()
    world.add(builders.node("later", cpu=4))
    assert (node.ready, node.idle.cpu, world.table.total.cpu) == (True, 3000, 4000)
    assert world.table.remove("later") == [task]
    assert (world.table.get("later"), world.table.total.cpu) == (None, 0)


def test_rows_stay_where_they_are_and_rank_follows_names() -> None:
    world = World(*(builders.node(f"n{i}") for i in (10, 9, 2)))
    assert world.table.rank.tolist() == [0, 2, 1]
    world.add(builders.node("a"))
    assert world.table.rank.tolist() == [1, 3, 2, 0]
    assert [n.name for n in world.table] == ["n10", "n9", "n2", "a"]


def test_growing_past_the_first_allocation_keeps_every_figure() -> None:
    world = World(*(builders.node(f"n{i}", cpu=i + 1, **{f"x.io__r{i % 12}": 1}) for i in range(200)))
    table = world.table
    assert table.n == 200
    for i in range(200):
        node = table.by_name[f"n{i}"]
        assert node.idle.cpu == (i + 1) * 1000
        assert node.idle.get(f"x.io/r{i % 12}") == 1000
        assert table.view.allocatable[0, node.row] == (i + 1) * 1000
    assert table.total.cpu == sum(range(1, 201)) * 1000


def test_a_node_without_scalars_ignores_those_of_requests() -> None:
    # A vector without a scalar map is not subtracted from (Quirk, spec 01 §1.7).
    world = World(builders.node("n1", cpu=4, pods=None))
    n = world.table.by_name["n1"]
    put(world, n, "a", RUNNING, 1, None)
    assert (n.idle.cpu, n.idle.get("pods"), n.used.get("pods")) == (3000, 0, 1)


def test_the_change_log_tells_what_changed_or_that_it_forgot() -> None:
    table = NodeTable()
    for i in range(3):
        table.set_object(builders.node(f"n{i}"))
    start = table.log_end
    table.touch(2)
    table.touch_many(np.array([0, 1]))
    changed = table.changed_since(start)
    assert changed is not None
    assert changed.tolist() == [2, 0, 1]
    assert table.changed_since(table.log_end) is not None
    for _ in range(5000):
        table.touch(1)
    assert table.changed_since(start) is None
    recent = table.changed_since(table.log_end - 3)
    assert recent is not None
    assert recent.tolist() == [1, 1, 1]


def test_the_view_holds_pods_by_row_and_their_ports() -> None:
    world = World(builders.node("n1", pods=7))
    view, row = world.table.view, 0
    task = world.place(builders.pod("a", cpu=1, ports=[{"hostPort": 80}]), "n1")
    assert (view.pods[row], view.max_pods[row], view.requested[0, row], view.nonzero[1, row]) == (
        1,
        7,
        1000,
        200 * 2**20,
    )
    assert view.ports == {row: {("0.0.0.0", "TCP", 80): 1}}
    view.remove(task)
    view.remove(task)
    assert (view.pods[row], view.requested[0, row], view.ports) == (0, 0, {})


def test_the_view_is_put_right_when_a_session_closes() -> None:
    world = World(builders.node("n1"), builders.node("n2"))
    here, gone = world.place(builders.pod("a"), "n1"), world.place(builders.pod("b"), "n2")
    world.table.view.remove(here)
    world.table.by_name["n2"].remove(gone)
    world.table.reconcile_view([here, gone])
    assert (here.view_row, gone.view_row) == (0, -1)
    assert world.table.view.pods[:2].tolist() == [1, 0]


def test_pods_of_other_statuses_hold_room_too() -> None:
    world = World(builders.node("n1", cpu=2))
    put(world, world.table.by_name["n1"], "odd", PENDING, 1, None)
    assert world.table.by_name["n1"].idle.cpu == 1000
