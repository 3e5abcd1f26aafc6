"""``vcscheduler queues``: the tree, whose figures are shown, and when."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_run import run

TREE = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 40, memory: 160Gi, pods: 110}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: science}
spec: {deserved: {cpu: 20, memory: 80Gi}, guarantee: {resource: {cpu: 4}}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: physics}
spec: {parent: science, weight: 3, deserved: {cpu: 10, memory: 40Gi}, capability: {cpu: 30}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: biology}
spec: {parent: science, deserved: {cpu: 10, memory: 40Gi}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: j}
spec:
  queue: physics
  schedulerName: volcano
  tasks:
    - name: w
      replicas: 3
      template: {spec: {containers: [{name: c, resources: {requests: {cpu: 4, memory: 1Gi}}}]}}
"""
CAPACITY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: capacity, enableHierarchy: true}]
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree.yaml").write_text(TREE)
    (tmp_path / "capacity.conf").write_text(CAPACITY)
    return tmp_path


def test_a_tree_is_indented_and_holds_the_queues_below(tree: Path) -> None:
    done = run("queues", tree / "tree.yaml", "--config", tree / "capacity.conf", "--after")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    rows = {line.split()[0]: line for line in lines[3:] if line.strip() and line.split()[1:2] != ["by"]}
    assert rows["physics"].split() == ["physics", "1", "cpu", "-", "10", "30", "30", "12", "0", "12", "120%"]
    assert rows["science"].split() == ["science", "cpu", "4", "20", "-", "∞", "12", "0", "12", "60%"]
    names = [line.partition(" cpu")[0].rstrip("1 ") for line in lines[3:8]]
    assert names == ["root", "  default", "  science", "    biology", "    physics"]


def test_as_given_nothing_runs_yet_and_proportion_shows_weights(tree: Path) -> None:
    found = json.loads(run("queues", tree / "tree.yaml", "-o", "json").stdout)
    assert (found["sharedBy"], found["tree"]) == ("proportion", False)
    physics = next(each for each in found["queues"] if each["queue"] == "physics")
    assert (physics["weight"], physics["depth"], physics["parent"]) == (3, 2, "science")
    assert physics["allocated"]["cpu"] == "0"


def test_wide_has_a_line_a_resource(tree: Path) -> None:
    text = run("queues", tree / "tree.yaml", "--config", tree / "capacity.conf", "--wide").stdout.decode()
    physics = text[text.index("physics") :].splitlines()
    assert physics[0].split()[2] == "cpu"
    assert physics[1].split()[0] == "memory"


def test_the_figures_of_json_are_quantities(tree: Path) -> None:
    done = run("queues", tree / "tree.yaml", "--config", tree / "capacity.conf", "--after", "-o", "json")
    science = next(each for each in json.loads(done.stdout)["queues"] if each["queue"] == "science")
    assert science["deserved"] == {"cpu": "20", "memory": "80Gi"}
    assert science["allocated"]["cpu"] == "12"
    assert (science["share"], science["decidingResource"]) == (0.6, "cpu")
