"""The way to the API server: configuration and credentials by the official client, requests by aiohttp.

The client's typed calls cost three times the CPU and build objects that nothing reads, so only its configuration
(kubeconfig, in-cluster, exec plugins, OIDC), TLS and token handling are used; bodies are bytes in and out.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Protocol, cast
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from vcscheduler.cluster.live.failures import ApiFailure, failure_of, no_answer

log = logging.getLogger(__name__)

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"

_CONNECT_SECONDS: Final = 10.0
_RELOAD_PAUSE: Final = 5.0
"""Credentials are not loaded again sooner than this after the last time."""


class ConnectionFailed(Exception):
    """There is no usable configuration for reaching a cluster."""


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach the cluster.

    kubeconfig: path of a kubeconfig file; empty: the pod's service account if there is one, else ``KUBECONFIG`` or
        ``~/.kube/config``.
    context: name of a context of that file; empty: its current one.
    server: overrides the address of the API server.
    """

    kubeconfig: str = ""
    context: str = ""
    server: str = ""
    user_agent: str = "vcscheduler"


class _Configuration(Protocol):
    """As much of the official client's configuration as is used here."""

    host: str
    ssl_ca_cert: str | None
    ca_cert_data: str | bytes | None
    cert_file: str | None
    key_file: str | None
    verify_ssl: bool
    disable_strict_ssl_verification: bool
    tls_server_name: str | None
    proxy: str | None

    async def get_api_key_with_prefix(self, identifier: str, alias: str | None = None) -> str | None: ...


class Connection:
    """Requests to one API server. Belongs to the event loop that opened it.

    Args:
        limit: how many requests other than watches may be under way at a time.
        timeout: seconds until a request counts as lost.
    """

    def __init__(self, access: Access, limit: int = 36, timeout: float = 15.0) -> None:
        self._access = access
        self._limit = limit
        self._timeout = timeout
        self._configuration: _Configuration | None = None
        self._ssl: ssl.SSLContext | None = None
        self._session: aiohttp.ClientSession | None = None
        self._watch_session: aiohttp.ClientSession | None = None
        self._base = ""
        self._proxy: str | None = None
        self._loaded_at = 0.0
        self._reloading = asyncio.Lock()

    async def open(self) -> None:
        """Load the configuration.

        Raises:
            ConnectionFailed: there is none, or it cannot be used.
        """
        self._configuration = await self._load()
        self._base = (self._access.server or self._configuration.host).rstrip("/")
        self._proxy = self._configuration.proxy or _proxy_of_environment(self._base)
        self._ssl = _tls(self._configuration)
        self._session = self._new_session(self._limit)
        self._watch_session = self._new_session(0)

    async def close(self) -> None:
        for session in (self._session, self._watch_session):
            if session is not None:
                await session.close()

    @property
    def server(self) -> str:
        return self._base

    def _new_session(self, limit: int) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=limit, ssl=self._ssl if self._ssl is not None else True)
        return aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": self._access.user_agent, "Accept": JSON, "Accept-Encoding": "identity"},
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=2**20,
        )

    async def _load(self) -> _Configuration:
        from kubernetes.aio import client, config

        access = self._access
        configuration = client.Configuration()
        in_cluster = not access.kubeconfig and bool(os.environ.get("KUBERNETES_SERVICE_HOST"))
        try:
            if in_cluster:
                config.load_incluster_config(client_configuration=configuration)
            else:
                await config.load_kube_config(
                    config_file=access.kubeconfig or None,
                    context=access.context or None,
                    client_configuration=configuration,
                    persist_config=False,
                )
        except (config.ConfigException, OSError, KeyError, TypeError, ValueError) as error:
            where = "the pod's service account" if in_cluster else access.kubeconfig or "KUBECONFIG or ~/.kube/config"
            raise ConnectionFailed(f"cannot reach a cluster by {where}: {error}") from error
        self._loaded_at = time.monotonic()
        return cast(_Configuration, configuration)

    async def _renew_credentials(self) -> bool:
        """Load credentials again, such as a token that has run out. False if that was only just done."""
        async with self._reloading:
            if time.monotonic() - self._loaded_at < _RELOAD_PAUSE:
                return False
            try:
                self._configuration = await self._load()
            except ConnectionFailed as error:
                log.error("%s", error)
                return False
            if self._ssl is not None and self._configuration.cert_file:
                self._ssl.load_cert_chain(self._configuration.cert_file, self._configuration.key_file)
            return True

    async def _headers(self, content_type: str | None) -> dict[str, str]:
        assert self._configuration is not None, "the connection is not open"
        token = await self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        headers = {"Authorization": token} if token else {}
        if content_type is not None:
            headers["Content-Type"] = content_type
        return headers

    async def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = JSON,
        query: str = "",
        timeout: float | None = None,
    ) -> bytes:
        """One request; the body of the answer.

        Raises:
            ApiFailure: any answer but success, or none.
        """
        for last in (False, True):
            try:
                return await self._call_once(method, path, body, content_type, query, timeout)
            except ApiFailure as failure:
                # 401 is answered before anything is done, so sending again is safe.
                if failure.status != 401 or last or not await self._renew_credentials():
                    raise
        raise AssertionError("not reached")

    async def _call_once(
        self, method: str, path: str, body: bytes | None, content_type: str, query: str, timeout: float | None
    ) -> bytes:
        assert self._session is not None, "the connection is not open"
        configuration = self._configuration
        assert configuration is not None
        headers = await self._headers(content_type if body is not None else None)
        limits = aiohttp.ClientTimeout(total=timeout or self._timeout, sock_connect=_CONNECT_SECONDS)
        try:
            async with self._session.request(
                method,
                self._url(path, query),
                data=body,
                headers=headers,
                timeout=limits,
                proxy=self._proxy,
                server_hostname=configuration.tls_server_name,
                allow_redirects=False,
            ) as response:
                data = await response.read()
                if response.status >= 300:
                    raise failure_of(method, path, response.status, data, response.headers.get("Retry-After"))
                return data
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise no_answer(method, path, error, sent=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise no_answer(method, path, error, sent=True) from error

    @asynccontextmanager
    async def stream(self, path: str, query: str, silence: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """A watch: its bytes as they come, until the server or the network ends it.

        Args:
            silence: seconds without a byte after which the connection counts as dead.

        Raises:
            ApiFailure: the request was refused, or the connection was cut.
        """
        assert self._watch_session is not None, "the connection is not open"
        assert self._configuration is not None
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=silence)
        try:
            async with self._watch_session.get(
                self._url(path, query),
                headers=await self._headers(None),
                timeout=limits,
                proxy=self._proxy,
                server_hostname=self._configuration.tls_server_name,
                allow_redirects=False,
            ) as response:
                if response.status >= 300:
                    data = await response.read()
                    if response.status == 401:
                        await self._renew_credentials()
                    raise failure_of("GET", path, response.status, data, response.headers.get("Retry-After"))
                yield response.content.iter_any()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise no_answer("GET", path, error, sent=True) from error

    def _url(self, path: str, query: str) -> URL:
        return URL(f"{self._base}{path}?{query}" if query else f"{self._base}{path}", encoded=True)


def _tls(configuration: _Configuration) -> ssl.SSLContext | None:
    """The TLS settings as the official client makes them; None for plain HTTP."""
    if configuration.host.startswith("http://"):
        return None
    from kubernetes.aio.client.rest import RESTClientObject

    try:
        return cast(ssl.SSLContext, RESTClientObject(configuration).ssl_context)
    except (OSError, ssl.SSLError, ValueError) as error:
        raise ConnectionFailed(f"the TLS settings for {configuration.host} cannot be used: {error}") from error


def _proxy_of_environment(server: str) -> str | None:
    """What HTTPS_PROXY, HTTP_PROXY and NO_PROXY say. Asked once: aiohttp's own way asks in threads, at each request."""
    address = URL(server)
    if address.host is None or proxy_bypass(address.host):
        return None
    return getproxies().get(address.scheme)


def query_of(parameters: Mapping[str, str]) -> str:
    """A query string; keys and values that need no quoting are the rule, so quoting is left to yarl."""
    return URL.build(query=dict(parameters)).raw_query_string
