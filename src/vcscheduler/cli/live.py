"""Reading a live cluster once, for commands that look at it on paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vcscheduler.cli.errors import fail, warn

if TYPE_CHECKING:
    from vcscheduler.objects import Manifests


def live_manifests(kubeconfig: str, context: str) -> Manifests:
    """Every object of a live cluster that plays a part in scheduling; only read, and no secret among it.

    Raises:
        typer.Exit: the cluster cannot be reached or refuses.
    """
    if kubeconfig and not Path(kubeconfig).is_file():
        fail(f"--kubeconfig {kubeconfig}: no such file")
    try:
        from vcscheduler.cluster.live.listing import ListingFailed, list_cluster
    except ModuleNotFoundError as error:
        fail(f"{error}: --live needs the optional packages: pip install 'vcscheduler[live]'")
    try:
        listing = list_cluster(kubeconfig=kubeconfig, context=context)
    except ListingFailed as error:
        fail(str(error))
    for warning in listing.warnings:
        warn(warning)
    from vcscheduler.objects import Manifest, Manifests, Origin

    origin = Origin(listing.server)
    return Manifests([Manifest(obj, origin) for obj in listing.objects])
