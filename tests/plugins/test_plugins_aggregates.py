"""Sums kept over sessions equal sums made afresh, whatever happened in between."""

import random

import pytest
from plugin_cluster import Cluster, vector

from vcscheduler.model.aggregates import Aggregates, reserved_minimum
from vcscheduler.model.job import Job
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import ALLOCATED, BINDING, BOUND, FAILED, PENDING, PIPELINED, RELEASING, RUNNING

STATUSES = (PENDING, ALLOCATED, PIPELINED, BINDING, BOUND, RUNNING, RELEASING, FAILED)


def plain(r: Resources) -> tuple[float, float, dict[str, float]]:
    return r.cpu, r.memory, {n: v for n, v in r.scalar_items() if v}


def state(a: Aggregates) -> dict[str, object]:
    found: dict[str, object] = {"overcommit": plain(a.overcommit_inqueue)}
    for name in a.queues():
        q = a.queue(name)
        assert q is not None
        found[name] = [plain(v) for v in (q.allocated, q.request, q.inqueue, q.elastic)], q.jobs
    return found


def by_the_book(jobs: list[Job]) -> dict[str, object]:
    """Straight from spec 04 §1.2, §1.3 and §8."""
    found: dict[str, object] = {}
    overcommit = Resources()
    for queue in {j.queue for j in jobs}:
        allocated, request, inqueue, elastic = Resources(), Resources(), Resources(), Resources()
        members = [j for j in jobs if j.queue == queue]
        for j in members:
            allocated.add(j.allocated)
            request.add(j.allocated).add(j.pending_request)
            elastic.add(j.elastic)
            if j.min_resources is None:
                continue
            owed = j.without_gated(reserved_minimum(j))
            if j.phase == "Inqueue":
                inqueue.add(owed)
                overcommit.add(j.without_gated(j.min_resources))
            elif j.phase == "Running" and j.allocated_tasks >= j.min_available:
                inqueue.add(owed)
                overcommit.add(owed)
        found[queue] = [plain(v) for v in (allocated, request, inqueue, elastic)], len(members)
    found["overcommit"] = plain(overcommit)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_incremental_sums_equal_fresh_ones(seed: int) -> None:
    rng = random.Random(seed)
    c = Cluster()
    kept = Aggregates()
    requests = [{"cpu": 1}, {"cpu": 2, "memory": 1}, {"memory": 3, "gpu": 1}, {"gpu": 0}, {}]
    minimums = [None, {}, {"cpu": 3}, {"cpu": 1, "gpu": 2, "pods": 4}, {"memory": 5, "ephemeral_storage": 1}]
    for i in range(12):
        job = c.job(
            f"j{i}",
            rng.choice(("q1", "q2", "q3")),
            minimum=rng.randint(0, 3),
            min_resources=rng.choice(minimums),
        )
        for k in range(rng.randint(0, 5)):
            gates = ["example.com/gate"] if rng.random() < 0.3 else []
            c.task(job, f"t{i}-{k}", rng.choice(STATUSES), gates=gates, **rng.choice(requests))
    jobs = list(c.cache.jobs.values())
    kept.refresh(jobs)
    for _ in range(30):
        changed = rng.sample(jobs, min(len(jobs), rng.randint(0, 4)))
        for job in changed:
            job.phase = rng.choice(("Pending", "Inqueue", "Running", "Unknown"))
            if rng.random() < 0.2:
                job.queue = rng.choice(("q1", "q2", "q4"))
            for t in list(job.tasks.values()):
                if rng.random() < 0.1:
                    job.remove_task(t)
                elif rng.random() < 0.5:
                    job.set_status(t, rng.choice(STATUSES))
        kept.refresh(changed)
        assert state(kept) == by_the_book(jobs)
        if rng.random() < 0.2:
            gone = rng.choice(jobs)
            jobs.remove(gone)
            kept.forget(gone.id)
    for job in jobs:
        kept.forget(job.id)
    kept.forget("ns/unknown")
    assert state(kept) == {"overcommit": (0, 0, {})}
    assert kept.queue("q1") is None


def test_owed_minimum_by_kind_of_resource() -> None:
    c = Cluster()
    job = c.job(
        "j",
        min_resources={"cpu": 4, "memory": 1, "gpu": 2, "pods": 1, "ephemeral_storage": 9, "x.io/y": 3},
    )
    c.tasks(job, "a b", RUNNING, cpu=1, memory=1, gpu=1)
    owed = reserved_minimum(job)
    assert (owed.cpu, owed.memory) == (2000, 0)
    assert owed.scalars == {"pods": 0, "x.io/y": 3000}


def test_sums_handed_out_are_the_readers_own() -> None:
    c = Cluster()
    c.tasks(c.job("j"), "a", RUNNING, cpu=1)
    sums = Aggregates()
    sums.refresh(c.cache.jobs.values())
    first = sums.queue("q")
    assert first is not None
    first.allocated.add(vector(cpu=5))
    first.elastic.add(vector(cpu=5))
    second = sums.queue("q")
    assert second is not None
    assert (second.allocated.cpu, second.elastic.cpu) == (1000, 1000)
