"""The example package: its own tests, and the scheduler finding it as it finds any installed package.

Nothing is installed: a folder with the metadata that installing would write, made from the package's own
pyproject.toml, stands on the path beside the sources.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

PACKAGE = Path(__file__).parents[2] / "examples" / "plugins" / "vcscheduler-night-batch"
CONFIGURATION = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: night-batch
    arguments: {queues: [batch]}
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Of a process in which the package is installed."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    metadata = tmp_path / "site" / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    groups = project["entry-points"]
    (metadata / "entry_points.txt").write_text(
        "\n".join(
            f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in points.items())
            for group, points in groups.items()
        )
    )
    paths = [str(PACKAGE / "src"), str(metadata.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONDONTWRITEBYTECODE": "1"}


def run(*arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments], env=environment, capture_output=True, text=True, timeout=120
    )


def test_its_own_tests_pass(environment: dict[str, str]) -> None:
    done = run("pytest", "-p", "no:cacheprovider", str(PACKAGE / "tests"), environment=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout


def cluster(created: str, *, min_resources: bool = True) -> list[dict[str, Any]]:
    """One node, and a PodGroup of one pod in each of two queues."""
    objects: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n1"},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
        }
    ]
    for name in ("batch", "online"):
        group: dict[str, Any] = {"minMember": 1, "queue": name}
        if min_resources:
            group["minResources"] = {"cpu": "1"}
        meta = {"name": name, "namespace": "ns", "creationTimestamp": created}
        objects += [
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": name},
                "spec": {"weight": 1},
            },
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "PodGroup",
                "metadata": meta,
                "spec": group,
                "status": {"phase": "Pending"},
            },
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {**meta, "annotations": {"scheduling.k8s.io/group-name": name}},
                "spec": {
                    "schedulerName": "volcano",
                    "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
                },
            },
        ]
    return objects


def simulate(objects: list[dict[str, Any]], folder: Path, environment: dict[str, str]) -> dict[str, dict[str, Any]]:
    (folder / "objects.json").write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}))
    (folder / "volcano-scheduler.conf").write_text(CONFIGURATION)
    done = run(
        "vcscheduler",
        "simulate",
        str(folder / "objects.json"),
        "--config",
        str(folder / "volcano-scheduler.conf"),
        "-o",
        "json",
        environment=environment,
    )
    assert done.returncode == 0, done.stderr
    return {job["queue"]: job for job in json.loads(done.stdout)["jobs"]}


@pytest.mark.parametrize("min_resources", [True, False])
def test_by_day_only_the_other_queue_starts(tmp_path: Path, environment: dict[str, str], min_resources: bool) -> None:
    jobs = simulate(cluster("2026-12-01T12:00:00Z", min_resources=min_resources), tmp_path, environment)
    assert jobs["online"]["placed"] == {"ns/online": "n1"}
    assert jobs["batch"]["placed"] == {}
    assert "queue starts work only from 20:00 to 06:00 (UTC)" in jobs["batch"]["pending"]["message"]


def test_at_night_both_start(tmp_path: Path, environment: dict[str, str]) -> None:
    jobs = simulate(cluster("2026-12-01T23:00:00Z"), tmp_path, environment)
    assert {queue: job["placed"] for queue, job in jobs.items()} == {
        "batch": {"ns/batch": "n1"},
        "online": {"ns/online": "n1"},
    }


def test_a_wrong_argument_ends_in_one_clear_line(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "objects.json").write_bytes(
        msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": cluster("2026-12-01T12:00:00Z")})
    )
    conf = tmp_path / "volcano-scheduler.conf"
    conf.write_text(CONFIGURATION.replace("queues: [batch]", 'queues: [batch], from: "8 pm"'))
    done = run(
        "vcscheduler", "simulate", str(tmp_path / "objects.json"), "--config", str(conf), environment=environment
    )
    assert done.returncode == 2
    assert "night-batch: from: '8 pm' is not a time of day such as 20:00" in done.stderr
    assert "Traceback" not in done.stderr
