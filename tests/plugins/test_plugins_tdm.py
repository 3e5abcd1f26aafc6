"""tdm: nodes shared by time of day (spec 04 §12)."""

from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from plugin_cluster import NOW, Cluster, names

from vcscheduler.config import ArgumentError
from vcscheduler.framework.session import Session
from vcscheduler.model.job import Job
from vcscheduler.model.status import PENDING, PIPELINED, RUNNING, SUCCEEDED, Code
from vcscheduler.model.task import Task
from vcscheduler.placement.rules import ScoringFailed
from vcscheduler.plugins.tdm import MAX_UNAVAILABLE, MIN_AVAILABLE, TdmPlugin, most_evictable, why_closed

ZONE = "volcano.sh/revocable-zone"
PREEMPTABLE = "volcano.sh/preemptable"
OPEN = {"tdm.revocable-zone.rz1": "0:00-0:00"}
CLOSED = {"tdm.revocable-zone.rz1": "1:00-2:00"}


def cluster() -> Cluster:
    c = Cluster()
    c.node("plain", cpu=10)
    c.node("lent", labels={ZONE: "rz1"}, cpu=10)
    c.node("other", labels={ZONE: "rz2"}, cpu=10)
    return c


def codes(ssn: Session, task: Task) -> list[tuple[str, ...]]:
    (rule,) = ssn.filters
    found = rule.codes(task, np.arange(3))
    return [tuple(s.reason for s in rule.statuses(task, c)) if c else () for c in found.tolist()]


def test_which_nodes_a_task_may_use() -> None:
    c = cluster()
    job = c.job("j")
    bound, free = c.task(job, "bound"), c.task(job, "free", annotations={ZONE: "*"})
    refused = ("not allow to dispatch to revocable node",)
    unknown = ("revocable zone rz2 not support",)
    opened = c.session(TdmPlugin, arguments=OPEN)
    assert codes(opened, bound) == [(), refused, unknown]
    assert codes(opened, free) == [(), (), unknown]
    closed = c.session(TdmPlugin, arguments=CLOSED)
    assert codes(closed, free) == [(), ("current time beyond revocable zone rz1:1:00-2:00",), unknown]
    assert {s.code for s in closed.filters[0].statuses(free, 2)} == {Code.UNRESOLVABLE}


def test_revocable_nodes_are_preferred_by_those_who_may_use_them() -> None:
    c = cluster()
    job = c.job("j")
    bound, free = c.task(job, "bound"), c.task(job, "free", annotations={PREEMPTABLE: "true"})
    ssn = c.session(TdmPlugin, arguments=OPEN)
    (scorer,) = ssn.scorers
    assert scorer.scores(free, np.array([0, 1])).tolist() == [0, 100]
    assert scorer.scores(bound, np.array([0, 1])).tolist() == [0, 0]
    with pytest.raises(ScoringFailed, match="revocable zone rz2 not support") as failure:
        scorer.scores(free, np.arange(3))
    assert failure.value.rows is not None
    assert failure.value.rows.tolist() == [2]


@pytest.mark.parametrize(
    ("window", "at", "opened"),
    [
        ("0:00-0:00", "00:00", True),
        ("0:00-0:00", "23:59", True),
        ("8:00-18:30", "08:00", True),
        ("8:00-18:30", "18:30", True),
        ("8:00-18:30", "18:31", False),
        ("08:00-18:30", "07:59", False),
        ("22:00-06:00", "23:00", True),
        ("22:00-06:00", "05:00", False),
        ("  1:00-0:00 ", "00:59", False),
        ("  1:00-0:00 ", "23:59", True),
        ("1:0-0:0", "00:00", False),
        ("63:59-23:59", "23:00", False),
        ("0:00", "00:00", False),
        ("8:00 - 9:00", "08:30", False),
        ("8:00-9:00-10:00", "08:30", False),
        ("0:00-24:00", "12:00", False),
        ("", "12:00", False),
    ],
)
def test_windows(window: str, at: str, opened: bool) -> None:
    """EX-TDM-2."""
    zone = timezone(timedelta(hours=8))
    now = datetime.fromisoformat(f"2026-03-01T{at}:00").replace(tzinfo=zone, microsecond=999)
    assert (why_closed("z", window, now) == "") is opened


@pytest.mark.parametrize(
    ("annotations", "most"),
    [
        ({MAX_UNAVAILABLE: "50%"}, 2),
        ({MAX_UNAVAILABLE: "45%"}, 2),
        ({MAX_UNAVAILABLE: "3"}, 0),
        ({MAX_UNAVAILABLE: "half"}, 0),
        ({MIN_AVAILABLE: "4"}, 2),
        ({MIN_AVAILABLE: "6"}, 0),
        ({MIN_AVAILABLE: "8"}, 1),
        ({MIN_AVAILABLE: "35%"}, 2),
        ({MIN_AVAILABLE: "5", MAX_UNAVAILABLE: "90%"}, 1),
        ({}, 1),
    ],
)
def test_budgets(annotations: dict[str, str], most: int) -> None:
    """EX-TDM-1."""
    c = Cluster()
    job = c.job("j", annotations=annotations)
    c.tasks(job, "a b c d e f", RUNNING)
    c.tasks(job, "g", SUCCEEDED)
    c.tasks(job, "h i j", PENDING)
    assert most_evictable(job) == most


def spread(c: Cluster) -> tuple[Job, list[Task]]:
    job = c.job("j", annotations={MAX_UNAVAILABLE: "2"})
    on_plain = c.tasks(job, "a b c", RUNNING, node="plain", cpu=1)
    on_lent = c.tasks(job, "x y z", RUNNING, node="lent", cpu=1)
    stays = c.task(job, "stays", RUNNING, node="plain", annotations={PREEMPTABLE: "false"}, cpu=1)
    return job, [*on_lent, stays, *on_plain]


def test_only_tasks_bound_to_ordinary_nodes_preempt_and_only_there() -> None:
    c = cluster()
    _, candidates = spread(c)
    own = c.job("own")
    bound = c.task(own, "bound", annotations={PREEMPTABLE: "false"})
    ordinary = c.task(own, "ordinary")
    ssn = c.session(TdmPlugin, arguments=OPEN)
    assert names(ssn.preemptable(bound, candidates)) == ["a", "b"]
    assert ssn.preemptable(ordinary, candidates) == []


def test_closed_zones_are_emptied_once_a_period() -> None:
    c = cluster()
    spread(c)
    ssn = c.session(TdmPlugin, arguments=CLOSED)
    assert names(ssn.victim_tasks([])) == ["x", "y"]
    assert ssn.victim_tasks([]) == []
    c.now = NOW + timedelta(seconds=59)
    assert c.session(TdmPlugin, arguments=CLOSED).victim_tasks([]) == []
    c.now = NOW + timedelta(seconds=60)
    assert names(c.session(TdmPlugin, arguments=CLOSED).victim_tasks([])) == ["x", "y"]
    c.now = NOW + timedelta(seconds=70)
    arguments = {**CLOSED, "tdm.evict.period": "10s"}
    assert names(c.session(TdmPlugin, arguments=arguments).victim_tasks([])) == ["x", "y"]
    c.now = NOW + timedelta(hours=5)
    assert c.session(TdmPlugin, arguments=OPEN).victim_tasks([]) == []


def test_orders_and_votes() -> None:
    c = cluster()
    fixed = c.job("fixed")
    movable = c.job("movable", annotations={PREEMPTABLE: "true"})
    c.tasks(fixed, "a", PIPELINED, cpu=1)
    c.tasks(movable, "b", cpu=1)
    ssn = c.session(TdmPlugin, arguments=OPEN)
    assert ssn.job_order.compare(fixed, movable) < 0
    assert [ssn.job_pipelined(j) for j in (fixed, movable)] == [True, False]
    assert [ssn.job_starving(j) for j in (fixed, movable)] == [False, False]
    c.tasks(fixed, "c", cpu=1)
    assert ssn.job_starving(fixed)


@pytest.mark.parametrize("arguments", [{"tdm.revocable-zone.rz1": 8}, {"tdm.evict.period": 60}])
def test_what_is_no_text_is_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ArgumentError):
        cluster().session(TdmPlugin, arguments=arguments)
