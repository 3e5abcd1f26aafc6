"""``config check --with``: queues that do not add up, each with its place in the file."""

# ruff: noqa: E501 - the table of inputs and messages reads best with one case a line

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_run import ROOT, run

from vcscheduler.config import parse_configuration
from vcscheduler.explain.queue_specs import check_queues
from vcscheduler.framework.registry import Registry
from vcscheduler.objects import read_manifest_text

CAPACITY = "actions: 'enqueue, allocate, reclaim'\ntiers:\n- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: capacity%s}]\n"
TREE = CAPACITY % ", enableHierarchy: true"
FLAT = CAPACITY % ""
PROPORTION = FLAT.replace("capacity", "proportion")
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 10, memory: 40Gi}}\n"


def queue(name: str, spec: str) -> str:
    return f"apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"


def job(queue: str) -> str:
    return (
        f"apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {{name: g}}\nspec: {{queue: {queue}}}\n"
    )


def check(config: str, *documents: str) -> list[str]:
    registry = Registry.default()
    parsed = parse_configuration(config, known_actions=registry.action_names, known_plugins=registry.plugin_names)
    found = check_queues(read_manifest_text("---\n".join(documents)), parsed.configuration)
    return [f"{each.manifest.obj.name} {'.'.join(map(str, each.path))}: {each.message}" for each in found]


PARENT = queue("p", "deserved: {cpu: 8}, guarantee: {resource: {cpu: 2}}, capability: {cpu: 8}")


@pytest.mark.parametrize(
    ("config", "documents", "begins", "words"),
    [
        (TREE, [queue("q", "parent: pp, deserved: {cpu: 1}"), PARENT], "q spec.parent", ["does not exist", "not ready", 'mean "p"']),
        (PROPORTION, [queue("q", "parent: pp"), PARENT.replace("deserved: {cpu: 8}, ", "")], "q spec.parent", ["outside of the tree"]),
        (TREE, [PARENT, queue("q", "parent: p, deserved: {cpu: 1}"), job("p")], "g spec.queue", ["has queues below it", 'such as "q"']),
        (FLAT, [job("qq"), queue("q", "deserved: {cpu: 1}")], "g spec.queue", ['the queue "qq" does not exist', 'mean "q"']),
        (FLAT, [queue("q", "deserved: {cpu: 4}, capability: {cpu: 2}")], "q spec.deserved.cpu", ["more than the capability 2", "it is cut to that"]),
        (FLAT, [queue("q", "deserved: {cpu: 4}, guarantee: {resource: {cpu: 3}}, capability: {cpu: 2}")], "q spec.guarantee.resource.cpu", ["can never be used"]),
        (FLAT, [queue("q", "deserved: {cpu: 4}, guarantee: {resource: {cpu: 5}}")], "q spec.guarantee.resource.cpu", ["raise deserved"]),
        (TREE, [PARENT, queue("a", "parent: p, deserved: {cpu: 5}"), queue("b", "parent: p, deserved: {cpu: 5}")], "p spec.deserved.cpu", ["(a, b)", "have 10 deserved together", "its own 8"]),
        (TREE, [PARENT, queue("a", "parent: p, deserved: {cpu: 5}, guarantee: {resource: {cpu: 3}}")], "p spec.guarantee.resource.cpu", ["have 3 guaranteed together", "its own 2"]),
        (TREE, [PARENT, queue("a", "parent: p, deserved: {cpu: 5}, capability: {cpu: 9}")], "a spec.capability.cpu", ["more than the 8 of the queue p"]),
        (PROPORTION, [NODE, *(queue(n, "guarantee: {resource: {cpu: 6}}") for n in "ab")], "b spec.guarantee.resource.cpu", ["(a, b) have 12 guaranteed together, the nodes only 10"]),
        (FLAT, [NODE, *(queue(n, "deserved: {memory: 30Gi}") for n in "ab")], "b spec.deserved.memory", ["have 60Gi deserved together, the nodes only 40Gi"]),
        (PROPORTION, [queue("q", "deserved: {cpu: 1}")], "q spec.deserved", ["proportion divides by weight"]),
        (FLAT, [queue("q", "weight: 4, deserved: {cpu: 1}")], "q spec.weight", ["does not read weights"]),
        (FLAT, [PARENT, queue("q", "parent: p, deserved: {cpu: 1}")], "q spec.parent", ["set enableHierarchy: true"]),
        (FLAT, [queue("q", "capability: {cpu: 1}")], "q spec:", ["deserves nothing", "may be reclaimed"]),
    ],
)  # fmt: skip
def test_one_warning(config: str, documents: list[str], begins: str, words: list[str]) -> None:
    found = check(config, *documents)
    matching = [line for line in found if line.startswith(begins) and all(word in line for word in words)]
    assert len(matching) == 1, found


def test_queues_that_add_up_get_no_warning() -> None:
    below = [
        queue(n, "parent: p, deserved: {cpu: 4}, guarantee: {resource: {cpu: 1}}, capability: {cpu: 8}") for n in "ab"
    ]
    assert check(TREE, NODE, PARENT, *below, job("a")) == []


def test_the_example_adds_up() -> None:
    folder = ROOT / "examples" / "reclaim"
    done = run("config", "check", folder / "volcano-scheduler.conf", "--with", folder)
    assert (done.returncode, done.stdout.decode()) == (0, "0 errors, 0 warnings\n")


def test_places_are_those_of_the_field_in_yaml_and_in_a_list(tmp_path: Path) -> None:
    conf, yaml, dump = tmp_path / "s.conf", tmp_path / "q.yaml", tmp_path / "dump.json"
    conf.write_text(FLAT)
    yaml.write_text(NODE + "---\n" + queue("q", "weight: 4, deserved: {cpu: 1}"))
    items = [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "r"},
            "spec": {"weight": 2, "deserved": {"cpu": "1"}},
        }
    ]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1))
    lines = run("config", "check", conf, "--with", yaml, "--with", dump).stdout.decode().splitlines()
    assert lines[0].startswith(f"{yaml}:9:8: warning: Queue q: spec.weight: ")
    assert lines[1].startswith(f"{dump}:12:")
    assert "Queue r: spec.weight: " in lines[1]
    assert lines[2] == "0 errors, 2 warnings"
