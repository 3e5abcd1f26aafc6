"""The openb trace: a production GPU cluster as two CSV files, one of nodes and one of pods.

A node's cards are ``nvidia.com/gpu``, their model is the label ``nvidia.com/gpu.product``. A pod that names models asks
for one of them by required node affinity. All pods are there at once; each is a job of its own. What a pod takes of one
card (``gpu_milli`` below 1000) is rounded up to the whole card.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vcscheduler.objects import (
    Affinity,
    Container,
    KubernetesObject,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)

GPU = "nvidia.com/gpu"
MODEL = "nvidia.com/gpu.product"
_PODS_A_NODE = 110  # What kubelets allow by default; the trace does not say.
_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")
_LARGEST = 10**9


class TraceError(ValueError):
    """A trace file that cannot be used; `str()` is one line with file, line and column name."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The objects of a trace. `fractional`: pods whose part of a card was rounded up."""

    nodes: list[Node]
    pods: list[Pod]
    fractional: int

    @property
    def objects(self) -> list[KubernetesObject]:
        return [*self.nodes, *self.pods]


def read_openb(nodes_csv: Path, pods_csv: Path, scheduler_name: str = "volcano") -> Trace:
    """Read the two files.

    Raises:
        TraceError: a file cannot be read, lacks a column, or has a value that is no number where one is due.
    """
    nodes = [_node(row) for row in _rows(nodes_csv, _NODE_COLUMNS)]
    pods, fractional = [], 0
    containers: dict[tuple[int, int, int], Container] = {}
    affinities: dict[str, Affinity] = {}
    for row in _rows(pods_csv, _POD_COLUMNS):
        gpus = row.number("num_gpu")
        fractional += gpus == 1 and row.number("gpu_milli") < 1000
        size = (row.number("cpu_milli"), row.number("memory_mib"), gpus)
        container = containers.get(size)
        if container is None:
            container = containers[size] = Container(name="main", resources=ResourceRequirements(_amounts(*size)))
        models = row.text("gpu_spec")
        if models and models not in affinities:
            affinities[models] = _one_of(models.split("|"))
        pods.append(
            Pod(
                ObjectMeta(name=row.name("name"), namespace="default"),
                PodSpec([container], scheduler_name=scheduler_name, affinity=affinities.get(models)),
                PodStatus(phase="Pending"),
            )
        )
    _unique(nodes_csv, nodes)
    _unique(pods_csv, pods)
    return Trace(nodes, pods, fractional)


def _node(row: _Row) -> Node:
    amounts = _amounts(row.number("cpu_milli"), row.number("memory_mib"), row.number("gpu"))
    amounts["pods"] = _PODS_A_NODE
    name, model = row.name("sn"), row.text("model")
    labels = {"kubernetes.io/hostname": name}
    if model:
        labels[MODEL] = model
    return Node(ObjectMeta(name=name, labels=labels), status=NodeStatus(capacity=amounts, allocatable=amounts))


def _amounts(cpu_milli: int, memory_mib: int, gpus: int) -> dict[str, str | int | float]:
    amounts: dict[str, str | int | float] = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"}
    if gpus:
        amounts[GPU] = gpus
    return amounts


def _one_of(models: list[str]) -> Affinity:
    wanted = NodeSelectorRequirement(key=MODEL, operator="In", values=models)
    term = NodeSelectorTerm(match_expressions=[wanted])
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=[term])))


@dataclass(frozen=True, slots=True)
class _Row:
    place: str
    values: dict[str, str]

    def text(self, column: str) -> str:
        return self.values[column].strip()

    def name(self, column: str) -> str:
        text = self.text(column)
        if not text:
            raise TraceError(f"{self.place}: {column}: is empty, a name is needed")
        return text

    def number(self, column: str) -> int:
        text = self.text(column)
        if not (text.isascii() and text.isdigit()) or len(text) > 12 or int(text) > _LARGEST:
            raise TraceError(f"{self.place}: {column}: found {text!r}, allowed is a whole number from 0 to {_LARGEST}")
        return int(text)


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[_Row]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            missing = [column for column in columns if column not in header]
            if missing:
                found = ", ".join(header) if header and all(c.isprintable() for c in header) else "no header line"
                raise TraceError(f"{path}:1: the column {missing[0]} is missing; found {found[:120]}")
            for values in reader:
                if not values:
                    continue
                place = f"{path}:{reader.line_num}"
                if len(values) != len(header):
                    raise TraceError(f"{place}: {len(values)} values, but the header names {len(header)} columns")
                yield _Row(place, dict(zip(header, values)))
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise TraceError(f"{path}: not a CSV file: it is no UTF-8 text") from None
    except csv.Error as error:
        raise TraceError(f"{path}: not a CSV file: {error}") from None


def _unique(path: Path, objects: list[Node] | list[Pod]) -> None:
    seen: set[str] = set()
    for obj in objects:
        if obj.name in seen:
            raise TraceError(f"{path}: the name {obj.name} is there twice")
        seen.add(obj.name)
