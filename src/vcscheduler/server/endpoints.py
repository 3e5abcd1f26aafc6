"""What a process offers over HTTP, put together from its options: who listens where and what is shown."""

from __future__ import annotations

import logging
import os
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from starlette.applications import Starlette

from vcscheduler.config import SchedulerOptions
from vcscheduler.server.http import (
    AddressError,
    HttpServer,
    Listener,
    Tls,
    View,
    bind,
    bind_unix,
    check_tls,
    debug_app,
    health_app,
    log_level_app,
    metrics_app,
)
from vcscheduler.server.logs import LogLevel
from vcscheduler.server.series import Series, expose
from vcscheduler.server.views import cache_view, cycle_view, job_view, jobs_view, queues_view

if TYPE_CHECKING:
    from vcscheduler.server.process import SchedulerProcess

log = logging.getLogger(__name__)

_SCRAPE_PATIENCE = 3.0
"""Seconds that a scrape waits for the cycle under way; after that it gets the numbers of the scrape before."""
_VIEW_PATIENCE = 15.0
T = TypeVar("T")


class Endpoints:
    """All listeners of a process. Addresses are taken when it is made.

    Raises:
        AddressError: an address cannot be listened on, or a TLS file cannot be used.
    """

    def __init__(self, options: SchedulerOptions, process: SchedulerProcess, level: LogLevel) -> None:
        self._process = process
        self._level = level
        self._last: list[Series] = []
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self.listeners: dict[str, Listener] = {}
        try:
            self._listen(options)
        except AddressError:
            self._close_sockets()
            raise
        self._server = HttpServer(list(self.listeners.values()))

    def _listen(self, options: SchedulerOptions) -> None:
        if options.enable_metrics:
            self._add("metrics", metrics_app(self.metrics_text), options.listen_address, "listen-address")
        if options.enable_healthz:
            files = (options.ca_cert_file, options.tls_cert_file, options.tls_private_key_file)
            tls = Tls(*files) if all(files) else None
            if tls is not None:
                check_tls(tls)
            app = health_app(self._process.live_problem, self._process.ready_problem)
            self._add("health", app, options.healthz_address, "healthz-address", tls)
        if options.debug_address:
            try:
                self._add("debug", debug_app(self._views()), options.debug_address, "debug-address")
            except AddressError as error:
                # Nobody asked for the default address; a second scheduler on the machine must start all the same.
                if options.debug_address != SchedulerOptions().debug_address:
                    raise
                log.warning("there are no debug views: %s", error)
        path = debug_socket()
        try:
            self.listeners["log level"] = Listener("log level", log_level_app(self._level), bind_unix(path))
        except AddressError as error:
            # The reference goes on without it too.
            log.warning("the log level cannot be changed while running: %s", error)

    def _add(self, name: str, app: Starlette, address: str, flag: str, tls: Tls | None = None) -> None:
        self.listeners[name] = Listener(name, app, bind(address, flag), tls)

    def start(self) -> None:
        self._server.start()
        for name, listener in self.listeners.items():
            if name != "log level":
                log.info("%s on port %d", name, listener.port)

    def close(self) -> None:
        self._server.stop()
        self._close_sockets()
        self._level.close()

    def _close_sockets(self) -> None:
        for listener in self.listeners.values():
            listener.socket.close()

    # --- metrics ------------------------------------------------------------------------------------------------------

    def metrics_text(self) -> str:
        """Everything for Prometheus: the scheduler's own, then the process's."""
        metrics = self._process.metrics
        if metrics is not None:
            try:
                self._last = self._process.bell.call(metrics.read).result(_SCRAPE_PATIENCE)
            except (TimeoutError, CancelledError):
                log.debug("a cycle under way keeps a scrape waiting; it gets the numbers of the one before")
        return expose(series.family() for series in self._last) + generate_latest(self._registry).decode()

    # --- views --------------------------------------------------------------------------------------------------------

    def _views(self) -> dict[str, tuple[str, View]]:
        process = self._process
        return {
            "/debug/cache": (
                "how much of everything there is",
                lambda _: _result(process.bell.call(lambda: cache_view(process.cache))),
            ),
            "/debug/session": (
                "the last cycle and where its time went",
                lambda _: _result(process.bell.call(lambda: cycle_view(process.loop))),
            ),
            "/debug/queues": ("where each queue stands", lambda _: _result(process.loop.inspect(queues_view))),
            "/debug/jobs": (
                "every job in a line",
                lambda _: _result(process.bell.call(lambda: jobs_view(process.cache))),
            ),
            "/debug/jobs/{namespace}/{name}": ("how one job stands, why it waits, what happened to it", self._job),
        }

    def _job(self, at: dict[str, str]) -> object:
        process, id = self._process, f"{at['namespace']}/{at['name']}"
        return _result(process.loop.inspect(lambda ssn: job_view(ssn, id, process.stories)))


def _result(future: Future[T]) -> T:
    """
    Raises:
        TimeoutError: it took too long, or the scheduler is ending.
    """
    try:
        return future.result(_VIEW_PATIENCE)
    except CancelledError as error:
        raise TimeoutError from error
    finally:
        future.cancel()


def debug_socket() -> Path:
    """Where the reference's socket for the log level lives (spec 07 §6)."""
    return Path(os.environ.get("DEBUG_SOCKET_DIR") or "/tmp/klog-socks") / "klog-klog.sock"
