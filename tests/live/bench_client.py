"""The measuring side of the live benchmark: many requests at a time, and a watch that notes when pods get a node."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import aiohttp
import msgspec

from live.api import Document
from live.kubeenv import ControlPlane
from live.replica import samples

PODS = "/api/v1/namespaces/default/pods"
IN_FLIGHT = 32


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Status(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _Event(msgspec.Struct):
    type: str
    object: _Pod


class Client:
    """Requests as the administrator, 32 at a time."""

    def __init__(self, plane: ControlPlane) -> None:
        connector = aiohttp.TCPConnector(limit=0, ssl=ssl.create_default_context(cafile=str(plane.ca)))
        self._base = plane.url
        self._session = aiohttp.ClientSession(
            connector=connector, headers={"Authorization": f"Bearer {plane.token}"}, read_bufsize=2**20
        )
        self.bound: dict[str, float] = {}
        """Pods that have a node, and when that was seen."""
        self.running: set[str] = set()
        self._watch: asyncio.Task[None] | None = None

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            with suppress(asyncio.CancelledError):
                await self._watch
        await self._session.close()

    async def call(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> bytes:
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Content-Type": content_type}
        async with self._session.request(method, self._base + path, data=data, headers=headers) as answer:
            content = await answer.read()
            if answer.status >= 300:
                raise RuntimeError(f"{method} {path}: {answer.status}: {content[:500].decode(errors='replace')}")
            return content

    async def all(self, method: str, work: Iterable[tuple[str, Document]]) -> float:
        """Many requests; how many seconds they took."""
        items = iter(work)
        began = time.monotonic()

        async def some() -> None:
            for path, body in items:
                await self.call(method, path, body)

        await asyncio.gather(*(some() for _ in range(IN_FLIGHT)))
        return time.monotonic() - began

    async def create(self, path: str, documents: Iterable[Document]) -> float:
        return await self.all("POST", ((path, each) for each in documents))

    async def clear_pods(self) -> None:
        await self.call("DELETE", f"{PODS}?gracePeriodSeconds=0")
        await self.call("DELETE", "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups")
        await self.call("DELETE", "/api/v1/namespaces/default/events")
        while json.loads(await self.call("GET", f"{PODS}?limit=1"))["items"]:
            await asyncio.sleep(0.2)
        self.bound.clear()
        self.running.clear()

    # --- watching -----------------------------------------------------------------------------------------------------

    async def watch(self) -> None:
        """Begin to note what happens to pods."""
        listed: dict[str, Any] = json.loads(await self.call("GET", f"{PODS}?limit=1"))
        self._watch = asyncio.ensure_future(self._follow(listed["metadata"]["resourceVersion"]))

    async def _follow(self, version: str) -> None:
        decoder = msgspec.json.Decoder(_Event)
        while True:
            path = f"{PODS}?watch=true&resourceVersion={version}"
            timeout = aiohttp.ClientTimeout(total=None)
            async with self._session.get(self._base + path, timeout=timeout) as answer:
                assert answer.status == 200, answer.status
                rest = b""
                async for chunk in answer.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    now = time.monotonic()
                    for line in lines:
                        event = decoder.decode(line)
                        assert event.type != "ERROR", line
                        version = self._note(event, now)

    def _note(self, event: _Event, now: float) -> str:
        pod = event.object
        name = pod.metadata.name
        if event.type == "DELETED":
            self.bound.pop(name, None)
            self.running.discard(name)
        elif pod.spec.node_name:
            self.bound.setdefault(name, now)
            if pod.status.phase == "Running":
                self.running.add(name)
        return pod.metadata.resource_version

    async def until_bound(self, names: Iterable[str], timeout: float) -> list[float]:
        """When each of the pods was seen with a node, in order of time."""
        names = list(names)
        await self._until(lambda: all(name in self.bound for name in names), timeout, "pods to be bound")
        return sorted(self.bound[name] for name in names)

    async def until_running(self, count: int, timeout: float) -> None:
        await self._until(lambda: len(self.running) >= count, timeout, f"{count} pods to run")

    async def _until(self, done: Any, timeout: float, what: str) -> None:
        end = time.monotonic() + timeout
        while not done():
            if time.monotonic() > end:
                raise RuntimeError(f"waited {timeout:g} s in vain for {what}: {len(self.bound)} bound")
            await asyncio.sleep(0.01)

    # --- what the server counts ---------------------------------------------------------------------------------------

    async def requests(self) -> dict[str, int]:
        """How often what was written since the server began, by resource and subresource, successes only."""
        found: dict[str, int] = {}
        for name, value in samples((await self.call("GET", "/metrics")).decode()).items():
            if not name.startswith("apiserver_request_total{"):
                continue
            labels = dict(part.partition("=")[::2] for part in name[name.index("{") + 1 : -1].split(","))
            verb, code = labels["verb"].strip('"'), labels["code"].strip('"')
            if verb in ("POST", "PUT", "PATCH", "APPLY") and code.startswith("2"):
                key = f"{labels['resource']}/{labels['subresource']}".replace('"', "").rstrip("/")
                found[key] = found.get(key, 0) + int(value)
        return found
