"""The first three cases of every conformance family on a real API server come out as on the embedded cluster.

The cases are not part of this repository (see ``tests/conformance/test_recorded.py``). What a server
refuses of a case is listed here with its words; the rest is run all the same, on both clusters.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from live.api import Api
from live.conftest import ROOT
from live.enacted import Server, documents_of, embedded, enacted
from live.kubeenv import ControlPlane
from vcscheduler.cluster.live import Access
from vcscheduler.simulator.conformance import read_case

FIRST = 3
PATTERN = 'spec.parent: Invalid value: "": spec.parent in body should match'
STATE = 'status.state: Unsupported value: ""'
REFUSED: dict[str, dict[str, str]] = {
    # Volcano's CustomResourceDefinition knows no empty parent; these queues are then created without.
    "random/deep-capacity-0000": {"Queue default": PATTERN, "Queue q0": PATTERN, "Queue q2": PATTERN},
    "random/deep-capacity-0001": {"Queue default": PATTERN, "Queue q0": PATTERN},
    # The queue is there, its status is not.
    "random/deep-share-0001": {"Queue q0": STATE},
}
"""Case -> object -> what the server says."""


def folder() -> Path:
    given = os.environ.get("VCSCHEDULER_CONFORMANCE")
    return Path(given) if given else ROOT.parent / "shared" / "conformance"


def chosen() -> list[Path]:
    families = sorted(each for kind in ("recorded", "random") for each in (folder() / kind).glob("*") if each.is_dir())
    return [file for family in families for file in sorted(family.glob("*.yaml"))[:FIRST]]


CASES = chosen()


@pytest.fixture(scope="module")
def plane_without_kubelets(binaries: Path) -> Iterator[ControlPlane]:
    """Pods run when the test says so."""
    plane = ControlPlane(binaries, kwok=False)
    plane.start()
    try:
        Api(plane.url, plane.token, plane.ca).install(ROOT / "deploy" / "crds")
        yield plane
    finally:
        plane.stop()


@pytest.fixture(scope="module")
def server(plane_without_kubelets: ControlPlane) -> Iterator[Server]:
    plane = plane_without_kubelets
    server = Server(Api(plane.url, plane.token, plane.ca))
    yield server
    server.close()


@pytest.mark.skipif(not CASES, reason=f"there are no conformance cases in {folder()}")
@pytest.mark.parametrize("file", CASES or [Path("none")], ids=lambda file: f"{file.parent.parent.name}/{file.stem}")
def test_a_case_comes_out_as_on_the_embedded_cluster(
    file: Path, server: Server, plane_without_kubelets: ControlPlane
) -> None:
    case = read_case(file)
    try:
        refused = server.put(documents_of(file))
        now = datetime.now(UTC) + timedelta(hours=1)
        source, access = f"{file.name}: config", Access(kubeconfig=str(plane_without_kubelets.kubeconfig))
        expected = embedded(server.stored(), case.config, source, now, case.cycles)
        found = enacted(server, access, case.config, source, now, case.cycles)
    finally:
        server.clear()
    assert found == expected
    listed = REFUSED.get(f"{file.parent.parent.name}/{file.stem}", {})
    assert refused.keys() == listed.keys(), refused
    assert all(words in refused[name] for name, words in listed.items()), refused
