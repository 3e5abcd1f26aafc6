"""task-topology: buckets, the order of tasks, and how nodes are scored for them (spec 05 §9)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plugin_cluster import Cluster, names

from vcscheduler.framework.session import Session
from vcscheduler.model.job import Job
from vcscheduler.model.status import ALLOCATED, RUNNING
from vcscheduler.model.task import Task
from vcscheduler.plugins.task_topology import TaskTopologyPlugin
from vcscheduler.plugins.task_topology.buckets import Bucket, JobBuckets
from vcscheduler.plugins.task_topology.roles import (
    AFFINITY_ANNOTATION,
    ANTI_AFFINITY_ANNOTATION,
    ORDER_ANNOTATION,
    Roles,
)


def topology(c: Cluster, affinity: str | None = None, anti: str | None = None, order: str | None = None) -> Job:
    given = {AFFINITY_ANNOTATION: affinity, ANTI_AFFINITY_ANNOTATION: anti, ORDER_ANNOTATION: order}
    return c.job("j", annotations={key: text for key, text in given.items() if text is not None})


def buckets_of(c: Cluster, job: Job) -> list[list[str]]:
    """Names of the unbound tasks of each bucket."""
    roles = Roles.of(job)
    assert roles is not None
    return [names(b.unbound.values()) for b in JobBuckets(job, roles, c.cache.table).buckets]


def scores(ssn: Session, task: Task) -> dict[str, float]:
    (rule,) = ssn.scorers
    rows = ssn.table.ready_rows
    return {ssn.table.nodes[row].name: round(s, 2) for row, s in zip(rows.tolist(), rule.scores(task, rows).tolist())}


def place(ssn: Session, task: Task, node: str) -> None:
    assert ssn.place(task, ssn.node(node), ALLOCATED) is None


def test_a_bucket_stays_together_where_there_is_room_for_it() -> None:
    c = Cluster()
    c.node("a", cpu=3, memory=8)
    c.node("b", cpu=2, memory=8)
    job = topology(c, "ps,worker")
    ps = c.task(job, "ps", role="ps", cpu=1)
    worker, _ = c.tasks(job, "w1 w2", role="worker", cpu=1)
    ssn = c.session(TaskTopologyPlugin)
    assert scores(ssn, ps) == {"a": 100, "b": 66.67}
    place(ssn, ps, "a")
    assert scores(ssn, worker) == {"a": 100, "b": 66.67}


def test_roles_that_repel_each_other_get_buckets_and_nodes_of_their_own() -> None:
    c = Cluster()
    c.node("a", cpu=8, memory=8)
    c.node("b", cpu=8, memory=8)
    job = topology(c, anti="ps")
    first, second = c.tasks(job, "p1 p2", role="ps", cpu=1)
    assert buckets_of(c, job) == [["p1"], ["p2"]]
    ssn = c.session(TaskTopologyPlugin)
    place(ssn, first, "a")
    assert scores(ssn, second) == {"a": 0, "b": 100}


def test_a_task_joins_the_lightest_of_the_buckets_that_attract_it_equally() -> None:
    c = Cluster()
    job = topology(c, "ps,worker", "ps", "ps,worker")
    c.task(job, "p1", role="ps", cpu=4)
    c.task(job, "p2", role="ps", cpu=1)
    c.tasks(job, "w1 w2 w3", role="worker", cpu=1)
    # The first worker goes to the lighter server, which then attracts no more than the other.
    assert buckets_of(c, job) == [["p1"], ["p2", "w1", "w2", "w3"]]


def test_tasks_on_a_node_are_its_bucket_and_draw_others() -> None:
    c = Cluster()
    c.node("a", cpu=8, memory=8)
    c.node("b", cpu=8, memory=8)
    job = topology(c, "ps,worker")
    c.task(job, "ps", RUNNING, node="b", role="ps", cpu=1)
    worker = c.task(job, "w", role="worker", cpu=1)
    ssn = c.session(TaskTopologyPlugin)
    assert scores(ssn, worker) == {"a": 50, "b": 100}


def test_order_of_tasks() -> None:
    c = Cluster()
    job = topology(c, "ps,worker", "ps", "ps,worker")
    alone = c.task(job, "p1", role="ps", cpu=9)
    ps = c.task(job, "p2", role="ps", cpu=1)
    workers = c.tasks(job, "w1 w2", role="worker", cpu=1)
    outside = c.task(job, "x", role="other", cpu=1)
    foreign = c.task(c.job("plain"), "y", cpu=1)
    ssn = c.session(TaskTopologyPlugin)
    plugin = ssn.plugins[0]
    assert isinstance(plugin, TaskTopologyPlugin)
    in_order = [ps, workers[0], alone, outside]
    for i, first in enumerate(in_order):
        for later in in_order[i + 1 :]:
            assert (plugin.compare(first, later), plugin.compare(later, first)) == (-1, 1)
    assert plugin.compare(workers[0], workers[1]) == 0
    assert plugin.compare(foreign, alone) == plugin.compare(alone, foreign) == 0
    assert ssn.task_order.key is None


@pytest.mark.parametrize(
    ("affinity", "anti", "order"),
    [
        (None, None, None),
        ("ps,nobody", None, None),
        ("ps,ps", None, None),
        (None, None, "ps,worker,ps"),
        ("ps", "worker, ps", None),
    ],
)
def test_no_topology(affinity: str | None, anti: str | None, order: str | None) -> None:
    c = Cluster()
    job = topology(c, affinity, anti, order)
    c.task(job, "ps", role="ps", cpu=1)
    c.task(job, "w", role="worker", cpu=1)
    assert Roles.of(job) is None
    ssn = c.session(TaskTopologyPlugin)
    assert ssn.scorers == []
    assert ssn.task_order.key is not None


def test_an_empty_annotation_is_a_topology_without_tasks() -> None:
    c = Cluster()
    c.node("a", cpu=8, memory=8)
    job = topology(c, affinity="")
    task = c.task(job, "ps", role="ps", cpu=1)
    ssn = c.session(TaskTopologyPlugin)
    assert scores(ssn, task) == {"a": 0}


def test_priorities_of_roles() -> None:
    c = Cluster()
    job = topology(c, "a;b,c", "d;a,e")
    for role in "abcde":
        c.task(job, role, role=role, cpu=1)
    roles = Roles.of(job)
    assert roles is not None
    assert roles.priority == {"a": 2, "b": 3, "c": 3, "d": 4, "e": 1}


def test_nodes_without_room_score_nothing() -> None:
    c = Cluster()
    c.node("small", cpu=1, memory=8)
    over = c.node("over", cpu=4, memory=1)
    c.node("fits", cpu=4, memory=8)
    c.node("gpu", cpu=4, memory=8, gpu=1)
    c.task(c.job("other"), "big", RUNNING, node="over", memory=2)
    assert over.idle.memory < 0
    job = topology(c, "ps")
    task = c.task(job, "ps", role="ps", cpu=2)
    names_gpu = c.task(job, "ps2", role="ps", cpu=2, gpu=0)
    ssn = c.session(TaskTopologyPlugin)
    assert scores(ssn, task) == {"small": 0, "over": 0, "fits": 100, "gpu": 100}
    assert scores(ssn, names_gpu) == {"small": 0, "over": 0, "fits": 0, "gpu": 100}


def test_what_was_counted_stays_when_a_placement_is_undone() -> None:
    c = Cluster()
    c.node("a", cpu=8, memory=8)
    c.node("b", cpu=8, memory=8)
    job = topology(c, "ps,worker")
    ps = c.task(job, "ps", role="ps", cpu=1)
    worker = c.task(job, "w", role="worker", cpu=1)
    ssn = c.session(TaskTopologyPlugin)
    place(ssn, ps, "a")
    ssn.take_back(ps)
    assert scores(ssn, worker) == {"a": 100, "b": 50}
    place(ssn, ps, "b")
    assert scores(ssn, worker) == {"a": 100, "b": 100}


@given(
    requests=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=6),
    free=st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), min_size=1, max_size=5),
    own=st.integers(0, 5),
)
def test_left_out_is_what_taking_tasks_away_one_by_one_gives(
    requests: list[tuple[int, int]], free: list[tuple[int, int]], own: int
) -> None:
    c = Cluster()
    job = c.job("j")
    tasks = [c.task(job, f"t{i}", cpu=cpu, memory=memory) for i, (cpu, memory) in enumerate(requests)]
    task = tasks[own % len(tasks)]
    bucket = Bucket(0)
    bucket.unbound = {t.uid: t for t in tasks}
    bucket.complete(c.cache.table, [0, 1])
    room = np.array(free, dtype=np.float64).T * np.array([[1000.0], [2.0**30]])

    def one_by_one(cpu: float, memory: float) -> int:
        left = [sum(t.resreq.cpu for t in tasks), sum(t.resreq.memory for t in tasks)]
        taken = 0
        for other in sorted(tasks, key=lambda t: t.uid):
            if left[0] <= cpu and left[1] <= memory:
                break
            if other is not task:
                left = [left[0] - other.resreq.cpu, left[1] - other.resreq.memory]
                taken += 1
        return taken

    assert bucket.left_out(task, room).tolist() == [one_by_one(*column) for column in room.T.tolist()]
