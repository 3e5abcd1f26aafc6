"""Simulated preemption: what queues would hold, beside what they do hold (spec 04 §6.3, §7.3)."""

import pytest
from plugin_cluster import Cluster

from vcscheduler.framework.plugin import Plugin
from vcscheduler.framework.simulation_points import simulated
from vcscheduler.model.status import RUNNING
from vcscheduler.plugins.capacity import CapacityPlugin
from vcscheduler.plugins.proportion import ProportionPlugin


def cluster(state: str = "Open") -> Cluster:
    """A queue that holds all of its 4 cores and wants one more."""
    c = Cluster()
    c.node("n1", cpu=4)
    c.queue("q", state=state, capability={"cpu": 4}, deserved={"cpu": 4})
    job = c.job("j", "q")
    c.tasks(job, "a b c d", RUNNING, node="n1", cpu=1)
    c.task(job, "p", cpu=1)
    return c


@pytest.mark.parametrize("plugin", [ProportionPlugin, CapacityPlugin])
def test_victims_taken_away_in_thought_make_room(plugin: type[Plugin]) -> None:
    c = cluster("Closed")
    ssn = c.session(plugin)
    job, queue, node = ssn.jobs["ns/j"], ssn.queues["q"], c.cache.table.nodes[0]
    victim, preemptor = job.tasks["ns-a"], job.tasks["ns-p"]
    assert not ssn.simulate_allocatable(ssn.cycle_state(preemptor), queue, preemptor)
    assert ssn.simulate_remove_task({}, preemptor, victim, node) is not None
    assert ssn.pre_predicate(preemptor) is None
    first, second = (simulated(ssn.cycle_state(preemptor)) for _ in range(2))
    assert not ssn.simulate_allocatable(first, queue, preemptor)
    assert ssn.simulate_remove_task(first, preemptor, victim, node) is None
    assert ssn.simulate_allocatable(first, queue, preemptor)
    third = simulated(first)
    assert ssn.simulate_add_task(first, preemptor, victim, node) is None
    assert not ssn.simulate_allocatable(first, queue, preemptor)
    assert not ssn.simulate_allocatable(second, queue, preemptor)
    assert ssn.simulate_allocatable(third, queue, preemptor)
    assert not ssn.allocatable(queue, preemptor)
    victim.job_id = "ns/gone"
    assert ssn.simulate_remove_task(first, preemptor, victim, node) is not None


def test_queues_above_must_have_room_too() -> None:
    c = Cluster()
    node = c.node("n1", cpu=9)
    c.queue("root")
    c.queue("parent", capability={"cpu": 2})
    c.queue("x", parent="parent")
    c.queue("y", parent="parent")
    (held,) = c.tasks(c.job("jy", "y"), "held", RUNNING, cpu=2)
    (task,) = c.tasks(c.job("jx", "x"), "t", cpu=1)
    ssn = c.session(CapacityPlugin, flags={"enable_hierarchy": True})
    ssn.pre_predicate(task)
    state = simulated(ssn.cycle_state(task))
    assert not ssn.simulate_allocatable(state, ssn.queues["x"], task)
    assert not ssn.simulate_allocatable(state, ssn.queues["parent"], task)
    assert ssn.simulate_remove_task(state, task, held, node) is None
    assert ssn.simulate_allocatable(state, ssn.queues["x"], task)
