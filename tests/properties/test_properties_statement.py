"""Whatever a statement did, discarding it leaves no trace: not in jobs, not in columns, not in any plugin's sums."""

from __future__ import annotations

import random

from hypothesis import given

import digests
from lab import Lab
from profiles import SEEDS, SOME
from random_clusters import scene
from vcscheduler.framework.session import Session
from vcscheduler.framework.statement import Statement
from vcscheduler.model.status import ALLOCATED, PENDING, RUNNING
from vcscheduler.model.task import Task
from vcscheduler.placement.search import ErrorCache


class Acts:
    """Random operations on a session, some of them in statements of their own that are merged, undone or done again."""

    def __init__(self, ssn: Session, rng: random.Random, *, evicting: bool) -> None:
        self.ssn = ssn
        self.rng = rng
        self.evicting = evicting
        self.done: set[str] = set()

    def tasks(self, *statuses: object) -> list[Task]:
        jobs = sorted(self.ssn.jobs.values(), key=lambda j: j.id)
        return [t for j in jobs for t in sorted(j.tasks.values(), key=lambda t: t.key) if t.status in statuses]

    def act(self, statement: Statement, depth: int = 0) -> None:
        rng = self.rng
        for _ in range(rng.randint(1, 6)):
            kind = rng.choice(["allocate", "pipeline", "run", "evict", "nest", "again", "unknown"])
            if kind == "nest" and depth < 2:
                inner = Statement(self.ssn)
                self.act(inner, depth + 1)
                if rng.random() < 0.5:
                    inner.discard()
                else:
                    statement.merge(inner)
            elif kind == "again" and len(statement):
                saved = statement.save()
                statement.discard()
                assert statement.recover(saved) is None
            elif kind == "evict" and self.evicting and (running := self.tasks(RUNNING)):
                statement.evict(rng.choice(running), "preempt")
            elif pending := [t for t in self.tasks(PENDING) if not t.gated]:
                self.place(statement, kind, rng.choice(pending))

    def place(self, statement: Statement, kind: str, task: Task) -> None:
        ssn, rng = self.ssn, self.rng
        if ssn.pre_predicate(task) is not None:
            return
        nodes = [n for n in ssn.table if task.key not in n.tasks]
        if kind == "unknown":
            assert statement.pipeline(task, None, False) is not None
        elif kind == "run" and ssn.runs_allowed and ssn.pre_predicates_run:
            alike = [t for t in self.tasks(PENDING) if t.job_id == task.job_id and ssn.runs.alike(task, t)]
            rows = ssn.runs.place(task, len(alike), ErrorCache(reads=False), last=True)
            if rows:
                placed = [task, *(t for t in alike if t is not task)][: len(rows)]
                ssn.pre_predicate_run(placed)
                statement.place_run(ssn.jobs[task.job_id], placed, rows, ALLOCATED)
        elif kind == "pipeline" and nodes:
            statement.pipeline(task, rng.choice(nodes), rng.random() < 0.5)
        elif nodes:
            statement.allocate(task, rng.choice(nodes))


def started(seed: int) -> tuple[Lab, random.Random]:
    """A cluster in the middle of its life: some pods run, some wait."""
    rng = random.Random(seed)
    lab = scene(rng, wild=rng.random() < 0.5).lab()
    lab.cycle()
    lab.cluster.step()
    return lab, rng


@SOME
@given(SEEDS)
def test_discard_restores_everything(seed: int) -> None:
    lab, rng = started(seed)
    ssn = lab.session()
    before = digests.session(ssn)
    statement = Statement(ssn)
    Acts(ssn, rng, evicting=False).act(statement)
    statement.discard()
    assert digests.session(ssn) == before
    assert not len(statement)


@SOME
@given(SEEDS)
def test_discard_of_evictions_restores_all_but_the_kubernetes_view(seed: int) -> None:
    # The predicates plugin does not take the victim back into the view (spec 05 §2.1); the next session finds it there.
    lab, rng = started(seed)
    lab.cache.begin_session()
    at_rest = digests.nodes(lab.cache.table)
    ssn = lab.session()
    before = digests.session(ssn, view=False)
    statement = Statement(ssn)
    Acts(ssn, rng, evicting=True).act(statement)
    statement.discard()
    assert digests.session(ssn, view=False) == before
    lab.close(ssn)
    assert digests.nodes(lab.cache.table) == at_rest


@SOME
@given(SEEDS)
def test_what_was_not_committed_is_gone_when_the_session_closes(seed: int) -> None:
    lab, rng = started(seed)
    lab.cache.begin_session()
    tables = digests.nodes(lab.cache.table)
    tasks = {t.key: digests.task(t, lab.cache.table) for t in lab.cache._tasks.values()}
    ssn = lab.session()
    acts = Acts(ssn, rng, evicting=False)
    for _ in range(2):
        acts.act(Statement(ssn))
    lab.close(ssn)
    assert digests.nodes(lab.cache.table) == tables
    assert {t.key: digests.task(t, lab.cache.table) for t in lab.cache._tasks.values()} == tasks
