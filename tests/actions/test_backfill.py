"""backfill places pods that request nothing (spec 03 §4)."""

from __future__ import annotations

from lab import Lab, configuration
from vcscheduler.cluster.faults import Operation

NOTHING = {"cpu": None, "memory": None}


def test_pods_without_requests_go_where_the_filters_let_them_even_on_a_full_node() -> None:
    lab = Lab().queue("q").node("n1", cpu=1).node("n2", taints=["gpu:NoSchedule"])
    lab.job("full", tasks=1, on="n1").job("a", minimum=2, tasks=2, **NOTHING)
    assert lab.cycle().binds == {"ns/a-w-0": "n1", "ns/a-w-1": "n1"}


def test_the_number_of_pods_counts() -> None:
    lab = Lab().queue("q").node("n1", pods=1).job("a", minimum=1, tasks=2, **NOTHING)
    assert lab.cycle().binds == {"ns/a-w-0": "n1"}
    reason, message, _ = lab.pod_conditions()["ns/a-w-1"]
    assert (reason, message) == ("Unschedulable", "0/1 nodes are unavailable: 1 node(s) pod number exceeded.")


def test_a_job_that_does_not_become_ready_is_forgotten_at_close() -> None:
    lab = Lab().queue("q").node("n1", cpu=1)
    lab.job("a", minimum=3, tasks=2, cpu=2).pod("a", "a-w-2", **NOTHING)
    record = lab.cycle()
    assert record.binds == {}
    assert record.task_status["ns/a"] == {"Allocated": 1, "Pending": 2}
    assert lab.cycle().task_status["ns/a"] == {"Allocated": 1, "Pending": 2}


def test_a_refused_bind_is_told_but_not_rolled_back() -> None:
    # The cache's books count the pod that leaves; the filters no longer do.
    lab = Lab(configuration([["gang", "predicates"]], "allocate, backfill")).queue("q").node("n1", pods=2)
    lab.job("old").pod("old", "old-w-0", node="n1")
    lab.job("old2", tasks=1, on="n1").job("a", tasks=1, **NOTHING)
    lab.cycle()
    assert lab.cluster.bindings() == {}
    ssn = lab.session()
    leaving = next(iter(ssn.jobs["ns/old"].tasks.values()))
    ssn.evict(leaving, "shuffle")
    task = next(iter(ssn.jobs["ns/a"].tasks.values()))
    node = ssn.node("n1")
    assert node is not None
    error = ssn.allocate(task, node)
    assert error is not None
    assert "resources [pods] are not enough to put task <ns/a-w-0>" in error
    assert (task.status.text, task.node_name) == ("Allocated", "n1")
    lab.close(ssn)
    assert (task.status.text, task.node_name) == ("Pending", "")


def test_what_the_cluster_refuses_is_tried_again() -> None:
    lab = Lab().queue("q").node("n1").job("a", tasks=1, **NOTHING)
    lab.cluster.refuse(Operation.BIND, times=1)
    assert lab.cycle().binds == {}
    assert lab.cycle().binds == {"ns/a-w-0": "n1"}
