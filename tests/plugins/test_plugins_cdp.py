"""cdp: cooldown (spec 04 §13)."""

from datetime import timedelta

import pytest
from plugin_cluster import NOW, Cluster, names

from vcscheduler.model.status import RUNNING
from vcscheduler.objects.meta import Condition
from vcscheduler.objects.pod import PodStatus
from vcscheduler.plugins.cdp import COOLDOWN_TIME, CooldownProtectionPlugin


def scheduled(seconds: float, status: str = "True") -> Condition:
    at = NOW - timedelta(seconds=seconds)
    return Condition(type="PodScheduled", status=status, last_transition_time=at)


@pytest.mark.parametrize(
    ("labels", "annotations", "phase", "conditions", "victim"),
    [
        ({COOLDOWN_TIME: "600s"}, {}, "Running", [scheduled(100)], False),
        ({COOLDOWN_TIME: "600s"}, {}, "Running", [scheduled(800)], True),
        ({COOLDOWN_TIME: "600abcde"}, {}, "Running", [scheduled(100)], True),
        ({COOLDOWN_TIME: "600s"}, {}, "Pending", [scheduled(100)], True),
        ({COOLDOWN_TIME: "600s"}, {}, "Running", [scheduled(600)], True),
        ({}, {COOLDOWN_TIME: "600s"}, "Running", [scheduled(100)], False),
        ({COOLDOWN_TIME: "600abcde"}, {COOLDOWN_TIME: "600s"}, "Running", [scheduled(100)], True),
        ({COOLDOWN_TIME: "600s"}, {}, "Running", [scheduled(800), scheduled(100)], True),
        ({COOLDOWN_TIME: "600s"}, {}, "Running", [scheduled(100, "False"), scheduled(100)], False),
        ({COOLDOWN_TIME: "600s"}, {}, "Running", [], True),
        ({}, {}, "Running", [scheduled(0)], True),
    ],
)
def test_protected_while_the_cooldown_runs(
    labels: dict[str, str],
    annotations: dict[str, str],
    phase: str,
    conditions: list[Condition],
    victim: bool,
) -> None:
    """EX-CDP-1 and its neighbours."""
    c = Cluster()
    status = PodStatus(phase=phase, conditions=conditions)
    candidate = c.task(c.job("j"), "t", RUNNING, labels=labels, annotations=annotations, pod_status=status)
    preemptor = c.task(c.job("p"), "p")
    ssn = c.session(CooldownProtectionPlugin)
    assert names(ssn.preemptable(preemptor, [candidate])) == ["t"] * victim
    assert names(ssn.reclaimable(preemptor, [candidate])) == ["t"] * victim
