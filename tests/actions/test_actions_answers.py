"""What victim rules said of a node is kept for tasks alike, and outcomes stay what they are when everybody is asked."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given

from lab import Lab, configuration, written
from profiles import SEEDS, SOME
from random_clusters import Scene, scene
from vcscheduler.actions.answers import Answers
from vcscheduler.framework.session import Session
from vcscheduler.model.status import Vote
from vcscheduler.model.task import Task
from vcscheduler.plugins.conformance import ConformancePlugin


class Rule:
    """Lets everybody go whose job has more than ``least`` ready tasks, and counts how often it is asked. It stands in
    for the rule of conformance."""

    def __init__(self, patch: pytest.MonkeyPatch, *, by_job: bool = True, least: int = 0) -> None:
        self.times = 0

        def on_session_open(plugin: ConformancePlugin, ssn: Session) -> None:
            def rule(task: Task, candidates: list[Task]) -> tuple[list[Task], Vote]:
                self.times += 1
                return [t for t in candidates if ssn.jobs[t.job_id].ready_tasks > least], Vote.PERMIT

            ssn.add_reclaimable_fn(plugin.name, rule, by_job=by_job)

        patch.setattr(ConformancePlugin, "on_session_open", on_session_open)


def cluster(per_job: int) -> Lab:
    """A full node with 8 pods of queue ``a`` in jobs of ``per_job``, and a gang of 4 in queue ``b``."""
    others = [{"name": name, "enableReclaimable": False} for name in ("gang", "proportion")]
    tiers = [["conformance"], [*others, "predicates"]]
    lab = Lab(configuration(tiers, "allocate, reclaim")).queue("a").queue("b").node("n", cpu=8)
    for i in range(8 // per_job):
        lab.job(f"have{i}", tasks=per_job, queue="a", on="n", cpu=1)
    return lab.job("want", 4, tasks=4, queue="b", cpu=1)


def test_a_rule_that_goes_by_job_is_asked_once_for_a_gang(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Rule(monkeypatch)
    assert len(cluster(1).cycle().evicts) == 4
    assert rule.times == 1


def test_any_other_rule_is_asked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Rule(monkeypatch, by_job=False)
    assert len(cluster(1).cycle().evicts) == 4
    assert rule.times == 4


def test_it_is_asked_again_once_a_job_with_others_on_the_node_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Rule(monkeypatch, least=6)
    # The job may go down to 6, so two of the four cannot be served and the gang gets nothing.
    assert not cluster(8).cycle().evicts
    assert rule.times > 2


def everything(built: Scene) -> list[Any]:
    lab = built.lab()
    return [*map(written, lab.cycles(3)), lab.pod_conditions(), lab.cluster.events()]


@SOME
@given(SEEDS)
def test_outcomes_are_those_without_keeping_anything(seed: int) -> None:
    kept = everything(scene(random.Random(seed), wild=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Answers, "_keep", lambda self, task, candidates: None)
        assert everything(scene(random.Random(seed), wild=True)) == kept


@pytest.mark.parametrize(
    ("answers", "agreed"),
    [
        (["ab", "b", "abc"], "b"),
        (["a", "b", "bc"], ""),  # The intersection became empty, and the third rule began anew.
        (["a", "", "bc"], ""),
        (["ab", None, "b"], ""),  # One has no say now.
    ],
)
def test_only_what_the_first_tier_agrees_on_is_kept(answers: list[str | None], agreed: str) -> None:
    ssn = Lab(configuration([["priority", "gang", "conformance"]])).queue("q").job("j", tasks=3, cpu=1).session()
    tasks = {t.name[-1]: t for t in ssn.jobs["ns/j"].tasks.values()}
    named = dict(zip("abc", (tasks["0"], tasks["1"], tasks["2"])))
    for plugin, answer in zip(("priority", "gang", "conformance"), answers):
        said = ([named[x] for x in answer or ""], Vote.ABSTAIN if answer is None else Vote.PERMIT)
        ssn.add_preemptable_fn(plugin, lambda task, candidates, said=said: said, by_job=True)
    assert ssn.preemptable_by_job(named["a"], list(named.values())) == [named[x] for x in agreed]
