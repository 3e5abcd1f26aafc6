"""``snapshot --live`` and ``explain --live`` against a real API server: whole, and nothing secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from live.place import Place


def run(place: Place, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command as its user would run it, with the kubeconfig of the test's control plane."""
    command = [sys.executable, "-m", "vcscheduler", *arguments, "--live", "--kubeconfig", str(place.plane.kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=dict(os.environ))


def test_a_live_snapshot_can_be_simulated(place: Place, tmp_path: Path) -> None:
    place.nodes(3)
    place.gang("g", 4)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hidden"}, "stringData": {"a": "secret-word"}}
    place.api.create("/api/v1/namespaces/default/secrets", secret)
    file = tmp_path / "cluster.json"
    done = run(place, "snapshot", "-o", str(file))
    assert done.returncode == 0, done.stderr
    text = file.read_text()
    kinds = [item["kind"] for item in json.loads(text)["items"]]
    assert (kinds.count("Node"), kinds.count("Pod"), kinds.count("PodGroup")) == (3, 4, 1)
    assert "Secret" not in kinds
    assert "secret-word" not in text
    command = [sys.executable, "-m", "vcscheduler", "simulate", str(file), "-o", "json"]
    simulated = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)
    assert simulated["summary"]["podsPlaced"] == 4
    assert place.bound() == {}, "a snapshot only reads"


def test_a_pod_of_a_live_cluster_is_explained(place: Place) -> None:
    place.nodes(2)
    place.gang("g", 1, cpu="9000")
    done = run(place, "explain", "pod", "g-0", "-o", "json")
    assert done.returncode == 0, done.stderr
    story = json.loads(done.stdout)
    assert (story["pod"], story["state"]) == ("default/g-0", "waits")
    assert [each["tooSmall"] for each in story["nodes"]["nearest"]] == [True, True]
    assert place.status("g").get("conditions") is None, "explaining only reads"
