"""The tests' own hand on the API server: plain requests by the standard library, apart from the code under test."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

Document = dict[str, Any]

PODS = "/api/v1/namespaces/{}/pods"
PODGROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Refused(Exception):
    def __init__(self, status: int, document: Document) -> None:
        super().__init__(f"{status}: {document.get('message', document)}")
        self.status = status
        self.document = document


class Api:
    """Requests as one user. Connections are kept, one a thread."""

    def __init__(self, url: str, token: str, ca: Path) -> None:
        self._address = urlsplit(url)
        self._token = token
        self._tls = ssl.create_default_context(cafile=str(ca))
        self._local = threading.local()

    def call(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> Document:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            assert self._address.hostname is not None
            connection = http.client.HTTPSConnection(
                self._address.hostname, self._address.port, context=self._tls, timeout=30
            )
            self._local.connection = connection
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content_type}
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException):
            self._local.connection = None
            connection.close()
            raise
        document = json.loads(data) if data[:1] == b"{" else {"message": data.decode("utf-8", "replace")}
        if answer.status >= 300:
            raise Refused(answer.status, document)
        return document

    def get(self, path: str) -> Document:
        return self.call("GET", path)

    def items(self, path: str) -> list[Document]:
        return list(self.call("GET", path)["items"])

    def create(self, path: str, document: Document) -> Document:
        return self.call("POST", path, document)

    def create_many(self, path: str, documents: Iterable[Document]) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda each: self.create(path, each), documents))

    def merge(self, path: str, patch: Document) -> Document:
        return self.call("PATCH", path, patch, "application/merge-patch+json")

    def delete(self, path: str, options: Document | None = None) -> None:
        self.call("DELETE", path, options)

    def install(self, definitions: Path) -> None:
        """Create all CustomResourceDefinitions of a folder and wait until they are served."""
        manifests = [yaml.safe_load(each.read_text()) for each in sorted(definitions.glob("*.yaml"))]
        for manifest in manifests:
            self.create(CRDS, manifest)
        for manifest in manifests:
            spec = manifest["spec"]
            wait_until(lambda spec=spec: self._serves(spec), f"{manifest['metadata']['name']} to be served")

    def _serves(self, spec: Document) -> bool:
        try:
            self.get(f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}?limit=1")
        except Refused as refused:
            if refused.status not in (404, 503, 429):
                raise
            return False
        return True


def wait_until(condition: Any, what: str, timeout: float = 30.0) -> None:
    """Wait until the condition holds."""
    import time

    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout:g} s in vain for {what}")
        time.sleep(0.02)


# --- documents --------------------------------------------------------------------------------------------------------


def node(
    name: str, cpu: int = 8, memory: str = "32Gi", pods: int = 110, labels: dict[str, str] | None = None
) -> Document:
    amounts = {"cpu": str(cpu), "memory": memory, "pods": str(pods)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def queue(name: str, **spec: object) -> Document:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": True, **spec},
    }


def pod_group(name: str, members: int, queue: str = "default", **spec: object) -> Document:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": members, "queue": queue, **spec},
        "status": {"phase": "Pending"},
    }


def pod(
    name: str,
    group: str = "",
    cpu: str = "100m",
    memory: str = "64Mi",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    scheduler: str = "volcano",
    **spec: object,
) -> Document:
    marks = dict(annotations or {})
    if group:
        marks["scheduling.k8s.io/group-name"] = group
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}, "annotations": marks},
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "resources": {"requests": {"cpu": cpu, "memory": memory}},
                }
            ],
            **spec,
        },
    }
