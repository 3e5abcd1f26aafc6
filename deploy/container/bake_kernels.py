"""Compiles the kernels into NUMBA_CACHE_DIR, as a step of building the image.

    NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=FOLDER python deploy/container/bake_kernels.py MANIFESTS

Small clusters are simulated; then every kernel that Python calls must have been compiled, or the build fails.
NUMBA_CPU_NAME must be the same here and where the image runs: code for another processor is compiled anew.
"""

from __future__ import annotations

import contextlib
import io
import sys

from vcscheduler.cli.app import app
from vcscheduler.placement import kernels
from vcscheduler.simulator.bench import warm_up


def compiled_kernels() -> dict[str, int]:
    """The kernels that Python calls, each with how many signatures of it are compiled."""
    found = {name: kernel for name, kernel in vars(kernels).items() if hasattr(kernel, "nopython_signatures")}
    return {name: len(kernel.nopython_signatures) for name, kernel in found.items() if not name.startswith("_")}


def bake(manifests: str) -> dict[str, int]:
    """Simulate the manifests, preempt and reclaim; what is compiled afterwards."""
    with contextlib.redirect_stdout(io.StringIO()):
        app(["simulate", manifests], standalone_mode=False)
        warm_up()
    return compiled_kernels()


def main() -> None:
    counts = bake(sys.argv[1])
    missing = sorted(name for name, count in counts.items() if not count)
    if missing:
        sys.exit(f"nothing that was simulated makes use of these kernels: {', '.join(missing)}")
    print(f"compiled: {', '.join(sorted(counts))}")


if __name__ == "__main__":
    main()
