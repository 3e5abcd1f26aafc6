"""Reading the openb trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from vcscheduler.config import SchedulerOptions, default_configuration
from vcscheduler.framework.registry import Registry
from vcscheduler.simulator.openb import GPU, MODEL, TraceError, read_openb
from vcscheduler.simulator.simulate import Simulation

NODES = """sn,cpu_milli,memory_mib,gpu,model
node-0,64000,262144,2,T4
node-1,96000,393216,2,P100
node-2,32000,131072,0,
"""
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
pod-0,8000,16384,1,460,T4,LS,Running,0,10,0
pod-1,8000,16384,1,1000,P100|T4,LS,Running,0,10,0
pod-2,4000,8192,0,0,,BE,Failed,0,10,
pod-3,8000,16384,2,1000,V100M32,LS,Pending,0,10,
"""


def files(folder: Path, nodes: str = NODES, pods: str = PODS) -> tuple[Path, Path]:
    nodes_csv, pods_csv = folder / "nodes.csv", folder / "pods.csv"
    nodes_csv.write_text(nodes)
    pods_csv.write_text(pods)
    return nodes_csv, pods_csv


def test_cards_are_resources_and_models_are_labels(tmp_path: Path) -> None:
    trace = read_openb(*files(tmp_path))
    first, *_, last = trace.nodes
    assert first.status.allocatable == {"cpu": "64000m", "memory": "262144Mi", GPU: 2, "pods": 110}
    assert first.metadata.labels[MODEL] == "T4"
    assert GPU not in last.status.allocatable
    assert MODEL not in last.metadata.labels


def test_parts_of_a_card_are_rounded_up_and_counted(tmp_path: Path) -> None:
    trace = read_openb(*files(tmp_path))
    assert trace.fractional == 1
    assert trace.pods[0].spec.containers[0].resources.requests[GPU] == 1


def test_named_models_are_required_node_affinity(tmp_path: Path) -> None:
    trace = read_openb(*files(tmp_path))
    affinity = trace.pods[1].spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    assert affinity.node_affinity.required is not None
    [term] = affinity.node_affinity.required.node_selector_terms
    [wanted] = term.match_expressions
    assert (wanted.key, wanted.operator, wanted.values) == (MODEL, "In", ["P100", "T4"])
    assert trace.pods[2].spec.affinity is None


def test_a_trace_is_scheduled(tmp_path: Path) -> None:
    trace = read_openb(*files(tmp_path))
    outcome = Simulation(trace.objects, default_configuration(), SchedulerOptions(), Registry.default()).run()
    placed = {job.name: next(iter(job.placed.values()), "") for job in outcome.jobs}
    assert placed["pod-0"] == "node-0"
    assert placed["pod-1"] in ("node-0", "node-1")
    assert placed["pod-2"] != ""
    assert placed["pod-3"] == ""


@pytest.mark.parametrize(
    ("nodes", "pods", "expected"),
    [
        ("", PODS, "nodes.csv:1: the column sn is missing"),
        ("sn,cpu_milli,memory_mib,gpu\n", PODS, "nodes.csv:1: the column model is missing"),
        (NODES.replace("64000", "many"), PODS, "nodes.csv:2: cpu_milli: found 'many'"),
        (NODES.replace("64000", "-1"), PODS, "nodes.csv:2: cpu_milli: found '-1'"),
        (NODES.replace("64000", "9" * 30), PODS, "nodes.csv:2: cpu_milli: found"),
        (NODES.replace("node-1", "node-0"), PODS, "nodes.csv: the name node-0 is there twice"),
        (NODES.replace("node-1", ""), PODS, "nodes.csv:3: sn: is empty"),
        (NODES, PODS + "pod-9,1\n", "pods.csv:6: 2 values, but the header names 11 columns"),
        (NODES, PODS.replace("pod-1,", "pod-0,"), "pods.csv: the name pod-0 is there twice"),
        (NODES, PODS.replace("8000", "1.5"), "pods.csv:2: cpu_milli: found '1.5'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(tmp_path: Path, nodes: str, pods: str, expected: str) -> None:
    with pytest.raises(TraceError) as caught:
        read_openb(*files(tmp_path, nodes, pods))
    assert expected in str(caught.value)


def test_files_that_are_no_text_or_not_there(tmp_path: Path) -> None:
    nodes_csv, pods_csv = files(tmp_path)
    with pytest.raises(TraceError, match="cannot be read"):
        read_openb(tmp_path / "nope.csv", pods_csv)
    nodes_csv.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(TraceError, match="no UTF-8 text"):
        read_openb(nodes_csv, pods_csv)
