"""Structured logs on standard error: one line a record, as ``key=value`` or as JSON, and how much of them.

Levels follow klog's habit: up to -v=3 what happens (info), from 4 on also why (debug). Whatever looks like a
credential is masked: error texts of other libraries may quote requests.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO

FORMATS = ("logfmt", "json")
_DEBUG_FROM = 4
_PLAIN = re.compile(r"[^\s\"=\\]+")
_SECRET = re.compile(
    r"(?i)\b(bearer\s+|basic\s+|(?:token|password|passwd|secret|client-key-data|api[_-]?key)[\"']?\s*[=:]\s*[\"']?)"
    r"[^\s\"',;&]+"
)
_LEVELS = {"CRITICAL": "fatal", "ERROR": "error", "WARNING": "warning", "INFO": "info", "DEBUG": "debug"}


def masked(text: str) -> str:
    """The text without what looks like a credential."""
    return _SECRET.sub(r"\1***", text)


class _Formatter(logging.Formatter):
    """Common to both formats: which fields a record has."""

    def fields(self, record: logging.LogRecord) -> dict[str, str]:
        at = datetime.fromtimestamp(record.created, UTC)
        found = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": _LEVELS.get(record.levelname, record.levelname.lower()),
            "logger": record.name,
            "msg": masked(record.getMessage()),
        }
        if record.exc_info and record.exc_info[0] is not None:
            found["error"] = masked(self.formatException(record.exc_info))
        return found


class Logfmt(_Formatter):
    """``time=… level=info logger=… msg="…"``."""

    def format(self, record: logging.LogRecord) -> str:
        return " ".join(f"{key}={_quoted(value)}" for key, value in self.fields(record).items())


class Json(_Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(self.fields(record), ensure_ascii=False)


def _quoted(value: str) -> str:
    return value if _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)


class LogLevel:
    """How much is logged; may be raised for a while."""

    def __init__(self, verbosity: int) -> None:
        self._usual = verbosity
        self._timer: threading.Timer | None = None
        self.verbosity = verbosity
        self._set(verbosity)

    def set_for(self, verbosity: int, seconds: float) -> None:
        """Until `seconds` have passed; a later call takes the place of this one."""
        self.close()
        self._set(verbosity)
        self._timer = threading.Timer(seconds, self._set, (self._usual,))
        self._timer.daemon = True
        self._timer.start()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _set(self, verbosity: int) -> None:
        self.verbosity = verbosity
        logging.getLogger("vcscheduler").setLevel(logging.DEBUG if verbosity >= _DEBUG_FROM else logging.INFO)


def set_up(form: str, verbosity: int, stream: TextIO | None = None) -> LogLevel:
    """Send all logs of the process to `stream`, standard error by default. `form`: one of `FORMATS`."""
    make: Callable[[], logging.Formatter] = Json if form == "json" else Logfmt
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(make())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    ours = logging.getLogger("vcscheduler")
    ours.handlers = []
    ours.propagate = True
    return LogLevel(verbosity)
