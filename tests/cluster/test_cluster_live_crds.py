"""The CustomResourceDefinitions in deploy/crds are those that belong to the structs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_definitions_are_up_to_date() -> None:
    script = Path(__file__).parents[2] / "deploy" / "generate_crds.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
