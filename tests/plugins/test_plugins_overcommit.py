"""overcommit: how much may be admitted (spec 04 §8)."""

import pytest
from plugin_cluster import Cluster, amounts

from vcscheduler.framework.session import Session
from vcscheduler.model.status import BINDING, RELEASING, RUNNING
from vcscheduler.plugins.overcommit import OvercommitPlugin


def plugin(ssn: Session) -> OvercommitPlugin:
    (found,) = ssn.plugins
    assert isinstance(found, OvercommitPlugin)
    return found


def cluster() -> Cluster:
    c = Cluster()
    c.node("n1", cpu=2, memory=4)
    c.node("n2", cpu=4, memory=16)
    return c


def test_admits_up_to_a_multiple_of_the_cluster_less_what_is_used() -> None:
    """EX-OVER-1."""
    c = cluster()
    c.task(c.job("running", phase="Running"), "r", RUNNING, node="n1", cpu=1, memory=2)
    c.job("admitted", min_resources={"cpu": 2, "memory": 2})
    first = c.job("first", phase="Pending", min_resources={"cpu": 4, "memory": 1})
    second = c.job("second", phase="Pending", min_resources={"cpu": 0.5})
    third = c.job("third", phase="Pending", min_resources={"memory": 1})
    ssn = c.session(OvercommitPlugin)
    idle = amounts(plugin(ssn).idle)
    assert (idle["cpu"], idle["memory"]) == (6.2, 22)
    assert ssn.job_enqueueable(first)
    ssn.job_enqueued(first)
    assert amounts(plugin(ssn).inqueue) == {"cpu": 6, "memory": 3}
    assert not ssn.job_enqueueable(second)
    assert c.cache.events == [("ns/second", "Normal", "Unschedulable", "resource in cluster is overused: overused cpu")]
    assert ssn.job_enqueueable(third)


@pytest.mark.parametrize(("given", "used"), [(0.8, 1.2), ("1.5", 1.2), (1.5, 1.5), (2, 2.0), (1, 1.0)])
def test_the_factor_is_a_number_of_at_least_one(given: object, used: float) -> None:
    """EX-OVER-2."""
    assert plugin(cluster().session(OvercommitPlugin, arguments={"overcommit-factor": given})).factor == used


def test_what_the_cluster_lacks_is_refused() -> None:
    """EX-OVER-3."""
    c = cluster()
    job = c.job("j", phase="Pending", min_resources={"gpu": 1})
    assert not c.session(OvercommitPlugin).job_enqueueable(job)


def test_releasing_tasks_are_in_use_and_pipelined_ones_are_not() -> None:
    c = cluster()
    job = c.job("j", phase="Running")
    c.task(job, "leaving", RELEASING, node="n1", cpu=1)
    ssn = c.session(OvercommitPlugin)
    assert amounts(plugin(ssn).idle)["cpu"] == 6.2


def test_tasks_being_bound_count_twice_for_an_admitted_job_and_once_for_a_running_one() -> None:
    """Quirk of the in-queue sum: the full minimum of Inqueue jobs, what is still owed to Running ones."""
    for phase, owed in (("Inqueue", 4.0), ("Running", 2.0)):
        c = cluster()
        job = c.job("j", phase=phase, minimum=1, min_resources={"cpu": 4})
        c.task(job, "a", BINDING, node="n2", cpu=2)
        assert amounts(plugin(c.session(OvercommitPlugin)).inqueue)["cpu"] == owed


def test_without_a_minimum_anything_is_admitted() -> None:
    c = Cluster()
    job = c.job("j", phase="Pending")
    ssn = c.session(OvercommitPlugin)
    assert ssn.job_enqueueable(job)
    ssn.job_enqueued(job)
    assert amounts(plugin(ssn).inqueue) == {}
