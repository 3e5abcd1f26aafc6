"""An event sink that only remembers."""

from __future__ import annotations

import threading

from vcscheduler.cluster.interface import ClusterError
from vcscheduler.objects import KubernetesObject


class Notebook:
    """What a cluster told, in order, as (what, object)."""

    def __init__(self) -> None:
        self.told: list[tuple[str, KubernetesObject]] = []
        self.refusals: list[tuple[KubernetesObject, ClusterError]] = []
        self._lock = threading.Lock()

    def added(self, obj: KubernetesObject, /) -> None:
        with self._lock:
            self.told.append(("added", obj))

    def updated(self, old: KubernetesObject, new: KubernetesObject, /) -> None:
        with self._lock:
            self.told.append(("updated", new))

    def deleted(self, obj: KubernetesObject, /) -> None:
        with self._lock:
            self.told.append(("deleted", obj))

    def refused(self, obj: KubernetesObject, error: ClusterError, /) -> None:
        with self._lock:
            self.refusals.append((obj, error))

    def story(self, kind: type[KubernetesObject], name: str = "") -> list[tuple[str, str]]:
        """(what, name) of the objects of one kind, or of one object."""
        with self._lock:
            return [
                (what, obj.name) for what, obj in self.told if isinstance(obj, kind) and (not name or obj.name == name)
            ]
