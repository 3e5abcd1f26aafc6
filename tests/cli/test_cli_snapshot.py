"""``vcscheduler snapshot``: what is written can be simulated; what must not be in it is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_run import PLATFORM, ROOT, run

SECRETIVE = """
apiVersion: v1
kind: Secret
metadata: {name: token}
data: {password: c2VjcmV0LXdvcmQ=}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {key: secret-word}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: j
  annotations: {kubectl.kubernetes.io/last-applied-configuration: secret-word}
spec:
  queue: default
  plugins: {ssh: ["--ssh-private-key=secret-word"]}
  tasks:
  - name: t
    replicas: 1
    template:
      spec:
        containers:
        - {name: c, image: i, command: [secret-word], env: [{name: PASSWORD, value: secret-word}]}
"""


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_snapshot_simulates_as_what_it_was_made_of(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"s.{suffix}"
    done = run("snapshot", PLATFORM, "-o", file)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"80 objects written" in done.stderr
    before, after = (json.loads(run("simulate", path, "-o", "json").stdout) for path in (PLATFORM, file))
    assert after["jobs"] == before["jobs"]
    assert after["queues"] == before["queues"]


def test_nothing_secret_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "in.yaml").write_text(SECRETIVE)
    text = run("snapshot", tmp_path / "in.yaml", "-o", "-").stdout.decode()
    assert [item["kind"] for item in json.loads(text)["items"]] == ["Job"]
    assert "secret-word" not in text
    assert "c2VjcmV0" not in text


def anonymous(tmp_path: Path, *more: str) -> tuple[str, dict[str, object]]:
    file = tmp_path / "a.json"
    done = run("snapshot", PLATFORM, "-o", file, "--anonymise", *more)
    assert done.returncode == 0, done.stderr
    return file.read_text(), json.loads(run("simulate", file, "-o", "json").stdout)


def test_an_anonymous_snapshot_comes_to_the_same_under_other_names(tmp_path: Path) -> None:
    text, after = anonymous(tmp_path, "--salt", "s")
    for name in ("batch", "research", "llm-pretrain", "spark", "a100-0", "cpu-3", "notebook", "alice", "executor"):
        assert f'"{name}"' not in text, name
    before = json.loads(run("simulate", PLATFORM, "-o", "json").stdout)
    for key in ("nodes", "jobs", "pods", "allocatable"):
        assert after["summary"][key] == before["summary"][key]  # type: ignore[index]


@pytest.mark.parametrize("name", ["preempt", "reclaim"])
def test_an_anonymous_dump_comes_to_the_same_decisions(tmp_path: Path, name: str) -> None:
    folder, file = ROOT / "examples" / name, tmp_path / "a.json"
    assert run("snapshot", folder, "-o", file, "--anonymise").returncode == 0
    before, after = (
        json.loads(run("simulate", path, "--config", folder / "volcano-scheduler.conf", "-o", "json").stdout)
        for path in (folder, file)
    )
    assert len(before["evictions"]) == len(after["evictions"]) > 0
    assert before["summary"] == after["summary"]
    numbers = [[each["pod"].rpartition("-")[2] for each in found["evictions"]] for found in (before, after)]
    assert numbers[0] == numbers[1]


def test_the_same_salt_gives_the_same_bytes_and_another_does_not(tmp_path: Path) -> None:
    assert anonymous(tmp_path, "--salt", "s")[0] == anonymous(tmp_path, "--salt", "s")[0]
    assert anonymous(tmp_path, "--salt", "s")[0] != anonymous(tmp_path, "--salt", "t")[0]
    assert anonymous(tmp_path)[0] != anonymous(tmp_path)[0]


def test_labels_are_kept_unless_asked_for(tmp_path: Path) -> None:
    labelled = tmp_path / "n.yaml"
    labelled.write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {acme.com/rack: r17, kubernetes.io/arch: amd64}}\n"
        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
        "spec: {nodeSelector: {acme.com/rack: r17}, containers: [{name: c}]}\n"
    )
    kept = run("snapshot", labelled, "-o", "-", "--anonymise").stdout.decode()
    assert '"acme.com/rack": "r17"' in kept
    gone = run("snapshot", labelled, "-o", "-", "--anonymise-labels", "--salt", "s").stdout.decode()
    assert "acme" not in gone
    assert "r17" not in gone
    assert '"kubernetes.io/arch": "amd64"' in gone
    node, pod = json.loads(gone)["items"]
    [(key, value)] = pod["spec"]["nodeSelector"].items()
    assert node["metadata"]["labels"][key] == value


def test_mistakes_in_the_options() -> None:
    example = ROOT / "examples" / "preempt"
    assert b"found the suffix '.txt'" in run("snapshot", example, "-o", "x.txt").stderr
    assert b"nothing to write" in run("snapshot", "-o", "x.json").stderr
    assert b"--salt belongs to --anonymise" in run("snapshot", example, "-o", "x.json", "--salt", "s").stderr
    assert b"cannot be written" in run("snapshot", example, "-o", "/no/such/x.json").stderr
