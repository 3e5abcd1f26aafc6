"""Dumps of large clusters are read quickly: without plain data in between, and without lines unless they are needed."""

from __future__ import annotations

import time
from pathlib import Path

from kubectl_dump import write_dump

from vcscheduler.objects import Node, Pod, PodGroup, Queue, read_manifests

NODES, PODS = 500, 3000
SECONDS = 1.5
"""For a tenth of 5,000 nodes and 30,000 pods, which take about 1.5 s of one core; ten times what it should take."""


def test_a_large_dump_is_read_quickly_and_whole(tmp_path: Path) -> None:
    size = write_dump(tmp_path / "dump.json", NODES, PODS)
    assert size > 10_000_000
    start = time.process_time()
    found = read_manifests([tmp_path / "dump.json"])
    assert time.process_time() - start < SECONDS
    assert [len(found.of(cls)) for cls in (Node, Pod, PodGroup, Queue)] == [NODES, PODS, PODS // 3, 10]
    assert (found.warnings, found.ignored) == ([], {})
