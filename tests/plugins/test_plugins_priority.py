"""priority: orders, who may be preempted, who starves (spec 04 §2)."""

from plugin_cluster import Cluster, in_order, names

from vcscheduler.model.status import PIPELINED, RUNNING, SUCCEEDED, EvictionKind, Vote
from vcscheduler.plugins.gang import GangPlugin
from vcscheduler.plugins.priority import PriorityPlugin


def test_only_strictly_lower_priority_is_preempted() -> None:
    """EX-PRI-1."""
    c = Cluster()
    own = c.job("own", priority=100)
    preemptor = c.task(own, "p", priority=10)
    x = c.task(c.job("x", priority=100), "x", RUNNING, priority=1)
    y = c.task(c.job("y", priority=50), "y", RUNNING, priority=1000)
    z = c.task(own, "z", RUNNING, priority=5)
    w = c.task(own, "w", RUNNING, priority=10)
    orphan = c.task(c.job("gone"), "o", RUNNING)
    ssn = c.session(PriorityPlugin)
    del ssn.jobs["ns/gone"]
    assert names(ssn.preemptable(preemptor, [x, y, z, w, orphan])) == ["y", "z"]
    assert ssn.plugins[0].preemptable(orphan, [y]) == ([], Vote.PERMIT)  # type: ignore[attr-defined]


def test_says_why_when_asked() -> None:
    c = Cluster()
    preemptor = c.task(c.job("own", priority=100), "p")
    y = c.task(c.job("y", priority=50), "y", RUNNING)
    ssn = c.session(PriorityPlugin)
    ssn.explaining_victims = True
    ssn.preemptable(preemptor, [y])
    assert ssn.victim_notes == [("priority", preemptor, y, True, "its job priority is 50, the preemptor's 100")]


def test_gang_reclaim_ignores_priority_and_gang_preempt_does_not() -> None:
    c = Cluster()
    own = c.job("own", priority=10)
    low = c.task(c.job("low", priority=1), "low", RUNNING)
    high = c.task(c.job("high", priority=99), "high", RUNNING)
    ssn = c.session(PriorityPlugin)
    assert names(ssn.unified_evictable(EvictionKind.GANG_RECLAIM, own, [low, high])) == ["low", "high"]
    assert names(ssn.unified_evictable(EvictionKind.GANG_PREEMPT, own, [low, high])) == ["low"]


def test_starving_while_some_task_has_nothing() -> None:
    """EX-PRI-2, EX-PRI-3."""
    c = Cluster()
    starving = c.job("starving", minimum=2)
    c.tasks(starving, "a b", RUNNING)
    c.tasks(starving, "c", PIPELINED)
    c.tasks(starving, "d e")
    content = c.job("content")
    c.tasks(content, "f g h i", RUNNING)
    c.tasks(content, "j", SUCCEEDED)
    ssn = c.session(PriorityPlugin)
    assert ssn.job_starving(starving)
    assert not ssn.job_starving(content)
    assert not c.session(GangPlugin, PriorityPlugin).job_starving(starving)


def test_larger_priority_first_everywhere() -> None:
    c = Cluster()
    jobs = [c.job("a", priority=1), c.job("b", priority=7), c.job("c", priority=-2)]
    job = c.job("d")
    tasks = [c.task(job, "t1", priority=3), c.task(job, "t2", priority=9)]
    ssn = c.session(PriorityPlugin)
    assert in_order(jobs, ssn.job_order.less) == ["b", "a", "c"]
    assert ssn.job_order.key is not None
    assert names(sorted(jobs, key=ssn.job_order.key)) == ["b", "a", "c"]  # type: ignore[type-var]
    assert ssn.task_less(tasks[1], tasks[0])
