"""drf with enableHierarchy: queues along a tree of weighted shares (spec 04 §5.3)."""

import pytest
from plugin_cluster import Cluster, in_order, names

from vcscheduler.framework.session import Session
from vcscheduler.framework.statement import Statement
from vcscheduler.model.status import ALLOCATED, RUNNING
from vcscheduler.model.task import Task
from vcscheduler.plugins.drf import DrfPlugin

TREE = {"enable_hierarchy": True}


def cluster(**weights: str) -> Cluster:
    """Queues sci, dev and prod, the last two below eng, on 10 cores and 10 Gi."""
    c = Cluster()
    c.node("n1", cpu=10, memory=10)
    for name, path in (("sci", "root/sci"), ("dev", "root/eng/dev"), ("prod", "root/eng/prod")):
        notes = {"volcano.sh/hierarchy": path}
        if name in weights:
            notes["volcano.sh/hierarchy-weights"] = weights[name]
        c.queue(name, annotations=notes)
        c.job(f"j-{name}", name)
    return c


def fill(c: Cluster, queue: str, held: dict[str, object], wanted: dict[str, object]) -> list[Task]:
    """One running task, and a pending one for the rest of what the job requests."""
    job = c.cache.jobs[f"ns/j-{queue}"]
    tasks = [c.task(job, f"{queue}-held", RUNNING, **held)]
    return [*tasks, c.task(job, f"{queue}-wanted", **wanted)] if wanted else tasks


def order(ssn: Session) -> list[str]:
    return in_order(ssn.queues.values(), ssn.queue_order.less)


def test_smaller_weighted_share_first_on_every_level() -> None:
    """EX-HDRF-1."""
    c = cluster(sci="1/2", dev="1/1/1", prod="1/1/1")
    fill(c, "sci", {"cpu": 2, "memory": 2}, {"cpu": 8, "memory": 8})
    fill(c, "dev", {"cpu": 6}, {"cpu": 2})
    fill(c, "prod", {"memory": 3}, {"memory": 5})
    assert order(c.session(DrfPlugin, flags=TREE)) == ["sci", "prod", "dev"]


def test_saturated_queues_come_last() -> None:
    """EX-HDRF-2, with prod holding more than dev: dev is last all the same."""
    c = cluster(sci="1/2")
    fill(c, "sci", {"cpu": 2, "memory": 2}, {"cpu": 8, "memory": 8})
    fill(c, "dev", {"cpu": 6}, {})
    fill(c, "prod", {"memory": 7}, {"memory": 5})
    ssn = c.session(DrfPlugin, flags=TREE)
    compare = ssn.queue_order.compare
    assert compare(ssn.queues["prod"], ssn.queues["dev"]) == -1
    # eng holds 6 cpu (saturated dev) and 7 memory: share 0.7 against sci's 0.2 / 2.
    assert compare(ssn.queues["sci"], ssn.queues["dev"]) == pytest.approx(0.1 - 0.7)


def test_the_session_changes_the_order_and_back() -> None:
    c = cluster()
    node = c.cache.table.nodes[0]
    dev = c.tasks(c.cache.jobs["ns/j-dev"], "d1 d2 d3", cpu=1)
    sci = c.tasks(c.cache.jobs["ns/j-sci"], "s1 s2", cpu=1)
    c.tasks(c.cache.jobs["ns/j-prod"], "p1", memory=1)
    ssn = c.session(DrfPlugin, flags=TREE)
    assert order(ssn) == ["dev", "prod", "sci"]
    stmt = Statement(ssn)
    stmt.place_run(dev[0].sub_job.job, dev[:2], [0, 0], ALLOCATED)  # type: ignore[union-attr]
    stmt.pipeline(sci[0], node, False)
    assert order(ssn) == ["sci", "prod", "dev"]
    stmt.discard()
    assert order(ssn) == ["dev", "prod", "sci"]


def test_an_exhausted_resource_saturates_all_who_hold_and_want_it() -> None:
    c = cluster()
    fill(c, "sci", {"cpu": 1}, {"cpu": 5})
    (taker,) = c.tasks(c.cache.jobs["ns/j-dev"], "d1", cpu=9)
    c.tasks(c.cache.jobs["ns/j-dev"], "d2", cpu=9)
    c.tasks(c.cache.jobs["ns/j-prod"], "p1", memory=1)
    ssn = c.session(DrfPlugin, flags=TREE)
    compare, q = ssn.queue_order.compare, ssn.queues
    assert compare(q["sci"], q["dev"]) > 0
    Statement(ssn).allocate(taker, c.cache.table.nodes[0])
    # No cpu is left: sci is saturated; eng is not, since prod, holding nothing, never is.
    assert compare(q["sci"], q["dev"]) == 1
    assert compare(q["prod"], q["dev"]) == -1


def test_weights_that_are_no_numbers_or_missing_are_one() -> None:
    for weight in ("x", "0.5", "-3", "1e-3", ""):
        c = cluster(sci=f"1/{weight}", dev="1")
        fill(c, "sci", {"cpu": 2}, {"cpu": 2})
        fill(c, "dev", {"cpu": 1}, {"cpu": 2})
        fill(c, "prod", {"cpu": 0.5}, {"cpu": 2})
        ssn = c.session(DrfPlugin, flags=TREE)
        assert ssn.queue_order.compare(ssn.queues["sci"], ssn.queues["dev"]) == pytest.approx(0.2 - 0.1)
    c = cluster(sci="1/1.6")
    fill(c, "sci", {"cpu": 4}, {"cpu": 2})
    fill(c, "dev", {"cpu": 3}, {"cpu": 2})
    ssn = c.session(DrfPlugin, flags=TREE)
    assert ssn.queue_order.compare(ssn.queues["sci"], ssn.queues["dev"]) == pytest.approx(0.4 / 1.6 - 0.3)


def test_queues_without_a_place_are_level() -> None:
    c = cluster()
    c.queue("plain", age=10)
    fill(c, "sci", {"cpu": 2}, {"cpu": 2})
    ssn = c.session(DrfPlugin, flags=TREE)
    assert ssn.queue_order.compare(ssn.queues["plain"], ssn.queues["sci"]) == 0


def test_reclaim_while_the_other_queue_would_still_hold_more() -> None:
    """EX-HDRF-4. Each candidate is judged on its own."""
    c = cluster(sci="1/1", dev="1/1/1", prod="1/1/1")
    fill(c, "sci", {"cpu": 1, "memory": 1}, {"cpu": 5, "memory": 5})
    reclaimer = c.task(c.cache.jobs["ns/j-sci"], "r", cpu=1, memory=1)
    dev, prod = c.cache.jobs["ns/j-dev"], c.cache.jobs["ns/j-prod"]
    two = c.task(dev, "dev-2", RUNNING, cpu=2)
    c.tasks(dev, "d4", RUNNING, cpu=4)
    c.tasks(dev, "d6", cpu=6)
    c.tasks(prod, "g4", RUNNING, memory=4)
    c.tasks(prod, "g5", memory=4)
    ssn = c.session(DrfPlugin, flags=TREE)
    before = order(ssn)
    sizes = [c.task(dev, f"prod-{g}", RUNNING, memory=g) for g in (1, 2, 3)]
    for t in sizes:
        dev.remove_task(t)
        t.job_id = prod.id
    assert names(ssn.reclaimable(reclaimer, [two, *sizes])) == ["dev-2", "prod-1"]
    assert order(ssn) == before


def test_without_the_flag_there_is_no_tree() -> None:
    c = cluster()
    reclaimer = c.task(c.cache.jobs["ns/j-sci"], "r", cpu=1)
    (victim,) = fill(c, "dev", {"cpu": 9}, {})
    ssn = c.session(DrfPlugin)
    assert ssn.queue_order.compare(ssn.queues["sci"], ssn.queues["dev"]) == 0
    assert ssn.reclaimable(reclaimer, [victim]) == []
