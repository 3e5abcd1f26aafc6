"""Simulations end to end: what is placed, and what is said of everything that waits."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from vcscheduler.config import SchedulerOptions, default_configuration, parse_configuration
from vcscheduler.explain.pending import Cause
from vcscheduler.framework.action import Action
from vcscheduler.framework.registry import Registry
from vcscheduler.framework.session import Session
from vcscheduler.model.status import RUNNING
from vcscheduler.objects import Pod, read_manifest_text
from vcscheduler.simulator.outcome import JobOutcome, Outcome
from vcscheduler.simulator.report import to_plain
from vcscheduler.simulator.simulate import Progress, Simulation

NODES = """
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {disk: ssd}}
status: {allocatable: {cpu: 4, memory: 16Gi, pods: 110}}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
status: {allocatable: {cpu: 4, memory: 16Gi, pods: 110}}
"""
STORED = 'uid: "u-{0}", creationTimestamp: "2026-01-01T00:00:00Z"'


def pod(name: str, cpu: str = "1", spec: str = "", group: str = "") -> str:
    annotations = f", annotations: {{scheduling.k8s.io/group-name: {group}}}" if group else ""
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}{annotations}}}
spec: {{schedulerName: volcano, {spec} containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}
"""


def gang(name: str, replicas: int, cpu: str, queue: str = "default", more: str = "", spec: str = "") -> str:
    return f"""
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: {name}}}
spec:
  queue: {queue}
  schedulerName: volcano
  {more}
  tasks:
    - name: worker
      replicas: {replicas}
      template:
        spec: {{{spec} containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}
"""


def queue(name: str, spec: str = "weight: 1", state: str = "Open", stored: bool = True) -> str:
    kept = ", " + STORED.format(name) if stored else ""
    return f"""
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {{name: {name}{kept}}}
spec: {{{spec}}}
status: {{state: {state}}}
"""


def pod_group(name: str, spec: str, stored: bool = False) -> str:
    kept = ", " + STORED.format(name) if stored else ""
    return f"""
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {{name: {name}, namespace: default{kept}}}
spec: {{{spec}}}
"""


def simulate(*documents: str, nodes: str = NODES, name_nodes: bool = False, max_cycles: int = 1000) -> Outcome:
    manifests = read_manifest_text("---".join((nodes, *documents)))
    simulation = Simulation(
        manifests, default_configuration(), SchedulerOptions(), Registry.default(), name_nodes=name_nodes
    )
    return simulation.run(max_cycles)


def job(outcome: Outcome, name: str) -> JobOutcome:
    found = [each for each in outcome.jobs if each.name == name]
    assert len(found) == 1, [each.key for each in outcome.jobs]
    return found[0]


def cause(outcome: Outcome, name: str) -> Cause:
    reason = job(outcome, name).reason
    assert reason is not None
    return reason.cause


def message(outcome: Outcome, name: str) -> str:
    reason = job(outcome, name).reason
    assert reason is not None
    return reason.message


def test_a_gang_is_placed_whole() -> None:
    outcome = simulate(gang("train", 4, "2"))
    train = job(outcome, "train")
    assert (train.kind, train.waiting, train.reason, train.phase) == ("VolcanoJob", 0, None, "Running")
    assert sorted(train.placed.values()) == ["n1", "n1", "n2", "n2"]
    assert outcome.settled
    assert outcome.placed == 4


def test_jobs_go_by_the_name_of_the_workload_that_a_person_wrote() -> None:
    deployment = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {schedulerName: volcano, containers: [{name: c, resources: {requests: {cpu: 1}}}]}
"""
    outcome = simulate(deployment, pod("alone"))
    assert [(each.kind, each.name, len(each.placed)) for each in outcome.jobs] == [
        ("Pod", "alone", 1),
        ("Deployment", "web", 2),
    ]


def test_what_no_node_can_hold_says_by_how_much() -> None:
    outcome = simulate(pod("huge", cpu="6"))
    reason = job(outcome, "huge").reason
    assert reason is not None
    assert (reason.cause, reason.message) == (Cause.NO_NODE, "none of 2 nodes fits")
    [found] = reason.no_node
    [refusal] = found.refusals
    assert (refusal.rule, refusal.reason, refusal.nodes) == ("resources", "Insufficient cpu", 2)
    assert refusal.detail == "asks 6; the largest node has 4"


def test_rules_count_the_nodes_that_each_refused() -> None:
    outcome = simulate(pod("a", "3", "nodeSelector: {disk: ssd},"), pod("b", "3", "nodeSelector: {disk: ssd},"))
    reason = job(outcome, "b").reason
    assert reason is not None
    [found] = reason.no_node
    assert [(each.rule, each.reason, each.nodes, each.detail) for each in found.refusals] == [
        ("NodeAffinity", "node(s) didn't match Pod's node affinity/selector", 1, ""),
        ("resources", "Insufficient cpu", 1, "asks 3"),
    ]


def test_the_refused_nodes_are_named_when_asked_for() -> None:
    outcome = simulate(pod("huge", cpu="6"), name_nodes=True)
    reason = job(outcome, "huge").reason
    assert reason is not None
    assert reason.no_node[0].refusals[0].names == ("n1", "n2")


def test_a_gang_that_almost_fits_tells_how_far_it_came() -> None:
    outcome = simulate(pod("first", "3"), gang("train", 2, "2500m"))
    reason = job(outcome, "train").reason
    assert reason is not None
    assert reason.could_place == 1
    assert message(outcome, "train").startswith("the gang needs 2 more pods at once, 1 could be placed; for the next,")


def test_what_a_running_job_was_owed_is_free_for_others_again() -> None:
    # While a job is Inqueue and its pods are being bound, enqueue counts it twice (spec 04 §8): the gang is let in only
    # once the pod's group is Running, which changes nothing but a phase.
    outcome = simulate(pod("first", "3"), gang("train", 1, "5"))
    assert (cause(outcome, "train"), job(outcome, "train").phase) == (Cause.NO_NODE, "Inqueue")


def test_a_missing_queue_is_a_reason_and_the_near_name_is_given() -> None:
    outcome = simulate(
        queue("research"), pod_group("g", "minMember: 1, queue: reserch", stored=True), pod("p", group="g")
    )
    assert cause(outcome, "g") is Cause.QUEUE_MISSING
    assert message(outcome, "g") == 'queue "reserch" does not exist; did you mean "research"?'


def test_a_closed_queue_starts_nothing() -> None:
    outcome = simulate(
        queue("old", state="Closed"), pod_group("g", "minMember: 1, queue: old", stored=True), pod("p", group="g")
    )
    assert (cause(outcome, "g"), job(outcome, "g").waiting) == (Cause.QUEUE_NOT_OPEN, 1)


def test_what_a_webhook_refuses_is_told_apart() -> None:
    outcome = simulate(gang("a", 1, "1", queue="nowhere"))
    assert [each.obj for each in outcome.refused] == ["Job default/a"]
    assert outcome.jobs == []


def test_pods_of_a_missing_pod_group_wait() -> None:
    outcome = simulate(pod("p", group="nobody"))
    assert cause(outcome, "nobody") is Cause.POD_GROUP_MISSING
    assert message(outcome, "nobody") == 'its PodGroup "nobody" does not exist'


def test_pods_of_a_refused_pod_group_say_why_it_was_refused() -> None:
    outcome = simulate(pod_group("g", "minMember: 1, queue: nowhere"), pod("p", group="g"))
    assert cause(outcome, "g") is Cause.POD_GROUP_MISSING
    assert "nowhere" in message(outcome, "g")


def test_what_enqueue_keeps_out_says_which_plugin_said_what() -> None:
    outcome = simulate(gang("big", 20, "2"))
    assert cause(outcome, "big") is Cause.NOT_ADMITTED
    assert message(outcome, "big").startswith("not admitted by enqueue: resource in cluster is overused: overused cpu")
    assert job(outcome, "big").waiting == 20


def test_a_group_with_too_few_pods_is_no_gang() -> None:
    outcome = simulate(pod_group("g", "minMember: 3"), pod("p", group="g"))
    assert cause(outcome, "g") is Cause.NOT_ENOUGH_PODS


def test_a_queue_at_its_capability_names_the_sum() -> None:
    outcome = simulate(
        queue("small", "weight: 1, capability: {cpu: 2}", stored=False),
        pod_group("g", "minMember: 1, queue: small"),
        *(pod(f"p{i}", group="g") for i in range(4)),
    )
    small = job(outcome, "g")
    assert (len(small.placed), small.waiting) == (2, 2)
    assert message(outcome, "g") == "queue small would exceed its limit: cpu 2 held + 1 asked > 2"


def test_gated_pods_name_their_gates() -> None:
    outcome = simulate(pod("p", spec="schedulingGates: [{name: example.com/wait}],"))
    assert (cause(outcome, "p"), message(outcome, "p")) == (
        Cause.GATED,
        "1 pod held back by scheduling gates: example.com/wait",
    )


def test_pods_of_other_schedulers_are_counted_and_left_alone() -> None:
    theirs = pod("theirs").replace("schedulerName: volcano", "schedulerName: other")
    outcome = simulate(theirs)
    assert outcome.other_schedulers == {"other": 1}
    assert outcome.jobs == []


def test_pods_that_are_being_deleted_leave_room_after_the_first_cycle() -> None:
    leaving = """
apiVersion: v1
kind: Pod
metadata: {name: old, deletionTimestamp: "2026-01-01T00:00:00Z"}
spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: 4}}}]}
status: {phase: Running}
"""
    outcome = simulate(leaving, pod("new", "4", "nodeSelector: {disk: ssd},"))
    assert job(outcome, "new").placed == {"default/new": "n1"}


def test_tasks_start_after_those_that_they_depend_on() -> None:
    text = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: chain}
spec:
  schedulerName: volcano
  minAvailable: 1
  tasks:
    - name: server
      replicas: 1
      template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
    - name: client
      replicas: 2
      minAvailable: 0
      dependsOn: {name: [server]}
      template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
"""
    chain = job(simulate(text), "chain")
    assert (len(chain.placed), chain.waiting, chain.reason) == (3, 0, None)


def test_queues_say_what_they_hold_and_which_resource_decides() -> None:
    outcome = simulate(queue("q", "weight: 2, capability: {cpu: 6}", stored=False), gang("a", 2, "2", queue="q"))
    [report] = [each for each in outcome.queues if each.name == "q"]
    assert (report.weight, report.jobs, report.state) == (2, 1, "Open")
    assert report.deserved is not None
    assert report.capability is not None
    assert (report.allocated.cpu, report.deserved.cpu, report.capability.cpu) == (4000, 4000, 6000)
    assert (report.share, report.deciding) == (1.0, "cpu")
    assert [each.name for each in outcome.queues] == ["default", "q", "root"]


def test_no_node_ends_over_its_allocatable() -> None:
    simulation = Simulation(
        read_manifest_text("---".join((NODES, *(pod(f"p{i}", "1500m") for i in range(9))))),
        default_configuration(),
        SchedulerOptions(),
        Registry.default(),
    )
    outcome = simulation.run()
    per_node: dict[str, int] = {}
    for each in simulation.cluster.objects(Pod):
        per_node[each.spec.node_name] = per_node.get(each.spec.node_name, 0) + 1
    assert per_node == {"n1": 2, "n2": 2, "": 5}
    assert (outcome.placed, len(outcome.waiting)) == (4, 5)


def test_cycles_can_be_limited_and_are_watched() -> None:
    simulation = Simulation(
        read_manifest_text(NODES + "---" + pod("p")), default_configuration(), SchedulerOptions(), Registry.default()
    )
    seen: list[Progress] = []
    outcome = simulation.run(1, seen.append)
    assert (outcome.cycles, outcome.settled) == (1, False)
    assert seen == [Progress(cycle=1, bound=1, evicted=0, waiting=0)]


def test_time_is_the_input_s_own() -> None:
    newest = 'metadata: {name: p, creationTimestamp: "2026-05-01T12:00:00Z", uid: u}'
    simulation = Simulation(
        read_manifest_text(NODES + "---" + pod("p").replace("metadata: {name: p}", newest)),
        default_configuration(),
        SchedulerOptions(),
        Registry.default(),
    )
    seen: list[datetime] = []
    simulation._scheduler.clock = lambda: seen.append(simulation._now) or simulation._now  # type: ignore[func-returns-value]
    simulation.run(2)
    assert seen == [datetime(2026, 5, 1, 12, 0, tzinfo=UTC), datetime(2026, 5, 1, 12, 0, 1, tzinfo=UTC)]


class _EvictEverything(Action):
    """Evicts what runs on n1, for nobody and by no rule."""

    name = "evict-everything"

    def execute(self, ssn: Session) -> None:
        node = ssn.table.by_name["n1"]
        for task in [t for t in node.sorted_tasks() if t.status is RUNNING]:
            ssn.evict(task, "test")


def test_evictions_of_custom_actions_are_told_without_a_rule() -> None:
    registry = Registry.default()
    registry.add_action("evict-everything", _EvictEverything)
    parsed = parse_configuration(
        'actions: "evict-everything"\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]',
        known_actions=registry.action_names,
    )
    running = """
apiVersion: v1
kind: Pod
metadata: {name: victim, annotations: {scheduling.k8s.io/group-name: g}}
spec: {schedulerName: volcano, nodeName: n1, containers: [{name: c, resources: {requests: {cpu: 1}}}]}
status: {phase: Running}
"""
    manifests = read_manifest_text("---".join((NODES, pod_group("g", "minMember: 1"), running)))
    options = SchedulerOptions()
    outcome = Simulation(manifests, parsed.configuration, options, registry, explain_victims=True).run()
    [eviction] = outcome.evictions
    assert (eviction.cycle, eviction.pod, eviction.node, eviction.action) == (1, "default/victim", "n1", "test")
    assert (eviction.frees is not None and eviction.frees.cpu, eviction.preemptor, eviction.rule) == (1000, "", ())
    [without] = Simulation(manifests, parsed.configuration, options, registry).run().evictions
    assert (without.frees, without.opinions) == (None, ())


def test_the_report_is_plain_data_with_every_pod() -> None:
    outcome = simulate(gang("train", 2, "1"), pod("huge", cpu="6"))
    plain = to_plain(outcome, {"v1/Secret": 2}, ["odd"])
    assert plain["summary"] == {
        "nodes": 2,
        "jobs": 2,
        "jobsWaiting": 1,
        "pods": 3,
        "podsPlaced": 2,
        "podsRunningBefore": 0,
        "podsWaiting": 1,
        "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "220"},
        "used": {"cpu": "2", "memory": "0", "pods": "2"},
    }
    jobs = plain["jobs"]
    assert isinstance(jobs, list)
    assert jobs[0]["pending"]["noNode"][0]["refused"] == [
        {
            "rule": "resources",
            "reason": "Insufficient cpu",
            "nodes": 2,
            "detail": "asks 6; the largest node has 4",
        }
    ]
    assert sorted(jobs[1]["placed"]) == ["default/train-worker-0", "default/train-worker-1"]
    assert (plain["ignored"], plain["warnings"]) == ({"v1/Secret": 2}, ["odd"])


@pytest.mark.parametrize("cycles", [1, 1000])
def test_the_same_input_gives_the_same_outcome(cycles: int) -> None:
    documents = (gang("a", 3, "1"), gang("b", 3, "1500m"), pod("c", "2"))
    first, second = (to_plain(simulate(*documents, max_cycles=cycles), {}, []) for _ in range(2))
    assert first == second
