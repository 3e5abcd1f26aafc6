"""All objects of a live cluster, read once: for commands that look at a cluster and schedule nothing there.

Nothing but GET is sent, and secrets and config maps are never asked for. Lists are read one after another, so what
changes meanwhile may be in one and not yet in another.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from vcscheduler.cluster.live.connection import Access, Connection, ConnectionFailed, query_of
from vcscheduler.cluster.live.decoding import Decoder, NotDecodable, decode_list
from vcscheduler.cluster.live.failures import ApiFailure
from vcscheduler.cluster.live.resources import Resource, Watched
from vcscheduler.objects import KubernetesObject, VolcanoJob

_PAGE: Final = 1000
_TIMEOUT: Final = 60.0
_VOLCANO: Final = ".volcano.sh"
_LEFT_OUT: Final = (403, 404)


class ListingFailed(Exception):
    """The cluster cannot be reached, or does not answer."""


@dataclass(slots=True)
class Listing:
    """What there is. ``warnings``: what could not be read, and why."""

    server: str
    objects: list[KubernetesObject] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def list_cluster(*, kubeconfig: str = "", context: str = "") -> Listing:
    """Read everything that plays a part in scheduling.

    Raises:
        ListingFailed: the cluster cannot be reached, refuses the credentials or breaks off.
    """
    return asyncio.run(_list(Access(kubeconfig=kubeconfig, context=context)))


async def _list(access: Access) -> Listing:
    connection = Connection(access, timeout=_TIMEOUT)
    try:
        await connection.open()
    except ConnectionFailed as error:
        raise ListingFailed(str(error)) from error
    try:
        listing = Listing(connection.server)
        resources = Watched(node_shards=True, dynamic_resource_allocation=True).resources(())
        for resource in (Resource(VolcanoJob, "jobs"), *resources):
            await _read(connection, resource, listing)
        return listing
    finally:
        await connection.close()


async def _read(connection: Connection, resource: Resource, listing: Listing) -> None:
    decoder = Decoder(resource.kind)
    query = {"limit": str(_PAGE)}
    while True:
        try:
            page = decode_list(await connection.call("GET", resource.collection(), query=query_of(query)))
        except ApiFailure as failure:
            if failure.status not in _LEFT_OUT:
                raise ListingFailed(f"{listing.server}: {resource.label} cannot be listed: {failure}") from failure
            if failure.status == 403:
                listing.warnings.append(f"{resource.label} may not be listed, so there are none here: {failure}")
            elif resource.label.endswith(_VOLCANO):
                listing.warnings.append(f"{resource.label} is not installed in this cluster")
            return
        for raw in page.items or ():
            try:
                listing.objects.append(decoder.object(raw))
            except NotDecodable as problem:
                listing.warnings.append(f"{resource.label} {problem.head.key} was left out: {problem}")
        if not page.metadata.continue_:
            return
        query["continue"] = page.metadata.continue_
