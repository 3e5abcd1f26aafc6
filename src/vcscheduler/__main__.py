"""Entry point of the ``vcscheduler`` command and of ``python -m vcscheduler``."""

from __future__ import annotations

import errno
import io
import os
import sys

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main() -> None:
    """Run the command line. A reader that closes the pipe early, such as ``head``, is no error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    from vcscheduler.cli.app import app
    from vcscheduler.cli.output import leaves_without_tidying

    try:
        try:
            app()
        finally:
            if sys.stdout is not None:  # closed with >&-
                sys.stdout.flush()
            if leaves_without_tidying():
                sys.stderr.flush()
                os._exit(0)
    except BrokenPipeError:
        _close_output()
        sys.exit(0)
    except OSError as error:
        if error.errno not in _DISK_FULL:
            raise
        _close_output()
        sys.stderr.write(f"error: standard output cannot be written: {error.strerror}\n")
        sys.exit(2)


def _close_output() -> None:
    """What is still waiting to be written would fail once more when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
