"""The example plugins of examples/plugins: on the command line, through the API, and mixed with each other."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from lab import NOW, Lab, configuration
from vcscheduler.cache.cache import SchedulerCache
from vcscheduler.cli.app import app
from vcscheduler.cluster.memory import MemoryCluster
from vcscheduler.config import Arguments, configuration_from_value
from vcscheduler.framework.plugin import Plugin
from vcscheduler.framework.registry import Registry
from vcscheduler.framework.scheduler import Scheduler
from vcscheduler.framework.session import Session
from vcscheduler.model.fit import FitFailure, Status
from vcscheduler.model.job import Job
from vcscheduler.model.nodes import Node
from vcscheduler.model.status import Code
from vcscheduler.model.task import Task
from vcscheduler.objects import KubernetesObject, PodGroup
from vcscheduler.placement.rules import FloatArray, IntArray, NodeFilter, NodeScorer

FOLDER = Path(__file__).parents[2] / "examples" / "plugins"
PRICE = "example.com/price-per-hour"


def example(name: str) -> ModuleType:
    module_name = f"example_{name.replace('-', '_')}"
    if module_name not in sys.modules:
        spec = importlib.util.spec_from_file_location(module_name, FOLDER / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[module_name]


big_memory, cheap_nodes, deadlines = (example(name) for name in ("big-memory", "cheap-nodes", "deadlines"))


# --- on the command line ----------------------------------------------------------------------------------------------


def simulate(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["simulate", *arguments, "-o", "json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_simulate_with_the_folder_of_plugins_places_as_they_say() -> None:
    outcome = simulate(
        str(FOLDER / "cluster.yaml"),
        "--plugins-dir",
        str(FOLDER),
        "--config",
        str(FOLDER / "volcano-scheduler.conf"),
    )
    placed = {job["job"].partition("/")[2]: sorted(job["placed"].values()) for job in outcome["jobs"] if job["placed"]}
    assert placed == {
        "frugal": ["spot-1"],
        "genome": ["big-1", "big-1"],
        "render-tonight": ["gpu-1"],
        "web": ["plain-2"] * 5 + ["spot-1"],
    }


def test_simulate_without_them_places_otherwise() -> None:
    """The configuration is what makes the difference, not the cluster."""
    outcome = simulate(str(FOLDER / "cluster.yaml"))
    placed = {job["job"]: list(job["placed"].values()) for job in outcome["jobs"]}
    assert placed["default/frugal"] == ["big-1"]


def test_the_folder_holds_what_config_check_knows() -> None:
    conf = str(FOLDER / "volcano-scheduler.conf")
    assert CliRunner().invoke(app, ["config", "check", conf, "--plugins-dir", str(FOLDER)]).exit_code == 0
    alone = CliRunner().invoke(app, ["config", "check", conf])
    assert alone.exit_code == 2
    assert "unknown plugin 'big-memory'" in alone.output


# --- through the API --------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Run:
    """What a few cycles came to."""

    binds: list[dict[str, str]]
    texts: dict[str, list[str]]


def run(
    config: dict[str, object], objects: list[KubernetesObject], plugins: list[type[Plugin]], cycles: int = 1
) -> Run:
    registry = Registry()
    for plugin in plugins:
        registry.add_plugin(plugin.name, plugin)
    cluster = MemoryCluster(lambda: NOW)
    cluster.apply_all(objects)
    parsed = configuration_from_value(
        config, "test", known_actions=registry.action_names, known_plugins=registry.plugin_names
    )
    cache = SchedulerCache(cluster, lambda: NOW)
    scheduler = Scheduler(cache, parsed.configuration, registry=registry, clock=lambda: NOW)
    texts: dict[str, list[str]] = {}

    def observe(ssn: Session) -> None:
        for job in ssn.jobs.values():
            for uid, errors in job.fit_errors.items():
                texts.setdefault(uid, []).append(errors.text)

    binds = []
    for _ in range(cycles):
        scheduler.run_once(observe)
        binds.append(dict(sorted(cluster.bindings().items())))
        cluster.step()
    return Run(binds, texts)


def tiers(*own: dict[str, Any] | str) -> Any:
    return [["priority", *own, "gang"], ["predicates", "proportion", "nodeorder"]]


def node_objects(lab: Lab) -> list[KubernetesObject]:
    return [obj for kind in lab.cluster._objects.values() for obj in kind.values()]


def two_sizes() -> Lab:
    lab = Lab().queue("q")
    for name, memory in (("a-big", "1024Gi"), ("b-big", "1024Gi"), ("small", "64Gi")):
        lab.node(name, cpu=64, memory=memory)
    return lab


def test_big_memory_nodes_are_kept_for_big_memory_pods() -> None:
    lab = two_sizes().job("small", 1, 1, cpu=1, memory="4Gi").job("large", 2, 2, cpu=1, memory="100Gi")
    config = configuration(tiers({"name": "big-memory", "arguments": {"weight": 10}}))
    found = run(config, node_objects(lab), [big_memory.BigMemory])
    assert found.binds == [{"ns/large-w-0": "a-big", "ns/large-w-1": "a-big", "ns/small-w-0": "small"}]


def test_a_refused_node_says_which_rule_refused_it() -> None:
    lab = Lab().queue("q").node("big", cpu=64, memory="1024Gi").job("small", 1, 1, cpu=1, memory="4Gi")
    found = run(configuration(tiers("big-memory")), node_objects(lab), [big_memory.BigMemory])
    assert found.binds == [{}]
    assert list(found.texts.values()) == [
        ["0/1 nodes are unavailable: 1 node(s) were kept for pods that need much memory."]
    ]


def test_cheap_nodes_come_first_and_limits_are_kept() -> None:
    lab = Lab().queue("q")
    for name, price in (("dear", "9"), ("cheap", "1"), ("middle", "5")):
        lab.node(name, cpu=1, labels={PRICE: price})
    lab.node("unpriced", cpu=1)
    limit = {"example.com/max-price": "6"}
    lab.job("first", 2, 2, cpu=1, annotations=limit).job("second", 1, 1, cpu=1, annotations=limit)
    config = configuration(tiers({"name": "cheap-nodes", "arguments": {"weight": 10, "limits": True}}))
    found = run(config, node_objects(lab), [cheap_nodes.CheapNodes])
    assert found.binds == [{"ns/first-w-0": "cheap", "ns/first-w-1": "middle"}]
    assert found.texts == {
        "uid-ns-second-w-0": [
            "0/4 nodes are unavailable: 1 node(s) cost more than the pod's limit, 1 node(s) had no price, "
            "2 Insufficient cpu."
        ]
    }


def test_prices_are_read_again_when_a_node_changes() -> None:
    lab = Lab().queue("q").node("n1", cpu=1, labels={PRICE: "1"}).node("n2", cpu=1, labels={PRICE: "2"})
    ssn = lab.session()
    plugin = cheap_nodes.CheapNodes(Arguments({}))
    plugin.on_session_open(ssn)
    before = ssn.store["cheap-nodes"]
    lab.close(ssn)
    ssn = lab.session()
    plugin.on_session_open(ssn)
    assert ssn.store["cheap-nodes"] is before
    lab.close(ssn)
    lab.node("n1", cpu=1, labels={PRICE: "3"})
    ssn = lab.session()
    plugin.on_session_open(ssn)
    assert ssn.store["cheap-nodes"].score.tolist() == [0, 100]
    lab.close(ssn)


def test_a_price_alone_leaves_whole_gangs_to_the_kernels() -> None:
    lab = Lab().queue("q").job("gang", 40, 40, cpu=1)
    for i in range(20):
        lab.node(f"n{i:02d}", cpu=4, labels={PRICE: str(i % 5)})
    registry = Registry()
    registry.add_plugin("cheap-nodes", cheap_nodes.CheapNodes)
    lab.scheduler.registry = registry
    lab.scheduler.configuration = configuration_from_value(
        configuration(tiers("cheap-nodes")),
        "test",
        known_actions=registry.action_names,
        known_plugins=registry.plugin_names,
    ).configuration
    assert len(lab.cycle().binds) == 40
    assert lab.class_states.calls == 1


def with_deadlines() -> list[KubernetesObject]:
    lab = Lab().queue("q").node("n1", cpu=2)
    texts = {"none": "", "late": "2026-12-08T06:00:00Z", "odd": "soon", "early": "2026-12-01T22:00:00+02:00"}
    for name, text in texts.items():
        lab.job(name, 1, 1, cpu=1)
        group = lab.cluster.get(PodGroup, f"ns/{name}")
        assert group is not None
        group.metadata.annotations["example.com/deadline"] = text
    return node_objects(lab)


def test_the_earliest_deadline_comes_first() -> None:
    found = run(configuration(tiers("deadlines")), with_deadlines(), [deadlines.Deadlines])
    assert found.binds == [{"ns/early-w-0": "n1", "ns/late-w-0": "n1"}]


# --- mixed ------------------------------------------------------------------------------------------------------------


class PerNodePrices(Plugin):
    """cheap-nodes, node by node."""

    name = "cheap-nodes"

    def on_session_open(self, ssn: Session) -> None:
        prices = cheap_nodes.Prices(ssn.table, PRICE, self.arguments.get_int("weight", 1))

        def predicate(task: Task, node: Node) -> None:
            text = task.pod.metadata.annotations.get(cheap_nodes.LIMIT_ANNOTATION)
            if text is None:
                return
            price = node.labels.get(PRICE)
            code = cheap_nodes.NO_PRICE if price is None else cheap_nodes.TOO_DEAR
            if price is None or float(price) > float(text):
                raise FitFailure(Status(Code.UNRESOLVABLE, cheap_nodes.REASONS[code], self.name))

        ssn.add_predicate_fn(self.name, predicate)
        ssn.add_node_order_fn(self.name, lambda task, node: float(prices.score[node.row]))


class BigMemoryColumns(Plugin):
    """big-memory, over columns."""

    name = "big-memory"

    def on_session_open(self, ssn: Session) -> None:
        own = big_memory.BigMemory(self.arguments)
        own.on_session_open(ssn)  # Its functions are replaced below: the last registration counts.
        ssn.add_filter(self.name, _BigMemoryFilter(ssn, own))
        ssn.add_scorer(self.name, _BigMemoryScorer(ssn, own))


class _BigMemoryFilter(NodeFilter):
    def __init__(self, ssn: Session, plugin: Any) -> None:
        self._table, self._plugin = ssn.table, plugin

    def codes(self, task: Task, rows: IntArray) -> IntArray:
        large = self._table.allocatable[1, rows] >= self._plugin.node_bytes
        return (large & (task.resreq.memory < self._plugin.pod_bytes)).astype(np.int64)

    def statuses(self, task: Task, code: int) -> tuple[Status, ...]:
        return (Status(Code.UNRESOLVABLE, big_memory.REASON, "big-memory"),)


class _BigMemoryScorer(NodeScorer):
    def __init__(self, ssn: Session, plugin: Any) -> None:
        self._table, self._plugin = ssn.table, plugin

    def scores(self, task: Task, rows: IntArray) -> FloatArray:
        has = self._table.allocatable[1, rows]
        left = np.maximum(self._table.idle[1, rows] - task.resreq.memory, 0.0)
        score = self._plugin.weight * 100.0 * (has - left) / has
        return np.where(has < self._plugin.node_bytes, 0.0, score)


class UnkeyedDeadlines(Plugin):
    """deadlines, without a key."""

    name = "deadlines"

    def on_session_open(self, ssn: Session) -> None:
        def compare(a: Job, b: Job) -> float:
            return float(deadlines.compare(a, b))

        ssn.add_job_order_fn(self.name, compare)


PURE_PER_NODE: list[type[Plugin]] = [big_memory.BigMemory, PerNodePrices, UnkeyedDeadlines]
PURE_VECTORISED: list[type[Plugin]] = [BigMemoryColumns, cheap_nodes.CheapNodes, deadlines.Deadlines]
MIXED: list[type[Plugin]] = [big_memory.BigMemory, cheap_nodes.CheapNodes, deadlines.Deadlines]
MIXED_THE_OTHER_WAY: list[type[Plugin]] = [BigMemoryColumns, PerNodePrices, UnkeyedDeadlines]


def random_scene(seed: int) -> list[KubernetesObject]:
    rng = random.Random(seed)
    lab = Lab().queue("q").queue("r", 2)
    for i in range(rng.randint(2, 12)):
        labels = {PRICE: str(rng.choice([0.5, 1, 2, 4]))} if rng.random() < 0.8 else {}
        lab.node(f"n{i}", cpu=rng.choice([2, 4, 8]), memory=f"{rng.choice([8, 32, 64])}Gi", labels=labels)
    for j in range(rng.randint(2, 10)):
        pods = rng.randint(1, 5)
        annotations = {"example.com/max-price": str(rng.choice([1, 2, 3]))} if rng.random() < 0.4 else None
        lab.job(
            f"j{j}",
            rng.randint(1, pods),
            pods,
            queue=rng.choice("qr"),
            cpu=rng.choice([1, 2]),
            memory=f"{rng.choice([1, 2, 16])}Gi",
            annotations=annotations,
        )
        if rng.random() < 0.5:
            group = lab.cluster.get(PodGroup, f"ns/j{j}")
            assert group is not None
            group.metadata.annotations["example.com/deadline"] = f"2026-12-0{rng.randint(1, 8)}T06:00:00Z"
    return node_objects(lab)


@pytest.mark.parametrize("seed", range(40))
def test_styles_mixed_in_one_session_decide_as_the_pure_ones(seed: int) -> None:
    config = configuration(
        tiers(
            "deadlines",
            {"name": "big-memory", "arguments": {"nodeGi": 32, "podGi": 2, "weight": 2}},
            {"name": "cheap-nodes", "arguments": {"weight": 3, "limits": True}},
        )
    )
    objects = random_scene(seed)
    expected = run(config, objects, PURE_PER_NODE, cycles=2)
    assert run(config, objects, PURE_VECTORISED, cycles=2) == expected
    assert run(config, objects, MIXED, cycles=2) == expected
    assert run(config, objects, MIXED_THE_OTHER_WAY, cycles=2) == expected


def test_the_random_scenes_are_worth_comparing() -> None:
    """Guards the test above: in most of them something is bound, and in many something is refused."""
    config = configuration(
        tiers(
            {"name": "big-memory", "arguments": {"nodeGi": 32, "podGi": 2}},
            {"name": "cheap-nodes", "arguments": {"limits": True}},
        )
    )
    found = [run(config, random_scene(seed), MIXED) for seed in range(40)]
    assert sum(bool(each.binds[0]) for each in found) > 30
    refused = " ".join(text for each in found for texts in each.texts.values() for text in texts)
    assert all(reason in refused for reason in (big_memory.REASON, *list(cheap_nodes.REASONS.values())[:2]))
