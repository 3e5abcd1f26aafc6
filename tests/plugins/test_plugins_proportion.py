"""proportion: the division by weight and what follows from it (spec 04 §6)."""

import pytest
from plugin_cluster import GPU, Cluster, amounts, in_order, names, vector

from vcscheduler.framework.session import Session
from vcscheduler.framework.statement import Statement
from vcscheduler.model.status import ALLOCATED, RUNNING
from vcscheduler.model.task import Task
from vcscheduler.plugins.proportion import ProportionPlugin


def plugin(ssn: Session) -> ProportionPlugin:
    (found,) = ssn.plugins
    assert isinstance(found, ProportionPlugin)
    return found


def deserved(ssn: Session, queue: str) -> dict[str, float]:
    found = amounts(plugin(ssn).attributes[queue].deserved)
    found.pop("pods", None)
    return found


def probe(c: Cluster, queue: str, **requests: object) -> Task:
    """A task of no weight in the division: not part of any queue's request."""
    job = c.job(f"probe-{queue}-{len(c.cache.jobs)}", queue)
    task = c.task(job, f"probe-{len(c.cache.jobs)}", **requests)
    del c.cache.jobs[job.id]
    return task


def three_queues() -> Cluster:
    """EX-PROP-1."""
    c = Cluster()
    c.node("n1", cpu=100, memory=400, gpu=8)
    c.queue("q1", weight=1, age=3)
    c.queue("q2", weight=2, age=2)
    c.queue("q3", weight=1, age=1, capability={"cpu": 30, "gpu": 2})
    for queue, held, wanted in (
        ("q1", {"cpu": 30, "memory": 30}, {"cpu": 30, "memory": 30}),
        ("q2", {"cpu": 20, "memory": 100, "gpu": 2}, {"memory": 100, "gpu": 2}),
        ("q3", {"cpu": 10, "memory": 10, "gpu": 2}, {"cpu": 40, "memory": 30, "gpu": 4}),
    ):
        job = c.job(f"j-{queue}", queue, phase="Running")
        c.task(job, f"{queue}-r", RUNNING, **held)
        c.task(job, f"{queue}-p", **wanted)
    return c


def test_weighted_filling() -> None:
    c = three_queues()
    ssn = c.session(ProportionPlugin)
    assert deserved(ssn, "q1") == {"cpu": 50, "memory": 60}
    assert deserved(ssn, "q2") == {"cpu": 20, "memory": 200, "gpu": 4}
    assert deserved(ssn, "q3") == {"cpu": 30, "memory": 40, "gpu": 2}
    queues = ssn.queues
    assert [plugin(ssn).share(queues[q]) for q in ("q1", "q2", "q3")] == [0.6, 1.0, 1.0]
    assert in_order(queues.values(), ssn.queue_order.less) == ["q1", "q2", "q3"]
    assert [ssn.overused(q) for q in queues.values()] == [False, False, False]
    assert not ssn.allocatable(queues["q2"], probe(c, "q2", cpu=1, memory=1))
    assert ssn.allocatable(queues["q2"], probe(c, "q2", memory=10))
    assert not ssn.allocatable(queues["q3"], probe(c, "q3", gpu=1))


def test_guarantees_are_withheld_even_when_unused() -> None:
    """EX-PROP-2."""
    c = Cluster()
    c.node("n1", cpu=30, memory=60)
    c.queue("qa", guarantee={"cpu": 6})
    c.queue("qb")
    c.queue("qc", weight=2)
    c.queue("unused", guarantee={"cpu": 0})
    for queue, cpu, memory in (("qa", 2, 4), ("qb", 20, 40), ("qc", 20, 10)):
        c.task(c.job(f"j-{queue}", queue), f"{queue}-p", cpu=cpu, memory=memory)
    ssn = c.session(ProportionPlugin)
    real = {name: amounts(a.real_capability) for name, a in plugin(ssn).attributes.items()}
    assert {n: (r["cpu"], r["memory"]) for n, r in real.items()} == {
        "qa": (30, 60),
        "qb": (24, 60),
        "qc": (24, 60),
    }
    assert [deserved(ssn, q) for q in ("qa", "qb", "qc")] == [
        {"cpu": 6, "memory": 4},
        {"cpu": 8, "memory": 40},
        {"cpu": 16, "memory": 10},
    ]


def test_reclaim_takes_from_queues_above_deserved_in_any_dimension() -> None:
    """EX-PROP-3."""
    c = Cluster()
    c.node("n1", cpu=9, memory=18, pods=20)
    ja, jb, jc = (c.job(f"j-{q}", q, phase="Running") for q in ("a", "b", "c"))
    held = c.tasks(ja, "a1 a2 a3 a4 a5 a6", RUNNING, cpu=1, memory=1)
    c.tasks(jb, "b1", RUNNING, cpu=1, memory=1)
    reclaimer, *_ = c.tasks(jb, "b2 b3 b4 b5 b6", cpu=1, memory=1)
    c.tasks(jc, "c1", cpu=1, memory=1)
    ssn = c.session(ProportionPlugin)
    queues = ssn.queues
    assert deserved(ssn, "a") == {"cpu": 4, "memory": 6}
    assert [plugin(ssn).share(queues[q]) for q in "abc"] == [1.5, 0.25, 0.0]
    assert ssn.preemptive(queues["b"], [reclaimer])
    assert names(ssn.reclaimable(reclaimer, held[:3])) == ["a1", "a2"]
    assert [ssn.overused(queues[q]) for q in "abc"] == [True, False, False]


def test_admission_counts_what_is_owed_and_gives_back_what_is_elastic() -> None:
    """EX-PROP-4."""
    c = three_queues()
    del c.cache.jobs["ns/j-q3"]
    # Holds 10/10/2 of a minimum of 6 cpu: 4 cpu are elastic. Another admitted job is owed 12 cpu.
    job = c.job("q3", "q3", phase="Unknown", min_resources={"cpu": 6, "memory": 10, "gpu": 2})
    c.task(job, "q3-r", RUNNING, cpu=10, memory=10, gpu=2)
    c.job("owed", "q3", phase="Inqueue", min_resources={"cpu": 12})
    fits = c.job("fits", "q3", phase="Pending", min_resources={"cpu": 12})
    too_much = c.job("too-much", "q3", phase="Pending", min_resources={"cpu": 13})
    no_gpu = c.job("no-gpu", "q3", phase="Pending", min_resources={"cpu": 1, "gpu": 1})
    ssn = c.session(ProportionPlugin)
    real = amounts(plugin(ssn).attributes["q3"].real_capability)
    assert (real["cpu"], real["memory"], real["gpu"]) == (30, 400, 2)
    assert ssn.job_enqueueable(fits)
    assert not ssn.job_enqueueable(too_much)
    assert not ssn.job_enqueueable(no_gpu)
    assert c.cache.events == [
        ("ns/too-much", "Normal", "Unschedulable", "queue resource quota insufficient: insufficient cpu"),
        ("ns/no-gpu", "Normal", "Unschedulable", f"queue resource quota insufficient: insufficient {GPU}"),
    ]
    ssn.job_enqueued(fits)
    assert not ssn.job_enqueueable(c.job("late", "q3", phase="Pending", min_resources={"cpu": 1}))


def test_the_halving_tail_can_refuse_the_last_task() -> None:
    """EX-PROP-5."""
    c = Cluster()
    c.node("n1", cpu=100, memory=100)
    c.queue("a", capability={"cpu": 10})
    c.queue("b", capability={"memory": 10})
    c.task(c.job("ja", "a"), "a", cpu=50, memory=200)
    c.task(c.job("jb", "b"), "b", cpu=200, memory=50)
    ssn = c.session(ProportionPlugin)
    attributes = plugin(ssn).attributes["b"]
    assert attributes.deserved.cpu == pytest.approx(89999.999999927, abs=1e-9)
    task = probe(c, "b", cpu=1)
    assert plugin(ssn).allocatable_times(ssn.queues["b"], task, 100) == 89
    attributes.change(vector(cpu=89), 1)
    assert not ssn.allocatable(ssn.queues["b"], task)


def test_a_scalar_that_is_wholly_guaranteed_does_not_bound_other_queues() -> None:
    """EX-PROP-6."""
    c = Cluster()
    c.node("n1", cpu=100, memory=100, gpu=8)
    c.queue("qa", guarantee={"gpu": 8})
    for queue in ("qa", "qb"):
        c.task(c.job(f"j-{queue}", queue), f"{queue}-p", cpu=1, gpu=8)
    job = c.job("new", "qb", phase="Pending", min_resources={"gpu": 1})
    ssn = c.session(ProportionPlugin)
    assert GPU not in (plugin(ssn).attributes["qb"].real_capability.scalars or {})
    assert deserved(ssn, "qa")["gpu"] == 8
    assert deserved(ssn, "qb")["gpu"] == 4
    assert not ssn.job_enqueueable(job)


def test_without_weights_nothing_is_deserved() -> None:
    c = Cluster()
    c.node("n1", cpu=10)
    queue = c.queue("q", weight=0)
    c.task(c.job("j"), "t", cpu=1)
    ssn = c.session(ProportionPlugin)
    assert deserved(ssn, "q") == {}
    assert ssn.overused(queue)
    assert not ssn.allocatable(queue, probe(c, "q", cpu=1))


@pytest.mark.parametrize("state", ["Closed", "Closing", "", "Unknown"])
def test_only_open_queues_admit_and_allocate(state: str) -> None:
    c = Cluster()
    c.node("n1", cpu=10)
    queue = c.queue("q", state=state)
    job = c.job("j", phase="Pending")
    task = c.task(job, "t", cpu=1)
    ssn = c.session(ProportionPlugin)
    assert not ssn.allocatable(queue, task)
    assert plugin(ssn).allocatable_times(queue, task, 5) == 0
    assert not ssn.preemptive(queue, [task])
    assert not ssn.job_enqueueable(job)


def test_queue_priority_comes_before_share() -> None:
    c = Cluster()
    c.node("n1", cpu=10)
    c.queue("low", priority=1)
    c.queue("high", priority=5)
    c.task(c.job("jl", "low"), "l", cpu=1)
    c.task(c.job("jh", "high", phase="Running"), "h", RUNNING, cpu=1)
    ssn = c.session(ProportionPlugin)
    assert in_order(ssn.queues.values(), ssn.queue_order.less) == ["high", "low"]


def test_allocations_of_the_session_count_and_can_be_undone() -> None:
    c = Cluster()
    node = c.node("n1", cpu=4)
    job = c.job("j")
    queue = c.cache.queues["q"]
    tasks = c.tasks(job, "a b c d", cpu=1)
    ssn = c.session(ProportionPlugin)
    stmt = Statement(ssn)
    stmt.allocate(tasks[0], node)
    stmt.pipeline(tasks[1], node, False)
    stmt.place_run(job, tasks[2:], [0, 0], ALLOCATED)
    assert plugin(ssn).share(queue) == 1.0
    assert not ssn.allocatable(queue, tasks[0])
    stmt.discard()
    assert plugin(ssn).share(queue) == 0.0
    assert ssn.allocatable_count(queue, tasks[0], 9) == 4


def test_the_division_is_kept_until_an_input_changes() -> None:
    c = three_queues()
    first = c.session(ProportionPlugin)
    again = c.session(ProportionPlugin)
    assert plugin(again).attributes["q1"].deserved is plugin(first).attributes["q1"].deserved
    c.queue("q2", weight=1, age=2)
    assert deserved(c.session(ProportionPlugin), "q1") != {}
    changed = c.session(ProportionPlugin)
    assert plugin(changed).attributes["q1"].deserved is not plugin(first).attributes["q1"].deserved
    c.task(c.cache.jobs["ns/j-q1"], "more", cpu=30)
    assert deserved(c.session(ProportionPlugin), "q1")["cpu"] == 50
