"""`run --with-controllers` as a process over a real API server, with no more than the permissions that are listed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from live import api
from live.api import Document, Refused, wait_until
from live.place import CONFIGURATION, Place
from live.proxy import FaultProxy
from live.test_live_faults import OPTIONS
from live.test_live_permissions import account
from vcscheduler.cache.cache import SchedulerCache
from vcscheduler.cluster.live import LiveCluster, Watched
from vcscheduler.cluster.live.objects import LiveObjects
from vcscheduler.cluster.permissions import CONTROLLER_PERMISSIONS, LEASE_PERMISSIONS, REQUIRED_PERMISSIONS
from vcscheduler.config import SchedulerConfiguration, parse_configuration
from vcscheduler.controllers import ControllerManager
from vcscheduler.framework.registry import Registry
from vcscheduler.framework.scheduler import Scheduler

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
COMMANDS = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"
REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
RULES = [
    {"apiGroups": [each.group], "resources": list(each.resources), "verbs": list(each.verbs)}
    for each in (*REQUIRED_PERMISSIONS, *CONTROLLER_PERMISSIONS, *LEASE_PERMISSIONS)
]


@pytest.fixture
def governed(place: Place, tmp_path: Path) -> Iterator[Place]:
    with account(place, RULES) as access:
        try:
            with scheduler(access.kubeconfig, tmp_path):
                yield place
        finally:
            for path in (JOBS, REPLICA_SETS, COMMANDS):
                place.api.delete(path)
            for path in ("services", "configmaps"):
                for each in place.api.items(f"/api/v1/namespaces/default/{path}"):
                    if each["metadata"]["name"] not in ("kubernetes", "kube-root-ca.crt"):
                        place.api.delete(f"/api/v1/namespaces/default/{path}/{each['metadata']['name']}")


@contextmanager
def scheduler(kubeconfig: str, folder: Path) -> Iterator[None]:
    configuration = folder / "volcano-scheduler.conf"
    configuration.write_text(CONFIGURATION)
    log = folder / "log"
    flags = [
        "--with-controllers",
        "--schedule-period=200ms",
        "--leader-elect-resource-namespace=default",
        f"--kubeconfig={kubeconfig}",
        f"--scheduler-conf={configuration}",
        "--listen-address=127.0.0.1:0",
        "--debug-address=",
    ]
    environment = {**os.environ, "DEBUG_SOCKET_DIR": str(folder)}
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "vcscheduler", "run", *flags], env=environment, stdout=out, stderr=out
        )
    try:
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0, log.read_text()[-3000:]
    except BaseException:
        print(log.read_text()[-6000:])
        raise
    finally:
        process.kill()
        process.wait()
    text = log.read_text()
    assert "forbidden" not in text, text
    assert "Traceback" not in text, text


def job(name: str, ends_as: str = "", **spec: object) -> Document:
    template: Document = {
        "metadata": {"annotations": {"test/ends-as": ends_as} if ends_as else {}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "command": ["train", "--epochs=3"],
                    "env": [{"name": "A", "value": "1"}],
                    "resources": {"requests": {"cpu": "100m"}},
                }
            ],
        },
    }
    tasks = [
        {"name": "ps", "replicas": 1, "template": template},
        {"name": "worker", "replicas": 3, "template": template},
    ]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"schedulerName": "volcano", "minAvailable": 4, "tasks": tasks, **spec},
    }


def status(place: Place, name: str) -> Document:
    return dict(place.api.get(f"{JOBS}/{name}").get("status") or {})


def phase(place: Place, name: str) -> str:
    return str(status(place, name).get("state", {}).get("phase", ""))


def test_a_job_lives_its_life(governed: Place) -> None:
    place = governed
    place.nodes(2)
    volume = {"mountPath": "/data", "volumeClaimName": "data"}
    place.api.create(JOBS, job("m", volumes=[volume], plugins={"env": [], "svc": []}, policies=[]))
    wait_until(lambda: len(place.pods()) == 4, "pods to be made")
    pod = next(each for each in place.pods() if each["metadata"]["name"] == "m-worker-2")
    spec, main = pod["spec"], pod["spec"]["containers"][0]
    assert main["command"] == ["train", "--epochs=3"]
    env = {each["name"]: each["value"] for each in main["env"]}
    assert (env["A"], env["VC_TASK_INDEX"], env["VC_PS_HOSTS"], env["VC_WORKER_NUM"]) == ("1", "2", "m-ps-0.m", "3")
    assert {each["mountPath"]: each["name"] for each in main["volumeMounts"]}["/data"] == "data"
    assert (spec["hostname"], spec["subdomain"], spec["schedulerName"]) == ("m-worker-2", "m", "volcano")
    assert place.api.get("/api/v1/namespaces/default/services/m")["spec"]["clusterIP"] == "None"
    hosts = place.api.get("/api/v1/namespaces/default/configmaps/m-svc")["data"]
    assert hosts["worker.host"] == "m-worker-0.m\nm-worker-1.m\nm-worker-2.m"


def test_a_job_completes_and_is_cleaned_away(governed: Place) -> None:
    place = governed
    place.nodes(2)
    place.api.create(JOBS, job("m", ends_as="Succeeded", ttlSecondsAfterFinished=2))
    wait_until(lambda: phase(place, "m") == "Completed", "the job to complete")
    found = status(place, "m")
    assert (found["succeeded"], found["minAvailable"]) == (4, 4)
    assert [each["status"] for each in found["conditions"]][-1] == "Completed"
    wait_until(lambda: not place.api.items(place.groups_path), "its PodGroup to go")

    def is_gone() -> bool:
        try:
            return "deletionTimestamp" in place.api.get(f"{JOBS}/m")["metadata"]
        except Refused as refused:
            return refused.status == 404

    wait_until(is_gone, "the job to be deleted")
    # Nobody collects garbage here, so that the finalizer is ours to remove.
    place.api.merge(f"{JOBS}/m", {"metadata": {"finalizers": None}})


def test_a_failed_pod_restarts_the_job_and_commands_are_obeyed(governed: Place) -> None:
    place = governed
    place.nodes(2)
    place.api.create(JOBS, job("m", policies=[{"event": "PodFailed", "action": "RestartJob"}]))
    wait_until(lambda: phase(place, "m") == "Running", "the job to run")
    place.api.merge(f"{place.pods_path}/m-worker-0", {"metadata": {"annotations": {"test/ends-as": "Failed"}}})
    wait_until(lambda: status(place, "m").get("retryCount") == 1, "the job to restart")
    wait_until(lambda: phase(place, "m") == "Running", "the job to run again")
    target = place.api.get(f"{JOBS}/m")
    place.api.create(
        COMMANDS,
        {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": {"name": "stop"},
            "action": "AbortJob",
            "target": {
                "apiVersion": target["apiVersion"],
                "kind": "Job",
                "name": "m",
                "uid": target["metadata"]["uid"],
                "controller": True,
            },
        },
    )
    wait_until(lambda: phase(place, "m") == "Aborted", "the job to be aborted")
    assert place.pods() == []
    assert place.api.items(COMMANDS) == []


def test_bare_pods_and_pods_of_replica_sets_get_groups_and_queues_are_opened(governed: Place) -> None:
    place = governed
    place.nodes(2)
    place.api.create(api.QUEUES, api.queue("gold"))
    wait_until(lambda: place.api.get(f"{api.QUEUES}/gold").get("status", {}).get("state") == "Open", "the queue")
    assert place.api.get(f"{api.QUEUES}/gold")["spec"]["parent"] == "root"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    owner = place.api.create(
        REPLICA_SETS,
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web", "annotations": {"scheduling.volcano.sh/group-min-member": "2"}},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template},
        },
    )
    uid = owner["metadata"]["uid"]
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid, "controller": True}
    for name in ("web-1", "web-2"):
        document = api.pod(name)
        document["metadata"]["ownerReferences"] = [reference]
        place.api.create(place.pods_path, document)
    place.api.create(place.pods_path, api.pod("bare", annotations={"scheduling.volcano.sh/queue-name": "gold"}))
    wait_until(lambda: len(place.bound()) == 3, "pods to be bound")
    groups = {each["metadata"]["name"]: each["spec"] for each in place.api.items(place.groups_path)}
    bare = place.api.get(f"{place.pods_path}/bare")["metadata"]["uid"]
    assert {name: (spec["minMember"], spec["queue"]) for name, spec in groups.items()} == {
        f"podgroup-{uid}": (2, "default"),
        f"podgroup-{bare}": (1, "gold"),
    }


def test_jobs_come_to_their_end_through_faults_at_random(place: Place) -> None:
    place.nodes(4)
    proxy = FaultProxy(place.plane.url, place.plane.ca, seed=1)
    proxy.start()
    options = replace(OPTIONS, watched=Watched(controllers=True))
    woken = threading.Event()
    cluster = LiveCluster(place.access(server=proxy.url), options, wakeup=woken.set)
    controllers = ControllerManager(LiveObjects(cluster, lambda: True), leads=lambda: cluster.synced)
    cluster.add_listener(controllers)
    scheduler = Scheduler(SchedulerCache(cluster, lambda: datetime.now(UTC)), _configuration())
    try:
        cluster.wait_for_sync(30.0)
        controllers.start()
        proxy.budget = 300
        names = [f"j{number}" for number in range(10)]
        for name in names:
            place.api.create(JOBS, job(name, ends_as="Succeeded"))
        end = time.monotonic() + 120.0
        while [each for each in names if phase(place, each) != "Completed"]:
            assert time.monotonic() < end, {each: status(place, each) for each in names}
            woken.clear()
            scheduler.run_once()
            woken.wait(0.1)
        proxy.budget = 0
        wait_until(lambda: not place.api.items(place.groups_path), "PodGroups to go")
        wanted = {f"{name}-{pod}" for name in names for pod in ("ps-0", "worker-0", "worker-1", "worker-2")}
        assert {each["metadata"]["name"] for each in place.pods()} == wanted
        assert {(found.get("retryCount", 0), found["succeeded"]) for found in (status(place, n) for n in names)} == {
            (0, 4)
        }
        print(f"{proxy.injected} faults in {proxy.requests} requests: {dict(sorted(proxy.faults.items()))}")
    finally:
        controllers.stop()
        cluster.stop()
        proxy.stop()
        place.api.delete(JOBS)


def _configuration() -> SchedulerConfiguration:
    return parse_configuration(CONFIGURATION, known_actions=Registry.default().action_names).configuration
