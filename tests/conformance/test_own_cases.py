"""The project's own conformance cases, beside this file: the small figures by which each action is explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from vcscheduler.simulator.verify import collect, verify_file

CASES = collect([Path(__file__).parent])


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_case(file: Path) -> None:
    outcome = verify_file(file)
    assert outcome.passed, "\n".join([str(outcome), *outcome.details()])
    assert outcome.id == file.stem
