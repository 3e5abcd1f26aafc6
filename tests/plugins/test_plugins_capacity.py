"""capacity: guaranteed, deserved and largest amounts, flat and in a tree (spec 04 §7)."""

import logging

import pytest
from plugin_cluster import GPU, Cluster, amounts, in_order, names, vector

from vcscheduler.framework.session import Session
from vcscheduler.framework.statement import Statement
from vcscheduler.model.resources import MAX_FLOAT, MAX_SCALAR, Resources
from vcscheduler.model.status import ALLOCATED, PENDING, RUNNING, EvictionKind, Vote
from vcscheduler.model.task import QUEUE_ALLOCATION_GATE, Task
from vcscheduler.plugins.capacity import CapacityPlugin

TREE = {"enable_hierarchy": True}


def plugin(ssn: Session) -> CapacityPlugin:
    (found,) = ssn.plugins
    assert isinstance(found, CapacityPlugin)
    return found


def probe(c: Cluster, queue: str, **requests: object) -> Task:
    job = c.job(f"probe-{queue}-{len(c.cache.jobs)}", queue)
    return c.task(job, f"probe-{len(c.cache.jobs)}", **requests)


def figures(r: Resources) -> tuple[float, float, float]:
    a = amounts(r)
    return a.get("cpu", 0), a.get("memory", 0), a.get("gpu", 0)


# --- flat -------------------------------------------------------------------------------------------------------


def three_queues() -> Cluster:
    """EX-CAP-1."""
    c = Cluster()
    c.node("n1", cpu=30, memory=60, gpu=8)
    c.queue("qa", deserved={"cpu": 10, "memory": 20, "gpu": 4}, guarantee={"cpu": 4, "gpu": 2}, age=3)
    c.queue("qb", deserved={"cpu": 12, "memory": 20, "gpu": 4}, capability={"cpu": 16, "gpu": 3}, age=2)
    c.queue("qc", age=1)
    c.task(c.job("ja", "qa", phase="Unknown"), "a1", RUNNING, cpu=5, memory=10, gpu=4)
    c.task(c.job("jb", "qb", phase="Unknown"), "b1", RUNNING, cpu=6, memory=4)
    c.task(c.job("jc", "qc", phase="Unknown"), "c1", RUNNING, cpu=3, memory=3)
    return c


def test_flat_limits_order_and_allocation() -> None:
    c = three_queues()
    probes = {
        "qb+10": probe(c, "qb", cpu=10),
        "qb+11": probe(c, "qb", cpu=11),
        "qb+4gpu": probe(c, "qb", gpu=4),
        "qc+6gpu": probe(c, "qc", gpu=6),
        "qc+7gpu": probe(c, "qc", gpu=7),
    }
    ssn = c.session(CapacityPlugin)
    accounts = plugin(ssn).accounts
    assert {n: figures(a.limits.real_capability) for n, a in accounts.items()} == {
        "qa": (30, 60, 8),
        "qb": (16, 60, 3),
        "qc": (26, 60, 6),
    }
    assert {n: figures(a.limits.deserved) for n, a in accounts.items()} == {
        "qa": (10, 20, 4),
        "qb": (12, 20, 3),
        "qc": (0, 0, 0),
    }
    assert [accounts[n].share for n in ("qa", "qb", "qc")] == [1, 0.5, 1]
    assert in_order(ssn.queues.values(), ssn.queue_order.less) == ["qb", "qa", "qc"]
    assert ssn.queue_order.key is not None
    assert names(sorted(ssn.queues.values(), key=ssn.queue_order.key)) == ["qb", "qa", "qc"]  # type: ignore[type-var]
    assert {k: ssn.allocatable(ssn.queues[k[:2]], t) for k, t in probes.items()} == {
        "qb+10": True,
        "qb+11": False,
        "qb+4gpu": False,
        "qc+6gpu": True,
        "qc+7gpu": False,
    }
    assert ssn.allocatable_count(ssn.queues["qb"], probe(c, "qb", cpu=3), 9) == 3


def test_one_dimension_within_deserved_is_enough_to_reclaim() -> None:
    """EX-CAP-2."""
    c = three_queues()
    c.queue("full", deserved={"cpu": 8, "memory": 100}, capability={"cpu": 8, "memory": 100})
    c.task(c.job("jf", "full", phase="Running"), "f1", RUNNING, cpu=7, memory=90)
    asks = [
        ("qa", {"cpu": 6, "memory": 2}, True),
        ("qa", {"cpu": 6, "memory": 11}, False),
        ("qa", {"gpu": 1}, False),
        ("qc", {"cpu": 1}, False),
        ("full", {"cpu": 2, "memory": 5}, False),
    ]
    tasks = [(queue, probe(c, queue, **ask), expected) for queue, ask, expected in asks]
    ssn = c.session(CapacityPlugin)
    assert [ssn.preemptive(ssn.queues[q], [t]) for q, t, _ in tasks] == [e for _, _, e in tasks]


def test_victims_in_eviction_order_while_their_queue_exceeds_deserved() -> None:
    """EX-CAP-3. Tasks are made in reverse, since the later of a queue is evicted first."""
    c = three_queues()
    jb = c.cache.jobs["ns/jb"]
    c.task(jb, "bg", RUNNING, gpu=1)
    c.task(jb, "rest", RUNNING, cpu=5, memory=3)
    for name in ("b3", "b2", "b1"):
        c.task(jb, name, RUNNING, cpu=1, memory=1)
    held = {t.name: t for t in jb.tasks.values()}
    c1 = c.task(c.cache.jobs["ns/jc"], "c2", RUNNING, cpu=2, memory=2)
    reclaimer = probe(c, "qa", cpu=2, memory=4)
    # The order inside a queue is by creation time, then uid, reversed.
    for name, uid in (("bg", "1"), ("b3", "2"), ("b2", "3"), ("b1", "4")):
        held[name].uid = uid
    ssn = c.session(CapacityPlugin)
    ssn.explaining_victims = True
    victims = ssn.reclaimable(reclaimer, [held["bg"], c1, held["b3"], held["b1"], held["b2"]])
    assert names(victims) == ["b1", "b2", "c2"]
    figures = "queue qb holds cpu 12, memory 8Gi, nvidia.com/gpu 1 and deserves cpu 12, memory 20Gi, nvidia.com/gpu 3"
    assert {t.name: why for _, _, t, allowed, why in ssn.victim_notes if not allowed} == {
        "b3": f"its queue is within deserved in everything that it uses ({figures})",
        "bg": f"it uses nothing that the reclaimer asks for ({figures})",
    }


def test_guarantees_are_kept() -> None:
    """EX-CAP-4."""
    c = Cluster()
    c.node("n1", cpu=30)
    c.queue("q", deserved={"cpu": 4}, guarantee={"cpu": 4})
    victims = c.tasks(c.job("j", "q", phase="Running"), "a b c", RUNNING, cpu=2)
    reclaimer = probe(c, "other", cpu=2)
    ssn = c.session(CapacityPlugin)
    assert names(ssn.reclaimable(reclaimer, victims)) == ["c"]
    kind = EvictionKind.GANG_RECLAIM
    job = ssn.jobs[reclaimer.job_id]
    assert names(ssn.unified_evictable(kind, job, victims)) == ["a"]
    assert names(ssn.unified_evictable(EvictionKind.GANG_PREEMPT, job, victims)) == ["a", "b", "c"]


def test_only_dimensions_that_something_is_deserved_of_count() -> None:
    """EX-CAP-5."""
    c = Cluster()
    c.node("n1", cpu=30, memory=60, gpu=8)
    c.queue("gpus", deserved={"gpu": 1})
    c.queue("cpus", deserved={"cpu": 2, "memory": 2})
    mixed = c.task(c.job("jg", "gpus"), "mixed", RUNNING, cpu=4, memory=4, gpu=1)
    card = c.task(c.job("jc", "cpus"), "card", RUNNING, gpu=1)
    wants_gpu, wants_cpu = probe(c, "other", gpu=1), probe(c, "other", cpu=1)
    ssn = c.session(CapacityPlugin)
    assert names(ssn.reclaimable(wants_gpu, [mixed, card])) == ["card"]
    assert names(ssn.reclaimable(wants_cpu, [mixed, card])) == []


def test_admission() -> None:
    """EX-CAP-6."""
    c = three_queues()
    # qb holds 6 cpu, of which 2 are above the job's minimum; another admitted job is owed 3.
    del c.cache.jobs["ns/jb"]
    job = c.job("jb2", "qb", phase="Unknown", min_resources={"cpu": 4, "memory": 4})
    c.task(job, "b2", RUNNING, cpu=6, memory=4)
    c.job("owed", "qb", phase="Inqueue", min_resources={"cpu": 3})
    fits = c.job("fits", "qb", phase="Pending", min_resources={"cpu": 8})
    too_much = c.job("too-much", "qb", phase="Pending", min_resources={"cpu": 10})
    anything = c.job("anything", "qb", phase="Pending")
    ssn = c.session(CapacityPlugin)
    assert [ssn.job_enqueueable(j) for j in (fits, too_much, anything)] == [True, False, True]
    assert c.cache.events == [
        ("ns/too-much", "Normal", "Unschedulable", "queue resource quota insufficient: insufficient cpu")
    ]
    ssn.job_enqueued(fits)
    assert not ssn.job_enqueueable(c.job("late", "qb", phase="Pending", min_resources={"cpu": 2}))


@pytest.mark.parametrize("state", ["Closed", ""])
def test_a_queue_that_is_not_open_takes_nothing(state: str) -> None:
    c = Cluster()
    c.node("n1", cpu=30)
    queue = c.queue("q", state=state, deserved={"cpu": 10})
    job = c.job("j", phase="Pending")
    task = c.task(job, "t", cpu=1)
    ssn = c.session(CapacityPlugin)
    assert not ssn.allocatable(queue, task)
    assert plugin(ssn).allocatable_times(queue, task, 3) == 0
    assert not ssn.preemptive(queue, [task])
    assert not ssn.job_enqueueable(job)


def test_the_session_is_followed_and_undone() -> None:
    c = Cluster()
    node = c.node("n1", cpu=8)
    queue = c.queue("q", deserved={"cpu": 4}, capability={"cpu": 4})
    job = c.job("j")
    tasks = c.tasks(job, "a b c d", cpu=1)
    ssn = c.session(CapacityPlugin)
    account = plugin(ssn).accounts["q"]
    stmt = Statement(ssn)
    stmt.pipeline(tasks[0], node, False)
    stmt.allocate(tasks[1], node)
    stmt.place_run(job, tasks[2:], [0, 0], ALLOCATED)
    assert account.share == 1.0
    assert not ssn.allocatable(queue, tasks[0])
    stmt.discard()
    assert account.share == 0.0
    assert ssn.allocatable_count(queue, tasks[0], 9) == 4


def test_limits_are_kept_until_a_spec_changes() -> None:
    c = three_queues()
    first = plugin(c.session(CapacityPlugin)).accounts["qa"].limits
    assert plugin(c.session(CapacityPlugin)).accounts["qa"].limits is first
    c.queue("qd", guarantee={"cpu": 1})
    second = plugin(c.session(CapacityPlugin)).accounts["qa"].limits
    assert second is not first
    assert figures(second.real_capability) == (29, 60, 8)


# --- tree -------------------------------------------------------------------------------------------------------


def tree() -> Cluster:
    """EX-CAP-7."""
    c = Cluster()
    c.node("n1", cpu=50)
    c.queue("root")
    c.queue("a", parent="root", deserved={"cpu": 10}, capability={"cpu": 12})
    c.queue("a1", parent="a", deserved={"cpu": 6}, guarantee={"cpu": 4}, age=2)
    c.queue("a2", parent="a", deserved={"cpu": 4}, age=1)
    c.queue("b", deserved={"cpu": 10})
    return c


def cpu_limit(ssn: Session, queue: str) -> float:
    return plugin(ssn).accounts[queue].limits.real_capability.cpu / 1000


def test_limits_are_handed_down_the_tree() -> None:
    c = tree()
    c.tasks(c.job("j2", "a2"), "x", RUNNING, cpu=7)
    c.tasks(c.job("j1", "a1"), "y", RUNNING, cpu=4)
    one, other = probe(c, "a2", cpu=1), probe(c, "a1", cpu=1)
    ssn = c.session(CapacityPlugin, flags=TREE)
    root = plugin(ssn).accounts["root"].limits
    assert [cpu_limit(ssn, q) for q in ("a", "a1", "a2")] == [12, 12, 8]
    assert plugin(ssn).accounts["b"].limits.real_capability.cpu == MAX_FLOAT
    assert root.deserved.cpu == 20000
    assert root.real_capability.get("pods") == MAX_SCALAR
    assert plugin(ssn).accounts["a"].allocated.cpu == 11000
    assert ssn.allocatable(ssn.queues["a2"], one)
    assert ssn.allocatable_count(ssn.queues["a2"], one, 5) == 1
    stmt = Statement(ssn)
    stmt.allocate(one, c.cache.table.nodes[0])
    assert not ssn.allocatable(ssn.queues["a2"], other)
    assert not ssn.allocatable(ssn.queues["a1"], other)
    assert not ssn.allocatable(ssn.queues["a"], other)


def test_guarantees_of_all_children_can_use_up_the_parent() -> None:
    c = Cluster()
    c.node("n1", cpu=50)
    c.queue("root")
    c.queue("q7", capability={"cpu": 6})
    c.queue("x", parent="q7", guarantee={"cpu": 4})
    c.queue("y", parent="q7", guarantee={"cpu": 4})
    ssn = c.session(CapacityPlugin, flags=TREE)
    assert [cpu_limit(ssn, q) for q in ("x", "y")] == [4, 4]


def test_a_root_that_limits_only_cpu_leaves_no_memory() -> None:
    c = Cluster()
    c.node("n1", cpu=50, memory=50)
    c.queue("root", capability={"cpu": 10})
    queue = c.queue("q")
    with_memory, without = probe(c, "q", cpu=1, memory=1), probe(c, "q", cpu=1)
    ssn = c.session(CapacityPlugin, flags=TREE)
    assert not ssn.allocatable(queue, with_memory)
    assert ssn.allocatable(queue, without)


def test_cousins_are_ordered_by_shares_as_they_were_at_open() -> None:
    """EX-CAP-8."""
    c = Cluster()
    node = c.node("n1", cpu=50)
    c.queue("root")
    for name in ("p1", "p2"):
        c.queue(name, deserved={"cpu": 10})
    c.queue("x", parent="p1", age=3, deserved={"cpu": 5})
    c.queue("x2", parent="p1", age=2, deserved={"cpu": 5})
    c.queue("y", parent="p2", age=1, deserved={"cpu": 5})
    (task,) = c.tasks(c.job("j", "x"), "t", cpu=5)
    ssn = c.session(CapacityPlugin, flags=TREE)
    x, x2, y = (ssn.queues[q] for q in ("x", "x2", "y"))
    Statement(ssn).allocate(task, node)
    assert plugin(ssn).accounts["p1"].share == 0.0
    assert ssn.queue_order.less(x, y)
    assert ssn.queue_order.less(x2, x)
    again = c.session(CapacityPlugin, flags=TREE)
    assert again.queue_order.less(y, x)


def test_leaves_come_before_inner_queues_and_priority_before_both() -> None:
    c = tree()
    c.queue("b", deserved={"cpu": 10}, priority=-1)
    ssn = c.session(CapacityPlugin, flags=TREE)
    q = ssn.queues
    assert ssn.queue_order.key is None
    assert ssn.queue_order.less(q["a1"], q["a"])
    assert not ssn.queue_order.less(q["b"], q["a"])


def test_victims_from_closer_queues_first() -> None:
    c = tree()
    ssn = c.session(CapacityPlugin, flags=TREE)
    q = ssn.queues
    assert ssn.victim_queue_less(q["a2"], q["b"], q["a1"])
    assert not ssn.victim_queue_less(q["b"], q["a2"], q["a1"])


def families() -> tuple[Cluster, Task, Task]:
    """EX-CAP-9: (cluster, victim, reclaimer)."""
    c = Cluster()
    c.node("n1", cpu=10)
    c.queue("root")
    for side, (grand, parent, own) in {"a": (2, 2, 2), "b": (3, 1, 1)}.items():
        c.queue(f"grand-{side}", deserved={"cpu": grand})
        c.queue(f"parent-{side}", parent=f"grand-{side}", deserved={"cpu": parent})
        c.queue(f"queue-{side}", parent=f"parent-{side}", deserved={"cpu": own})
    (victim,) = c.tasks(c.job("jb", "queue-b"), "b", RUNNING, cpu=2)
    return c, victim, probe(c, "queue-a", cpu=2)


@pytest.mark.parametrize(("level", "found"), [(0, ["b"]), (1, ["b"]), (2, []), (9, []), (-1, ["b"])])
def test_ancestors_must_exceed_deserved_up_to_a_level(level: int, found: list[str]) -> None:
    c, victim, reclaimer = families()
    ssn = c.session(CapacityPlugin, flags=TREE, arguments={"ancestorReclaimLevel": level})
    assert names(ssn.reclaimable(reclaimer, [victim])) == found


def test_queues_that_deserve_nothing_do_not_take_from_each_other_below_a_shared_ancestor() -> None:
    """EX-CAP-10."""
    found = []
    for level in (0, 1):
        c = Cluster()
        c.node("n1", cpu=10)
        c.queue("root")
        c.queue("parent")
        c.queue("queue-a", parent="parent")
        c.queue("queue-b", parent="parent")
        (victim,) = c.tasks(c.job("jb", "queue-b"), "b", RUNNING, cpu=2)
        reclaimer = probe(c, "queue-a", cpu=2)
        ssn = c.session(CapacityPlugin, flags=TREE, arguments={"ancestorReclaimLevel": level})
        found.append(names(ssn.reclaimable(reclaimer, [victim])))
    assert found == [["b"], []]


@pytest.mark.parametrize(("level", "allowed"), [(0, False), (1, True)])
def test_an_ancestor_below_deserved_lets_its_queue_reclaim(level: int, allowed: bool) -> None:
    c = Cluster()
    c.node("n1", cpu=10)
    c.queue("root")
    c.queue("parent", deserved={"cpu": 4})
    queue = c.queue("q", parent="parent", deserved={"cpu": 1})
    task = probe(c, "q", cpu=2)
    ssn = c.session(CapacityPlugin, flags=TREE, arguments={"ancestorReclaimLevel": level})
    assert ssn.preemptive(queue, [task]) is allowed


def orphan(c: Cluster) -> None:
    c.queue("lost", parent="nowhere")


def cycle(c: Cluster) -> None:
    c.queue("x", parent="y")
    c.queue("y", parent="x")


def inner_job(c: Cluster) -> None:
    c.job("inner", "a")


def rootless(c: Cluster) -> None:
    del c.cache.queues["root"]
    for name in ("a", "b"):
        del c.cache.queues[name]
    c.queue("a1", parent="a2")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (orphan, "queue lost has the parent nowhere, which does not exist"),
        (cycle, "queues x, y are not below root: their parents form a cycle"),
        (inner_job, "queue a has jobs although other queues are below it"),
        (rootless, "there is no queue root"),
    ],
)
def test_a_broken_tree_stops_everything_and_says_why(spoil, why: str, caplog) -> None:  # type: ignore[no-untyped-def]
    c = tree()
    job = c.job("j", "a1", phase="Pending")
    task = c.task(job, "t", cpu=1)
    (victim,) = c.tasks(c.job("k", "a2"), "v", RUNNING, cpu=1)
    spoil(c)
    with caplog.at_level(logging.ERROR):
        ssn = c.session(CapacityPlugin, flags=TREE)
    assert caplog.messages == [f"plugin capacity: nothing is admitted or allocated: {why}"]
    queue = ssn.queues["a1"]
    assert not ssn.allocatable(queue, task)
    assert not ssn.preemptive(queue, [task])
    assert not ssn.job_enqueueable(job)
    assert plugin(ssn).reclaimable(task, [victim]) == ([], Vote.REJECT)
    assert plugin(ssn).unified_evictable(EvictionKind.GANG_RECLAIM, job, [victim]) == ([], Vote.REJECT)
    ssn.job_enqueued(job)
    Statement(ssn).allocate(task, c.cache.table.nodes[0])


# --- reservations -----------------------------------------------------------------------------------------------


def gated_session(c: Cluster) -> Session:
    from dataclasses import replace

    from vcscheduler.config import SchedulerOptions

    options = SchedulerOptions()
    gates = {**options.feature_gates, "SchedulingGatesQueueAdmission": True}
    return c.session(CapacityPlugin, options=replace(options, feature_gates=gates))


def test_tasks_whose_gate_was_lifted_have_a_reservation() -> None:
    """EX-CAP-11."""
    c = Cluster()
    node = c.node("n1", cpu=10)
    queue = c.queue("q", capability={"cpu": 4})
    job = c.job("j")
    (running,) = c.tasks(job, "r", RUNNING, node="n1", cpu=2)
    t1 = c.task(job, "t1", PENDING, annotations={QUEUE_ALLOCATION_GATE: "true"}, cpu=1)
    t2 = c.task(job, "t2", PENDING, cpu=2)
    t3 = c.task(job, "t3", PENDING, cpu=1)
    ssn = gated_session(c)
    assert not ssn.allocatable(queue, t2)
    assert ssn.allocatable(queue, t1)
    assert ssn.allocatable(queue, t3)
    assert ssn.allocatable_count(queue, t3, 5) == 1
    stmt = Statement(ssn)
    stmt.allocate(t1, node)
    assert plugin(ssn).accounts["q"].reserved == {}
    assert ssn.allocatable(queue, t3)
    stmt.discard()
    assert list(plugin(ssn).accounts["q"].reserved) == [t1.uid]
    Statement(ssn).evict(running, "test")
    assert ssn.allocatable(queue, t2)


def test_a_task_that_may_get_in_reserves_its_place_for_the_session() -> None:
    c = Cluster()
    c.node("n1", cpu=10)
    queue = c.queue("q", capability={"cpu": 4})
    job = c.job("j")
    gate = QUEUE_ALLOCATION_GATE
    gated = [c.task(job, name, PENDING, annotations={gate: "true"}, gates=[gate], cpu=2) for name in ("a", "b", "c")]
    ssn = gated_session(c)
    assert plugin(ssn).accounts["q"].reserved == {}
    assert [ssn.allocatable(queue, t) for t in gated] == [True, True, False]


def test_vectors_of_the_examples_are_what_they_say() -> None:
    assert figures(vector(cpu=1, memory=2, gpu=3)) == (1, 2, 3)
    assert vector(gpu=3).get(GPU) == 3000
