"""What docs/differences.md lists as reported faults: each has its case, and what no case can show is shown here."""

from __future__ import annotations

import re
from pathlib import Path

from lab import Lab, configuration
from vcscheduler.objects import Pod

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "conformance" / "reported_faults"
NAMED = set(re.findall(r"`(F\d{3}-[\w-]+)`", (ROOT / "docs" / "differences.md").read_text()))


def test_every_case_is_listed_and_every_listed_case_is_there() -> None:
    assert {path.stem for path in CASES.glob("*.yaml")} == NAMED


def test_a_discarded_preemption_nominates_its_node() -> None:
    """F012: two of three pods had a node once victims were gone; nobody was evicted, and both are promised it."""
    config = configuration([["priority", "gang", "conformance"], ["predicates", "nodeorder"]], "allocate, preempt")
    lab = Lab(config).queue("q").node("n1", cpu=2)
    lab.job("low", 0, 2, priority=10, on="n1").job("high", 3, 3, priority=100)
    assert lab.cycle().evicts == []
    nominated = {pod.name: pod.status.nominated_node_name for pod in lab.cluster.objects(Pod) if "high" in pod.name}
    assert nominated == {"high-w-0": "n1", "high-w-1": "n1", "high-w-2": ""}


def test_a_queue_that_has_all_it_asks_for_has_a_share_of_one() -> None:
    """F038: 0.1 of 4 cpu, and yet nothing is owed to it."""
    lab = Lab().node("n1", cpu=8).queue("q", capability={"cpu": "4", "memory": "2Gi"})
    ssn = lab.job("a", 1, 1, on="n1", cpu="100m", memory="10Mi").session()
    standing = ssn.queue_standing(ssn.queues["q"])
    lab.close(ssn)
    assert standing is not None
    assert (standing.share, standing.deserved.cpu) == (1.0, 100.0)


def test_a_job_placed_at_once_is_called_unschedulable() -> None:
    """F087: the PodGroup becomes Inqueue and all its pods are bound in one cycle."""
    lab = Lab().queue("q").node("n1", cpu=2).job("a", 1, 1, phase="Pending")
    assert lab.cycle().binds == {"ns/a-w-0": "n1"}
    assert [(e.type, e.reason, e.message) for e in lab.cluster.events() if e.kind == "PodGroup"] == [
        ("Warning", "Unschedulable", "0/1 tasks in gang unschedulable: pod group is ready, 1 Binding, 1 minAvailable")
    ]
