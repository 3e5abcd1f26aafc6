"""nodegroup: which groups of nodes a queue's tasks may use, and which it likes (spec 05 §8)."""

import numpy as np
import pytest
from plugin_cluster import Cluster

from vcscheduler.framework.session import Session
from vcscheduler.model.status import RUNNING
from vcscheduler.model.task import Task
from vcscheduler.objects.scheduling import NodeGroupAffinity, QueueAffinity
from vcscheduler.plugins.nodegroup import GROUP_LABEL, LIMITS_ANNOTATION, NodeGroupPlugin

FITS = ""
NO_LABEL = "node group label not found"
NO_AFFINITY = "node group affinity not specified"
NOT_SATISFIED = "node does not satisfy the node group affinity"
EXCEEDED = "node group resource limit exceeded"
INVALID = "node group resource limit annotation invalid"


def cluster(*groups: str) -> Cluster:
    """A node in each group, named after it; ``-`` = one without group."""
    c = Cluster()
    for group in groups:
        c.node(group, labels={} if group == "-" else {GROUP_LABEL: group}, cpu=8, memory=8)
    return c


def affinity(
    required: str = "", preferred: str = "", anti_required: str = "", anti_preferred: str = ""
) -> QueueAffinity:
    near, far = (
        NodeGroupAffinity(required=r.split(), preferred=p.split())
        for r, p in ((required, preferred), (anti_required, anti_preferred))
    )
    return QueueAffinity(node_group_affinity=near, node_group_anti_affinity=far)


def rows(ssn: Session) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return ssn.table.ready_rows


def reasons(ssn: Session, task: Task) -> dict[str, str]:
    (rule,) = ssn.filters
    return {
        ssn.table.nodes[row].name: rule.statuses(task, code)[0].reason if code else FITS
        for row, code in zip(rows(ssn).tolist(), rule.codes(task, rows(ssn)).tolist())
    }


def scores(ssn: Session, task: Task) -> dict[str, float]:
    (rule,) = ssn.scorers
    return {ssn.table.nodes[row].name: s for row, s in zip(rows(ssn).tolist(), rule.scores(task, rows(ssn)).tolist())}


def test_the_lists_admit_refuse_and_score() -> None:
    c = cluster("g1", "g2", "g3", "g4", "g5", "-")
    c.queue("q").object.spec.affinity = affinity("g1 g3", "g3", "g2 g4", "g4")
    task = c.task(c.job("j"), "t", cpu=1)
    ssn = c.session(NodeGroupPlugin)
    expected = {"g1": FITS, "g2": NOT_SATISFIED, "g3": FITS, "g4": FITS, "g5": NOT_SATISFIED, "-": NO_LABEL}
    assert reasons(ssn, task) == expected
    assert scores(ssn, task) == {"g1": 100, "g2": 0, "g3": 150, "g4": -1, "g5": 0, "-": 0}


def test_earlier_preferences_count_more_when_ordered() -> None:
    c = cluster("g1", "g3", "g4")
    c.queue("q").object.spec.affinity = affinity(preferred="g1 g3")
    c.queue("twice").object.spec.affinity = affinity(preferred="g1 g3 g1")
    task, other = c.task(c.job("j"), "t", cpu=1), c.task(c.job("k", "twice"), "u", cpu=1)
    ssn = c.session(NodeGroupPlugin, arguments={"enablePreferredOrder": True})
    assert scores(ssn, task) == {"g1": 50, "g3": 25, "g4": 0}
    # The last mention counts for the place, the number of different groups for the scale.
    assert scores(ssn, other) == {"g1": 0, "g3": 25, "g4": 0}


@pytest.mark.parametrize(("strict", "unlabelled"), [(True, NO_LABEL), (False, FITS)])
def test_a_queue_without_affinity_uses_unlabelled_nodes_only(strict: bool, unlabelled: str) -> None:
    c = cluster("g1", "-")
    c.queue("empty").object.spec.affinity = affinity()
    plain, empty = c.task(c.job("j"), "t", cpu=1), c.task(c.job("k", "empty"), "u", cpu=1)
    ssn = c.session(NodeGroupPlugin, arguments={"strict": strict})
    assert reasons(ssn, plain) == reasons(ssn, empty) == {"g1": NO_AFFINITY, "-": unlabelled}


def test_a_hierarchy_hands_affinity_down_until_an_empty_one() -> None:
    c = cluster("g1")
    c.queue("root").object.spec.affinity = affinity("g1")
    c.queue("child")
    c.queue("grandchild", parent="child")
    c.queue("blocked").object.spec.affinity = affinity()
    c.queue("under-blocked", parent="blocked")
    c.queue("lost", parent="nowhere")
    c.queue("a", parent="b")
    c.queue("b", parent="a")
    tasks = {queue: c.task(c.job(queue, queue), f"t-{queue}", cpu=1) for queue in sorted(c.cache.queues)}
    ssn = c.session(NodeGroupPlugin, flags={"enable_hierarchy": True})
    fitting = {queue for queue, task in tasks.items() if reasons(ssn, task) == {"g1": FITS}}
    assert fitting == {"root", "child", "grandchild"}
    flat = c.session(NodeGroupPlugin)
    assert {queue for queue, task in tasks.items() if reasons(flat, task) == {"g1": FITS}} == {"root"}


def test_limits_count_what_the_queue_holds_in_the_group() -> None:
    c = cluster("g1", "g3")
    limits = {LIMITS_ANNOTATION: '{"g3": {"cpu": "4", "example.com/unknown": 1}}'}
    c.queue("q", annotations=limits).object.spec.affinity = affinity("g1 g3")
    job = c.job("j")
    running = c.task(job, "r", RUNNING, node="g3", cpu=3)
    c.task(job, "elsewhere", RUNNING, node="g1", cpu=3)
    one, two = c.task(job, "one", cpu=1), c.task(job, "two", cpu=2)
    ssn = c.session(NodeGroupPlugin)
    assert reasons(ssn, one) == {"g1": FITS, "g3": FITS}
    assert reasons(ssn, two) == {"g1": FITS, "g3": EXCEEDED}
    one.node_name = "g3"
    ssn.fire_allocate(one)
    one.node_name = ""
    assert reasons(ssn, one)["g3"] == EXCEEDED
    ssn.fire_deallocate(running)
    assert reasons(ssn, two)["g3"] == FITS


@pytest.mark.parametrize("text", ["{bad", '{"g1": {"cpu": "x"}}', '{"g1": {"cpu": true}}', '["g1"]', '{"g1": "4"}'])
def test_limits_that_cannot_be_read_close_every_node(text: str) -> None:
    c = cluster("g1", "-")
    c.queue("q", annotations={LIMITS_ANNOTATION: text}).object.spec.affinity = affinity("g1")
    ssn_task = c.task(c.job("j"), "t", cpu=1)
    assert reasons(c.session(NodeGroupPlugin), ssn_task) == {"g1": INVALID, "-": INVALID}


@pytest.mark.parametrize("text", ["{}", "null", '{"g1": null}', '{"g1": {}}', '{"g9": {"cpu": 0}}'])
def test_limits_that_say_nothing_about_a_group(text: str) -> None:
    c = cluster("g1")
    c.queue("q", annotations={LIMITS_ANNOTATION: text}).object.spec.affinity = affinity("g1")
    task = c.task(c.job("j"), "t", cpu=1)
    assert reasons(c.session(NodeGroupPlugin), task) == {"g1": FITS}


def test_a_task_whose_job_is_gone_fits_nowhere() -> None:
    c = cluster("g1")
    task = c.task(c.job("j"), "t", cpu=1)
    ssn = c.session(NodeGroupPlugin)
    del ssn.jobs["ns/j"]
    assert reasons(ssn, task) == {"g1": "job ns/j not found in session"}
    assert scores(ssn, task) == {"g1": 0}


def test_groups_follow_the_labels_of_the_nodes() -> None:
    c = cluster("g1")
    c.queue("q").object.spec.affinity = affinity("g2")
    task = c.task(c.job("j"), "t", cpu=1)
    assert reasons(c.session(NodeGroupPlugin), task) == {"g1": NOT_SATISFIED}
    c.node("g1", labels={GROUP_LABEL: "g2"}, cpu=8, memory=8)
    assert reasons(c.session(NodeGroupPlugin), task) == {"g1": FITS}
