"""What the evicting actions share: order of victims, remembered candidates, nodes best first, attempts in vain."""

from __future__ import annotations

from functools import cmp_to_key

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab import Lab, configuration
from vcscheduler.actions.victims import Evictables, Futile, Room, best_first, queues_by_first_job, starving_jobs
from vcscheduler.framework.heap import PriorityQueue
from vcscheduler.framework.session import Session
from vcscheduler.framework.statement import Statement
from vcscheduler.framework.victim_order import KeyedVictims
from vcscheduler.model.task import Task

PLUGINS = [["priority", "gang", "drf", "proportion", "predicates", "nodeorder"]]


def lab() -> Lab:
    return Lab(configuration(PLUGINS, "preempt"))


def plain_order(ssn: Session, victims: list[Task], preemptor: Task) -> PriorityQueue[Task]:
    """Spec 02 §6.4 by comparisons, as the heap of the reference sees them."""
    own = ssn.queues[ssn.jobs[preemptor.job_id].queue]

    def less(a: Task, b: Task) -> bool:
        if a.job_id == b.job_id:
            return not ssn.task_less(a, b)
        x, y = ssn.jobs[a.job_id], ssn.jobs[b.job_id]
        if x.queue != y.queue:
            return ssn.victim_queue_less(ssn.queues[x.queue], ssn.queues[y.queue], own)
        c = ssn.job_order.compare(x, y)
        return c > 0 if c else not ssn.task_less(a, b)

    return PriorityQueue(less, victims)


def drained(ssn: Session, victims: PriorityQueue[Task] | KeyedVictims) -> list[str]:
    """Names in the order of going, each victim evicted before the next is asked for."""
    statement = Statement(ssn)
    gone = []
    while (victim := victims.pop()) is not None:
        gone.append(victim.name)
        statement.evict(victim, "test")
    statement.discard()
    return gone


jobs_of_victims = st.lists(
    st.tuples(
        st.integers(0, 2),  # priority
        st.integers(0, 3),  # minimum
        st.sampled_from(["q1", "q2"]),
        st.lists(st.tuples(st.integers(0, 2), st.sampled_from([1, 2])), min_size=1, max_size=5),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=40, deadline=None)
@given(jobs_of_victims)
def test_keys_order_victims_as_comparisons_do_while_jobs_change(
    jobs: list[tuple[int, int, str, list[tuple[int, int]]]],
) -> None:
    cluster = lab().queue("q1").queue("q2").node("n1", cpu=100)
    for j, (priority, minimum, queue, pods) in enumerate(jobs):
        cluster.job(f"j{j}", minimum, queue=queue, priority=priority, phase="Running")
        for i, (task_priority, cpu) in enumerate(pods):
            cluster.pod(f"j{j}", f"j{j}-w-{i}", cpu=cpu, node="n1", priority=task_priority)
    ssn = cluster.job("h", 1, tasks=1, queue="q1").session()
    (preemptor,) = ssn.jobs["ns/h"].tasks.values()
    victims = ssn.table.by_name["n1"].sorted_tasks()

    keyed = ssn.victims_queue(victims, preemptor)

    assert isinstance(keyed, KeyedVictims)
    expected = drained(ssn, plain_order(ssn, victims, preemptor))
    assert drained(ssn, ssn.victims_queue(victims, preemptor)) == expected
    cluster.close(ssn)


def test_victims_of_which_only_some_have_an_index_are_compared_one_by_one() -> None:
    cluster = lab().queue("q").node("n1", cpu=9).job("a", 0, tasks=2, on="n1").pod("a", "loner", node="n1")
    ssn = cluster.job("h", 1, tasks=1).session()
    (preemptor,) = ssn.jobs["ns/h"].tasks.values()

    assert isinstance(ssn.victims_queue(list(ssn.jobs["ns/a"].tasks.values()), preemptor), PriorityQueue)
    cluster.close(ssn)


def test_candidates_follow_what_happens_on_the_node() -> None:
    cluster = lab().queue("q").queue("r").node("n1", cpu=9)
    cluster.job("a", 0, tasks=2, on="n1").job("b", 0, tasks=1, queue="r", on="n1")
    cluster.pod("a", "a-kept", node="n1", annotations={"volcano.sh/preemptable": "false"}).pod("", "alone", node="n1")
    ssn = cluster.session()
    evictables = Evictables(ssn)

    def names() -> dict[str, list[str]]:
        evictables.refresh()
        return {queue: [t.name for t in tasks] for queue, tasks in evictables.by_queue(0).items()}

    assert names() == {"q": ["a-w-0", "a-w-1"], "r": ["b-w-0"]}
    evictables.barren("s")[0] = True
    statement = Statement(ssn)
    statement.evict(next(t for t in ssn.jobs["ns/a"].tasks.values() if t.name == "a-w-0"), "test")
    statement.evict(next(iter(ssn.jobs["ns/b"].tasks.values())), "test")
    assert names() == {"q": ["a-w-1"]}
    assert evictables.barren("s")[0]
    statement.discard()
    assert names() == {"q": ["a-w-0", "a-w-1"], "r": ["b-w-0"]}
    assert not evictables.barren("s")[0]
    cluster.close(ssn)


@pytest.mark.parametrize("victims", [0, 1, 2, 3])
def test_room_counts_what_is_idle_leaving_and_promised(victims: int) -> None:
    cluster = lab().queue("q").node("n1", cpu=4).job("a", 0, tasks=3, on="n1").job("h", 1, tasks=1, cpu=3)
    ssn = cluster.session()
    (task,) = ssn.jobs["ns/h"].tasks.values()
    running = list(ssn.jobs["ns/a"].tasks.values())
    room = Room(ssn.table, task, 0)
    for victim in running[:victims]:
        room.add(victim)

    assert room.enough() is (1 + victims >= 3)
    cluster.close(ssn)


def test_best_first_is_the_order_of_the_scores_without_the_skipped() -> None:
    cluster = lab().queue("q")
    for i in range(9):
        cluster.node(f"n{(i * 5) % 9}", cpu=4 + i % 4)
    ssn = cluster.job("h", 1, tasks=1).session()
    (task,) = ssn.jobs["ns/h"].tasks.values()
    rows = ssn.search.all_rows[::-1].copy()
    scores = ssn.search.scores(task, rows)
    assert scores is not None
    by_score = dict(zip(rows.tolist(), scores.tolist(), strict=True))
    skip = np.zeros(9, dtype=np.bool_)
    skip[[2, 7]] = True

    def order(a: int, b: int) -> int:
        names = ssn.table.nodes[a].name, ssn.table.nodes[b].name
        return (by_score[a] < by_score[b]) - (by_score[a] > by_score[b]) or (1 if names[0] > names[1] else -1)

    assert ssn.runs.scores(task) is not None
    wanted = [row for row in sorted(rows.tolist(), key=cmp_to_key(order)) if not skip[row]]
    assert list(best_first(ssn, task, rows, skip)) == wanted
    cluster.close(ssn)


def test_an_attempt_in_vain_is_not_made_again_until_something_changes() -> None:
    cluster = lab().queue("q").node("n1", cpu=4).job("a", 0, tasks=1, on="n1").job("h", 3, tasks=3)
    ssn = cluster.session()
    first, second, _ = ssn.jobs["ns/h"].tasks.values()
    rows = ssn.search.all_rows
    futile = Futile(ssn.table)

    assert not futile.again(first, rows)
    futile.note(first, rows)
    assert futile.again(second, rows)
    assert not futile.again(second, rows[:0])
    futile.note(first, rows[:0])
    statement = Statement(ssn)
    statement.evict(next(iter(ssn.jobs["ns/a"].tasks.values())), "test")
    assert not futile.again(second, rows[:0])
    # What left a trace is no measure for the next.
    statement.discard()
    futile.note(second, rows)
    assert not futile.again(second, rows)
    cluster.close(ssn)


def test_who_starves_and_whose_turn_it_is() -> None:
    cluster = lab().queue("q1").queue("q2").queue("q3").queue("q4").node("n1", cpu=9)
    cluster.job("c", 1, tasks=1, queue="q2").job("a", 1, tasks=1, queue="q3", phase="Pending")
    cluster.job("b", 1, tasks=1, queue="q1", on="n1").job("d", 2, tasks=1, queue="q4")
    ssn = cluster.session()

    assert [job.name for job in starving_jobs(ssn)] == ["c"]
    # Running jobs count, those that wait to be let in or lack pods do not.
    assert [queue.name for queue in queues_by_first_job(ssn)] == ["q1", "q2"]
    cluster.close(ssn)
