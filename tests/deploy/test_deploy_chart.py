"""The chart: with its own values it installs what the plain manifests do; each value does what it says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.shipped import CHART, DEPLOY, NAME, NAMESPACE, Manifest, container, granted, one, plain_manifests
from deploy.small_helm import manifests, render
from vcscheduler import __version__
from vcscheduler.cluster.permissions import CONTROLLER_PERMISSIONS
from vcscheduler.config import parse_flags

TEXT = "".join(each.read_text() for each in (CHART / "templates").iterdir())


def rendered(**values: Any) -> list[Manifest]:
    return manifests(render(CHART, NAME, NAMESPACE, values))


def without_args(deployment: Manifest) -> Manifest:
    """The pod's specification, instance labels and arguments left out."""
    spec = yaml.safe_load(re.sub(r"app.kubernetes.io/instance: \S+", "", yaml.safe_dump(deployment["spec"])))
    del spec["template"]["spec"]["containers"][0]["args"]
    assert isinstance(spec, dict)
    return spec


def test_the_default_values_give_the_plain_manifests() -> None:
    chart, plain = rendered(), plain_manifests()
    assert {each["kind"] for each in chart} == {each["kind"] for each in plain} - {"Namespace"}
    for kind in ("ClusterRole", "Role"):
        assert one(chart, kind)["rules"] == one(plain, kind)["rules"]
    assert yaml.safe_load(one(chart, "ConfigMap")["data"]["volcano-scheduler.conf"]) == yaml.safe_load(
        one(plain, "ConfigMap")["data"]["volcano-scheduler.conf"]
    )
    ours, theirs = one(chart, "Deployment"), one(plain, "Deployment")
    assert without_args(ours) == without_args(theirs)
    assert parse_flags(container(ours)["args"]) == parse_flags(container(theirs)["args"])


def test_names_follow_the_release_and_its_namespace() -> None:
    chart = manifests(render(CHART, "batch", "scheduling"))
    assert {each["metadata"]["name"].partition("-")[0] for each in chart} == {"batch"}
    assert {each["metadata"].get("namespace", "scheduling") for each in chart} == {"scheduling"}
    assert [each["namespace"] for each in one(chart, "ClusterRoleBinding")["subjects"]] == ["scheduling"]
    options = parse_flags(container(one(chart, "Deployment"))["args"])
    assert (options.lease_namespace(), options.leader_elect_resource_name) == ("scheduling", "batch")


def test_values_reach_the_deployment() -> None:
    deployment = one(
        rendered(
            image={"repository": "registry.example/team/vcscheduler", "tag": "2.0", "pullPolicy": "Always"},
            imagePullSecrets=[{"name": "pull"}],
            schedulerName="batch",
            defaultQueue="main",
            replicas=3,
            verbosity=4,
            extraArgs=["--schedule-period=500ms", "--feature-gates=ResourceTopology=false"],
            priorityClassName="",
            resources={"limits": {"memory": "8Gi"}},
            nodeSelector={"pool": "system"},
            tolerations=[{"operator": "Exists"}],
        ),
        "Deployment",
    )
    pod, it = deployment["spec"]["template"]["spec"], container(deployment)
    assert deployment["spec"]["replicas"] == 3
    assert (it["image"], it["imagePullPolicy"]) == ("registry.example/team/vcscheduler:2.0", "Always")
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    assert "priorityClassName" not in pod
    assert it["resources"] == {"limits": {"memory": "8Gi"}}
    assert pod["nodeSelector"] == {"pool": "system"}
    assert pod["tolerations"] == [{"operator": "Exists"}]
    options = parse_flags(it["args"])
    assert options.scheduler_names == ("batch",)
    assert (options.default_queue, options.verbosity, options.schedule_period) == ("main", 4, 0.5)
    assert options.feature_gates["ResourceTopology"] is False


def test_the_metrics_service_can_be_left_out() -> None:
    assert "Service" not in {each["kind"] for each in rendered(metrics={"service": False})}


def test_controllers_come_with_their_flag_and_permissions() -> None:
    assert not parse_flags(container(one(rendered(), "Deployment"))["args"]).with_controllers
    chart = rendered(controllers=True)
    assert parse_flags(container(one(chart, "Deployment"))["args"]).with_controllers
    roles = {each["metadata"]["name"]: each for each in chart if each["kind"] == "ClusterRole"}
    assert granted(roles[f"{NAME}-controllers"]) == set().union(*(each.pairs() for each in CONTROLLER_PERMISSIONS))
    plain = yaml.safe_load_all((DEPLOY / "controllers" / "roles.yaml").read_text())
    assert [each["rules"] for each in plain if "rules" in each] == [roles[f"{NAME}-controllers"]["rules"]]
    accounts = [each["subjects"] for each in chart if each["kind"] == "ClusterRoleBinding"]
    assert accounts == [[{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}]] * 2


def test_each_value_is_used_and_each_used_value_exists() -> None:
    def paths(values: dict[str, Any]) -> set[str]:
        return {
            name if name in ("resources", "nodeSelector") or not isinstance(value, dict) else f"{name}.{inner}"
            for name, value in values.items()
            for inner in (value if isinstance(value, dict) and value else [""])
        }

    known = paths(yaml.safe_load((CHART / "values.yaml").read_text()))
    assert set(re.findall(r"\.Values\.([\w.]+)", TEXT)) == known


def test_the_chart_brings_the_custom_resource_definitions() -> None:
    assert (CHART / "crds").resolve() == DEPLOY / "crds"
    assert list((CHART / "crds").glob("*.yaml"))


def test_versions_agree() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert about["appVersion"] == about["version"] == __version__
    assert container(one(plain_manifests(), "Deployment"))["image"].endswith(f":{__version__}")


def test_the_notes_name_what_is_not_there() -> None:
    notes = render(CHART, NAME, NAMESPACE, {"defaultQueue": "main"})["NOTES.txt"]
    assert "kubectl patch queue main --subresource=status" in notes
    assert "not Volcano's controllers and webhooks" in notes


@pytest.mark.skipif(shutil.which("helm") is None, reason="there is no helm")
@pytest.mark.parametrize(
    "values",
    [{}, {"extraArgs": ["--seed=1"], "metrics": {"service": False}, "tolerations": [{"operator": "Exists"}]}],
    ids=["default", "other"],
)
def test_helm_renders_the_same(values: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    command = ["helm", "template", NAME, str(CHART), "--namespace", NAMESPACE, "--values", str(file)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    by_name = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(text) if each}
    assert by_name == {(each["kind"], each["metadata"]["name"]): each for each in rendered(**values)}
