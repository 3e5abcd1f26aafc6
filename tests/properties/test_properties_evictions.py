"""What must hold of every eviction: it makes room that is used, for somebody who gets going, and takes no queue's
guarantee; and the cluster comes to rest.

The reference itself breaks the second one in the second phase of preempt, inside one job (spec 03 §13-8), so victims of
the preemptor's own job are left out there, and the gang actions, which evict whole bundles (§13-12), are not asked.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given

from lab import Lab, configuration
from profiles import SEEDS, SOME
from vcscheduler.framework.evictions import EvictionRecord
from vcscheduler.framework.session import Session
from vcscheduler.model.resources import Resources
from vcscheduler.model.status import PIPELINED

QUIET = {"enablePreemptable": False}
PREEMPT = configuration(
    [
        ["priority", {"name": "gang", **QUIET}, "conformance"],
        [{"name": "drf", **QUIET}, "predicates", "proportion", "nodeorder"],
    ],
    actions="enqueue, allocate, preempt, backfill",
)
#: One tier, so that the share plugin's word about victims counts (spec 03 §6.3).
RECLAIM = configuration(
    [["gang", "conformance", "capacity", "predicates", "nodeorder"]], actions="enqueue, allocate, reclaim, backfill"
)


def crowded(rng: random.Random, config: dict[str, object]) -> Lab:
    """A full cluster of low priority and of queue ``a``, and gangs of high priority, some of queue ``b``."""
    lab = Lab(config)
    lab.queue("a", deserved={"cpu": rng.randint(0, 8)}, guarantee={"resource": {"cpu": rng.randint(0, 4)}})
    lab.queue("b", deserved={"cpu": rng.randint(4, 16)})
    nodes = [f"n{i}" for i in range(rng.randint(1, 5))]
    for name in nodes:
        lab.node(name, cpu=4)
    reclaiming = config is RECLAIM
    for j in range(rng.randint(1, 6)):
        tasks = rng.randint(1, 4)
        lab.job(f"low{j}", rng.randint(0, tasks), queue="a", priority=rng.choice((1, 5)), phase="Running")
        for i in range(tasks):
            lab.pod(f"low{j}", f"low{j}-w-{i}", cpu=rng.choice((1, 2)), node=rng.choice(nodes))
    for j in range(rng.randint(1, 4)):
        tasks = rng.randint(1, 5)
        where = "b" if reclaiming else "a"
        lab.job(
            f"high{j}",
            rng.randint(1, tasks),
            tasks,
            queue=where,
            priority=rng.choice((5, 100)),
            cpu=rng.choice((1, 2, 3)),
        )
    return lab


class Watch:
    """Looks at a session after its actions."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.evictions = 0
        lab.scheduler.explain_victims = True

    def cycle(self) -> int:
        """One cycle, checked; the number of evictions."""
        before = self.evictions
        self.lab.scheduler.run_once(self.check)
        return self.evictions - before

    def check(self, ssn: Session) -> None:
        for record in ssn.eviction_records:
            self.evictions += 1
            self.check_used(ssn, record)
            self.check_gets_going(ssn, record)

    def check_used(self, ssn: Session, record: EvictionRecord) -> None:
        node = ssn.table.by_name[record.node_name]
        pipelined = [t for t in node.tasks.values() if t.status is PIPELINED]
        assert record.on_behalf in pipelined, f"nothing took the room of {record.victim.key}"
        needed = Resources()
        for task in pipelined:
            needed.add(task.resreq)
        assert not needed.exceeding(node.idle.add(node.releasing)), f"{node.name} is promised twice"

    def check_gets_going(self, ssn: Session, record: EvictionRecord) -> None:
        assert record.on_behalf is not None
        if record.on_behalf.job_id != record.victim.job_id:
            job = ssn.jobs[record.on_behalf.job_id]
            assert job.is_pipelined, f"{record.victim.key} was evicted for {job.id}, which cannot start"


@pytest.mark.parametrize("config", [PREEMPT, RECLAIM], ids=["preempt", "reclaim"])
@SOME
@given(SEEDS)
def test_an_eviction_is_used_by_somebody_who_gets_going(config: dict[str, object], seed: int) -> None:
    watch = Watch(crowded(random.Random(seed), config))
    for _ in range(3):
        watch.cycle()
        watch.lab.cluster.step()


@SOME
@given(SEEDS)
def test_reclaim_leaves_every_queue_its_guarantee(seed: int) -> None:
    lab = crowded(random.Random(seed), RECLAIM)
    guarantee = Resources()

    def check(ssn: Session) -> None:
        guarantee.cpu = ssn.queues["a"].guarantee.cpu
        victims = Resources()
        for victim, _ in ssn.evictions:
            victims.add(victim.resreq)
        held = sum(job.allocated.cpu for job in ssn.jobs.values() if job.queue == "a")
        if victims.cpu:
            assert held >= guarantee.cpu

    for _ in range(3):
        lab.scheduler.run_once(check)
        lab.cluster.step()


@pytest.mark.parametrize("config", [PREEMPT, RECLAIM], ids=["preempt", "reclaim"])
@SOME
@given(SEEDS)
def test_a_crowded_cluster_comes_to_rest(config: dict[str, object], seed: int) -> None:
    watch = Watch(crowded(random.Random(seed), config))
    for _ in range(30):
        evicted = watch.cycle()
        bound = watch.lab.cluster.bindings()
        watch.lab.cluster.step()
        if not evicted and not bound:
            return
    raise AssertionError("still evicting or binding after 30 cycles")


def test_the_crowd_does_get_evicted() -> None:
    """The properties above would hold of a scheduler that never evicts."""
    for config in (PREEMPT, RECLAIM):
        counts = [Watch(crowded(random.Random(seed), config)).cycle() for seed in range(60)]
        assert sum(n > 0 for n in counts) >= 5, counts
