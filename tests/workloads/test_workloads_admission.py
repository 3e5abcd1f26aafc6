"""What the API server and the queue webhook fill in and refuse (spec 07 §7.1-7.2, §8.2)."""

import pytest

from vcscheduler.objects import PersistentVolume, PersistentVolumeClaim, Pod, PodGroup, Queue, read_manifest_text
from vcscheduler.workloads import Expansion, expand


def expanded(text: str) -> Expansion:
    return expand(read_manifest_text(text))


def pod_of(spec: str, labels: str = "{}", others: str = "") -> Pod:
    text = (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a, labels: {labels}}}\n"
        f"spec: {{schedulerName: volcano, {spec}}}\n{others}"
    )
    (found,) = [obj for obj in expanded(text).objects if isinstance(obj, Pod)]
    return found


def priority_class(name: str, value: int, extra: str = "") -> str:
    header = f"---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\n"
    return f"{header}value: {value}\n{extra}"


def queue(name: str, spec: str = "{}", status: str = "{}", metadata: str = "") -> str:
    return (
        f"---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: {name}{metadata}}}\n"
        f"spec: {spec}\nstatus: {status}\n"
    )


def queue_of(text: str, name: str) -> Queue:
    (found,) = [obj for obj in expanded(text).objects if isinstance(obj, Queue) and obj.name == name]
    return found


CONTAINERS = "containers: [{name: c}]"


class TestPriority:
    def test_it_comes_from_the_class(self) -> None:
        other = priority_class("high", 100, "preemptionPolicy: Never\n")
        spec = pod_of(f"priorityClassName: high, {CONTAINERS}", others=other).spec
        assert (spec.priority, spec.preemption_policy) == (100, "Never")

    def test_without_a_class_the_lowest_global_default_counts(self) -> None:
        others = priority_class("a", 50, "globalDefault: true\n") + priority_class("b", 20, "globalDefault: true\n")
        spec = pod_of(CONTAINERS, others=others).spec
        assert (spec.priority, spec.priority_class_name) == (20, "b")

    def test_without_any_it_is_zero(self) -> None:
        spec = pod_of(CONTAINERS).spec
        assert (spec.priority, spec.priority_class_name, spec.preemption_policy) == (0, "", "PreemptLowerPriority")

    def test_system_classes_are_always_there(self) -> None:
        assert pod_of(f"priorityClassName: system-node-critical, {CONTAINERS}").spec.priority == 2_000_001_000

    def test_a_class_that_does_not_exist_is_refused(self) -> None:
        text = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {{priorityClassName: hihg, {CONTAINERS}}}\n"
        expansion = expanded(text + priority_class("high", 100))
        (refusal,) = expansion.refusals
        assert str(refusal) == (
            '<text>:1: Pod default/a: spec.priorityClassName: found "hihg", no PriorityClass of that name; '
            'did you mean "high"?'
        )
        assert not any(isinstance(obj, Pod) for obj in expansion.objects)

    def test_a_priority_given_by_hand_is_kept_with_a_warning(self) -> None:
        text = (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
            f"spec: {{schedulerName: volcano, priority: 7, {CONTAINERS}}}\n"
        )
        expansion = expanded(text)
        assert "spec.priority: found 7, kept" in expansion.warnings[0]
        assert [obj.spec.priority for obj in expansion.objects if isinstance(obj, Pod)] == [7]


class TestPodDefaults:
    def test_requests_follow_limits_where_they_are_missing(self) -> None:
        spec = pod_of(
            "containers: [{name: c, resources: {requests: {cpu: 1}, limits: {cpu: 2, memory: 1Gi}}}], "
            "initContainers: [{name: i, resources: {limits: {cpu: 3}}}]"
        ).spec
        assert spec.containers[0].resources.requests == {"cpu": 1, "memory": "1Gi"}
        assert spec.init_containers[0].resources.requests == {"cpu": 3}

    def test_the_pod_as_a_whole_requests_what_its_containers_do_else_its_limits(self) -> None:
        spec = pod_of(
            "resources: {limits: {cpu: 8, memory: 4Gi}}, containers: [{name: a, resources: {requests: {cpu: 1}}}, "
            "{name: b, resources: {requests: {cpu: 2}}}]"
        ).spec
        assert spec.resources is not None
        assert spec.resources.requests == {"cpu": "3", "memory": "4Gi"}

    def test_ports_are_host_ports_on_the_host_network(self) -> None:
        spec = pod_of("hostNetwork: true, containers: [{name: c, ports: [{containerPort: 80}]}]").spec
        assert spec.containers[0].ports[0].host_port == 80

    def test_pods_tolerate_absent_nodes_for_a_while(self) -> None:
        spec = pod_of(f"tolerations: [{{key: node.kubernetes.io/unreachable, operator: Exists}}], {CONTAINERS}").spec
        assert [(each.key, each.toleration_seconds) for each in spec.tolerations] == [
            ("node.kubernetes.io/unreachable", None),
            ("node.kubernetes.io/not-ready", 300),
        ]

    def test_label_keys_become_requirements(self) -> None:
        term = "topologyKey: zone, labelSelector: {matchLabels: {app: a}}"
        spec = pod_of(
            f"{CONTAINERS}, affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: "
            f"[{{{term}, matchLabelKeys: [rev, absent]}}]}}, podAntiAffinity: "
            f"{{preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 1, podAffinityTerm: "
            f"{{{term}, mismatchLabelKeys: [rev]}}}}]}}}}, topologySpreadConstraints: [{{maxSkew: 1, "
            f"whenUnsatisfiable: DoNotSchedule, {term}, matchLabelKeys: [rev]}}]",
            labels="{rev: r1}",
        ).spec
        assert spec.affinity is not None
        assert spec.affinity.pod_affinity is not None
        assert spec.affinity.pod_anti_affinity is not None
        selectors = (
            spec.affinity.pod_affinity.required[0].label_selector,
            spec.affinity.pod_anti_affinity.preferred[0].pod_affinity_term.label_selector,
            spec.topology_spread_constraints[0].label_selector,
        )
        found = [
            [(each.key, each.operator, each.values) for each in selector.match_expressions]
            for selector in selectors
            if selector is not None
        ]
        assert found == [[("rev", "In", ["r1"])], [("rev", "NotIn", ["r1"])], [("rev", "In", ["r1"])]]

    def test_claims_and_volumes_start_with_class_and_phase(self) -> None:
        text = (
            "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nprovisioner: p\nmetadata: {name: fast, "
            "annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}\n"
            "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\n"
            "spec: {accessModes: [ReadWriteOnce]}\n"
            "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\n"
            "spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}}\n"
        )
        objects = expanded(text).objects
        (claim,) = [obj for obj in objects if isinstance(obj, PersistentVolumeClaim)]
        (volume,) = [obj for obj in objects if isinstance(obj, PersistentVolume)]
        assert (claim.spec.storage_class_name, claim.status.phase, volume.status.phase) == (
            "fast",
            "Pending",
            "Available",
        )


class TestPodGroupDefaults:
    def test_the_schema_fills_in_queue_mode_and_sizes(self) -> None:
        text = (
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\n"
            "spec: {minMember: 2, networkTopology: {highestTierAllowed: 1}, subGroupPolicy: [{name: s}]}\n"
        )
        (group,) = [obj for obj in expanded(text).objects if isinstance(obj, PodGroup)]
        assert group.spec.queue == "default"
        assert group.spec.network_topology is not None
        assert group.spec.network_topology.mode == "hard"
        assert (group.spec.sub_group_policy[0].sub_group_size, group.spec.sub_group_policy[0].min_sub_groups) == (1, 0)
        assert group.status.phase == ""


class TestQueues:
    def test_root_and_default_are_made_where_they_are_missing(self) -> None:
        queues = [obj for obj in expanded("").objects if isinstance(obj, Queue)]
        assert [(each.name, each.spec.weight, each.spec.reclaimable, each.spec.parent) for each in queues] == [
            ("root", 1, False, ""),
            ("default", 1, True, "root"),
        ]
        assert {each.status.state for each in queues} == {"Open"}

    def test_a_queue_gets_weight_parent_and_state(self) -> None:
        found = queue_of(queue("q"), "q")
        assert (found.spec.weight, found.spec.parent, found.spec.reclaimable) == (1, "root", True)
        assert (found.status.state, found.spec.dequeue_strategy) == ("Open", "traverse")

    def test_a_hierarchy_begins_at_root(self) -> None:
        annotations = ", annotations: {volcano.sh/hierarchy: a/b, volcano.sh/hierarchy-weights: 2/3}"
        found = queue_of(queue("q", metadata=annotations), "q").metadata.annotations
        assert found == {"volcano.sh/hierarchy": "root/a/b", "volcano.sh/hierarchy-weights": "1/2/3"}

    def test_stored_queues_stay_as_they_are(self) -> None:
        stored = ", uid: u, creationTimestamp: 2026-01-01T00:00:00Z"
        found = queue_of(queue("q", "{parent: gone}", "{state: Closing}", stored), "q")
        assert (found.spec.weight, found.spec.parent, found.status.state) == (0, "gone", "Closing")

    @pytest.mark.parametrize(
        ("text", "refusal"),
        [
            (queue("q", "{parent: x}"), 'Queue q: spec.parent: found "x", no such queue'),
            (
                queue("q", status="{state: Closing}"),
                'Queue q: status.state: found "Closing", a new queue is Open or Closed',
            ),
            (
                queue("q", "{deserved: {cpu: 2}, guarantee: {resource: {cpu: 3}}}"),
                "Queue q: spec.guarantee.resource.cpu: it is more than the queue's deserved",
            ),
            (
                queue("q", "{deserved: {cpu: 2}, guarantee: {resource: {memory: 1Gi}}}"),
                "Queue q: spec.guarantee.resource.memory: deserved must list this resource as well",
            ),
            (
                queue("q", "{capability: {cpu: 1}, deserved: {cpu: 2}}"),
                "Queue q: spec.deserved.cpu: it is more than the queue's capability",
            ),
            (
                queue("p", "{capability: {cpu: 1}}") + queue("q", "{parent: p, capability: {cpu: 2}}"),
                'Queue q: spec.capability.cpu: found 2, above the 1 of queue "p"',
            ),
            (
                queue("p", "{deserved: {cpu: 3}}")
                + queue("q", "{parent: p, deserved: {cpu: 2}}")
                + queue("r", "{parent: p, deserved: {cpu: 2}}"),
                "Queue p: spec.deserved.cpu: the child queues together have more than this queue",
            ),
            (
                "".join(queue(f"q{i}", f"{{parent: {f'q{i - 1}' if i else 'root'}}}") for i in range(6)),
                "Queue q5: spec.parent: the queue is 6 levels below root, allowed are 5",
            ),
        ],
    )
    def test_what_the_webhook_refuses(self, text: str, refusal: str) -> None:
        (found,) = expanded(text).refusals
        assert f"{found.obj}: {found.field}: {found.reason}".startswith(refusal)

    def test_jobs_go_to_open_leaves_only(self) -> None:
        job = (
            "---\napiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {{name: {name}}}\n"
            "spec:\n  queue: {name}\n"
            "  tasks: [{{replicas: 1, name: t, template: {{spec: {{containers: [{{name: c}}]}}}}}}]\n"
        )
        queues = queue("up") + queue("down", "{parent: up}") + queue("shut", status="{state: Closed}")
        expansion = expanded(queues + "".join(job.format(name=name) for name in ("up", "down", "shut")))
        assert [(each.obj, each.reason) for each in expansion.refusals] == [
            ("Job default/up", 'found "up", which has child queues; name one of them, such as "down"'),
            ("Job default/shut", 'found "shut", a queue whose state is Closed; it must be Open'),
        ]
        assert [obj.name for obj in expansion.objects if isinstance(obj, Pod)] == ["down-t-0"]


def test_a_pod_of_a_dump_without_statuses_is_pending() -> None:
    text = (
        "apiVersion: v1\nkind: Pod\n"
        "metadata: {name: a, uid: u, creationTimestamp: 2026-01-01T00:00:00Z}\n"
        f"spec: {{schedulerName: volcano, {CONTAINERS}}}\n"
    )
    (found,) = [obj for obj in expanded(text).objects if isinstance(obj, Pod)]
    assert found.status.phase == "Pending"
