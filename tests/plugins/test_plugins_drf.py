"""drf: dominant shares of jobs (spec 04 §5.1, §5.2)."""

import pytest
from plugin_cluster import Cluster, in_order, names

from vcscheduler.framework.statement import Statement
from vcscheduler.model.status import ALLOCATED, RUNNING
from vcscheduler.plugins.drf import DrfPlugin


def cluster() -> Cluster:
    c = Cluster()
    c.node("n1", cpu=20, memory=40)
    return c


def share(ssn, job):  # type: ignore[no-untyped-def]
    return ssn.plugins[0].share(job)


def test_victims_keep_at_least_the_preemptors_share() -> None:
    """EX-DRF-1."""
    c = cluster()
    own = c.job("own")
    c.task(own, "held", RUNNING, cpu=2, memory=2)
    preemptor = c.task(own, "p", cpu=1, memory=1)
    two = c.tasks(c.job("j2"), "a b c", RUNNING, cpu=2, memory=1)
    three = c.tasks(c.job("j3"), "d e f g", RUNNING, cpu=1, memory=1)
    ssn = c.session(DrfPlugin)
    assert names(ssn.preemptable(preemptor, [*two, *three])) == ["a", "d"]


def test_the_largest_dimension_decides() -> None:
    """EX-DRF-2."""
    c = cluster()
    own = c.job("own")
    c.task(own, "held", RUNNING, cpu=2, memory=2)
    preemptor = c.task(own, "p", cpu=1, memory=1)
    four = c.tasks(c.job("j4"), "a b", RUNNING, cpu=1, memory=8)
    ssn = c.session(DrfPlugin)
    assert names(ssn.preemptable(preemptor, four)) == ["a"]


def test_the_own_job_is_never_a_victim() -> None:
    c = cluster()
    own = c.job("own")
    running = c.tasks(own, "a b", RUNNING, cpu=2)
    preemptor = c.task(own, "p", cpu=1)
    assert c.session(DrfPlugin).preemptable(preemptor, running) == []


def test_smaller_shares_first() -> None:
    """EX-DRF-3."""
    c = cluster()
    a, b, nothing = c.job("a"), c.job("b"), c.job("c")
    c.task(a, "a", RUNNING, cpu=4, memory=4)
    c.task(b, "b", RUNNING, cpu=1, memory=12)
    c.task(nothing, "c", cpu=9)
    ssn = c.session(DrfPlugin)
    assert [share(ssn, j) for j in (a, b, nothing)] == [0.2, 0.3, 0.0]
    assert in_order([a, b, nothing], ssn.job_order.less) == ["c", "a", "b"]
    assert ssn.job_order.key is not None
    assert names(sorted([a, b, nothing], key=ssn.job_order.key)) == ["c", "a", "b"]  # type: ignore[type-var]


def test_many_small_pods_are_dominated_by_their_number() -> None:
    """EX-DRF-4."""
    c = Cluster()
    c.node("n1", cpu=20, memory=40, pods=10)
    job = c.job("j")
    c.tasks(job, "a b c", RUNNING, cpu="100m")
    assert share(c.session(DrfPlugin), job) == pytest.approx(0.3)


def test_shares_follow_the_session_pipelined_tasks_included() -> None:
    c = cluster()
    node = c.cache.table.nodes[0]
    job, other = c.job("j"), c.job("other")
    pending = c.tasks(job, "a b c", cpu=2)
    (victim,) = c.tasks(other, "v", RUNNING, node="n1", cpu=4)
    ssn = c.session(DrfPlugin)
    assert (share(ssn, job), share(ssn, other)) == (0.0, 0.2)
    stmt = Statement(ssn)
    stmt.evict(victim, "test")
    assert share(ssn, other) == 0.0
    stmt.pipeline(pending[0], node, True)
    assert share(ssn, job) == 0.1
    stmt.allocate(pending[1], node)
    assert share(ssn, job) == 0.2
    stmt.place_run(job, pending[2:], [0], ALLOCATED)
    assert share(ssn, job) == pytest.approx(0.3)
    stmt.discard()
    assert (share(ssn, job), share(ssn, other)) == (0.0, 0.2)


def test_a_first_event_for_a_run_counts_once() -> None:
    c = cluster()
    job = c.job("j")
    pending = c.tasks(job, "a b c", cpu=2)
    ssn = c.session(DrfPlugin)
    stmt = Statement(ssn)
    stmt.place_run(job, pending, [0, 0, 0], ALLOCATED)
    assert share(ssn, job) == pytest.approx(0.3)
