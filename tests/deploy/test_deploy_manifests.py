"""The plain manifests: they fit together, the code they start, and what that code is allowed to do."""

from __future__ import annotations

import runpy
from typing import Any

import pytest
import yaml

from deploy.shipped import DEPLOY, NAME, NAMESPACE, container, granted, one, plain_manifests
from vcscheduler.cluster.live.resources import Watched
from vcscheduler.cluster.permissions import LEASE_PERMISSIONS, REQUIRED_PERMISSIONS
from vcscheduler.config import parse_configuration, parse_flags
from vcscheduler.framework.registry import Registry

MANIFESTS = plain_manifests()
DEPLOYMENT = one(MANIFESTS, "Deployment")
CLUSTER_WIDE = ("Namespace", "ClusterRole", "ClusterRoleBinding")


def required() -> set[tuple[str, str, str]]:
    return set().union(*(each.pairs() for each in REQUIRED_PERMISSIONS))


def test_objects_come_in_an_order_in_which_they_can_be_created() -> None:
    assert [each["kind"] for each in MANIFESTS] == [
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "ConfigMap",
        "Deployment",
        "Service",
    ]
    assert {each["metadata"].get("namespace") for each in MANIFESTS if each["kind"] not in CLUSTER_WIDE} == {NAMESPACE}
    assert one(MANIFESTS, "Namespace")["metadata"]["name"] == NAMESPACE


def test_what_is_watched_may_be_listed_and_watched_and_nothing_else() -> None:
    watched = Watched(node_shards=True, dynamic_resource_allocation=True).resources(())
    asked = {(each.group, each.plural, verb) for each in watched for verb in ("list", "watch")}
    assert {each for each in required() if each[2] in ("list", "watch")} == asked


def test_every_resource_that_is_written_can_be_read_to_settle_a_lost_answer() -> None:
    settled = {
        (group, resource.partition("/")[0])
        for group, resource, verb in required()
        if verb in ("update", "patch", "create", "delete") and resource != "events"
    }
    assert {(group, resource) for group, resource, verb in required() if verb == "get"} == settled


def test_the_cluster_role_grants_what_is_required_and_no_more() -> None:
    assert granted(one(MANIFESTS, "ClusterRole")) == required()
    assert granted(one(MANIFESTS, "Role")) == set().union(*(each.pairs() for each in LEASE_PERMISSIONS))


def test_no_wildcards_no_secrets_no_way_to_more_rights() -> None:
    for kind in ("ClusterRole", "Role"):
        for group, resource, verb in granted(one(MANIFESTS, kind)):
            assert "*" not in group + resource + verb
            assert group != "rbac.authorization.k8s.io"
            assert resource not in ("secrets", "serviceaccounts/token", "pods/exec", "pods/ephemeralcontainers")
            assert verb not in ("impersonate", "escalate", "bind", "deletecollection")


def test_roles_are_those_that_the_generator_writes() -> None:
    for path, text in runpy.run_path(str(DEPLOY / "generate_rbac.py"))["files"]().items():
        assert path.read_text() == text, f"{path.name}: run deploy/generate_rbac.py"


@pytest.mark.parametrize("kind", ["ClusterRole", "Role"])
def test_bindings_bind_the_service_account_of_the_pods(kind: str) -> None:
    binding = one(MANIFESTS, f"{kind}Binding")
    assert binding["roleRef"]["kind"] == kind
    assert binding["roleRef"]["name"] == one(MANIFESTS, kind)["metadata"]["name"]
    account = one(MANIFESTS, "ServiceAccount")["metadata"]
    (subject,) = binding["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    assert DEPLOYMENT["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]


def test_pods_run_without_privileges_on_a_read_only_root_file_system() -> None:
    pod = DEPLOYMENT["spec"]["template"]["spec"]
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "runAsGroup": 1000,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container(DEPLOYMENT)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)


def test_the_flags_are_those_of_the_command() -> None:
    options = parse_flags(container(DEPLOYMENT)["args"])
    assert options.problems() == ()
    assert options.scheduler_names == ("volcano",)
    assert options.leader_elect
    assert options.lease_namespace() == one(MANIFESTS, "Role")["metadata"]["namespace"]
    assert options.leader_elect_resource_name == NAME


def test_probes_and_ports_are_where_the_flags_put_them() -> None:
    options, it = parse_flags(container(DEPLOYMENT)["args"]), container(DEPLOYMENT)
    ports = {each["name"]: f":{each['containerPort']}" for each in it["ports"]}
    assert ports == {"metrics": options.listen_address, "health": options.healthz_address}
    assert options.enable_metrics
    assert options.enable_healthz
    assert it["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "health"}
    assert it["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "health"}


def test_the_service_reaches_the_metrics_of_the_pods() -> None:
    service = one(MANIFESTS, "Service")
    labels = DEPLOYMENT["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert DEPLOYMENT["spec"]["selector"]["matchLabels"].items() <= labels.items()
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] in [each["name"] for each in container(DEPLOYMENT)["ports"]]
    assert service["metadata"]["annotations"]["prometheus.io/port"] == str(port["port"])


def test_the_configuration_is_mounted_where_it_is_read_and_is_without_fault() -> None:
    folder, _, name = parse_flags(container(DEPLOYMENT)["args"]).scheduler_conf.rpartition("/")
    mounts: dict[str, Any] = {each["mountPath"]: each["name"] for each in container(DEPLOYMENT)["volumeMounts"]}
    volumes = {each["name"]: each for each in DEPLOYMENT["spec"]["template"]["spec"]["volumes"]}
    assert volumes[mounts[folder]]["configMap"]["name"] == one(MANIFESTS, "ConfigMap")["metadata"]["name"]
    assert "emptyDir" in volumes[mounts["/tmp"]]
    registry = Registry.default()
    read = parse_configuration(
        one(MANIFESTS, "ConfigMap")["data"][name],
        name,
        known_actions=registry.action_names,
        known_plugins=registry.plugin_names,
    )
    assert not read.warnings
    assert read.configuration.actions == ("enqueue", "allocate", "backfill")


def test_values_for_volcanos_own_chart_change_the_image_only() -> None:
    values = yaml.safe_load((DEPLOY / "volcano" / "values.yaml").read_text())
    image = f"{values['basic']['scheduler_image_name']}:{values['basic']['scheduler_image_tag_version']}"
    assert values == {"basic": values["basic"]}
    assert len(values["basic"]) == 2
    assert container(DEPLOYMENT)["image"] == image
