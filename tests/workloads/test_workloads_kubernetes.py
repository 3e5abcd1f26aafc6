"""Deployments, ReplicaSets, StatefulSets, DaemonSets, batch Jobs and bare pods: pods and PodGroups (spec 07 §8.6)."""

from vcscheduler.objects import (
    KubernetesObject,
    PersistentVolumeClaim,
    Pod,
    PodGroup,
    ReplicaSet,
    parse_quantity,
    read_manifest_text,
)
from vcscheduler.workloads import Expansion, expand

SPEC = "{schedulerName: volcano, containers: [{name: c, resources: {requests: {cpu: 1}}}]}"
TEMPLATE = f"{{metadata: {{labels: {{app: a}}}}, spec: {SPEC}}}"


def workload(kind: str, name: str = "w", extra: str = "", metadata: str = "", template: str = TEMPLATE) -> str:
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return (
        f"---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}, namespace: ns{metadata}}}\n"
        f"spec: {{{extra}template: {template}}}\n"
    )


def pod(name: str, metadata: str = "", spec: str = SPEC, status: str = "{}") -> str:
    return (
        f"---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: ns{metadata}}}\n"
        f"spec: {spec}\nstatus: {status}\n"
    )


def owned(kind: str, name: str = "w", uid: str = "u", version: str = "apps/v1", self_uid: str = "p") -> str:
    return (
        f", uid: {self_uid}, creationTimestamp: 2026-01-01T00:00:00Z, ownerReferences: "
        f"[{{apiVersion: {version}, kind: {kind}, name: {name}, uid: {uid}, controller: true}}]"
    )


STORED = ", uid: u, creationTimestamp: 2026-01-01T00:00:00Z"


def expanded(text: str) -> Expansion:
    return expand(read_manifest_text(text))


def of(expansion: Expansion, kind: type) -> list:
    return [obj for obj in expansion.objects if isinstance(obj, kind)]


def names(expansion: Expansion) -> list[str]:
    return [each.name for each in of(expansion, Pod)]


def kinds(objects: list[KubernetesObject]) -> list[str]:
    return [obj.kind for obj in objects if obj.kind != "Queue"]


class TestPodGroups:
    def test_a_deployment_gets_one_group_for_its_replica_set(self) -> None:
        text = workload("Deployment", extra="replicas: 3, ").replace(
            "namespace: ns}", "namespace: ns, annotations: {scheduling.volcano.sh/group-min-member: '2'}}"
        )
        expansion = expanded(text)
        assert kinds(expansion.objects) == ["Deployment", "ReplicaSet", "PodGroup", "Pod", "Pod", "Pod"]
        (group,) = of(expansion, PodGroup)
        (replica_set,) = of(expansion, ReplicaSet)
        assert group.name == f"podgroup-{replica_set.metadata.uid}"
        assert (group.spec.min_member, group.spec.queue, group.status.phase) == (2, "default", "Pending")
        assert group.spec.min_resources is not None
        assert parse_quantity(group.spec.min_resources["cpu"]) == 2
        assert parse_quantity(group.spec.min_resources["pods"]) == 2
        assert {each.metadata.annotations["scheduling.k8s.io/group-name"] for each in of(expansion, Pod)} == {
            group.name
        }

    def test_a_batch_job_schedules_pod_by_pod(self) -> None:
        expansion = expanded(workload("Job", extra="parallelism: 4, completions: 8, "))
        (group,) = of(expansion, PodGroup)
        assert (len(names(expansion)), group.spec.min_member) == (4, 1)

    def test_bare_pods_have_a_group_each(self) -> None:
        expansion = expanded(pod("a") + pod("b"))
        assert kinds(expansion.objects) == ["PodGroup", "Pod", "PodGroup", "Pod"]
        group, first = of(expansion, PodGroup)[0], of(expansion, Pod)[0]
        assert group.name == f"podgroup-{first.metadata.uid}"
        assert (group.metadata.owner_references[0].kind, group.metadata.owner_references[0].name) == ("Pod", "a")

    def test_annotations_of_pod_and_owner_shape_the_group(self) -> None:
        template = TEMPLATE.replace(
            "{labels: {app: a}}",
            "{labels: {volcano.sh/preemptable: 'true'}, annotations: {scheduling.volcano.sh/queue-name: q, "
            "volcano.sh/jdb-max-unavailable: '1', volcano.sh/network-topology-mode: SOFT, "
            "volcano.sh/network-topology-highest-tier: '2', volcano.sh/cooldown-time: 1m}}",
        )
        queue = "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\n"
        metadata = ", annotations: {volcano.sh/cooldown-time: 9m, volcano.sh/other: x, example.com/y: z}"
        expansion = expanded(queue + workload("StatefulSet", metadata=metadata, template=template))
        (group,) = of(expansion, PodGroup)
        assert group.metadata.annotations == {
            "volcano.sh/cooldown-time": "1m",
            "volcano.sh/other": "x",
            "volcano.sh/jdb-max-unavailable": "1",
        }
        assert group.metadata.labels == {"volcano.sh/preemptable": "true"}
        assert group.spec.queue == "q"
        assert group.spec.network_topology is not None
        assert (group.spec.network_topology.mode, group.spec.network_topology.highest_tier_allowed) == ("soft", 2)

    def test_pods_that_have_a_group_keep_it(self) -> None:
        group = (
            "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g, namespace: ns}\n"
            "spec: {minMember: 1}\n"
        )
        text = group + pod("a", ", annotations: {scheduling.k8s.io/group-name: g}")
        expansion = expanded(text)
        assert kinds(expansion.objects) == ["PodGroup", "Pod"]
        assert of(expansion, PodGroup)[0].spec.queue == "default"

    def test_pods_of_other_schedulers_get_none_and_a_word_about_it(self) -> None:
        expansion = expanded(
            pod("a", spec="{containers: [{name: c}]}") + pod("b", spec="{schedulerName: x, containers: [{name: c}]}")
        )
        assert kinds(expansion.objects) == ["Pod", "Pod"]
        (warning,) = expansion.warnings
        assert warning.startswith("<text>:2: Pod ns/a: spec.schedulerName: missing, so the default scheduler would")

    def test_a_group_that_does_not_exist_is_warned_of_once(self) -> None:
        named = ", annotations: {scheduling.k8s.io/group-name: lost}"
        (warning,) = expanded(pod("a", named) + pod("b", named)).warnings
        assert warning.endswith("names the PodGroup ns/lost, which does not exist: it is not scheduled (and 1 more)")

    def test_a_group_in_an_unknown_queue_is_refused_and_the_pod_stays_without(self) -> None:
        expansion = expanded(pod("a", ", annotations: {scheduling.volcano.sh/queue-name: q9}"))
        assert kinds(expansion.objects) == ["Pod"]
        (refusal,) = expansion.refusals
        assert refusal.obj.startswith("PodGroup ns/podgroup-")
        assert refusal.reason == 'found "q9", no such queue; Pod ns/a is not scheduled'


class TestPods:
    def test_a_stateful_set_numbers_its_pods_and_makes_their_claims(self) -> None:
        claims = "volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}], "
        expansion = expanded(workload("StatefulSet", extra=f"replicas: 2, ordinals: {{start: 5}}, {claims}"))
        assert names(expansion) == ["w-5", "w-6"]
        assert [each.name for each in of(expansion, PersistentVolumeClaim)] == ["data-w-5", "data-w-6"]
        volume = of(expansion, Pod)[1].spec.volumes[0]
        assert (volume.name, volume.persistent_volume_claim.claim_name) == ("data", "data-w-6")

    def test_a_daemon_set_has_a_pod_for_every_node_that_suits(self) -> None:
        nodes = "".join(
            f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{disk: {disk}}}}}\nspec: {spec}\n"
            for name, disk, spec in (
                ("n1", "ssd", "{}"),
                ("n2", "hdd", "{}"),
                (
                    "n3",
                    "ssd",
                    "{unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]}",
                ),
                ("n4", "ssd", "{taints: [{key: own, effect: NoExecute}]}"),
                ("n5", "ssd", "{taints: [{key: own, effect: PreferNoSchedule}]}"),
            )
        )
        template = TEMPLATE.replace("{schedulerName", "{nodeSelector: {disk: ssd}, schedulerName")
        pods = of(expanded(nodes + workload("DaemonSet", template=template)), Pod)
        pinned = [each.spec.affinity.node_affinity.required.node_selector_terms[0].match_fields[0] for each in pods]
        assert [each.values for each in pinned] == [["n1"], ["n3"], ["n5"]]

    def test_an_indexed_job_numbers_its_pods(self) -> None:
        pods = of(expanded(workload("Job", extra="parallelism: 2, completions: 3, completionMode: Indexed, ")), Pod)
        index = "batch.kubernetes.io/job-completion-index"
        assert [(each.name[:4], each.metadata.annotations[index]) for each in pods] == [("w-0-", "0"), ("w-1-", "1")]

    def test_a_suspended_job_has_no_pods(self) -> None:
        assert names(expanded(workload("Job", extra="suspend: true, "))) == []

    def test_a_paused_deployment_has_no_pods(self) -> None:
        expansion = expanded(workload("Deployment", extra="paused: true, "))
        assert names(expansion) == []
        assert "it is paused" in expansion.warnings[0]

    def test_names_are_the_same_in_every_run_and_differ_within_one(self) -> None:
        text = workload("Deployment", extra="replicas: 20, ")
        assert names(expanded(text)) == names(expanded(text))
        assert len(set(names(expanded(text)))) == 20


class TestDumps:
    def test_what_is_there_is_not_made_again(self) -> None:
        text = (
            workload("Deployment", "d", "replicas: 2, ", ", uid: d, creationTimestamp: 2026-01-01T00:00:00Z")
            + workload("ReplicaSet", "d-1", "replicas: 2, ", owned("Deployment", "d", "d", self_uid="rs"))
            + pod("d-1-a", owned("ReplicaSet", "d-1", "rs", self_uid="pa"))
            + pod("d-1-b", owned("ReplicaSet", "d-1", "rs", self_uid="pb"))
        )
        expansion = expanded(text)
        assert names(expansion) == ["d-1-a", "d-1-b"]
        (group,) = of(expansion, PodGroup)
        assert group.name == "podgroup-rs"

    def test_missing_replicas_are_made(self) -> None:
        over = pod("w-over", owned("ReplicaSet", self_uid="po"), status="{phase: Failed}")
        text = workload("ReplicaSet", extra="replicas: 3, ", metadata=STORED) + pod("w-a", owned("ReplicaSet")) + over
        assert len(names(expanded(text))) == 4

    def test_missing_ordinals_are_made(self) -> None:
        text = workload("StatefulSet", extra="replicas: 3, ", metadata=STORED) + pod("w-1", owned("StatefulSet"))
        assert sorted(names(expanded(text))) == ["w-0", "w-1", "w-2"]

    def test_a_job_makes_only_what_is_left_to_do(self) -> None:
        job = workload("Job", extra="parallelism: 3, completions: 4, ", metadata=STORED)
        done = pod("w-a", owned("Job", version="batch/v1", self_uid="pa"), status="{phase: Succeeded}")
        running = pod("w-b", owned("Job", version="batch/v1", self_uid="pb"), status="{phase: Running}")
        assert len(names(expanded(job + done + running))) == 4
        assert names(expanded(job + "status: {conditions: [{type: Complete, status: 'True'}]}\n")) == []

    def test_a_daemon_is_not_put_on_a_node_that_has_it(self) -> None:
        nodes = "".join(f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n" for name in ("n1", "n2"))
        present = pod("w-a", owned("DaemonSet"), SPEC.replace("{schedulerName", "{nodeName: n1, schedulerName"))
        assert len(names(expanded(nodes + workload("DaemonSet", metadata=STORED) + present))) == 2

    def test_stored_pods_stay_as_they_are(self) -> None:
        metadata = STORED + ", annotations: {scheduling.k8s.io/group-name: g}"
        expansion = expanded(pod("a", metadata, status="{phase: Running}"))
        (stored,) = of(expansion, Pod)
        assert (stored.spec.priority, stored.spec.tolerations, stored.status.phase) == (None, [], "Running")
