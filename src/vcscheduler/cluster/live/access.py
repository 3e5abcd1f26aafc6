"""Reading and changing single objects in whatever way the granted permissions allow.

The reference's own ClusterRole grants neither ``get`` for all that is written nor ``patch`` for status (spec 07 §6.2),
and this scheduler must work with it: a read then becomes a list of one, a patch becomes read, change, replace. What was
denied once is not asked for again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias, TypeVar

import msgspec

from vcscheduler.cluster.live.connection import JSON, MERGE_PATCH, STRATEGIC_PATCH, Connection, query_of
from vcscheduler.cluster.live.decoding import Decoder, NotDecodable, decode_list
from vcscheduler.cluster.live.failures import ApiFailure
from vcscheduler.cluster.live.resources import Resource
from vcscheduler.objects import KubernetesObject

log = logging.getLogger(__name__)

K = TypeVar("K", bound=KubernetesObject)
Document: TypeAlias = dict[str, object]


class ObjectAccess:
    """Reads and patches over one connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._denied: set[tuple[str, str]] = set()

    def _deny(self, verb: str, what: str, failure: ApiFailure) -> None:
        log.info("%s %s is not granted, doing without: %s", verb, what, failure)
        self._denied.add((verb, what))

    async def read_raw(self, resource: Resource, namespace: str, name: str) -> bytes | msgspec.Raw | None:
        """The object as the server sends it; None if there is none.

        Raises:
            ApiFailure: it could not be read.
        """
        namespace = namespace if resource.kind.namespaced else ""
        if ("get", resource.label) not in self._denied:
            try:
                return await self.connection.call("GET", resource.item(namespace, name))
            except ApiFailure as failure:
                if failure.status == 404:
                    return None
                if failure.status != 403:
                    raise
                self._deny("get", resource.label, failure)
        query = query_of({"fieldSelector": f"metadata.name={name}"})
        found = decode_list(await self.connection.call("GET", resource.collection(namespace), query=query)).items
        return found[0] if found else None

    async def read(self, resource: Resource, decoder: Decoder[K], namespace: str, name: str) -> K | None:
        """The object as stored now; None if there is none.

        Raises:
            ApiFailure: it could not be read.
        """
        raw = await self.read_raw(resource, namespace, name)
        if raw is None:
            return None
        try:
            return decoder.object(raw)
        except NotDecodable as error:
            raise ApiFailure(422, "Invalid", f"{resource.label} {namespace}/{name}: {error}") from error

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        subresource: str,
        patch: Document,
        replace: Callable[[Document], None] | None = None,
    ) -> bytes:
        """Patch an object; the object as stored afterwards.

        Args:
            patch: a merge patch, or a strategic one if `replace` is given.
            replace: makes the same change to the object as read, for servers that do not grant patching; by default
                the merge patch is applied.

        Raises:
            ApiFailure: it was not done.
        """
        what = f"{resource.label}/{subresource}" if subresource else resource.label
        namespace = namespace if resource.kind.namespaced else ""
        path = resource.item(namespace, name, subresource)
        if ("patch", what) not in self._denied:
            kind = MERGE_PATCH if replace is None else STRATEGIC_PATCH
            try:
                return await self.connection.call("PATCH", path, msgspec.json.encode(patch), kind)
            except ApiFailure as failure:
                if failure.status != 403:
                    raise
                self._deny("patch", what, failure)
        raw = await self.read_raw(resource, namespace, name)
        if raw is None:
            raise ApiFailure(404, "NotFound", f"{resource.label} {namespace}/{name} not found")
        document = msgspec.json.decode(raw, type=dict[str, object])
        document.setdefault("apiVersion", resource.kind.api_version)
        document.setdefault("kind", resource.kind.kind)
        _check_preconditions(document, patch, what)
        if replace is None:
            merge(document, patch)
        else:
            replace(document)
        return await self.connection.call("PUT", path, msgspec.json.encode(document), JSON)


def _check_preconditions(document: Document, patch: Document, what: str) -> None:
    """What the server would have checked of a patch that names a uid or a resourceVersion."""
    stored, named = document.get("metadata"), patch.get("metadata")
    if not isinstance(stored, dict) or not isinstance(named, dict):
        return
    for field in ("uid", "resourceVersion"):
        if field in named and named[field] != stored.get(field):
            message = f"{what} {stored.get('name')}: {field} {named[field]} was expected, {stored.get(field)} is stored"
            raise ApiFailure(409, "Conflict", message)


def merge(document: Document, patch: Document) -> None:
    """Apply a JSON merge patch (RFC 7386) in place."""
    for name, value in patch.items():
        if value is None:
            document.pop(name, None)
        elif isinstance(value, dict):
            inner = document.get(name)
            if not isinstance(inner, dict):
                inner = document[name] = {}
            merge(inner, value)
        else:
            document[name] = value


def merge_patch(old: object, new: object) -> Document:
    """The JSON merge patch that leads from one plain object to another; empty when they are equal."""
    patch: Document = {}
    if not isinstance(old, dict) or not isinstance(new, dict):
        return patch
    for name in old:
        if name not in new:
            patch[name] = None
    for name, value in new.items():
        before = old.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            inner = merge_patch(before, value)
            if inner:
                patch[name] = inner
        elif before != value:
            patch[name] = value
    return patch
