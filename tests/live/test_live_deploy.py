"""What `deploy/` ships, on a real API server: it is accepted, and its rights are enough and no more."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

import pytest

from deploy.shipped import CHART, DEPLOY, NAMESPACE, container, one, plain_manifests
from deploy.small_helm import manifests, render
from live.api import Api, Document, Refused, wait_until
from live.place import Place
from vcscheduler.objects import PersistentVolume, PersistentVolumeClaim

APPLY = "application/apply-patch+yaml"
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
    "ConfigMap": f"/api/v1/namespaces/{NAMESPACE}/configmaps",
    "Service": f"/api/v1/namespaces/{NAMESPACE}/services",
    "Deployment": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
    "Role": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles",
    "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/vcscheduler"
CLAIM = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}
VOLUME = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/none"}}
RULE = ("apiGroups", "resources", "verbs")
SEEN = ["get", "list", "watch"]
STORAGE = ["storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments"]
DEVICES = ["resourceclaims", "deviceclasses", "resourceslices"]
VOLCANO_RULES: list[tuple[list[str], list[str], list[str]]] = [
    ([""], ["pods"], [*SEEN, "patch", "delete"]),
    ([""], ["pods/binding"], ["create"]),
    ([""], ["pods/status"], ["update"]),
    ([""], ["events"], ["create", "list", "watch", "update", "patch"]),
    ([""], ["persistentvolumeclaims", "persistentvolumes"], ["list", "watch", "update"]),
    ([""], ["nodes", "namespaces", "services", "replicationcontrollers"], SEEN),
    ([""], ["resourcequotas"], ["list", "watch"]),
    (["apps"], ["replicasets", "statefulsets"], SEEN),
    (["policy"], ["poddisruptionbudgets"], ["list", "watch"]),
    (["scheduling.k8s.io"], ["priorityclasses"], SEEN),
    (["storage.k8s.io"], STORAGE, ["list", "watch"]),
    (["scheduling.volcano.sh"], ["queues"], [*SEEN, "create", "delete", "update"]),
    (["scheduling.volcano.sh"], ["queues/status"], ["update"]),
    (["scheduling.volcano.sh"], ["podgroups"], ["list", "watch", "update"]),
    (["nodeinfo.volcano.sh"], ["numatopologies"], [*SEEN, "delete"]),
    (["topology.volcano.sh"], ["hypernodes"], SEEN),
    (["resource.k8s.io"], DEVICES, SEEN),
]
"""What Volcano's ClusterRole grants of what is used here (spec 07 §6.2)."""
K = TypeVar("K", PersistentVolume, PersistentVolumeClaim)
RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def applied(manifest: Document, query: str = "") -> str:
    """Where a server-side apply of the manifest goes."""
    return f"{PATHS[manifest['kind']]}/{manifest['metadata']['name']}?fieldManager=test&force=true{query}"


@pytest.fixture
def installed(place: Place) -> Iterator[Place]:
    """The namespace, the service account and its rights."""
    created = []
    for each in plain_manifests():
        if each["kind"] == "Namespace":
            # Namespaces end by a controller that does not run here, so this one stays.
            place.api.call("PATCH", applied(each), each, APPLY)
        elif each["kind"] in RIGHTS:
            place.api.create(PATHS[each["kind"]], each)
            created.append(f"{PATHS[each['kind']]}/{each['metadata']['name']}")
    yield place
    for path in created:
        place.api.delete(path)


def token_of_the_scheduler(place: Place) -> str:
    request: Document = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = place.api.create(f"{PATHS['ServiceAccount']}/vcscheduler/token", request)
    return str(answer["status"]["token"])


@pytest.mark.parametrize(
    "shipped", [plain_manifests(), manifests(render(CHART, "vcscheduler", NAMESPACE))], ids=["plain", "chart"]
)
def test_the_server_accepts_every_manifest_and_knows_every_field(installed: Place, shipped: list[Document]) -> None:
    for each in shipped:
        stored = installed.api.call("PATCH", applied(each, "&dryRun=All&fieldValidation=Strict"), each, APPLY)
        assert stored["metadata"]["name"] == each["metadata"]["name"]


def test_pods_of_the_deployment_are_admitted_where_restricted_pod_security_is_enforced(installed: Place) -> None:
    template = one(plain_manifests(), "Deployment")["spec"]["template"]
    pod: Document = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}
    pod["metadata"] = {"name": "one", **template["metadata"]}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All&fieldValidation=Strict"
    assert installed.api.create(path, pod)["metadata"]["name"] == "one"
    del pod["spec"]["containers"][0]["securityContext"]
    with pytest.raises(Refused, match="violates PodSecurity"):
        installed.api.create(path, pod)


def test_its_rights_are_enough_to_schedule(installed: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    schedule_all_kinds(installed, token_of_the_scheduler(installed))
    assert not [each.getMessage() for each in caplog.records if "not granted" in each.getMessage()]
    assert not [each.getMessage() for each in caplog.records if "forbidden" in each.getMessage()]


def test_volcano_s_own_rights_are_enough_too(installed: Place, caplog: pytest.LogCaptureFixture) -> None:
    role = f"{PATHS['ClusterRole']}/vcscheduler"
    installed.api.merge(role, {"rules": [dict(zip(RULE, each)) for each in VOLCANO_RULES]})
    caplog.set_level(logging.INFO)
    schedule_all_kinds(installed, token_of_the_scheduler(installed))
    assert [each for each in caplog.records if "patch pods/status is not granted, doing without" in each.getMessage()]


def schedule_all_kinds(place: Place, token: str) -> None:
    """A gang that is bound, one that waits, an eviction; events and sums of both."""
    place.nodes(4)
    with place.connected(place.access(token=token)) as conductor:
        conductor.sync()
        place.gang("fits", 20)
        place.gang("waits", 2, cpu="1000")
        conductor.cycles_until(lambda: place.status("fits").get("phase") == "Running", "the gang to run")
        conductor.cycles_until(lambda: any(map(reason_to_wait, place.pods())), "a condition of a pod that waits")
        victim = conductor.cluster.known_pod("default/fits-0")
        assert victim is not None
        conductor.cluster.evict(victim, "preempt")
        conductor.cycles_until(lambda: "fits-0" not in place.bound(), "the victim to go")
        conductor.cycles_until(lambda: bool(allocated(place)), "the sums of the queue")
    assert {"Scheduled", "Unschedulable", "FailedScheduling"} <= {each["reason"] for each in place.events()}


def test_its_rights_are_enough_for_volumes(installed: Place) -> None:
    place = installed
    place.api.create(CLAIMS, {"metadata": {"name": "data"}, "spec": CLAIM})
    place.api.create(VOLUMES, {"metadata": {"name": "disk"}, "spec": VOLUME})
    with place.connected(place.access(token=token_of_the_scheduler(place))) as conductor:
        conductor.sync()
        (claim,) = conductor.cluster.objects(PersistentVolumeClaim)
        (volume,) = conductor.cluster.objects(PersistentVolume)
        conductor.cluster.update_claim(annotated(claim))
        conductor.cluster.update_volume(annotated(volume))
        assert conductor.cluster.settled(10)
    stored = [place.api.get(f"{CLAIMS}/data"), place.api.get(f"{VOLUMES}/disk")]
    place.api.delete(f"{VOLUMES}/disk")
    assert [each["metadata"]["annotations"]["test"] for each in stored] == ["written", "written"]


def annotated(obj: K) -> K:
    changed = copy(obj)
    changed.metadata = copy(obj.metadata)
    changed.metadata.annotations = {**obj.metadata.annotations, "test": "written"}
    return changed


def reason_to_wait(pod: Document) -> bool:
    conditions = pod.get("status", {}).get("conditions") or []
    return any(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions)


def allocated(place: Place) -> Any:
    return place.api.get("/apis/scheduling.volcano.sh/v1beta1/queues/default")["status"].get("allocated")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/configmaps"),
        ("POST", "/api/v1/namespaces/default/pods"),
        ("DELETE", "/api/v1/nodes/n0000"),
        ("DELETE", "/apis/scheduling.volcano.sh/v1beta1/queues/default"),
        ("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases"),
        ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"),
    ],
)
def test_what_it_has_no_need_of_is_denied(installed: Place, method: str, path: str) -> None:
    plane = installed.plane
    scheduler = Api(plane.url, token_of_the_scheduler(installed), plane.ca)
    with pytest.raises(Refused) as refused:
        scheduler.call(method, path, {} if method == "POST" else None)
    assert refused.value.status == 403


def test_the_lease_is_its_own_in_its_own_namespace(installed: Place) -> None:
    plane = installed.plane
    scheduler = Api(plane.url, token_of_the_scheduler(installed), plane.ca)
    path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
    lease: Document = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "vcscheduler"}}
    stored = scheduler.create(path, {**lease, "spec": {"holderIdentity": "one", "leaseDurationSeconds": 15}})
    stored["spec"]["holderIdentity"] = "two"
    assert scheduler.call("PUT", f"{path}/vcscheduler", stored)["spec"]["holderIdentity"] == "two"
    installed.api.delete(f"{path}/vcscheduler")


def test_the_image_s_start_with_the_deployment_s_flags_schedules_and_ends_in_order(
    installed: Place, tmp_path: Path
) -> None:
    place, health = installed, f"127.0.0.1:{free_port()}"
    configuration = tmp_path / "volcano-scheduler.conf"
    configuration.write_text(one(plain_manifests(), "ConfigMap")["data"]["volcano-scheduler.conf"])
    here = [
        f"--kubeconfig={place.access(token=token_of_the_scheduler(place)).kubeconfig}",
        f"--scheduler-conf={configuration}",
        "--listen-address=127.0.0.1:0",
        f"--healthz-address={health}",
        "--debug-address=",
    ]
    flags = [*container(one(plain_manifests(), "Deployment"))["args"], *here]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "DEBUG_SOCKET_DIR": str(tmp_path)}
    log = tmp_path / "log"
    place.nodes(2)
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, str(DEPLOY / "container" / "start.py"), *flags], env=environment, stdout=out, stderr=out
        )
    try:
        wait_until(lambda: answers_ok(f"http://{health}/readyz"), "the scheduler to be ready")
        place.gang("training", 4)
        wait_until(lambda: len(place.bound()) == 4, "the gang to be bound")
        assert place.api.get(LEASE)["spec"]["holderIdentity"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    assert not place.api.get(LEASE)["spec"].get("holderIdentity")
    assert "forbidden" not in log.read_text()
    place.api.delete(LEASE)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def answers_ok(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
