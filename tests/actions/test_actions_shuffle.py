"""shuffle evicts exactly whom plugins name, and whatever happens afterwards."""

from __future__ import annotations

from lab import Lab, configuration
from vcscheduler.actions.shuffle import Shuffle
from vcscheduler.model.status import RELEASING
from vcscheduler.model.task import Task


def test_whom_plugins_name_is_evicted_at_once() -> None:
    lab = Lab(configuration([["gang"]], "shuffle")).queue("q").node("n1", cpu=10)
    lab.job("a", 4, tasks=4, on="n1").job("b", 1, phase="Pending")
    for i in range(3):
        lab.pod("b", f"b-w-{i}", node="n1", priority=10)
    ssn = lab.session()
    seen: list[str] = []

    def important(tasks: list[Task]) -> list[Task]:
        seen.extend(t.key for t in tasks)
        return [t for t in tasks if t.priority == 10]

    ssn.add_victim_tasks_fn("gang", [important])
    Shuffle().execute(ssn)

    assert seen == [f"ns/a-w-{i}" for i in range(4)] + [f"ns/b-w-{i}" for i in range(3)]
    assert [t.key for t, _ in ssn.evictions] == ["ns/b-w-0", "ns/b-w-1", "ns/b-w-2"]
    assert ssn.jobs["ns/b"].counts[RELEASING] == 3
    assert ssn.table.by_name["n1"].releasing.cpu == 3000
    lab.close(ssn)


def test_without_anybody_to_name_victims_nothing_happens() -> None:
    lab = Lab(configuration([["gang"]], "shuffle")).queue("q").node("n1").job("a", 1, tasks=2, on="n1")

    assert lab.cycle().evicts == []
