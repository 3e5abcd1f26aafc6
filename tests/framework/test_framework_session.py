"""Orders of things to do in a session, and operations without a statement (spec 02 §6, §9.5)."""

from __future__ import annotations

import random

from hypothesis import given

from lab import Lab, configuration, member
from profiles import MANY, SEEDS
from vcscheduler.framework.heap import PriorityQueue
from vcscheduler.framework.session import Session
from vcscheduler.model.status import ALLOCATED, BINDING, RELEASING
from vcscheduler.model.task import Task, TaskClasses

BARE = configuration([["gang"]], "allocate")


def task(ssn: Session, name: str) -> Task:
    return next(t for j in ssn.jobs.values() for t in j.tasks.values() if t.name == name)


def drain(queue: object) -> list[str]:
    found = []
    while (t := queue.pop()) is not None:  # type: ignore[attr-defined]
        found.append(t.name)
    return found


@MANY
@given(SEEDS)
def test_tasks_come_as_out_of_the_references_heap(seed: int) -> None:
    """Also where names with and without an index meet, which is no order at all (Quirk, spec 02 §6.2)."""
    rng = random.Random(seed)
    ssn, classes = Lab(configuration([["priority"]], "allocate")).session(), TaskClasses()
    forms = rng.choice([["j-w-{}"], ["web-{}"], ["j-w-{}", "web-{}", "x-{}-y"]])
    names = {rng.choice(forms).format(rng.randint(0, 12)) for _ in range(rng.randint(1, 12))}
    tasks = []
    for name in sorted(names):
        pod = member("j", name, age=rng.randint(0, 2), priority=rng.choice([1, 1, 5]))
        tasks.append(Task(pod, classes.of(pod)))
    assert drain(ssn.task_queue(tasks)) == drain(PriorityQueue(ssn.task_less, tasks))


def victims(lab: Lab, *names: str, preemptor: str = "h-w-0") -> list[str]:
    ssn = lab.session()
    return drain(ssn.victims_queue([task(ssn, n) for n in names], task(ssn, preemptor)))


def test_the_last_task_of_a_job_goes_first() -> None:
    lab = Lab(BARE).queue("q").node("n1", cpu=8).job("v", tasks=3, on="n1").job("h", tasks=1)
    assert victims(lab, "v-w-0", "v-w-2", "v-w-1") == ["v-w-2", "v-w-1", "v-w-0"]


def test_between_jobs_of_one_queue_tasks_interleave_unless_a_plugin_tells_the_jobs_apart() -> None:
    def lab(tiers: list[list[str]]) -> Lab:
        world = Lab(configuration(tiers, "allocate")).queue("q").node("n1", cpu=8)
        world.job("old", tasks=2, on="n1", minimum=0, priority=100)
        world.job("new", tasks=2, on="n1", minimum=0, priority=1)
        return world.job("h", tasks=1)

    names = ("old-w-0", "old-w-1", "new-w-0", "new-w-1")
    # Nobody decides: reverse task order, age of the job does not count.
    assert victims(lab([["conformance"]]), *names) == ["old-w-1", "new-w-1", "old-w-0", "new-w-0"]
    assert victims(lab([["priority"]]), *names) == ["new-w-1", "new-w-0", "old-w-1", "old-w-0"]


def test_of_another_queue_the_later_queue_goes_first() -> None:
    lab = Lab(BARE).queue("q1").queue("q2").queue("q").node("n1", cpu=8)
    lab.job("a", tasks=1, on="n1", queue="q1").job("b", tasks=1, on="n1", queue="q2").job("h", tasks=1)
    assert victims(lab, "a-w-0", "b-w-0") == ["b-w-0", "a-w-0"]


def test_a_victim_whose_job_is_gone_goes_before_others() -> None:
    lab = Lab(BARE).queue("q").node("n1", cpu=8).job("v", tasks=1, on="n1").job("gone", tasks=2, on="n1")
    ssn = lab.job("h", tasks=1).session()
    tasks = [task(ssn, n) for n in ("v-w-0", "gone-w-0", "gone-w-1")]
    del ssn.jobs["ns/gone"]
    assert drain(ssn.victims_queue(tasks, task(ssn, "h-w-0"))) == ["gone-w-1", "gone-w-0", "v-w-0"]


def test_direct_allocation_sends_all_allocated_tasks_once_the_job_is_ready() -> None:
    lab = Lab(BARE).queue("q").node("n1").job("a", minimum=2, tasks=2)
    ssn = lab.session()
    node = ssn.node("n1")
    assert node is not None
    first, second = task(ssn, "a-w-0"), task(ssn, "a-w-1")
    assert ssn.allocate(first, node) is None
    assert (first.status, lab.cluster.bindings()) == (ALLOCATED, {})
    assert ssn.allocate(second, node) is None
    assert (first.status, second.status) == (BINDING, BINDING)
    assert lab.cluster.bindings() == {"ns/a-w-0": "n1", "ns/a-w-1": "n1"}


def test_direct_eviction_goes_to_the_cluster_first() -> None:
    lab = Lab(BARE).queue("q").node("n1").job("a", tasks=1, on="n1")
    ssn = lab.session()
    t = task(ssn, "a-w-0")
    assert ssn.evict(t, "shuffle") is None
    assert (t.status, lab.cluster.terminating()) == (RELEASING, ["ns/a-w-0"])
    again = ssn.table.by_name["n1"].tasks.pop(t.key)
    assert ssn.evict(again, "shuffle") is not None


def test_a_session_takes_what_may_be_worked_on_only() -> None:
    lab = (
        Lab(BARE).queue("q").node("n1").job("waits", tasks=1).job("runs", tasks=1, on="n1").job("bare", phase="Pending")
    )
    assert [j.id for j in lab.session().active_jobs] == ["ns/bare", "ns/waits"]
