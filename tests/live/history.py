"""What happened to pods, as the API server told it: each change in its order, none left out.

A watch that is resumed from the version it ended at misses nothing, so what must never have been can be seen here: a
pod on two nodes, a node with more on it than it has.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections import defaultdict
from typing import Any
from urllib.parse import urlsplit

from live.api import Api, Document, wait_until
from live.kubeenv import ControlPlane
from vcscheduler.objects import milli_value

_FINISHED = ("Succeeded", "Failed")


class History:
    """From `start` to `stop`. `wrongs` are the sentences about what should not have happened.

    Args:
        cpu: milli-CPU that each node has.
    """

    def __init__(self, plane: ControlPlane, api: Api, cpu: int, namespace: str = "default") -> None:
        self._plane = plane
        self._api = api
        self._cpu = cpu
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)
        self._ends = False
        self._version = ""
        self._pods: dict[str, Document] = {}
        self._used: defaultdict[str, int] = defaultdict(int)
        self._nodes: dict[str, str] = {}
        self.wrongs: list[str] = []
        self.bindings = 0
        """How often a pod got a node."""
        self.deletions: list[str] = []
        """Names of pods that went, in order; with a node before that."""

    def __enter__(self) -> History:
        listed = self._api.get(self._path)
        for each in listed["items"]:
            self._take("ADDED", each)
        self.bindings = 0
        self._version = listed["metadata"]["resourceVersion"]
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends = True
        self._thread.join(15.0)

    def caught_up(self) -> None:
        """Wait until everything up to now was told."""
        version = int(self._api.get(f"{self._path}?limit=1")["metadata"]["resourceVersion"])
        if int(self._version) < version:
            # A watch is quiet about other objects, so give it one of its own.
            marker: dict[str, Any] = {"metadata": {"name": "marker", "labels": {"marker": "yes"}}}
            marker["spec"] = {"containers": [{"name": "main", "image": "none"}], "schedulerName": "none"}
            self._api.create(self._path, marker)
            self._api.delete(f"{self._path}/marker?gracePeriodSeconds=0")
            wait_until(lambda: int(self._version) > version, "the watch to catch up")

    def _run(self) -> None:
        address = urlsplit(self._plane.url)
        context = ssl.create_default_context(cafile=str(self._plane.ca))
        while not self._ends:
            assert address.hostname is not None
            connection = http.client.HTTPSConnection(address.hostname, address.port, context=context, timeout=5)
            try:
                path = f"{self._path}?watch=true&resourceVersion={self._version}&timeoutSeconds=60"
                connection.request("GET", path, headers={"Authorization": f"Bearer {self._plane.token}"})
                answer = connection.getresponse()
                while not self._ends and (line := answer.readline()):
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        self.wrongs.append(f"the watch failed: {event}")
                        return
                    self._version = event["object"]["metadata"]["resourceVersion"]
                    self._take(event["type"], event["object"])
            except (TimeoutError, OSError, http.client.HTTPException):
                continue
            finally:
                connection.close()

    def _take(self, what: str, pod: Document) -> None:
        uid, name, node = pod["metadata"]["uid"], pod["metadata"]["name"], pod["spec"].get("nodeName", "")
        before = self._pods.pop(uid, None)
        if before is not None and _counts(before):
            self._used[before["spec"]["nodeName"]] -= _cpu(before)
        if what == "DELETED":
            if node:
                self.deletions.append(name)
            return
        self._pods[uid] = pod
        had = self._nodes.setdefault(uid, "")
        if node != had:
            self._nodes[uid] = node
            self.bindings += 1
            if had:
                self.wrongs.append(f"pod {name} ({uid}) was on {had} and then on {node or 'none'}")
        if _counts(pod):
            self._used[node] += _cpu(pod)
            if self._used[node] > self._cpu:
                self.wrongs.append(f"node {node} has {self._used[node]} milli-CPU of {self._cpu} with pod {name}")


def _counts(pod: Document) -> bool:
    return bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") not in _FINISHED


def _cpu(pod: Document) -> int:
    requests = pod["spec"]["containers"][0].get("resources", {}).get("requests", {})
    return milli_value(requests.get("cpu", "0"))
