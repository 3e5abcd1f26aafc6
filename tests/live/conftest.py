"""Live tests need the binaries of a control plane and are run by ``make test-live`` only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

LIVE = bool(os.environ.get("VCSCHEDULER_LIVE"))
collect_ignore_glob = [] if LIVE else ["test_*.py"]

ROOT = Path(__file__).parents[2]

if LIVE:
    from live.api import Api
    from live.kubeenv import ControlPlane
    from live.place import Place
    from live.tools import find

    @pytest.fixture(scope="session")
    def binaries() -> Path:
        folder = find()
        assert folder is not None, "no programs of a control plane; run make test-live"
        return folder

    @pytest.fixture(scope="session")
    def plane(binaries: Path) -> Iterator[ControlPlane]:
        """One control plane for all tests that keep to a namespace and nodes of their own."""
        plane = ControlPlane(binaries)
        plane.start()
        try:
            Api(plane.url, plane.token, plane.ca).install(ROOT / "deploy" / "crds")
            yield plane
        finally:
            plane.stop()

    @pytest.fixture
    def place(plane: ControlPlane) -> Iterator[Place]:
        """The control plane with nothing in it but an open default queue."""
        place = Place(plane)
        try:
            yield place
        finally:
            place.clear()
