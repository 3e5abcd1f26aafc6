"""Sources of node load that are servers: Prometheus, the custom metrics of the Kubernetes API, Elasticsearch.

Each asks for all nodes at once. Only the standard library is used: it is one request every half minute.
"""

from __future__ import annotations

import base64
import json
import math
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from http.client import HTTPException
from os import environ
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlencode

import msgspec

from vcscheduler.objects.meta import Time
from vcscheduler.objects.quantity import QuantityError, parse_quantity
from vcscheduler.plugins.usage.load import PERIOD, LoadSourceError, NodeLoad

T = TypeVar("T")

_TIMEOUT = 60.0
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_CPU_QUERY = (
    f'100 * (1 - avg by (instance) (avg_over_time(irate(node_cpu_seconds_total{{mode="idle"}}[5m])[{PERIOD}:30s])))'
)
_MEMORY_QUERY = f"100 * avg_over_time((1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)[{PERIOD}:30s])"


class ServerStatusError(LoadSourceError):
    """The server answered with an error status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Server:
    """JSON over HTTP from one address."""

    def __init__(
        self, settings: Mapping[str, str], headers: Mapping[str, str] | None = None, cafile: Path | None = None
    ) -> None:
        self._address = settings.get("address", "").rstrip("/")
        if not self._address.startswith(("http://", "https://")):
            found = f"found {self._address!r}" if self._address else "missing"
            raise LoadSourceError(f"metrics.address: {found}; expected an address such as http://prometheus:9090")
        self._headers = {"Accept": "application/json", **(headers or {})}
        self._tls: ssl.SSLContext | None = None
        if self._address.startswith("https://"):
            self._tls = ssl.create_default_context(cafile=cafile)
            if settings.get("tls.insecureSkipVerify") == "true":
                self._tls.check_hostname = False
                self._tls.verify_mode = ssl.CERT_NONE

    def ask(self, path: str, answer: type[T], body: object = None) -> T:
        url = self._address + path
        headers = self._headers
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers = {**headers, "Content-Type": "application/json"}
        try:
            request = urllib.request.Request(url, data=data, headers=dict(headers))
            with urllib.request.urlopen(request, timeout=_TIMEOUT, context=self._tls) as response:
                text = response.read()
        except urllib.error.HTTPError as error:
            with error:
                raise ServerStatusError(f"{url}: {error.code} {error.reason}", error.code) from error
        except (OSError, HTTPException, ValueError) as error:
            raise LoadSourceError(f"{url}: {error}") from error
        try:
            return msgspec.json.decode(text, type=answer)
        except msgspec.DecodeError as error:
            raise LoadSourceError(f"{url}: unexpected answer: {error}") from error


class _Sample(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Samples(msgspec.Struct):
    result: list[_Sample]


class _QueryAnswer(msgspec.Struct):
    data: _Samples


class PrometheusSource:
    """The label ``instance`` names the node, with or without a port."""

    local = False

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._server = Server(settings)

    def read(self, nodes: Sequence[str], now: datetime) -> dict[str, NodeLoad]:
        cpu = self._query(_CPU_QUERY, now)
        memory = self._query(_MEMORY_QUERY, now)
        return _joined(nodes, cpu, memory, now)

    def _query(self, query: str, now: datetime) -> dict[str, float]:
        path = "/api/v1/query?" + urlencode({"query": query, "time": now.timestamp()})
        samples = self._server.ask(path, _QueryAnswer).data.result
        values: dict[str, float] = {}
        for instance, text in sorted((s.metric.get("instance", ""), s.value[1]) for s in samples):
            try:
                value = float(text)
            except ValueError as error:
                raise LoadSourceError(f"{path}: {text!r} of {instance} is not a number") from error
            if math.isfinite(value):
                host, _, port = instance.rpartition(":")
                values[instance] = value
                if port.isdigit():
                    values.setdefault(host, value)
        return values


class _Named(msgspec.Struct):
    name: str


class _MetricValue(msgspec.Struct, rename="camel"):
    described_object: _Named
    value: str
    timestamp: Time


class _MetricValues(msgspec.Struct):
    items: list[_MetricValue]


class PrometheusAdaptorSource:
    """Custom metrics of nodes from the Kubernetes API: that at ``address`` (such as a proxy's), or the one of the
    cluster in which the scheduler runs."""

    local = False

    def __init__(self, settings: Mapping[str, str]) -> None:
        if settings.get("address"):
            self._server = Server(settings)
            return
        host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "443")
        try:
            token = (_SERVICE_ACCOUNT / "token").read_text().strip()
        except OSError:
            token = ""
        if not host or not token:
            raise LoadSourceError(
                "metrics.address: missing; outside of a cluster, type prometheus_adaptor needs an address "
                "at which the Kubernetes API answers, such as that of kubectl proxy"
            )
        host = f"[{host}]" if ":" in host else host
        self._server = Server(
            {**settings, "address": f"https://{host}:{port}"},
            {"Authorization": f"Bearer {token}"},
            _SERVICE_ACCOUNT / "ca.crt",
        )

    def read(self, nodes: Sequence[str], now: datetime) -> dict[str, NodeLoad]:
        cpu = self._metric("node_cpu_usage_avg")
        memory = self._metric("node_memory_usage_avg")
        times = {item.described_object.name: item.timestamp for item in cpu}
        joined = _joined(nodes, _percent(cpu), _percent(memory), now)
        return {name: replace(load, time=times[name]) for name, load in joined.items()}

    def _metric(self, name: str) -> list[_MetricValue]:
        path = "/apis/custom.metrics.k8s.io/{}/nodes/*/" + name
        try:
            return self._server.ask(path.format("v1beta2"), _MetricValues).items
        except ServerStatusError as error:
            if error.status != 404:
                raise
            return self._server.ask(path.format("v1beta1"), _MetricValues).items


def _percent(values: Iterable[_MetricValue]) -> dict[str, float]:
    try:
        return {v.described_object.name: float(parse_quantity(v.value)) * 100 for v in values}
    except QuantityError as error:
        raise LoadSourceError(f"custom metrics: {error}") from error


class _Average(msgspec.Struct):
    value: float | None = None


class _Bucket(msgspec.Struct):
    key: str
    cpu: _Average
    memory: _Average


class _Buckets(msgspec.Struct):
    buckets: list[_Bucket]


class _Aggregations(msgspec.Struct):
    nodes: _Buckets


class _SearchAnswer(msgspec.Struct):
    aggregations: _Aggregations


class ElasticsearchSource:
    """What Metricbeat wrote, averaged by host name."""

    local = False

    def __init__(self, settings: Mapping[str, str]) -> None:
        user, password = settings.get("elasticsearch.username", ""), settings.get("elasticsearch.password", "")
        headers = {}
        if user:
            pair = base64.b64encode(f"{user}:{password}".encode()).decode()
            headers["Authorization"] = f"Basic {pair}"
        self._server = Server(settings, headers)
        self._index = settings.get("elasticsearch.index") or "metricbeat-*"
        self._host_field = settings.get("elasticsearch.hostnameFieldName") or "host.hostname"

    def read(self, nodes: Sequence[str], now: datetime) -> dict[str, NodeLoad]:
        if not nodes:
            return {}
        averages = {
            "cpu": {"avg": {"field": "host.cpu.usage"}},
            "memory": {"avg": {"field": "system.memory.actual.used.pct"}},
        }
        body = {
            "size": 0,
            "query": {
                "bool": {
                    "filter": [
                        {"range": {"@timestamp": {"gte": f"now-{PERIOD}", "lt": "now"}}},
                        {"terms": {self._host_field: list(nodes)}},
                    ]
                }
            },
            "aggs": {
                "nodes": {"terms": {"field": self._host_field, "size": len(nodes)}, "aggs": averages},
            },
        }
        path = f"/{quote(self._index, safe='*,-')}/_search"
        buckets = self._server.ask(path, _SearchAnswer, body).aggregations.nodes.buckets
        cpu = {b.key: b.cpu.value * 100 for b in buckets if b.cpu.value is not None}
        memory = {b.key: b.memory.value * 100 for b in buckets if b.memory.value is not None}
        return _joined(nodes, cpu, memory, now)


def _joined(
    nodes: Sequence[str], cpu: Mapping[str, float], memory: Mapping[str, float], time: datetime
) -> dict[str, NodeLoad]:
    """Nodes of which both are known."""
    return {n: NodeLoad(cpu[n], memory[n], time) for n in nodes if n in cpu and n in memory}
