"""Volcano Jobs: defaults, PodGroup, pods, what is refused, what waits (spec 07 §8.2-8.4, examples W8.1-W8.3)."""

import pytest

from vcscheduler.objects import PersistentVolumeClaim, Pod, PodGroup, VolcanoJob, parse_quantity, read_manifest_text
from vcscheduler.workloads import Expansion, expand

JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: m, namespace: ns, uid: u1}
spec:
  minAvailable: 3
  tasks:
  - name: master
    replicas: 1
    template: {spec: {containers: [{name: c, resources: {requests: {cpu: 2, memory: 4Gi}}}]}}
  - name: worker
    replicas: 4
    template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1, memory: 2Gi}}}]}}
"""
CLASSES = """\
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 100}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: low}, value: 10}
"""


def expanded(text: str, **settings: bool) -> Expansion:
    return expand(read_manifest_text(text), **settings)  # type: ignore[arg-type]


def of(expansion: Expansion, kind: type) -> list:
    return [obj for obj in expansion.objects if isinstance(obj, kind)]


def group(expansion: Expansion) -> PodGroup:
    (found,) = of(expansion, PodGroup)
    return found


def resources(found: PodGroup) -> dict[str, int]:
    assert found.spec.min_resources is not None
    return {name: int(parse_quantity(amount)) for name, amount in found.spec.min_resources.items()}


def names(expansion: Expansion) -> list[str]:
    return [pod.name for pod in of(expansion, Pod)]


def refusals(text: str) -> list[str]:
    return [str(refusal) for refusal in expanded(text).refusals]


class TestPodGroup:
    def test_one_group_named_after_job_and_uid(self) -> None:
        found = group(expanded(JOB))
        assert (found.key, found.spec.min_member, found.spec.queue) == ("ns/m-u1", 3, "default")
        assert found.spec.min_task_member == {"master": 1, "worker": 4}
        assert found.metadata.owner_references[0].uid == "u1"
        assert found.status.phase == ""

    def test_min_resources_take_tasks_in_order_when_their_minimums_exceed_the_jobs(self) -> None:
        found = resources(group(expanded(JOB)))
        assert (found["cpu"], found["memory"], found["pods"], found["count/pods"]) == (4, 8 * 2**30, 3, 3)
        assert (found["requests.cpu"], found["requests.memory"]) == (4, 8 * 2**30)

    def test_min_resources_take_minimums_first_when_they_leave_room(self) -> None:
        text = JOB.replace("replicas: 1\n", "replicas: 2\n    minAvailable: 1\n").replace(
            "replicas: 4\n", "replicas: 4\n    minAvailable: 1\n"
        )
        assert resources(group(expanded(text)))["cpu"] == 5
        one_master = text.replace("replicas: 2\n", "replicas: 1\n")
        assert resources(group(expanded(one_master)))["cpu"] == 4

    def test_more_important_tasks_come_first(self) -> None:
        text = JOB.replace("minAvailable: 3", "minAvailable: 2").replace(
            "{spec: {containers: [{name: c, resources: {requests: {cpu: 1,",
            "{spec: {priorityClassName: high, containers: [{name: c, resources: {requests: {cpu: 1,",
        )
        assert resources(group(expanded(text + CLASSES)))["cpu"] == 2

    def test_limits_alone_count_only_as_limits(self) -> None:
        text = JOB.replace("minAvailable: 3", "minAvailable: 1").replace(
            "requests: {cpu: 2, memory: 4Gi}", "limits: {cpu: 1, nvidia.com/gpu: 1}"
        )
        assert resources(group(expanded(text))) == {"pods": 1, "count/pods": 1, "limits.cpu": 1}

    def test_partitions_become_sub_groups(self) -> None:
        text = JOB.replace(
            "replicas: 4\n",
            "replicas: 4\n    partitionPolicy: {totalPartitions: 2, partitionSize: 2, minPartitions: 1, "
            "networkTopology: {highestTierAllowed: 1}}\n",
        )
        (policy,) = group(expanded(text)).spec.sub_group_policy
        assert (policy.name, policy.sub_group_size, policy.min_sub_groups) == ("worker", 2, 1)
        assert policy.match_label_keys == ["volcano.sh/partition-id"]
        assert policy.label_selector is not None
        assert policy.label_selector.match_labels == {"volcano.sh/task-spec": "worker"}
        assert policy.network_topology is not None
        assert (policy.network_topology.mode, policy.network_topology.highest_tier_allowed) == ("hard", 1)
        workers = [pod for pod in of(expanded(text), Pod) if "worker" in pod.name]
        assert [pod.metadata.labels["volcano.sh/partition-id"] for pod in workers] == ["0", "0", "1", "1"]
        assert group(expanded(text)).spec.min_task_member["worker"] == 2


class TestDefaults:
    def test_the_job_is_stored_with_defaults(self) -> None:
        (job,) = of(
            expanded(JOB.replace("  minAvailable: 3\n", "").replace("name: worker\n", "maxRetry: 0\n")), VolcanoJob
        )
        assert [(task.name, task.min_available, task.max_retry) for task in job.spec.tasks] == [
            ("master", 1, 3),
            ("default1", 4, 3),
        ]
        assert (job.spec.min_available, job.spec.queue, job.spec.scheduler_name, job.spec.max_retry) == (
            5,
            "default",
            "volcano",
            3,
        )
        assert job.status.state.phase == "Pending"

    def test_plugins_bring_others_along(self) -> None:
        (job,) = of(expanded(JOB + "  plugins: {mpi: []}\n"), VolcanoJob)
        assert sorted(job.spec.plugins) == ["mpi", "ssh", "svc"]

    def test_the_input_is_left_alone(self) -> None:
        manifests = read_manifest_text(JOB)
        expand(manifests)
        (job,) = manifests.of(VolcanoJob)
        assert (job.spec.queue, job.spec.tasks[0].min_available) == ("", None)


class TestPods:
    def test_each_replica_is_a_pod_that_names_job_task_and_group(self) -> None:
        expansion = expanded(JOB)
        assert names(expansion) == ["m-master-0", "m-worker-0", "m-worker-1", "m-worker-2", "m-worker-3"]
        pod = of(expansion, Pod)[2]
        assert pod.metadata.annotations == {
            "scheduling.k8s.io/group-name": "m-u1",
            "volcano.sh/job-name": "m",
            "volcano.sh/task-spec": "worker",
            "volcano.sh/task-index": "1",
            "volcano.sh/queue-name": "default",
            "volcano.sh/job-version": "0",
            "volcano.sh/job-retry-count": "0",
            "volcano.sh/template-uid": "m-worker",
        }
        assert pod.metadata.labels["volcano.sh/job-namespace"] == "ns"
        assert pod.metadata.labels["volcano.sh/task-index"] == "1"
        assert (pod.spec.scheduler_name, pod.spec.priority, pod.status.phase) == ("volcano", 0, "Pending")
        assert len({pod.metadata.uid for pod in of(expansion, Pod)}) == 5

    def test_requests_follow_limits_in_the_pods(self) -> None:
        text = JOB.replace("requests: {cpu: 2, memory: 4Gi}", "limits: {cpu: 1, nvidia.com/gpu: 1}")
        requests = of(expanded(text), Pod)[0].spec.containers[0].resources.requests
        assert requests == {"cpu": 1, "nvidia.com/gpu": 1}

    def test_pods_of_one_task_share_their_spec(self) -> None:
        pods = of(expanded(JOB), Pod)
        assert pods[1].spec is pods[4].spec

    def test_settings_of_the_job_reach_its_pods(self) -> None:
        text = JOB.replace(
            "uid: u1}",
            "uid: u1, labels: {volcano.sh/preemptable: 'true'}, annotations: {volcano.sh/preemptable: 'true', "
            "volcano.sh/cooldown-time: 5m, volcano.sh/jdb-min-available: '1', volcano.sh/jdb-max-unavailable: '2'}}",
        ).replace("minAvailable: 3", "minAvailable: 3\n  priorityClassName: high")
        pod = of(expanded(text + CLASSES), Pod)[0]
        annotations = pod.metadata.annotations
        assert annotations["volcano.sh/cooldown-time"] == "5m"
        assert annotations["volcano.sh/jdb-min-available"] == "1"
        assert "volcano.sh/jdb-max-unavailable" not in annotations
        assert pod.metadata.labels["volcano.sh/preemptable"] == "true"
        assert (pod.spec.priority_class_name, pod.spec.priority) == ("high", 100)

    def test_volumes_become_claims_of_every_pod(self) -> None:
        text = JOB + (
            "  volumes:\n  - {mountPath: /in, volumeClaimName: given}\n"
            "  - {mountPath: /out, volumeClaim: {accessModes: [ReadWriteOnce]}}\n"
        )
        expansion = expanded(text)
        (claim,) = of(expansion, PersistentVolumeClaim)
        assert claim.name.startswith("m-pvc-")
        assert len(claim.name) == len("m-pvc-") + 12
        volumes = of(expansion, Pod)[0].spec.volumes
        assert [volume.persistent_volume_claim.claim_name for volume in volumes] == ["given", claim.name]


class TestWaiting:
    def test_pods_can_be_held_until_their_group_is_let_in(self) -> None:
        expansion = expanded(JOB, hold_job_pods=True)
        assert names(expansion) == []
        assert [(held.pod_group, held.task, len(held.pods), held.after) for held in expansion.held] == [
            ("ns/m-u1", "master", 1, ()),
            ("ns/m-u1", "worker", 4, ()),
        ]

    def test_tasks_that_depend_on_others_are_held(self) -> None:
        text = JOB.replace("replicas: 4\n", "replicas: 4\n    dependsOn: {name: [master], iteration: any}\n")
        expansion = expanded(text)
        assert names(expansion) == ["m-master-0"]
        (held,) = expansion.held
        assert (held.task, held.after, held.any_of) == ("worker", (("master", 1),), True)


class TestDumps:
    STORED = JOB.replace("uid: u1", "uid: u1, creationTimestamp: 2026-01-01T00:00:00Z").replace(
        "minAvailable: 3\n", "minAvailable: 3\n  queue: gone\n  schedulerName: volcano\n"
    )
    OWNER = "ownerReferences: [{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: m, uid: u1, controller: true}]"
    POD = (
        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: m-worker-1, namespace: ns, uid: p1, "
        "creationTimestamp: 2026-01-01T00:00:00Z, annotations: {scheduling.k8s.io/group-name: m-u1}, "
        f"{OWNER}}}\nspec: {{containers: [{{name: c}}]}}\n"
    )
    GROUP = (
        "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: m-u1, namespace: ns, uid: g, "
        f"creationTimestamp: 2026-01-01T00:00:00Z, {OWNER}}}\nspec: {{minMember: 3, queue: gone}}\n"
    )

    def test_only_missing_pods_are_made(self) -> None:
        expansion = expanded(self.STORED + self.POD + self.GROUP)
        assert expansion.refusals == []
        assert group(expansion).metadata.uid == "g"
        assert sorted(names(expansion)) == ["m-master-0", "m-worker-0", "m-worker-1", "m-worker-2", "m-worker-3"]

    def test_pods_of_an_earlier_job_of_the_same_name_do_not_count(self) -> None:
        expansion = expanded(self.STORED + self.POD.replace("uid: u1,", "uid: older,") + self.GROUP)
        assert names(expansion).count("m-worker-1") == 2

    def test_finished_jobs_get_no_pods(self) -> None:
        expansion = expanded(self.STORED + "status: {state: {phase: Completed}}\n")
        assert names(expansion) == []
        assert of(expansion, PodGroup) == []


@pytest.mark.parametrize(
    ("old", "new", "refusal"),
    [
        ("minAvailable: 3", "queue: q9", 'spec.queue: found "q9", no such queue'),
        ("minAvailable: 3", "queue: root", 'spec.queue: found "root", which takes no jobs itself'),
        (
            "minAvailable: 3",
            "priorityClassName: top",
            'spec.tasks[0].template.spec.priorityClassName: found "top", no Pri',
        ),
        ("minAvailable: 3", "plugins: {sshd: []}", 'spec.plugins.sshd: no such job plugin; did you mean "ssh"?'),
        ("name: master", "name: boss", ""),
        ("minAvailable: 3", "plugins: {mpi: ['--master=boss']}", 'spec.plugins.mpi: needs a task named "boss"'),
        (
            "minAvailable: 3",
            "policies: [{action: AbortJob, event: PodFailed}, {action: RestartJob, events: [PodFailed]}]",
            'spec.policies[1]: event "PodFailed" has a policy already',
        ),
        (
            "minAvailable: 3",
            "policies: [{action: AbortJob, event: '*'}, {action: RestartJob, event: PodEvicted}]",
            'spec.policies: event "*" stands for all events',
        ),
        (
            "minAvailable: 3",
            "policies: [{action: AbortJob, exitCode: 3}, {action: RestartJob, exitCode: 3}]",
            "spec.policies[1].exitCode: exit code 3 has a policy already",
        ),
        (
            "minAvailable: 3",
            "policies: [{action: AbortJob, event: PodRunning}]",
            'spec.policies[0]: found event "PodRunning", allowed are *, PodFailed',
        ),
        (
            "replicas: 4\n",
            "replicas: 4\n    topologyPolicy: restricted\n",
            "",
        ),
        (
            "replicas: 4\n    template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1,",
            "replicas: 4\n    topologyPolicy: restricted\n"
            "    template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1500m,",
            'spec.tasks[1].template.spec.containers[0].resources.requests.cpu: found "1500m", topologyPolicy',
        ),
        (
            "replicas: 4\n",
            "replicas: 4\n    minAvailable: 3\n"
            "    partitionPolicy: {totalPartitions: 2, partitionSize: 2, minPartitions: 1}\n",
            "spec.tasks[1].minAvailable: found 3, but minPartitions 1 times partitionSize 2 is 2",
        ),
        ("name: worker", f"name: {'w' * 63}", "spec.tasks[1].name: makes pods named"),
    ],
)
def test_what_the_webhook_refuses(old: str, new: str, refusal: str) -> None:
    assert old in JOB
    found = refusals(JOB.replace(old, new, 1))
    if not refusal:
        assert found == []
        return
    assert len(found) == 1
    assert found[0].startswith(f"<text>:1: Job ns/m: {refusal}")


def test_a_refused_job_leaves_nothing_behind() -> None:
    expansion = expanded(JOB.replace("minAvailable: 3", "queue: q9"))
    assert [obj.kind for obj in expansion.objects] == ["Queue", "Queue"]
    (refusal,) = expansion.refusals
    assert (refusal.obj, refusal.field) == ("Job ns/m", "spec.queue")
