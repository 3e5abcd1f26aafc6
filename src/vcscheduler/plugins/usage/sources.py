"""Which source the configuration names, and the one that is a file.

    metrics: {type: file, address: /etc/node-load.yaml}

    n1: {cpu: 42.5, memory: 61}
    n2: {cpu: 7, memory: 12.5, time: "2026-03-01T12:00:00Z"}

Percent of the node's capacity. An entry without a time counts as measured when it is read. Handy in simulations, and
where something else writes down what it measures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from vcscheduler.documents import Document, DocumentError, load_documents, nearest_name
from vcscheduler.plugins.usage.load import LoadSource, LoadSourceError, NodeLoad
from vcscheduler.plugins.usage.servers import ElasticsearchSource, PrometheusAdaptorSource, PrometheusSource

_SOURCES = ("prometheus", "prometheus_adaptor", "elasticsearch", "file")
_FIELDS = ("cpu", "memory", "time")


def load_source(settings: Mapping[str, str]) -> LoadSource:
    """
    Raises:
        LoadSourceError: an unknown type, or an address that cannot be one.
    """
    kind = settings.get("type", "")
    if kind == "prometheus":
        return PrometheusSource(settings)
    if kind == "prometheus_adaptor":
        return PrometheusAdaptorSource(settings)
    if kind == "elasticsearch":
        return ElasticsearchSource(settings)
    if kind == "file":
        return FileSource(settings)
    near = nearest_name(kind, _SOURCES)
    hint = f"; did you mean {near!r}?" if near else ""
    raise LoadSourceError(f"metrics.type: unknown type {kind!r}{hint}; allowed: {', '.join(_SOURCES)}")


class FileSource:
    local = True

    def __init__(self, settings: Mapping[str, str]) -> None:
        address = settings.get("address", "")
        if not address:
            raise LoadSourceError("metrics.address: missing; type file needs the path of a file there")
        self._path = Path(address)

    def read(self, nodes: Sequence[str], now: datetime) -> dict[str, NodeLoad]:
        try:
            documents = load_documents(self._path.read_bytes(), str(self._path))
        except OSError as error:
            raise LoadSourceError(f"metrics.address: {self._path}: {error.strerror}") from error
        except DocumentError as error:
            raise LoadSourceError(str(error)) from error
        wanted = set(nodes)
        loads = {}
        for document in documents:
            entries = document.value
            if not isinstance(entries, dict):
                raise _mistake(document, (), "expected node names with their load")
            for name in entries:
                load = _node_load(document, name, entries[name], now)
                if name in wanted:
                    loads[name] = load
        return loads


def _node_load(document: Document, name: str, entry: Any, now: datetime) -> NodeLoad:
    if not isinstance(entry, dict):
        raise _mistake(document, (name,), "expected a mapping such as {cpu: 42.5, memory: 61}")
    for key in entry:
        if key not in _FIELDS:
            near = nearest_name(key, _FIELDS)
            hint = f", did you mean {near!r}?" if near else f"; allowed: {', '.join(_FIELDS)}"
            raise _mistake(document, (name, key), f"unknown field{hint}")
    percent = {}
    for key in ("cpu", "memory"):
        value = entry.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise _mistake(document, (name, key), f"expected a number of percent, found {value!r}")
        percent[key] = float(value)
    time = now
    if "time" in entry:
        try:
            time = datetime.fromisoformat(entry["time"])
        except (TypeError, ValueError):
            time = datetime.min
        if time.tzinfo is None:
            message = f"expected a time with zone such as 2026-03-01T12:00:00Z, found {entry['time']!r}"
            raise _mistake(document, (name, "time"), message)
    return NodeLoad(percent["cpu"], percent["memory"], time)


def _mistake(document: Document, path: tuple[str, ...], message: str) -> LoadSourceError:
    line, column = document.mark(path)
    field = ".".join(path)
    return LoadSourceError(f"{document.source}:{line}:{column}: {field + ': ' if field else ''}{message}")
