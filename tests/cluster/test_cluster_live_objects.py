"""How objects that controllers make are put together for a real API server."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("aiohttp")

from builders import pod
from vcscheduler.cluster.live.objects import add_to, made_from
from vcscheduler.cluster.object_store import Origin
from vcscheduler.objects import VolcanoJob, to_manifest

JOB = VolcanoJob()


def made(template: dict[str, Any], origin: Origin, **spec: Any) -> dict[str, Any]:
    obj = pod("m-w-0", cpu=1, **spec)
    return made_from(to_manifest(obj), obj, template, origin)


def test_a_pod_is_its_template_with_what_the_controller_decides() -> None:
    template = {
        "metadata": {"labels": {"from": "template"}, "creationTimestamp": None},
        "spec": {"containers": [{"name": "c", "command": ["x"]}], "dnsPolicy": "None", "priorityClassName": "low"},
    }
    found = made(template, Origin(JOB, ()), schedulerName="volcano", labels={"a": "b"}, priority=7)
    assert found["metadata"] == {"name": "m-w-0", "namespace": "ns", "uid": "uid-ns-m-w-0", "labels": {"a": "b"}}
    assert found["spec"] == {
        "containers": [{"name": "c", "command": ["x"]}],
        "dnsPolicy": "None",
        "priorityClassName": "low",
        "schedulerName": "volcano",
    }


def test_volumes_mounts_and_variables_are_added_unless_the_template_has_its_own() -> None:
    template = {
        "spec": {
            "containers": [
                {"name": "a", "env": [{"name": "X", "value": "mine"}], "volumeMounts": [{"mountPath": "/own"}]},
                {"name": "b"},
            ],
            "initContainers": [{"name": "i"}],
            "volumes": [{"name": "own", "configMap": {"name": "settings"}}],
        }
    }
    origin = Origin(JOB, (), {"data": "/data", "own": "/own"}, {"X": "1", "Y": "2"})
    volumes = [{"name": "own"}, {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    found = made(template, origin, volumes=volumes)["spec"]
    assert found["volumes"] == [
        {"name": "own", "configMap": {"name": "settings"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
    ]
    first, second = found["containers"]
    assert first["env"] == [{"name": "X", "value": "mine"}, {"name": "Y", "value": "2"}]
    assert first["volumeMounts"] == [{"mountPath": "/own"}, {"mountPath": "/data", "name": "data"}]
    assert [each["mountPath"] for each in second["volumeMounts"]] == ["/data", "/own"]
    assert found["initContainers"] == [{"name": "i", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}]


def test_of_anything_else_the_specification_is_the_template() -> None:
    found = made_from({"kind": "X", "metadata": {}, "spec": {"lost": 1}}, JOB, {"kept": 2}, Origin(JOB, ()))
    assert found == {"kind": "X", "metadata": {}, "spec": {"kept": 2}}


def test_further_fields_are_merged_and_lists_appended() -> None:
    manifest: dict[str, Any] = {"spec": {"a": 1, "l": [1]}}
    add_to(manifest, {"spec": {"b": {"c": 2}, "l": [2]}, "data": {"x": "y"}})
    assert manifest == {"spec": {"a": 1, "b": {"c": 2}, "l": [1, 2]}, "data": {"x": "y"}}
