"""Measured load of nodes, collected beside the decisions (spec 02 §2.9, spec 05 §10).

A session sees what was collected before it opened. A local source is read on the spot, a server is asked by a thread
in the background, so that no session ever waits for one; its answer serves the next session.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from vcscheduler.config.durations import DurationError, parse_duration

if TYPE_CHECKING:
    from vcscheduler.framework.session import Session

log = logging.getLogger(__name__)

#: The only period for which load is kept.
PERIOD = "10m"
DEFAULT_INTERVAL = 30.0
STORE_KEY = "node load"


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """Average over the last ten minutes in percent of the node's capacity, and when that was measured."""

    cpu: float
    memory: float
    time: datetime


class LoadSourceError(Exception):
    """A source is not configured well, cannot be reached, or answers what nobody understands."""


class LoadSource(Protocol):
    @property
    def local(self) -> bool:
        """Whether reading takes no time worth speaking of, so that a session may do it."""

    def read(self, nodes: Sequence[str], now: datetime) -> dict[str, NodeLoad]:
        """The load of those of the nodes that it knows. ``now``: the time of measuring, where the source gives none.

        Raises:
            LoadSourceError: nothing could be read.
        """


SourceBuilder = Callable[[Mapping[str, str]], LoadSource]


class LoadCollector:
    """Asks a source at most every interval; lives as long as the scheduler.

    ``loads``: by node name, never changed in place. An error leaves the old values.
    """

    def __init__(self, build: SourceBuilder, loads: Mapping[str, NodeLoad] | None = None) -> None:
        self.loads: Mapping[str, NodeLoad] = dict(loads or {})
        self._build = build
        self._interval: float | None = None
        self._asked: datetime | None = None
        self._thread: threading.Thread | None = None

    def refresh(self, settings: Mapping[str, str], nodes: Callable[[], list[str]], now: datetime) -> None:
        """Ask if it is time to. ``settings``: the section ``metrics`` of the configuration; its interval is taken
        when the first question is asked, everything else anew each time."""
        if not settings.get("type"):
            return
        if self._interval is None:
            self._interval = interval_of(settings)
        if self._asked is not None and (now - self._asked).total_seconds() < self._interval:
            return
        if self._thread is not None and self._thread.is_alive():
            return
        self._asked = now
        try:
            source = self._build(settings)
        except LoadSourceError as error:
            log.error("node load: %s", error)
            return
        if source.local:
            self._read(source, nodes(), now)
        else:
            self._thread = threading.Thread(
                target=self._read, args=(source, nodes(), now), name="node load", daemon=True
            )
            self._thread.start()

    def wait(self, timeout: float | None = None) -> None:
        """Until the question that was asked last is answered."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _read(self, source: LoadSource, nodes: list[str], now: datetime) -> None:
        try:
            read = source.read(nodes, now)
        except LoadSourceError as error:
            log.error("node load: %s", error)
            return
        known = set(nodes)
        self.loads = {name: load for name, load in {**self.loads, **read}.items() if name in known}


def interval_of(settings: Mapping[str, str]) -> float:
    """Seconds between two questions, also taken for how long a pod that runs stays unmeasured."""
    try:
        seconds = parse_duration(settings.get("interval", ""))
    except DurationError:
        return DEFAULT_INTERVAL
    return seconds if seconds > 0 else DEFAULT_INTERVAL


def node_loads(ssn: Session) -> Mapping[str, NodeLoad]:
    """What is known of the load of the nodes, for one session."""
    # The sources are imported by whoever collects: most clusters never do.
    from vcscheduler.plugins.usage.sources import load_source

    collector = ssn.store.setdefault(STORE_KEY, LoadCollector(load_source))
    assert isinstance(collector, LoadCollector)
    collector.refresh(ssn.configuration.metrics, lambda: [node.name for node in ssn.table], ssn.now)
    return collector.loads
