"""The outcomes recorded from the reference scheduler, where that folder is present: beside the repository, in
``shared/conformance``, or where ``VCSCHEDULER_CONFORMANCE`` says."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from vcscheduler.simulator.verify import collect, verify_file

LIST = "all-but-topology.txt"
_CHUNK = 60
#: Where this scheduler means to differ, and why.
DIFFERENT = {
    "deep-share-0012": "allocate runs twice: the reference takes tasks of sub-groups once more and loses them until "
    "the next cycle, since their sub-job still lists them as pending (spec 02 §9.4)",
}


def _folder() -> Path:
    given = os.environ.get("VCSCHEDULER_CONFORMANCE")
    return Path(given) if given else Path(__file__).parents[3] / "shared" / "conformance"


def _chunks() -> list[list[Path]]:
    listing = _folder() / LIST
    if not listing.is_file():
        return []
    files = collect([], [listing])
    return [files[at : at + _CHUNK] for at in range(0, len(files), _CHUNK)]


def _name(chunk: list[Path]) -> str:
    return f"{chunk[0].stem}..{chunk[-1].stem}"


CHUNKS = _chunks()


@pytest.mark.skipif(bool(CHUNKS), reason="the recorded cases are there, and run below")
def test_the_recorded_cases_are_there() -> None:
    if os.environ.get("VCSCHEDULER_CONFORMANCE"):
        pytest.fail(f"VCSCHEDULER_CONFORMANCE names a folder without {LIST}: {_folder()}")
    pytest.skip(f"no recorded conformance cases: {_folder() / LIST} does not exist")


@pytest.mark.parametrize("chunk", CHUNKS, ids=_name)
def test_cases(chunk: list[Path], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="vcscheduler")
    outcomes = [verify_file(file) for file in chunk]
    failed = [o for o in outcomes if o.passed == (o.id in DIFFERENT)]
    assert not failed, "\n".join(line for o in failed for line in (str(o), *(f"    {d}" for d in o.details())))
