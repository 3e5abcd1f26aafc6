"""Statements: the examples of spec 02 §9.6, commits in part, endings."""

from __future__ import annotations

from lab import Lab, configuration
from vcscheduler.cluster.faults import Operation
from vcscheduler.framework.plugin import Event, EventHandler
from vcscheduler.framework.session import Session
from vcscheduler.framework.statement import Allocate, Evict, Pipeline, Statement
from vcscheduler.model.nodes import Node
from vcscheduler.model.status import ALLOCATED, BINDING, PENDING, PIPELINED, RELEASING, RUNNING
from vcscheduler.model.task import Task, TransactionContext

#: No plugin that would want to be asked first.
BARE = configuration([["gang"]], "allocate")


def lab() -> Lab:
    return Lab(BARE).queue("q").node("n1", cpu=4)


def task(ssn: Session, name: str) -> Task:
    return next(t for j in ssn.jobs.values() for t in j.tasks.values() if t.name == name)


def node(ssn: Session, name: str = "n1") -> Node:
    found = ssn.node(name)
    assert found is not None
    return found


def cpu(n: Node) -> tuple[float, float, float, float, float]:
    """Idle, used, releasing, pipelined, future idle."""
    return tuple(x.cpu for x in (n.idle, n.used, n.releasing, n.pipelined, n.future_idle))  # type: ignore[return-value]


def test_allocate_and_discard() -> None:
    ssn = lab().job("a", tasks=1).session()
    t, n, statement = task(ssn, "a-w-0"), node(ssn), Statement(ssn)
    assert statement.allocate(t, n) is None
    assert (cpu(n)[:2], t.status, t.node_name) == ((3000, 1000), ALLOCATED, "n1")
    assert (len(statement), list(statement)) == (1, [t])
    statement.discard()
    assert (cpu(n)[:2], t.status, t.node_name, len(statement)) == ((4000, 0), PENDING, "", 0)
    assert t.last_transaction == TransactionContext("n1", ALLOCATED, False)


def test_evict_and_pipeline_and_discard_in_reverse() -> None:
    ssn = lab().job("v", tasks=2, cpu=2, on="n1").job("p", tasks=1, cpu=2).session()
    v, p, n, statement = task(ssn, "v-w-0"), task(ssn, "p-w-0"), node(ssn), Statement(ssn)
    assert cpu(n) == (0, 4000, 0, 0, 0)
    statement.evict(v, "preempt")
    assert cpu(n) == (0, 4000, 2000, 0, 2000)
    assert statement.pipeline(p, n, True) is None
    assert cpu(n) == (0, 4000, 2000, 2000, 0)
    assert (v.status, p.status) == (RELEASING, PIPELINED)
    heard: list[tuple[str, str]] = []
    ssn.add_event_handler(
        EventHandler(
            allocate=lambda e: heard.append(("allocate", e.task.name)),
            deallocate=lambda e: heard.append(("deallocate", e.task.name)),
        )
    )
    statement.discard()
    assert heard == [("deallocate", "p-w-0"), ("allocate", "v-w-0")]
    assert (v.status, p.status, cpu(n)) == (RUNNING, PENDING, (0, 4000, 0, 0, 0))
    assert p.last_transaction == TransactionContext("n1", PIPELINED, True)
    assert p.eviction_occurred


def test_an_operation_that_fails_is_rolled_back_and_not_listed() -> None:
    ssn = lab().job("a", tasks=1).session()
    t, statement, heard = task(ssn, "a-w-0"), Statement(ssn), []
    ssn.add_event_handler(EventHandler(lambda e: heard.append("allocate"), lambda e: heard.append("deallocate")))
    assert statement.pipeline(t, None, False) is not None
    assert (t.status, t.node_name, len(statement), heard) == (PENDING, "", 0, ["allocate", "deallocate"])


def test_every_handler_is_told_of_an_operation_that_one_refuses() -> None:
    ssn = lab().job("a", tasks=1).session()
    t, n, heard = task(ssn, "a-w-0"), node(ssn), []

    def refuse(event: Event) -> None:
        event.error = "no device left"

    ssn.add_event_handler(EventHandler(refuse, lambda e: heard.append("first back")))
    ssn.add_event_handler(EventHandler(lambda e: heard.append("second"), lambda e: heard.append("second back")))
    assert Statement(ssn).allocate(t, n) == "no device left"
    assert heard == ["second", "first back", "second back"]
    assert (t.status, cpu(n)[0], n.tasks) == (PENDING, 4000, {})


def test_commit_sends_binds_and_leaves_pipelines_to_the_session() -> None:
    world = lab().job("a", tasks=3)
    ssn = world.session()
    statement, n = Statement(ssn), node(ssn)
    a, b = task(ssn, "a-w-0"), task(ssn, "a-w-1")
    statement.allocate(a, n)
    statement.pipeline(b, n, False)
    statement.commit()
    assert (a.status, b.status, len(statement)) == (BINDING, PIPELINED, 0)
    assert world.cluster.bindings() == {"ns/a-w-0": "n1"}
    world.close(ssn)
    assert (a.status, b.status, b.node_name, cpu(n)[:4]) == (BINDING, PENDING, "", (3000, 1000, 0, 0))


def test_a_gang_may_be_bound_in_part_when_the_cache_refuses_one() -> None:
    # The session sees what is leaving as room for whom it pipelines; the cache's own books do not (spec 03 §4).
    world = lab().job("a", tasks=2, cpu=3)
    ssn = world.session()
    statement, n = Statement(ssn), node(ssn)
    a, b = task(ssn, "a-w-0"), task(ssn, "a-w-1")
    statement.allocate(a, n)
    statement.allocate(b, n)
    assert cpu(n)[0] == -2000
    statement.commit()
    assert (a.status, b.status, b.node_name) == (BINDING, PENDING, "")
    assert world.cluster.bindings() == {"ns/a-w-0": "n1"}


def test_what_the_cluster_refuses_is_read_again_before_the_next_session() -> None:
    world = lab().job("a", tasks=1)
    world.cluster.refuse(Operation.BIND, times=1)
    assert world.cycle().binds == {}
    assert world.cycle().binds == {"ns/a-w-0": "n1"}


def test_an_eviction_that_the_cache_refuses_is_undone_alone() -> None:
    world = lab().job("v", tasks=1, cpu=2, on="n1").job("w", tasks=1, cpu=2, on="n1")
    ssn = world.session()
    statement, n = Statement(ssn), node(ssn)
    refused, accepted = task(ssn, "v-w-0"), task(ssn, "w-w-0")
    statement.evict(refused, "preempt")
    statement.evict(accepted, "preempt")
    ssn.jobs["ns/v"].pod_group = None
    statement.commit()
    assert (refused.status, accepted.status, cpu(n)[2]) == (RUNNING, RELEASING, 2000)
    assert world.cluster.terminating() == ["ns/w-w-0"]
    assert [t.name for t, _ in ssn.evictions] == ["w-w-0"]


def test_merge_takes_over_in_order() -> None:
    ssn = lab().job("a", tasks=4).session()
    statements = [Statement(ssn) for _ in range(3)]
    tasks = [task(ssn, f"a-w-{i}") for i in range(4)]
    for statement, t in zip([*statements, statements[2]], tasks):
        statement.allocate(t, node(ssn))
    target, one, two = statements
    target.merge(one, two)
    assert list(target) == tasks
    assert (len(one), len(two)) == (0, 0)
    target.discard()
    assert all(t.status is PENDING for t in tasks)


def test_saved_operations_are_done_again_with_their_marks() -> None:
    ssn = lab().job("v", tasks=1, on="n1").job("p", tasks=2).session()
    v, p, q, statement = task(ssn, "v-w-0"), task(ssn, "p-w-0"), task(ssn, "p-w-1"), Statement(ssn)
    statement.evict(v, "preempt")
    statement.pipeline(p, node(ssn), True)
    statement.allocate(q, node(ssn))
    saved = statement.save()
    statement.discard()
    again = Statement(ssn)
    assert again.recover(saved) is None
    assert [type(op) for op in again.operations] == [Evict, Pipeline, Allocate]
    assert (v.status, p.status, q.status, p.eviction_occurred) == (RELEASING, PIPELINED, ALLOCATED, True)


def test_recovery_stops_at_the_first_error_and_keeps_what_was_done() -> None:
    ssn = lab().node("n2").job("p", tasks=2).session()
    p, q, statement = task(ssn, "p-w-0"), task(ssn, "p-w-1"), Statement(ssn)
    statement.allocate(p, node(ssn))
    statement.pipeline(q, node(ssn, "n2"), False)
    saved = statement.save()
    statement.discard()
    ssn.table.remove("n2")
    again = Statement(ssn)
    assert again.recover(saved) is not None
    assert (list(again), p.status, q.status) == ([p], ALLOCATED, PENDING)
