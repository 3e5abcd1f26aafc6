"""The listeners of a scheduler: metrics, health, debug views, the log level's socket. One thread for all of them.

Addresses are bound before anything else happens, so that one in use is an error at the start and not a line in a log.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from vcscheduler.config import DurationError, parse_duration
from vcscheduler.server.logs import LogLevel
from vcscheduler.server.series import CONTENT_TYPE

log = logging.getLogger(__name__)

_CIPHERS = "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"
_SHUTDOWN_SECONDS = 5


class AddressError(Exception):
    """An address or file of a listener that cannot be used; the message names the flag."""


@dataclass(frozen=True, slots=True)
class Tls:
    """The health server's files: CA of clients that show a certificate, own certificate and key."""

    ca: str
    certificate: str
    key: str


@dataclass(frozen=True, slots=True)
class Listener:
    """An application on a bound socket."""

    name: str
    app: Starlette
    socket: socket.socket
    tls: Tls | None = None

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])


# --- addresses --------------------------------------------------------------------------------------------------------


def bind(address: str, flag: str) -> socket.socket:
    """A listening socket for ``host:port``; without a host it listens everywhere.

    Raises:
        AddressError: that is no address, or it cannot be had.
    """
    host, separator, port_text = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not separator or not port_text.isdigit() or int(port_text) > 65535:
        raise AddressError(f"--{flag}: expected HOST:PORT or :PORT, found {address!r}")
    port = int(port_text)
    try:
        if not host and socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise AddressError(f"--{flag}: cannot listen on {address}: {error.strerror or error}") from error


def bind_unix(path: Path) -> socket.socket:
    """A socket that only this user may connect to.

    Raises:
        AddressError: it cannot be made.
    """
    listening = socket.socket(socket.AF_UNIX)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        mask = os.umask(0o077)
        try:
            listening.bind(str(path))
        finally:
            os.umask(mask)
        listening.listen()
    except OSError as error:
        listening.close()
        raise AddressError(f"cannot listen on {path}: {error.strerror or error}") from error
    return listening


def check_tls(tls: Tls) -> None:
    """
    Raises:
        AddressError: a file cannot be read or does not hold what it should.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for flag, name in (("ca-cert-file", tls.ca), ("tls-cert-file", tls.certificate), ("tls-private-key-file", tls.key)):
        if not os.access(name, os.R_OK):
            raise AddressError(f"--{flag}: {name} cannot be read")
    try:
        context.load_verify_locations(tls.ca)
    except (OSError, ssl.SSLError) as error:
        raise AddressError(f"--ca-cert-file: {tls.ca} holds no certificates: {error}") from error
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise AddressError(f"--tls-cert-file, --tls-private-key-file: no certificate and its key: {error}") from error


# --- applications -----------------------------------------------------------------------------------------------------

Check = Callable[[], str]
"""Answers "" if all is well, else what is not."""


def metrics_app(render: Callable[[], str]) -> Starlette:
    def metrics(_request: Request) -> Response:
        return Response(render(), media_type=CONTENT_TYPE)

    return Starlette(routes=[Route("/metrics", metrics)])


def health_app(live: Check, ready: Check) -> Starlette:
    """``/healthz`` asks nothing, as the reference's; ``/livez`` and ``/readyz`` do."""

    def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok")

    def checked(check: Check) -> Callable[[Request], Response]:
        def endpoint(_request: Request) -> Response:
            problem = check()
            return PlainTextResponse(problem or "ok", 503 if problem else 200)

        return endpoint

    return Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/healthz/ping", healthz),
            Route("/livez", checked(live)),
            Route("/readyz", checked(ready)),
        ]
    )


class NoSuchThing(Exception):
    """Asked for something that does not exist."""


View = Callable[[dict[str, str]], object]
"""Plain data for the parameters of a path. May raise `NoSuchThing`, or TimeoutError if it took too long."""


def debug_app(views: dict[str, tuple[str, View]]) -> Starlette:
    """Views as JSON by path; ``/debug`` lists them. Each comes with what it shows."""

    def endpoint(view: View) -> Callable[[Request], Awaitable[Response]]:
        async def show(request: Request) -> Response:
            try:
                return _json(await run_in_threadpool(view, dict(request.path_params)))
            except NoSuchThing as error:
                return _json({"error": str(error)}, 404)
            except TimeoutError:
                return _json({"error": "the scheduler did not get round to it in time"}, 503)

        return show

    def index(_request: Request) -> Response:
        return _json({path: about for path, (about, _) in views.items()})

    routes = [Route(path, endpoint(view)) for path, (_, view) in views.items()]
    return Starlette(routes=[Route("/debug", index), Route("/debug/", index), *routes])


def log_level_app(level: LogLevel) -> Starlette:
    """The reference's socket: ``/getlevel``, ``/setlevel?level=4&duration=5m`` (spec 07 §6)."""

    def getlevel(_request: Request) -> Response:
        return PlainTextResponse(f"{level.verbosity}\n")

    def setlevel(request: Request) -> Response:
        text, duration = request.query_params.get("level", ""), request.query_params.get("duration", "")
        if not text.isdigit() or int(text) < 1:
            return PlainTextResponse(f"level: expected an integer above 0, found {text!r}\n", 400)
        try:
            seconds = parse_duration(duration)
        except DurationError as error:
            return PlainTextResponse(f"duration: {error}\n", 400)
        if seconds <= 0:
            return PlainTextResponse(f"duration: must be longer than 0, found {duration!r}\n", 400)
        level.set_for(int(text), seconds)
        return PlainTextResponse(f"log level {text} for {duration}\n")

    setting = Route("/setlevel", setlevel, methods=["GET", "POST", "PUT"])
    return Starlette(routes=[Route("/getlevel", getlevel), setting])


def _json(data: object, status: int = 200) -> Response:
    text = json.dumps(data, indent=2, ensure_ascii=False, default=str)
    return Response(text + "\n", status, media_type="application/json")


# --- serving ----------------------------------------------------------------------------------------------------------


class HttpServer:
    """Serves listeners in a thread of its own, until it is stopped."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._servers = [(uvicorn.Server(_settings(each)), each) for each in listeners]
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    def start(self) -> None:
        if self._servers:
            self._thread.start()

    def stop(self) -> None:
        for server, _ in self._servers:
            server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_SHUTDOWN_SECONDS + 2)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        await asyncio.gather(*(server.serve(sockets=[each.socket]) for server, each in self._servers))


def _settings(listener: Listener) -> uvicorn.Config:
    tls = listener.tls
    return uvicorn.Config(
        listener.app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        h11_max_incomplete_event_size=1 << 20,
        limit_concurrency=200,
        ssl_certfile=tls.certificate if tls else None,
        ssl_keyfile=tls.key if tls else None,
        ssl_ca_certs=tls.ca if tls else None,
        ssl_cert_reqs=ssl.CERT_OPTIONAL if tls else ssl.CERT_NONE,
        ssl_ciphers=_CIPHERS,
    )


__all__ = [
    "AddressError",
    "HttpServer",
    "Listener",
    "NoSuchThing",
    "Tls",
    "View",
    "bind",
    "bind_unix",
    "check_tls",
    "debug_app",
    "health_app",
    "log_level_app",
    "metrics_app",
]
