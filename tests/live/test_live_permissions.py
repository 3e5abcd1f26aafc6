"""What happens with fewer permissions than wished for, and without a CustomResourceDefinition."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from live import api
from live.api import Document, Refused, wait_until
from live.place import CONFIGURATION, Place
from vcscheduler.cluster.live import Access, ConnectionFailed, LiveOptions, NotSynced, Watched, WatchTiming

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"

READ = ["list", "watch"]


def rule(group: str, resources: str, *verbs: str) -> Document:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": list(verbs)}


REFERENCE = [
    # What the reference's chart grants (spec 07 §6.2), as far as this scheduler asks for it.
    rule("", "pods", "get", "list", "watch", "patch", "delete"),
    rule("", "pods/binding", "create"),
    rule("", "pods/status", "update"),
    rule("", "events", "create", "list", "watch", "update", "patch"),
    rule("", "nodes", "get", "list", "watch", "update", "patch"),
    rule("", "persistentvolumeclaims persistentvolumes", "list", "watch", "update"),
    rule("", "namespaces services replicationcontrollers", "get", "list", "watch"),
    rule("", "resourcequotas", *READ),
    rule("apps", "daemonsets replicasets statefulsets", "get", "list", "watch"),
    rule("policy", "poddisruptionbudgets", *READ),
    rule("scheduling.k8s.io", "priorityclasses", "get", "list", "watch"),
    rule("storage.k8s.io", "storageclasses csinodes csidrivers csistoragecapacities volumeattachments", *READ),
    rule("scheduling.volcano.sh", "queues", "get", "list", "watch", "create", "delete", "update"),
    rule("scheduling.volcano.sh", "queues/status", "update"),
    rule("scheduling.volcano.sh", "podgroups", "list", "watch", "update"),
    rule("nodeinfo.volcano.sh", "numatopologies", "get", "list", "watch", "delete"),
    rule("topology.volcano.sh", "hypernodes hypernodes/status", "get", "list", "watch"),
    rule("resource.k8s.io", "resourceclaims", "get", "list", "watch", "create", "update", "patch"),
    rule("resource.k8s.io", "deviceclasses resourceslices", "get", "list", "watch"),
]


@contextmanager
def account(place: Place, rules: list[Document]) -> Iterator[Access]:
    """A service account that may do what the rules say."""
    meta = {"name": "scheduler"}
    place.api.create(ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    place.api.create(
        ROLES, {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules}
    )
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "scheduler"}
    subject = {"kind": "ServiceAccount", "name": "scheduler", "namespace": "default"}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": meta}
    place.api.create(BINDINGS, binding | {"roleRef": reference, "subjects": [subject]})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = place.api.create(f"{ACCOUNTS}/scheduler/token", request)["status"]["token"]
    try:
        yield place.access(token=token)
    finally:
        for path in (BINDINGS, ROLES, ACCOUNTS):
            place.api.delete(f"{path}/scheduler")


def test_the_permissions_of_the_reference_are_enough(place: Place) -> None:
    place.nodes(2)
    with account(place, REFERENCE) as access, place.connected(access) as conductor:
        conductor.sync()
        place.gang("a", 10)
        conductor.cycles_until(lambda: place.status("a").get("running") == 10, "the gang to run")
        place.gang("b", 2, cpu="100")
        conductor.cycles_until(lambda: "conditions" in place.pods()[-1]["status"], "a condition of a pod")
        victim = conductor.cluster.known_pod("default/a-3")
        assert victim is not None
        conductor.cluster.evict(victim, "preempt")
        assert conductor.cluster.settled(10.0)
        wait_until(lambda: len(place.bound()) == 9, "the pod to go")
        assert conductor.cluster.counts.failed == 0
        queue = place.api.get(f"{api.QUEUES}/default")
        assert queue["status"]["allocated"]["pods"] == "10"
        assert place.events("a-1")


def test_what_may_not_be_listed_is_named_with_the_verbs_that_are_missing(place: Place) -> None:
    rules = [each for each in REFERENCE if each["resources"] not in (["podgroups"], ["resourcequotas"])]
    with account(place, rules) as access, place.connected(access) as conductor:
        with pytest.raises(NotSynced) as caught:
            conductor.sync(timeout=20.0)
        text = str(caught.value)
        assert 'podgroups.scheduling.volcano.sh: podgroups.scheduling.volcano.sh is forbidden: User "system:' in text
        assert "needs verbs list and watch on it (apiGroups ['scheduling.volcano.sh'])" in text
        assert re.search(r"^  resourcequotas: ", text, re.MULTILINE)
        assert "pods:" not in text
        assert not conductor.cluster.synced


def test_a_binding_that_may_not_be_made_is_refused_by_name(place: Place) -> None:
    place.nodes(1)
    rules = [each for each in REFERENCE if each["resources"] != ["pods/binding"]]
    with account(place, rules) as access, place.connected(access) as conductor:
        conductor.sync()
        place.gang("a", 2)

        def is_told() -> bool:
            messages = [each["message"] for pod in place.pods() for each in pod["status"].get("conditions", [])]
            return any('cannot create resource "pods/binding"' in each for each in messages)

        conductor.cycles_until(is_told, "the refusal to be told")
    assert place.bound() == {}


def test_a_definition_that_is_missing_is_named_and_may_come_later(place: Place) -> None:
    name = "nodeshards.shard.volcano.sh"
    place.api.delete(f"{api.CRDS}/{name}")
    folder = Path(__file__).parents[2] / "deploy" / "crds"
    manifest = yaml.safe_load((folder / "shard.volcano.sh_nodeshards.yaml").read_text())

    def is_gone() -> bool:
        try:
            place.api.get(f"{api.CRDS}/{name}")
            return False
        except Refused:
            return True

    wait_until(is_gone, "the definition to go")
    try:
        options = LiveOptions(watched=Watched(node_shards=True), timing=WatchTiming(last_retry=0.5))
        with place.connected(options=options) as conductor:
            with pytest.raises(NotSynced, match=rf"{name}: the server does not have it; install the Custom") as caught:
                conductor.sync(timeout=8.0)
            assert len(str(caught.value).splitlines()) == 2
            place.api.create(api.CRDS, manifest)
            conductor.sync(timeout=30.0)
    finally:
        if is_gone():
            place.api.create(api.CRDS, manifest)


def test_no_server_is_a_short_message(place: Place, tmp_path: Path) -> None:
    with pytest.raises(ConnectionFailed, match="cannot reach a cluster by /no/such/file"):
        place_without_server(Access(kubeconfig="/no/such/file"))
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(place.plane.kubeconfig_text("http://127.0.0.1:9"))
    with pytest.raises(ConnectionFailed, match=r"http://127\.0\.0\.1:9: GET /apis: no answer"):
        place_without_server(Access(kubeconfig=str(kubeconfig)))


def place_without_server(access: Access) -> Any:
    from live.place import Conductor

    return Conductor(access, LiveOptions(), CONFIGURATION)
