"""What `deploy/` ships, as the tests look at it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "chart" / "vcscheduler"
NAMESPACE = "vcscheduler-system"
NAME = "vcscheduler"

Manifest = dict[str, Any]


def plain_manifests() -> list[Manifest]:
    files = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    return [document for each in files for document in yaml.safe_load_all(each.read_text())]


def one(manifests: list[Manifest], kind: str) -> Manifest:
    (found,) = [each for each in manifests if each["kind"] == kind]
    return found


def granted(role: Manifest) -> set[tuple[str, str, str]]:
    """Each (group, resource, verb) of a role."""
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def container(deployment: Manifest) -> Manifest:
    (only,) = deployment["spec"]["template"]["spec"]["containers"]
    assert isinstance(only, dict)
    return only
