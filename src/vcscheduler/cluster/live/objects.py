"""What controllers write, over the API (cluster/object_store.py).

The thread of the controllers waits for the answers of one batch of writes; many of a batch are under way at a time.
Nothing is sent twice blindly: whoever decided on a write that was not answered decides again on what is seen then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from copy import deepcopy
from typing import Any, Final, Protocol, TypeVar, cast

import msgspec

from vcscheduler.cluster.interface import ClusterError, ErrorReason
from vcscheduler.cluster.live.access import Document, ObjectAccess, merge_patch
from vcscheduler.cluster.live.decoding import Decoder, NotDecodable
from vcscheduler.cluster.live.failures import ApiFailure
from vcscheduler.cluster.live.resources import CLAIMS, CONTROLLED, PODGROUPS, PODS, QUEUES, WORKLOADS, Resource
from vcscheduler.cluster.object_store import (
    Annotate,
    Create,
    Delete,
    ObjectStore,
    Origin,
    Outcome,
    Update,
    UpdateStatus,
    Write,
    object_of,
)
from vcscheduler.objects import ConfigMap, KubernetesObject, Pod, Service, to_manifest

T = TypeVar("T")

_IN_FLIGHT: Final = 16
_SECONDS: Final = 30.0
_SECONDS_PER_WRITE: Final = 0.05
_THROTTLED_ATTEMPTS: Final = 4
_LONGEST_PAUSE: Final = 10.0
_RESOURCES: Final[dict[type[KubernetesObject], Resource]] = {
    resource.kind: resource
    for resource in (
        PODS,
        PODGROUPS,
        QUEUES,
        CLAIMS,
        *CONTROLLED,
        *WORKLOADS,
        Resource(Service, "services"),
        Resource(ConfigMap, "configmaps"),
    )
}


class Desk(Protocol):
    """What these writes need of the cluster they belong to."""

    access: ObjectAccess

    def wait_for(self, work: Coroutine[Any, Any, T], timeout: float) -> T:
        """Have the event loop do it.

        Raises:
            ClusterError: it failed, or took too long.
        """

    def record_event(self, kind: str, namespace: str, name: str, type: str, reason: str, message: str) -> None: ...


class LiveObjects(ObjectStore):
    """
    Args:
        gate: whether this process may write now; asked before each request.
    """

    def __init__(self, desk: Desk, gate: Callable[[], bool]) -> None:
        self._desk = desk
        self._gate = gate
        self._access = desk.access

    def record_event(self, kind: str, namespace: str, name: str, type: str, reason: str, message: str) -> None:
        self._desk.record_event(kind, namespace, name, type, reason, message)

    def write(self, writes: Sequence[Write]) -> list[Outcome]:
        timeout = _SECONDS + _SECONDS_PER_WRITE * len(writes)
        try:
            return self._desk.wait_for(self._write_all(writes), timeout)
        except ClusterError as error:
            return [error] * len(writes)

    async def _write_all(self, writes: Sequence[Write]) -> list[Outcome]:
        templates = _Templates(self._access)
        turn = asyncio.Semaphore(_IN_FLIGHT)

        async def one(write: Write) -> Outcome:
            async with turn:
                return await self._outcome(write, templates)

        return list(await asyncio.gather(*(one(write) for write in writes)))

    async def _outcome(self, write: Write, templates: _Templates) -> Outcome:
        for attempt in range(1, _THROTTLED_ATTEMPTS + 1):
            if not self._gate():
                return ClusterError(ErrorReason.UNAVAILABLE, "this scheduler is not the leader, it writes nothing")
            try:
                return await self._send(write, templates)
            except ApiFailure as failure:
                # Answered before anything was done, so sending again is safe.
                if failure.status == 429 and attempt < _THROTTLED_ATTEMPTS:
                    await asyncio.sleep(min(failure.retry_after or 0.1 * 2**attempt, _LONGEST_PAUSE))
                    continue
                return _error_of(write, failure)
        raise AssertionError("not reached")

    async def _send(self, write: Write, templates: _Templates) -> KubernetesObject:
        """
        Raises:
            ApiFailure: it was not done.
        """
        obj = object_of(write)
        resource = _RESOURCES[type(obj)]
        namespace, name, uid = obj.metadata.namespace, obj.metadata.name, obj.metadata.uid
        match write:
            case Create(origin=origin, more=more):
                manifest = to_manifest(obj)
                if origin is not None:
                    manifest = made_from(manifest, obj, await templates.read(origin), origin)
                add_to(manifest, more)
                collection = resource.collection(namespace if resource.kind.namespaced else "")
                answer = await self._access.connection.call("POST", collection, msgspec.json.encode(manifest))
            case Update(old=old, new=new):
                patch = merge_patch(to_manifest(old), to_manifest(new))
                patch.pop("status", None)
                metadata = cast(Document, patch.setdefault("metadata", {}))
                metadata["resourceVersion"] = old.metadata.resource_version
                answer = await self._access.patch(resource, namespace, name, "", patch)
            case UpdateStatus(old=old, new=new, checked=checked):
                status = merge_patch(to_manifest(old).get("status", {}), to_manifest(new).get("status", {}))
                known = {"uid": uid, **({"resourceVersion": old.metadata.resource_version} if checked else {})}
                answer = await self._access.patch(
                    resource, namespace, name, "status", {"metadata": known, "status": status}
                )
            case Annotate(annotations=annotations):
                marks: Document = {"metadata": {"uid": uid, "annotations": dict(annotations)}}
                answer = await self._access.patch(resource, namespace, name, "", marks)
            case Delete(foreground=foreground):
                options = {
                    "apiVersion": "v1",
                    "kind": "DeleteOptions",
                    "preconditions": {"uid": uid},
                    "propagationPolicy": "Foreground" if foreground else "Background",
                }
                await self._access.connection.call("DELETE", resource.path_of(obj), msgspec.json.encode(options))
                return obj
        return _decoded(resource, answer, obj)


class _Templates:
    """The objects that hold the templates of one batch, each read once."""

    def __init__(self, access: ObjectAccess) -> None:
        self._access = access
        self._reads: dict[str, asyncio.Task[Document]] = {}

    async def read(self, origin: Origin) -> object:
        """The template as it is stored, a copy.

        Raises:
            ApiFailure: the object that holds it cannot be read, or is another one by now.
        """
        owner = origin.owner
        task = self._reads.get(owner.metadata.uid)
        if task is None:
            task = self._reads[owner.metadata.uid] = asyncio.ensure_future(self._read(owner))
        found: object = await task
        for step in origin.path:
            try:
                found = found[step]  # type: ignore[index]
            except (KeyError, IndexError, TypeError):
                raise ApiFailure(409, "Conflict", f"{owner.kind} {owner.key} has no {step} any more") from None
        return deepcopy(found)

    async def _read(self, owner: KubernetesObject) -> Document:
        raw = await self._access.read_raw(_RESOURCES[type(owner)], owner.namespace, owner.name)
        document = msgspec.json.decode(raw, type=dict[str, Any]) if raw is not None else {}
        if document.get("metadata", {}).get("uid") != owner.metadata.uid:
            raise ApiFailure(404, "NotFound", f"{owner.kind} {owner.key} is gone")
        return document


def made_from(manifest: Document, obj: KubernetesObject, template: object, origin: Origin) -> Document:
    """The manifest of an object whose kind here does not carry all that its template says.

    Of a pod only what its controller decides is taken from the object: metadata, scheduler, priority class, host name,
    further volumes. Defaults are left to the API server.
    """
    if not isinstance(obj, Pod):
        return {**manifest, "spec": template}
    found = template.get("spec") if isinstance(template, dict) else None
    spec: Document = found if isinstance(found, dict) else {}
    decided = {
        "schedulerName": obj.spec.scheduler_name,
        "priorityClassName": obj.spec.priority_class_name,
        "hostname": obj.spec.hostname,
        "subdomain": obj.spec.subdomain,
    }
    spec.update((name, value) for name, value in decided.items() if value)
    volumes = _list_in(spec, "volumes")
    there = {each.get("name") for each in volumes if isinstance(each, dict)}
    volumes += [msgspec.to_builtins(each) for each in obj.spec.volumes if each.name not in there]
    if not volumes:
        del spec["volumes"]
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or []:  # type: ignore[attr-defined]
            _add_by_name(container, "env", "name", {name: {"value": value} for name, value in origin.env.items()})
            if kind == "containers":
                mounts = {path: {"name": volume} for volume, path in origin.mounts.items()}
                _add_by_name(container, "volumeMounts", "mountPath", mounts)
    kept = ("apiVersion", "kind", "metadata")
    return {**{name: manifest[name] for name in kept}, "spec": spec}


def _add_by_name(container: Document, field: str, key: str, more: dict[str, dict[str, str]]) -> None:
    """Add items to a list unless the container says something of its own under the same name."""
    if not more:
        return
    items = _list_in(container, field)
    there = {each.get(key) for each in items}
    items += [{key: name, **item} for name, item in more.items() if name not in there]


def _list_in(document: Document, field: str) -> list[Any]:
    found = document.get(field)
    if not isinstance(found, list):
        found = document[field] = []
    return found


def add_to(manifest: Document, more: Any) -> None:
    """Add further fields: objects are merged, lists appended, all else set."""
    for name, value in more.items():
        before = manifest.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            add_to(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            before.extend(value)
        else:
            manifest[name] = value


def _decoded(resource: Resource, answer: bytes, written: KubernetesObject) -> KubernetesObject:
    try:
        return Decoder(resource.kind).object(answer)
    except NotDecodable:
        return written  # It is written; the watch shows it when it can be read again.


def _error_of(write: Write, failure: ApiFailure) -> ClusterError:
    error = failure.as_cluster_error()
    if isinstance(write, Delete) and error.reason is ErrorReason.CONFLICT:
        return ClusterError(ErrorReason.NOT_FOUND, error.message)  # Another object has the name by now.
    return error
