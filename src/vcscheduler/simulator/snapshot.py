"""One dump of a cluster, small enough to hand on and whole enough to simulate: what plays a part in scheduling, and
nothing else.

Environment, commands and the like are never decoded in the first place (objects/meta.py); config maps are left out, and
so is the annotation in which kubectl keeps an object's whole text. With an `Anonymiser` names mean nothing any more,
while everything that was named alike still is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from vcscheduler.objects import ConfigMap, Event, KubernetesObject, VolcanoJob
from vcscheduler.objects.kinds import from_value, to_manifest

Plain = dict[str, object]

_LEFT_OUT: Final = (ConfigMap, Event)
_WHOLE_TEXT: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MEANT: Final = frozenset(
    (
        "",
        "default",
        "default-scheduler",
        "kube-system",
        "master",
        "root",
        "system-cluster-critical",
        "system-node-critical",
        "volcano",
        "volcano-system",
        "worker",
    )
)
"""Names that mean something to the scheduler or to plugins of Volcano Jobs."""
_DOMAINS: Final = ("kubernetes.io", "k8s.io", "volcano.sh")
"""Label and annotation keys of these domains are not anybody's own."""
_LABELLED: Final = ("labels", "annotations", "matchLabels", "nodeSelector")
_NAMES: Final = frozenset(("name", "namespace", "generateName", "queue", "parent", "nodeName", "job"))
"""Fields whose values are names."""
_NOT_NAMES: Final = frozenset(
    (
        "apiVersion", "kind", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "startTime",
        "phase", "state", "type", "status", "operator", "effect", "mode", "protocol", "restartPolicy",
        "preemptionPolicy", "whenUnsatisfiable", "policy", "dequeueStrategy", "cpu", "memory",
    )
)  # fmt: skip
"""Fields whose values are words of the API, also if something has such a name."""
_NAMING: Final = frozenset(
    (
        "scheduling.k8s.io/group-name", "scheduling.volcano.sh/queue-name", "volcano.sh/queue-name",
        "volcano.sh/job-name", "volcano.sh/job-namespace", "volcano.sh/task-spec", "kubernetes.io/hostname",
    )
)  # fmt: skip
"""Labels and annotations whose values are names, whether or not something of that name is there."""
_DROPPED: Final = frozenset(("message", "image", "images", "addresses", "podCIDR", "providerID", "description"))
"""Free text and addresses, which may tell whose cluster it is."""


def snapshot(objects: Iterable[KubernetesObject], anonymiser: Anonymiser | None = None) -> list[KubernetesObject]:
    """What to write of all that was read, in the same order."""
    chosen = [obj for obj in objects if not isinstance(obj, _LEFT_OUT)]
    for obj in chosen:
        obj.metadata.annotations.pop(_WHOLE_TEXT, None)
        if isinstance(obj, VolcanoJob) and "ssh" in obj.spec.plugins:
            obj.spec.plugins["ssh"] = []  # Its arguments may be keys.
    return chosen if anonymiser is None else anonymiser.all(chosen)


class Anonymiser:
    """Replaces names by keyed hashes of them, behind their place in the order of all names: equal nodes are taken in
    the order of their names, so without it other decisions would come of it.

    Whatever is the name of an object is replaced wherever it stands; names inside of objects (of containers, tasks,
    ports) are too. The number at the end of a name stays, since it orders the pods of a job. Annotations of unknown
    domains go.

    Args:
        salt: the same salt gives the same hashes; whoever does not know it cannot try names out.
        labels: replace keys and values of labels as well, but for keys of Kubernetes and Volcano.
    """

    def __init__(self, salt: str, *, labels: bool = False) -> None:
        self._salt = salt.encode()[:64]
        self._labels = labels
        self._hashes: dict[str, str] = {}
        self._names: set[str] = set()
        self._ranks: dict[str, str] = {}

    def all(self, objects: list[KubernetesObject]) -> list[KubernetesObject]:
        """The objects under their new names."""
        for obj in objects:
            metadata = obj.metadata
            self._names |= {metadata.name, metadata.namespace, *(owner.name for owner in metadata.owner_references)}
        plain = [to_manifest(obj) for obj in objects]
        for each in plain:
            self._collect(each)
        self._names -= _MEANT
        stems = sorted({_parts(name)[0] for name in self._names})
        self._ranks = {stem: f"{rank:0{len(str(len(stems)))}d}" for rank, stem in enumerate(stems)}
        return [from_value(self._mapping(each, "")) for each in plain]

    def hashed(self, name: str) -> str:
        """What a name becomes."""
        if name in _MEANT:
            return name
        found = self._hashes.get(name)
        if found is None:
            stem, number = _parts(name)
            digits = hashlib.blake2b(stem.encode(), key=self._salt, digest_size=4).hexdigest()
            # The number counts as the index of a pod only after two dashes (spec 02 §6.2).
            dash = "-" if number and "-" in stem else ""
            found = self._hashes[name] = f"x{self._ranks.get(stem, '')}{dash}{digits}{number}"
        return found

    def _collect(self, value: object) -> None:
        """Names that stand inside of objects, such as those of tasks, which others refer to."""
        if isinstance(value, dict):
            for key, item in value.items():
                if (key in _NAMES or key in _NAMING) and isinstance(item, str):
                    self._names.add(item)
                else:
                    self._collect(item)
        elif isinstance(value, list):
            for item in value:
                self._collect(item)

    def _mapping(self, plain: Plain, field: str) -> Plain:
        new: Plain = {}
        for key, value in plain.items():
            own = field in _LABELLED and not _is_known(key)
            if key in _DROPPED or (own and field == "annotations"):
                continue
            if own and self._labels:
                new[self.hashed(key)] = self.hashed(value) if isinstance(value, str) else value
            else:
                # Minimums by task, and pods by name, have names for keys.
                spoken = key not in _LABELLED and field in ("minTaskMember", "disruptedPods") and key in self._names
                new[self.hashed(key) if spoken else key] = self._value(value, key)
        return new

    def _value(self, value: object, field: str) -> object:
        if isinstance(value, dict):
            return self._mapping(value, field)
        if isinstance(value, list):
            return [self._value(item, field) for item in value]
        if not isinstance(value, str) or field in _NOT_NAMES:
            return value
        if value in self._names:
            return self.hashed(value)
        flag, equals, name = value.partition("=")
        if equals and flag.startswith("--") and name in self._names:
            return f"{flag}={self.hashed(name)}"
        if self._labels and field in ("key", "topologyKey", "values") and not _is_known(value):
            return self.hashed(value)
        return value


def _parts(name: str) -> tuple[str, str]:
    """``("web-a", "-0")`` for ``web-a-0``; a name without a number is all stem."""
    stem, _, last = name.rpartition("-")
    return (stem, f"-{last}") if stem and last.isdigit() else (name, "")


def _is_known(key: str) -> bool:
    domain, slash, _ = key.rpartition("/")
    return bool(slash) and (domain.endswith(tuple(f".{each}" for each in _DOMAINS)) or domain in _DOMAINS)
