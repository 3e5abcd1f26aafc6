"""The life of Volcano Jobs with our own controllers and the real scheduler (spec 07 §8.4, §8.5, §8.9)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from governed import Crash, Governed
from vcscheduler.cluster.faults import Operation
from vcscheduler.objects import Command, PersistentVolumeClaim, Pod, VolcanoJob

JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: m, namespace: ns}}
spec:
  {spec}
  tasks:
  - name: master
    replicas: 1
    {master}
    template: {{spec: {{containers: [{{name: c, resources: {{requests: {{cpu: 1, memory: 1Gi}}}}}}]}}}}
  - name: worker
    replicas: 2
    {worker}
    template: {{spec: {{containers: [{{name: c, resources: {{requests: {{cpu: 1, memory: 1Gi}}}}}}]}}}}
"""
ALL = ("m-master-0", "m-worker-0", "m-worker-1")


def governed(spec: str = "minAvailable: 3", master: str = "", worker: str = "") -> Governed:
    place = Governed()
    place.apply(JOB.format(spec=spec, master=master, worker=worker))
    return place


def running(spec: str = "minAvailable: 3", master: str = "", worker: str = "") -> Governed:
    place = governed(spec, master, worker)
    place.settle()
    assert place.phase() == "Running"
    assert place.pods() == dict.fromkeys(ALL, "Running")
    return place


def uids(place: Governed) -> dict[str, str]:
    return {pod.name: pod.metadata.uid for pod in place.cluster.objects(Pod)}


class TestLife:
    def test_a_job_is_admitted_runs_and_completes(self) -> None:
        place = governed()
        place.turn()
        assert place.phase() == "Pending"
        assert place.pods() == {}
        (group,) = place.groups().values()
        assert (group.status.phase, group.spec.min_member) == ("", 3)
        assert group.spec.min_task_member == {"master": 1, "worker": 2}

        place.scheduler.run_once()
        place.turn()
        assert place.pods() == dict.fromkeys(ALL, "Pending")
        place.settle(2)
        assert place.phase() == "Running"
        assert place.job().status.running == 3

        for name in ALL:
            place.finish(name, "Succeeded")
        place.settle(2)
        status = place.job().status
        assert status.state.phase == "Completed"
        assert (status.succeeded, status.running, status.min_available) == (3, 0, 3)
        assert [each.status for each in status.conditions] == ["Pending", "Running", "Completed"]
        assert status.running_duration == "2s"
        assert place.pods() == dict.fromkeys(ALL, "Succeeded")
        assert place.groups() == {}

    def test_nothing_is_written_when_there_is_nothing_to_do(self) -> None:
        place = running()
        store = place.start_controllers()
        place.settle(3)
        assert store.written == 0

    def test_a_job_that_does_not_fit_stays_pending(self) -> None:
        place = governed()
        place.cluster.create(_hog("ns/hog", "31"))
        place.settle()
        assert place.phase() == "Pending"
        assert place.pods() == {"hog": "Running", **dict.fromkeys(ALL, "Pending")}

    def test_a_task_starts_when_those_it_depends_on_run(self) -> None:
        place = governed("minAvailable: 1", worker="dependsOn: {name: [master]}")
        place.turn()
        place.scheduler.run_once()
        place.turn()
        assert list(place.pods()) == ["m-master-0"]
        place.settle(3)
        assert place.pods() == dict.fromkeys(ALL, "Running")

    def test_pods_follow_the_number_of_replicas(self) -> None:
        place = running()
        place.cluster.apply(_scaled(place.job(), 1))
        place.settle(3)
        assert list(place.pods()) == ["m-master-0", "m-worker-0"]
        place.cluster.apply(_scaled(place.job(), 3))
        place.settle(3)
        assert list(place.pods()) == ["m-master-0", "m-worker-0", "m-worker-1", "m-worker-2"]
        assert place.job().status.running == 4

    def test_enough_successes_complete_the_job_and_end_the_rest(self) -> None:
        place = running("minAvailable: 3\n  minSuccess: 1")
        place.finish("m-worker-1", "Succeeded")
        place.settle(3)
        assert place.phase() == "Completed"
        assert place.pods() == {"m-worker-1": "Succeeded"}

    def test_too_few_successes_fail_it(self) -> None:
        place = running()
        place.finish("m-master-0", "Failed", 1)
        for name in ALL[1:]:
            place.finish(name, "Succeeded")
        place.settle(2)
        assert (place.phase(), place.job().status.failed) == ("Failed", 1)

    def test_a_finished_job_is_cleaned_away_when_its_time_is_over(self) -> None:
        place = running("minAvailable: 3\n  ttlSecondsAfterFinished: 60")
        for name in ALL:
            place.finish(name, "Succeeded")
        place.settle(2)
        place.wait(50)
        assert place.phase() == "Completed"
        place.wait(20)
        place.cluster.step()
        assert place.cluster.objects(VolcanoJob) == []
        assert place.pods() == {}

    def test_volumes_are_claimed_once(self) -> None:
        claim = "volumes: [{mountPath: /data, volumeClaim: {resources: {requests: {storage: 1Gi}}}}]"
        place = governed(f"minAvailable: 3\n  {claim}")
        place.turn()
        (made,) = place.cluster.objects(PersistentVolumeClaim)
        assert place.job().status.controlled_resources == {f"volume-pvc-{made.name}": made.name}
        assert [owner.name for owner in made.metadata.owner_references] == ["m"]

    def test_plugins_that_are_not_played_are_told_of(self) -> None:
        place = governed("minAvailable: 3\n  plugins: {ssh: [], env: []}")
        place.settle(2)
        (event,) = [each for each in place.cluster.events() if each.reason == "PluginNotSupported"]
        assert (event.count, event.message) == (1, "these job plugins do nothing here: ['ssh']")


class TestPolicies:
    def test_a_failed_pod_restarts_the_job_until_it_is_given_up(self) -> None:
        """W8.5"""
        place = running("minAvailable: 3\n  maxRetry: 3\n  policies: [{event: PodFailed, action: RestartJob}]")
        for retries in (1, 2):
            before = uids(place)
            place.finish("m-worker-0", "Failed", 1)
            place.turn()
            status = place.job().status
            assert (status.state.phase, status.retry_count, status.version) == ("Restarting", retries, retries)
            assert status.state.reason == "RestartJob"
            assert status.state.message == "PodFailed of pod m-worker-0 (exit code 1)"
            place.settle()
            assert (place.phase(), place.job().status.retry_count) == ("Running", retries)
            assert not set(uids(place).values()) & set(before.values())
        place.finish("m-worker-1", "Succeeded")
        place.finish("m-worker-0", "Failed", 1)
        place.settle()
        assert (place.phase(), place.job().status.retry_count) == ("Failed", 3)
        assert place.pods() == {"m-worker-0": "Failed", "m-worker-1": "Succeeded"}
        assert place.groups() == {}

    def test_a_restarted_job_queues_up_again(self) -> None:
        place = running("minAvailable: 3\n  policies: [{event: PodFailed, action: RestartJob}]")
        group = next(iter(place.groups().values()))
        place.finish("m-worker-0", "Failed", 1)
        place.turn()
        assert group.metadata.uid not in {each.metadata.uid for each in place.groups().values()}

    @pytest.mark.parametrize(
        ("action", "restarted"),
        [
            ("RestartTask", {"m-worker-0", "m-worker-1"}),
            ("RestartPod", {"m-worker-0"}),
            ("RestartJob", set(ALL)),
        ],
    )
    def test_what_restarts(self, action: str, restarted: set[str]) -> None:
        place = running(worker=f"policies: [{{event: PodFailed, action: {action}}}]")
        before = uids(place)
        place.finish("m-worker-0", "Failed", 1)
        place.settle()
        after = uids(place)
        assert place.phase() == "Running"
        assert {name for name in ALL if after[name] != before[name]} == restarted
        assert place.job().status.retry_count == 1

    def test_one_partition_restarts(self) -> None:
        place = running(
            worker="partitionPolicy: {totalPartitions: 2, partitionSize: 1}\n"
            "    policies: [{event: PodFailed, action: RestartPartition}]"
        )
        before = uids(place)
        place.finish("m-worker-1", "Failed", 1)
        place.settle()
        after = uids(place)
        assert {name for name in ALL if after[name] != before[name]} == {"m-worker-1"}

    @pytest.mark.parametrize(
        ("policy", "phase"),
        [
            ("{event: PodFailed, action: AbortJob}", "Aborted"),
            ("{event: PodFailed, action: TerminateJob}", "Terminated"),
            ("{event: PodFailed, action: CompleteJob}", "Completed"),
            ("{event: '*', action: AbortJob}", "Aborted"),
            ("{exitCode: 3, action: AbortJob}", "Aborted"),
            ("{exitCode: 4, action: AbortJob}", "Running"),
            ("{event: PodEvicted, action: AbortJob}", "Running"),
            ("{events: [PodEvicted, PodFailed], action: TerminateJob}", "Terminated"),
        ],
    )
    def test_how_a_job_ends(self, policy: str, phase: str) -> None:
        place = running(f"minAvailable: 3\n  policies: [{policy}]")
        place.finish("m-worker-0", "Failed", 3)
        place.settle(4)
        assert place.phase() == phase
        if phase != "Running":
            assert place.pods() == {"m-worker-0": "Failed"}
            assert place.groups() == {}

    def test_the_task_is_asked_before_the_job(self) -> None:
        place = running(
            "minAvailable: 3\n  policies: [{event: PodFailed, action: AbortJob}]",
            master="policies: [{event: PodFailed, action: CompleteJob}]",
        )
        place.finish("m-master-0", "Failed", 1)
        place.settle(4)
        assert place.phase() == "Completed"

    def test_a_completed_task_may_complete_the_job(self) -> None:
        place = running(worker="policies: [{event: TaskCompleted, action: CompleteJob}]")
        place.finish("m-worker-0", "Succeeded")
        place.settle(2)
        assert place.phase() == "Running"
        place.finish("m-worker-1", "Succeeded")
        place.settle(4)
        assert place.phase() == "Completed"
        assert place.pods() == {"m-worker-0": "Succeeded", "m-worker-1": "Succeeded"}

    def test_a_pod_taken_away_by_others_restarts_the_job(self) -> None:
        place = running("minAvailable: 3\n  policies: [{event: PodEvicted, action: RestartJob}]")
        pod = place.cluster.get(Pod, "ns/m-worker-0")
        assert pod is not None
        place.cluster.evict(pod, "preemption")
        place.settle()
        assert (place.phase(), place.job().status.retry_count) == ("Running", 1)

    def test_a_pod_that_we_delete_is_no_eviction(self) -> None:
        place = running(
            "minAvailable: 2\n  policies: [{event: PodEvicted, action: AbortJob}]",
            worker="policies: [{event: PodFailed, action: RestartTask}]",
        )
        place.finish("m-worker-0", "Failed", 1)
        place.settle()
        assert (place.phase(), place.job().status.retry_count) == ("Running", 1)

    def test_a_pod_that_stays_pending_too_long(self) -> None:
        place = governed("minAvailable: 1\n  policies: [{event: PodPending, action: AbortJob, timeout: 30s}]")
        place.cluster.create(_hog("ns/hog", "31"))
        place.settle(5)
        assert place.phase() == "Running"
        assert place.pods()["m-worker-1"] == "Pending"
        place.wait(20)
        assert place.phase() == "Running"
        place.wait(10)
        assert place.phase() == "Aborting"

    def test_a_delayed_action_lapses_when_the_pod_is_back(self) -> None:
        policy = "policies: [{event: PodEvicted, action: AbortJob, timeout: 30s}]"
        place = running(f"minAvailable: 3\n  {policy}")
        place.cluster.delete(Pod, "ns/m-worker-0")
        place.settle(4)
        assert place.pods() == dict.fromkeys(ALL, "Running")
        place.wait(60)
        assert place.phase() == "Running"

    def test_too_many_container_restarts_are_a_failed_task(self) -> None:
        place = running(worker="maxRetry: 2\n    policies: [{event: TaskFailed, action: TerminateJob}]")
        _restart_container(place, "ns/m-worker-0", 1)
        place.settle(2)
        assert place.phase() == "Running"
        _restart_container(place, "ns/m-worker-1", 1)
        place.settle(4)
        assert place.phase() == "Terminated"


class TestCommands:
    def test_abort_and_resume(self) -> None:
        place = running()
        place.finish("m-worker-0", "Succeeded")
        place.turn()
        place.command("AbortJob", place.job())
        place.settle(3)
        assert place.phase() == "Aborted"
        assert place.pods() == {"m-worker-0": "Succeeded"}
        assert place.cluster.objects(Command) == []

        place.command("ResumeJob", place.job())
        place.settle()
        assert place.phase() == "Running"
        assert place.pods() == {"m-worker-0": "Succeeded", "m-master-0": "Running", "m-worker-1": "Running"}

    def test_a_command_to_an_earlier_job_of_the_name_is_dropped(self) -> None:
        place = running()
        earlier = VolcanoJob()
        earlier.metadata.name, earlier.metadata.uid = "m", "another"
        place.command("AbortJob", earlier)
        place.settle(2)
        assert place.phase() == "Running"
        assert place.cluster.objects(Command) == []


class TestTrouble:
    def test_writes_without_answer_are_tried_again(self) -> None:
        place = governed()
        for kind in ("m-*", "m"):
            place.cluster.refuse(Operation.WRITE_OBJECT, f"ns/{kind}", times=2)
        place.settle(12)
        assert place.phase() == "Running"

    def test_a_job_whose_pods_are_refused_for_good_is_terminated(self) -> None:
        place = governed()
        place.cluster.refuse(Operation.WRITE_OBJECT, lambda obj: isinstance(obj, Pod) and obj.name == "m-worker-1")
        for _ in range(40):
            place.settle(1)
            place.now += timedelta(seconds=30)
        assert place.phase() == "Terminated"
        assert any(each.reason == "JobTerminated" for each in place.cluster.events())

    def test_who_does_not_lead_writes_nothing_and_catches_up_later(self) -> None:
        place = governed()
        place.leads = False
        store = place.start_controllers()
        place.settle(3)
        assert store.written == 0
        place.leads = True
        place.settle()
        assert place.phase() == "Running"

    @pytest.mark.parametrize(
        ("happens", "phase", "retries"),
        [
            (lambda place: None, "Running", 0),
            (lambda place: place.finish("m-worker-0", "Failed", 1), "Running", 1),
            (lambda place: place.finish("m-master-0", "Failed", 1), "Running", 1),
            (lambda place: place.command("AbortJob", place.job()), "Aborted", 0),
        ],
        ids=["start", "restart of the job", "restart of a task", "abort"],
    )
    def test_whoever_comes_after_a_crash_goes_on(
        self, happens: Callable[[Governed], None], phase: str, retries: int
    ) -> None:
        """The process ends before each of its writes in turn; the next one finishes the work."""
        for last in range(40):
            place = governed(
                "minAvailable: 3\n  policies: [{event: PodFailed, action: RestartJob}]",
                master="policies: [{event: PodFailed, action: RestartTask}]",
            )
            place.settle()
            before = uids(place)
            happens(place)
            store = place.start_controllers(last)
            commands = len(place.cluster.objects(Command))
            try:
                place.settle()
            except Crash:
                obeyed = len(place.cluster.objects(Command)) == commands
                place.start_controllers()
                place.settle(10)
            else:
                assert store.written <= last
                return
            if not obeyed:
                continue  # A Command is obeyed at most once; a crash in between loses it.
            assert (place.phase(), place.job().status.retry_count) == (phase, retries), f"after write {last}"
            if phase == "Running":
                assert place.pods() == dict.fromkeys(ALL, "Running")
                assert (uids(place) == before) is (retries == 0)
            assert len(place.groups()) == (phase == "Running")
        raise AssertionError("it never came to an end")


def _hog(key: str, cpu: str) -> Pod:
    from builders import pod

    namespace, _, name = key.partition("/")
    hog = pod(name, cpu=cpu, namespace=namespace, nodeName="n1", schedulerName="other")
    hog.status.phase = "Running"
    return hog


def _scaled(job: VolcanoJob, workers: int) -> VolcanoJob:
    from vcscheduler.workloads.admission import changed

    master, worker = job.spec.tasks
    tasks = [master, changed(worker, replicas=workers)]
    return changed(job, spec=changed(job.spec, tasks=tasks, min_available=1 + min(workers, 2)))


def _restart_container(place: Governed, key: str, count: int) -> None:
    from vcscheduler.objects.pod import ContainerStatus
    from vcscheduler.workloads.admission import changed

    pod = place.cluster.get(Pod, key)
    assert pod is not None
    statuses = [ContainerStatus(name="c", restart_count=count)]
    place.cluster.apply(changed(pod, status=changed(pod.status, container_statuses=statuses)))
