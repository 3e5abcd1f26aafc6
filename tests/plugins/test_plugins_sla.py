"""sla: deadlines (spec 04 §11)."""

import logging
from datetime import timedelta

import pytest
from plugin_cluster import Cluster, in_order, names

from vcscheduler.framework.session import Session
from vcscheduler.model.status import Vote
from vcscheduler.plugins.overcommit import OvercommitPlugin
from vcscheduler.plugins.sla import SlaPlugin

ANNOTATION = "volcano.sh/sla-waiting-time"


def sla(ssn: Session) -> SlaPlugin:
    assert isinstance(ssn.plugins[0], SlaPlugin)
    return ssn.plugins[0]


def test_the_earlier_deadline_first_and_none_last() -> None:
    """EX-SLA-1."""
    c = Cluster()
    c.now = c.now.replace(hour=10, minute=30)
    jobs = [
        c.job("none", age=9000),
        c.job("b", age=40 * 60, annotations={ANNOTATION: "2h"}),
        c.job("a", age=30 * 60, annotations={ANNOTATION: "1h"}),
    ]
    ssn = c.session(SlaPlugin)
    assert in_order(jobs, ssn.job_order.less) == ["a", "b", "none"]
    assert ssn.job_order.key is not None
    assert names(sorted(jobs, key=ssn.job_order.key)) == ["a", "b", "none"]  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("age", "vote"),
    [(61 * 60, Vote.PERMIT), (59 * 60, Vote.ABSTAIN), (3600, Vote.PERMIT), (3599.999999, Vote.ABSTAIN)],
)
def test_waiting_longer_than_promised_permits(age: float, vote: Vote) -> None:
    """EX-SLA-2."""
    c = Cluster()
    job = c.job("j", phase="Pending", age=age, min_resources={"cpu": 1})
    ssn = c.session(SlaPlugin, OvercommitPlugin, arguments={"sla-waiting-time": "1h"})
    assert sla(ssn).vote(job) is vote
    assert ssn.job_enqueueable(job) is (vote is Vote.PERMIT)
    assert ssn.job_pipelined(job)


@pytest.mark.parametrize(
    ("annotations", "minutes"),
    [
        ({}, 60),
        ({ANNOTATION: "5m"}, 5),
        ({"sla-waiting-time": "7m"}, 7),
        ({ANNOTATION: "5m", "sla-waiting-time": "7m"}, 5),
        ({ANNOTATION: "soon", "sla-waiting-time": "7m"}, 7),
        ({ANNOTATION: "-5m", "sla-waiting-time": "0s"}, 60),
    ],
)
def test_a_jobs_own_limit_comes_before_the_general_one(annotations: dict[str, str], minutes: int) -> None:
    c = Cluster()
    job = c.job("j", annotations=annotations)
    ssn = c.session(SlaPlugin, arguments={"sla-waiting-time": "1h"})
    assert sla(ssn).limit_of(job) == timedelta(minutes=minutes) // timedelta(microseconds=1) * 1000


@pytest.mark.parametrize("given", [5, "5", "-1h", "0s", "soon"])
def test_a_general_limit_must_be_a_duration(given: object, caplog: pytest.LogCaptureFixture) -> None:
    c = Cluster()
    job = c.job("j", age=1e9)
    with caplog.at_level(logging.WARNING):
        ssn = c.session(SlaPlugin, arguments={"sla-waiting-time": given})
        c.session(SlaPlugin, arguments={"sla-waiting-time": given})
    assert sla(ssn).vote(job) is Vote.ABSTAIN
    if isinstance(given, str):
        assert len(caplog.messages) == 1


def test_a_job_without_creation_time_waits_for_ever() -> None:
    c = Cluster()
    job = c.job("j")
    job.created = float("-inf")
    assert sla(c.session(SlaPlugin, arguments={"sla-waiting-time": "1h"})).vote(job) is Vote.PERMIT
