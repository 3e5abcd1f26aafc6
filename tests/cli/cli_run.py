"""Running the command line in tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLATFORM = ROOT / "examples" / "platform"


def run(
    *arguments: str | Path, stdin: bytes = b"", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """``python -m vcscheduler`` in a process of its own, as a person would run it without a terminal."""
    names = ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TERMINAL_WIDTH")
    inherited = {name: value for name, value in os.environ.items() if name not in names}
    return subprocess.run(
        [sys.executable, "-m", "vcscheduler", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env={**inherited, **(environment or {})},
        timeout=120,
        check=False,
    )
