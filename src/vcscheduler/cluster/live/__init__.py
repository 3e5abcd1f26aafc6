"""A real Kubernetes cluster over its API. Needs the packages of the optional group ``live``."""

try:
    import aiohttp as _aiohttp  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f'{error}: a live cluster needs the optional packages of "live": pip install "vcscheduler[live]"',
        name=error.name,
    ) from error

from vcscheduler.cluster.live.cluster import LiveCluster, LiveOptions
from vcscheduler.cluster.live.connection import Access, Connection, ConnectionFailed
from vcscheduler.cluster.live.reflector import WatchTiming
from vcscheduler.cluster.live.resources import Watched
from vcscheduler.cluster.live.sync import NotSynced
from vcscheduler.cluster.live.writer import WriterLimits

__all__ = [
    "Access",
    "Connection",
    "ConnectionFailed",
    "LiveCluster",
    "LiveOptions",
    "NotSynced",
    "WatchTiming",
    "Watched",
    "WriterLimits",
]
