"""How the answers of several plugins are put together (spec 02 §5.4, §6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest

import builders
from builders import World
from lab import Lab, configuration, member, queue
from vcscheduler.config import PluginOption, Tier
from vcscheduler.framework.extension_points import ExtensionPoints
from vcscheduler.framework.plugin import Plugin
from vcscheduler.framework.session import Session
from vcscheduler.model.fit import FitFailure, Status
from vcscheduler.model.job import Job
from vcscheduler.model.nodes import Node
from vcscheduler.model.queue import Queue
from vcscheduler.model.status import Code, EvictionKind, Vote
from vcscheduler.model.task import Task, TaskClasses

PERMIT, ABSTAIN, REJECT = Vote.PERMIT, Vote.ABSTAIN, Vote.REJECT
JOB, QUEUE = Job("ns/j"), Queue(queue("q"))


def points(*tiers: str, **flags: dict[str, bool]) -> ExtensionPoints:
    """``points("gang priority", "drf")``; ``flags`` by plugin name."""
    return ExtensionPoints(
        [Tier(tuple(PluginOption(name=n, **flags.get(n, {})) for n in tier.split())) for tier in tiers]  # type: ignore[arg-type]
    )


@dataclass(frozen=True)
class Letter:
    """As much of a task as victims need."""

    uid: str


def letters(text: str) -> list[Task]:
    return cast(list[Task], [Letter(c) for c in text])


def spelled(tasks: list[Task]) -> str:
    return "".join(t.uid for t in tasks)


# --- votes (§5.1) ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tiers", "votes", "expected"),
    [
        (("sla overcommit", "proportion"), {"sla": ABSTAIN, "overcommit": PERMIT, "proportion": REJECT}, True),
        (("overcommit proportion",), {"overcommit": PERMIT, "proportion": REJECT}, False),
        (("sla", "gang"), {"sla": ABSTAIN}, True),
        (("sla", "gang"), {"sla": ABSTAIN, "gang": REJECT}, False),
        (("sla",), {}, True),
    ],
)
def test_votes(tiers: tuple[str, ...], votes: dict[str, Vote], expected: bool) -> None:
    ssn = points(*tiers)
    for name, vote in votes.items():
        ssn.add_job_enqueueable_fn(name, lambda job, vote=vote: vote)
        ssn.add_job_pipelined_fn(name, lambda job, vote=vote: vote)
    assert ssn.job_enqueueable(JOB) is expected
    assert ssn.job_pipelined(JOB) is expected


def test_a_rejection_ends_the_asking() -> None:
    asked = []
    ssn = points("a b", "c")

    def vote(name: str, answer: Vote) -> Callable[[Job], Vote]:
        def f(job: Job) -> Vote:
            asked.append(name)
            return answer

        return f

    for name, answer in (("a", PERMIT), ("b", REJECT), ("c", PERMIT)):
        ssn.add_job_pipelined_fn(name, vote(name, answer))
    assert not ssn.job_pipelined(JOB)
    assert asked == ["a", "b"]


# --- victims (§5.2) -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tiers", "answers", "expected"),
    [
        (("gang conformance priority",), {"gang": "abc", "conformance": "bc", "priority": "cd"}, "c"),
        (("gang", "drf"), {"gang": "", "drf": "a"}, "a"),
        (("gang priority",), {"gang": None, "priority": "a"}, "a"),
        (("x y z",), {"x": "a", "y": "b", "z": "c"}, "c"),
        (("x y", "z"), {"x": "a", "y": "", "z": "b"}, "b"),
        (("x y", "z"), {"x": "ba", "y": "ab", "z": "c"}, "ba"),
        (("x", "y"), {}, ""),
        (("x", "y"), {"x": "", "y": ""}, ""),
    ],
)
def test_victims(tiers: tuple[str, ...], answers: dict[str, str | None], expected: str) -> None:
    ssn = points(*tiers)
    initiator = letters("i")[0]
    for name, text in answers.items():
        given = (letters(text or ""), ABSTAIN if text is None else PERMIT)
        ssn.add_preemptable_fn(name, lambda task, candidates, given=given: given)
        ssn.add_reclaimable_fn(name, lambda task, candidates, given=given: given)
        ssn.add_unified_evictable_fn(name, lambda kind, job, candidates, given=given: given)
    assert spelled(ssn.preemptable(initiator, [])) == expected
    assert spelled(ssn.reclaimable(initiator, [])) == expected
    assert spelled(ssn.unified_evictable(EvictionKind.GANG_PREEMPT, JOB, [])) == expected


def test_victim_tasks_are_the_union_of_the_first_tier_that_names_any() -> None:
    ssn = points("a", "b c", "d")
    assert not ssn.names_victims
    ssn.add_victim_tasks_fn("a", [lambda tasks: []])
    ssn.add_victim_tasks_fn("b", [lambda tasks: tasks[:1], lambda tasks: tasks[1:2]])
    ssn.add_victim_tasks_fn("c", [lambda tasks: tasks[:1]])
    ssn.add_victim_tasks_fn("d", [lambda tasks: tasks])
    assert ssn.names_victims
    assert spelled(ssn.victim_tasks(letters("xyz"))) == "xy"


# --- yes and no -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tiers", "answers", "expected"),
    [
        (("gang priority",), {"gang": True, "priority": False}, False),
        (("gang", "tdm"), {"tdm": True}, True),
        (("gang", "tdm"), {"gang": False, "tdm": True}, False),
        (("gang",), {}, False),
    ],
)
def test_starving_is_decided_by_the_first_tier_with_a_say(
    tiers: tuple[str, ...], answers: dict[str, bool], expected: bool
) -> None:
    ssn = points(*tiers)
    for name, answer in answers.items():
        ssn.add_job_starving_fn(name, lambda job, answer=answer: answer)
    assert ssn.job_starving(JOB) is expected


def test_one_plugin_is_enough_to_be_overused_and_one_to_forbid() -> None:
    ssn = points("gang", "proportion")
    task = letters("t")[0]
    assert (ssn.overused(QUEUE), ssn.allocatable(QUEUE, task), ssn.preemptive(QUEUE, [task])) == (False, True, True)
    assert ssn.job_ready(JOB)
    ssn.add_overused_fn("gang", lambda q: False)
    ssn.add_overused_fn("proportion", lambda q: True)
    ssn.add_allocatable_fn("gang", lambda q, t: True)
    ssn.add_allocatable_fn("proportion", lambda q, t: False)
    ssn.add_preemptive_fn("proportion", lambda q, t: False)
    ssn.add_job_ready_fn("gang", lambda j: False)
    assert (ssn.overused(QUEUE), ssn.allocatable(QUEUE, task), ssn.preemptive(QUEUE, [task])) == (True, False, False)
    assert not ssn.job_ready(JOB)


def test_the_first_invalidity_is_told() -> None:
    ssn = points("a b c")
    ssn.add_job_valid_fn("a", lambda job: None)
    ssn.add_job_valid_fn("c", lambda job: ("Late", "c"))
    ssn.add_job_valid_fn("b", lambda job: ("Early", "b"))
    assert ssn.job_valid(JOB) == ("Early", "b")


def test_flags_take_a_plugin_out_of_one_point_only() -> None:
    ssn = points("gang", gang={"enable_job_ready": False})
    ssn.add_job_ready_fn("gang", lambda j: False)
    ssn.add_job_starving_fn("gang", lambda j: True)
    assert ssn.job_ready(JOB)
    assert ssn.job_starving(JOB)


def test_a_plugin_without_an_entry_has_no_say_and_the_last_registration_counts() -> None:
    ssn = points("a")
    ssn.add_job_ready_fn("b", lambda j: False)
    assert ssn.job_ready(JOB)
    ssn.add_job_ready_fn("a", lambda j: False)
    ssn.add_job_ready_fn("a", lambda j: True)
    assert ssn.job_ready(JOB)


def test_how_many_tasks_may_go_at_once() -> None:
    ssn = points("a b")
    task = letters("t")[0]
    assert (ssn.placements_until_ready(JOB, task, 7), ssn.allocatable_count(QUEUE, task, 7)) == (1, 7)
    ssn.add_job_ready_fn("a", lambda j: False, after=lambda j, t: 3)
    ssn.add_job_ready_fn("b", lambda j: False, after=lambda j, t: 5)
    ssn.add_allocatable_fn("a", lambda q, t: True, limit=lambda q, t, k: min(k, 4))
    assert (ssn.placements_until_ready(JOB, task, 7), ssn.placements_until_ready(JOB, task, 4)) == (5, 4)
    assert ssn.allocatable_count(QUEUE, task, 7) == 4
    ssn.add_job_ready_fn("b", lambda j: False, after=lambda j, t: None)
    assert ssn.placements_until_ready(JOB, task, 7) == 7
    # Whoever cannot say beforehand is asked after every task.
    ssn.add_job_ready_fn("b", lambda j: False)
    ssn.add_allocatable_fn("b", lambda q, t: True)
    assert (ssn.placements_until_ready(JOB, task, 7), ssn.allocatable_count(QUEUE, task, 7)) == (1, 1)


def test_the_first_pre_predicate_that_fails_ends_it() -> None:
    ssn = points("a b")
    asked: list[str] = []
    failure = Status(Code.ERROR, "no")

    def fails(task: Task) -> Status:
        asked.append("a")
        return failure

    ssn.add_pre_predicate_fn("a", fails)
    ssn.add_pre_predicate_fn("b", lambda task: asked.append("b"), run=lambda tasks: None)  # type: ignore[func-returns-value]
    assert ssn.pre_predicate(letters("t")[0]) is failure
    assert asked == ["a"]
    assert not ssn.pre_predicates_run


# --- orders (§6) ----------------------------------------------------------------------------------------------------


def by(attribute: str) -> Callable[[Any, Any], float]:
    return lambda a, b: getattr(a, attribute) - getattr(b, attribute)


def test_the_first_plugin_that_tells_two_jobs_apart_decides() -> None:
    ssn = points("a b")
    x, y = Job("ns/x"), Job("ns/y")
    x.priority, y.priority = 1, 2
    assert ssn.job_order.less(x, y)
    ssn = points("a b")
    ssn.add_job_order_fn("a", lambda a, b: 0)
    ssn.add_job_order_fn("b", lambda a, b: b.priority - a.priority, key=lambda j: -j.priority)
    assert ssn.job_order.less(y, x)
    assert ssn.job_order.compare(x, y) > 0
    # One plugin in the walk without a key, and there is none.
    assert ssn.job_order.key is None
    ssn.add_job_order_fn("a", lambda a, b: 0, key=lambda j: 0)
    key = ssn.job_order.key
    assert key is not None
    assert sorted([x, y], key=key) == [y, x]


def test_jobs_fall_back_to_age_then_key_and_queues_to_age_then_name() -> None:
    ssn = points("a")
    old, young, b = Job("ns/old"), Job("ns/a"), Job("ns/b")
    old.created, young.created, b.created = 1.0, 2.0, 2.0
    assert ssn.job_order.less(old, young)
    assert ssn.job_order.less(young, b)
    q1, q2, older = Queue(queue("q1")), Queue(queue("q2")), Queue(queue("z", age=60))
    assert ssn.queue_order.less(q1, q2)
    assert ssn.queue_order.less(older, q1)
    # Victims fall back to the later queue.
    assert ssn.victim_queue_less(q2, q1, q1)
    ssn.add_victim_queue_order_fn("a", lambda a, b, own: -1 if a is own else 1)
    assert ssn.victim_queue_less(q1, q2, q1)


def test_an_order_that_was_used_already_still_learns_of_a_plugin() -> None:
    ssn = points("a")
    old, young = Job("ns/old"), Job("ns/young")
    old.created, young.created = 1.0, 2.0
    assert ssn.job_order.less(old, young)
    ssn.add_job_order_fn("a", lambda a, b: b.created - a.created)
    assert ssn.job_order.less(young, old)


def test_tasks_fall_back_to_their_index_then_age_then_uid() -> None:
    ssn, classes = points("a"), TaskClasses()

    def task(name: str, age: float = 0) -> Task:
        pod = member("j", name, age=age)
        return Task(pod, classes.of(pod))

    assert ssn.task_less(task("j-w-2"), task("j-w-10"))
    assert ssn.task_less(task("web-1", age=5), task("j-w-0"))
    assert ssn.task_less(task("j-w-0", age=5), task("web-1"))
    assert ssn.task_less(task("a"), task("b"))
    assert not ssn.task_less(task("j-w-3", age=9), task("j-w-1"))


class Mine(Plugin):
    name = "mine"

    def on_session_open(self, ssn: Session) -> None:
        ssn.add_predicate_fn(self.name, self.not_n1)
        ssn.add_node_order_fn(self.name, lambda task, node: 2.5 if node.name == "n2" else 1.0)
        ssn.add_batch_node_order_fn(self.name, lambda task, nodes: {n.name: float(len(nodes)) for n in nodes})

    def not_n1(self, task: Task, node: Node) -> None:
        if node.name == "n1":
            raise FitFailure(Status(Code.UNSCHEDULABLE, "not here"))


def test_functions_of_one_node_at_a_time() -> None:
    session = World(builders.node("n1"), builders.node("n2")).session(Mine)
    assert session.refusals(builders.pod("p")) == {"n1": ["not here"], "n2": []}
    assert session.scores(builders.pod("p")) == {"n1": 3.0, "n2": 4.5}
    # A plugin has one node order; the last one counts.
    session.add_node_order_fn("mine", lambda task, node: 0.5)
    assert session.scores(builders.pod("p")) == {"n1": 2.5, "n2": 2.5}


def test_a_session_knows_the_entry_of_a_plugin() -> None:
    tiers = [["gang", {"name": "drf", "enableJobOrder": False}]]
    ssn = Lab(configuration(tiers)).session()
    option = ssn.plugin_option("drf")
    assert option is not None
    assert not option.enable_job_order
    assert ssn.plugin_option("nobody") is None
