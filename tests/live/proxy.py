"""A proxy on loopback between a scheduler and its API server that makes what can go wrong go wrong.

Which request meets which fault is drawn at random from a seed. The proxy also keeps the books that a server does not:
how many bindings of each pod were carried out.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import threading
from collections import Counter
from pathlib import Path

import aiohttp
from aiohttp import web

ANSWERS = (409, 429, 500, 503)
_SKIPPED = frozenset(("transfer-encoding", "content-length", "connection", "content-encoding"))


class _Cut(Exception):
    """The connection to the client is to be closed at once."""


class FaultProxy:
    """Runs in a thread of its own from `start` to `stop`.

    Args:
        rate: which part of the requests, and of the watch events, meets a fault.
        budget: how many faults there are; then the proxy is honest.
        longest_delay: seconds.
    """

    def __init__(
        self, upstream: str, ca: Path, seed: int, rate: float = 0.2, budget: int = 0, longest_delay: float = 0.3
    ):
        self.rate = rate
        self.budget = budget
        self.faults: Counter[str] = Counter()
        self.bindings: Counter[str] = Counter()
        self.requests = 0
        self.url = ""
        self._upstream = upstream
        self._tls = ssl.create_default_context(cafile=str(ca))
        self._random = random.Random(seed)
        self._longest_delay = longest_delay
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fault-proxy", daemon=True)
        self._held = threading.Event()
        self._held.set()
        self._expired = False
        self._watches: dict[int, web.Request] = {}
        self._session: aiohttp.ClientSession | None = None
        self._runner: web.AppRunner | None = None

    @property
    def injected(self) -> int:
        return self.faults.total()

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(10.0), "the proxy did not start"

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(20.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10.0)

    def _run(self) -> None:
        self._loop.run_until_complete(self._open())
        self._ready.set()
        self._loop.run_forever()
        self._loop.close()

    async def _open(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._tls, limit=0), auto_decompress=False
        )
        app = web.Application(client_max_size=16 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.5, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        addresses = self._runner.addresses
        self.url = f"http://127.0.0.1:{addresses[0][1]}"

    async def _close(self) -> None:
        assert self._runner is not None
        assert self._session is not None
        await self._session.close()
        await self._runner.cleanup()

    def _draws(self, *faults: str, rate: float | None = None) -> str:
        """A fault for this occasion, or none."""
        if self.budget <= self.injected or self._random.random() >= (self.rate if rate is None else rate):
            return ""
        fault = self._random.choice(faults)
        self.faults[fault] += 1
        return fault

    def hold(self) -> None:
        """Cut all watches and let no new one through."""
        self._held.clear()
        self._loop.call_soon_threadsafe(self._cut_watches)

    def release(self, expired: bool) -> None:
        """Let watches through again; those that resume are first told that their version is too old."""
        self._expired = expired
        self._held.set()

    def _cut_watches(self) -> None:
        for request in list(self._watches.values()):
            if request.transport is not None:
                request.transport.abort()

    async def _pause(self) -> None:
        await asyncio.sleep(self._random.random() * self._longest_delay)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        try:
            if request.query.get("watch"):
                self._watches[id(request)] = request
                return await self._watch(request)
            return await self._plain(request)
        except _Cut:
            if request.transport is not None:
                request.transport.abort()
            raise
        except aiohttp.ClientError as error:
            return web.Response(status=502, text=str(error))
        finally:
            self._watches.pop(id(request), None)

    async def _plain(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        fault = self._draws("answer", "answer late", "delay", "lose", "refuse", "cut body")
        if fault == "answer":
            return self._status(self._random.choice(ANSWERS))
        if fault == "refuse":
            raise _Cut
        if fault == "delay":
            await self._pause()
        status, headers, data = await self._forward(request, body)
        if fault == "lose":
            raise _Cut
        if fault == "answer late":
            # It was done, and yet the answer is that it failed.
            return self._status(self._random.choice((500, 503, 504)))
        if fault == "cut body":
            response = web.StreamResponse(status=status, headers=headers)
            response.content_length = len(data)
            await response.prepare(request)
            await response.write(data[: len(data) // 2])
            raise _Cut
        return web.Response(status=status, headers=headers, body=data)

    async def _forward(self, request: web.Request, body: bytes) -> tuple[int, dict[str, str], bytes]:
        assert self._session is not None
        async with self._session.request(
            request.method, self._upstream + request.raw_path, data=body or None, headers=_headers(request.headers)
        ) as answer:
            data = await answer.read()
            if request.path.endswith("/binding") and answer.status == 201:
                self.bindings[json.loads(body)["metadata"]["uid"]] += 1
            return answer.status, _headers(answer.headers), data

    def _status(self, code: int) -> web.Response:
        reason = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError"}.get(code, "ServiceUnavailable")
        document = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": "by the proxy"}
        headers = {"Retry-After": str(self._random.choice((0, 0, 1)))} if code == 429 else {}
        return web.json_response(document, status=code, headers=headers)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        while not self._held.is_set():
            await asyncio.sleep(0.02)
        if self._expired and "sendInitialEvents" not in request.query:
            return web.json_response({"kind": "Status", "code": 410, "reason": "Expired"}, status=410)
        fault = self._draws("watch refused", "watch expired", "watch delayed")
        if fault == "watch refused":
            return self._status(self._random.choice((429, 500, 503)))
        if fault == "watch expired" and "sendInitialEvents" not in request.query:
            return web.json_response({"kind": "Status", "code": 410, "reason": "Expired"}, status=410)
        if fault == "watch delayed":
            await self._pause()
        assert self._session is not None
        async with self._session.get(
            self._upstream + request.raw_path,
            headers=_headers(request.headers),
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:
            response = web.StreamResponse(status=answer.status, headers=_headers(answer.headers))
            await response.prepare(request)
            complete = "sendInitialEvents" not in request.query
            rest = b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    await self._pass_on(response, line + b"\n", complete)
                    complete = complete or b'"k8s.io/initial-events-end":"true"' in line
            await response.write_eof()
            return response

    async def _pass_on(self, response: web.StreamResponse, line: bytes, complete: bool) -> None:
        """One event of a watch. What belongs to the first list is never dropped: no client could notice."""
        if not complete:
            if self._draws("list cut", rate=self.rate / 50):
                raise _Cut
            await response.write(line)
            return
        fault = self._draws("drop", "repeat", "cut event", "expire", "delay event", "end", rate=self.rate / 2)
        if fault == "drop" and b'"type":"BOOKMARK"' not in line:
            return
        if fault == "delay event":
            await self._pause()
        if fault == "cut event":
            await response.write(line[: len(line) // 2])
            raise _Cut
        if fault == "expire":
            status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old, says the proxy"}
            await response.write(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
            raise _Cut
        await response.write(line)
        if fault == "repeat":
            await response.write(line)
        if fault == "end":
            raise _Cut


def _headers(headers: object) -> dict[str, str]:
    items = headers.items()  # type: ignore[attr-defined]
    return {name: value for name, value in items if name.lower() not in _SKIPPED and name.lower() != "host"}
