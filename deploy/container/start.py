"""What the image starts: the kernels are put where they can be used, then it is `vcscheduler`.

Numba takes a cache only from a folder that it can write to, and the image's file system is read-only where it runs. So
the compiled kernels of the image are copied to NUMBA_CACHE_DIR, on a volume, which takes milliseconds where compiling
them takes seconds. Where there is no such volume they are compiled at every start.

Arguments that begin with a flag are those of `vc-scheduler`, so the image can stand in its place: `vcscheduler run` is
what they are for. Anything else is a `vcscheduler` command, such as `simulate`.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

BAKED = Path(__file__).parent / "kernels"


def place_kernels(baked: Path, folder: Path) -> str:
    """Copy the kernels; what went wrong, "" if nothing did."""
    try:
        shutil.copytree(baked, folder, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        return f"the compiled kernels cannot be put into {folder}, starting takes some seconds longer: {error}"
    return ""


def command_line(arguments: Sequence[str]) -> list[str]:
    """The arguments of `vcscheduler`."""
    if not arguments or arguments[0].startswith("-"):
        return ["run", *arguments]
    return list(arguments)


def main() -> None:
    problem = place_kernels(BAKED, Path(os.environ["NUMBA_CACHE_DIR"]))
    if problem:
        print(problem, file=sys.stderr)
    sys.argv = ["vcscheduler", *command_line(sys.argv[1:])]
    from vcscheduler.__main__ import main as vcscheduler

    vcscheduler()


if __name__ == "__main__":
    main()
