"""Entry point of the ``vcscheduler`` command and of ``python -m vcscheduler``."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Run the command line. A reader that closes the pipe early, such as ``head``, is no error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    from vcscheduler.cli.app import app

    try:
        app()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


if __name__ == "__main__":
    main()
