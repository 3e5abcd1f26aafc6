"""What the signals SIGUSR1 and SIGUSR2 show of the cache (spec 02 §1.3): a file of JSON documents, or log lines.

The file has six documents, one after the other, as the reference's: nodes, hypernodes by tier, tier names, nodes below
each hypernode, hypernodes, jobs. What each says of its objects is ours; neither has anything of container specs or
annotations in it.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from vcscheduler.cache.cache import SchedulerCache
from vcscheduler.model.job import Job
from vcscheduler.model.nodes import Node
from vcscheduler.model.resources import CPU, MEMORY, Resources

log = logging.getLogger(__name__)

Data = dict[str, object]


def write_dump(cache: SchedulerCache, directory: str, now: datetime) -> Path:
    """Write ``snapshot-<unix seconds>.json``, readable by this user only. Returns where.

    Raises:
        OSError: the directory cannot be written to.
    """
    path = Path(directory) / f"snapshot-{int(now.timestamp())}.json"
    with open(path, "w", encoding="utf-8", opener=_private) as file:
        for document in _documents(cache):
            json.dump(document, file, ensure_ascii=False, indent=1)
            file.write("\n")
    return path


def log_dump(cache: SchedulerCache) -> None:
    """The same as log lines, one an object, with what memory the process uses."""
    for node in cache.table:
        log.info("node %s: %s", node.name, _line(_node(node)))
    for job in cache.jobs.values():
        log.info("job %s: %s", job.id, _line(_job(job)))
    for name, about in _hyper_nodes(cache).items():
        log.info("hypernode %s: %s", name, _line(about))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1 if sys.platform == "darwin" else 1024
    log.info(
        "memory: %d MiB at most; processor time: %.1f s",
        (usage.ru_maxrss * unit) >> 20,
        usage.ru_utime + usage.ru_stime,
    )


def _private(path: str, flags: int) -> int:
    """Readable by this user only, and never through a link that somebody laid out in a common directory."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _line(data: object) -> str:
    return json.dumps(data, ensure_ascii=False)


def _documents(cache: SchedulerCache) -> Iterator[Data]:
    known = cache.network.hyper_nodes
    yield {node.name: _node(node) for node in cache.table}
    yield {str(tier): sorted(names) for tier, names in sorted(known.by_tier.items())}
    yield dict(sorted(cache.topology.tier_names.items()))
    yield {name: sorted(nodes) for name, nodes in sorted(known.nodes.items())}
    yield _hyper_nodes(cache)
    yield {job.id: _job(job) for job in sorted(cache.jobs.values(), key=lambda job: job.id)}


def _hyper_nodes(cache: SchedulerCache) -> Data:
    return {
        name: {
            "tier": entry.tier,
            "parent": entry.parent,
            "children": sorted(entry.children),
            "nodes": len(cache.network.hyper_nodes.nodes.get(name, ())),
        }
        for name, entry in sorted(cache.network.hyper_nodes.entries.items())
    }


def _node(node: Node) -> Data:
    return {
        "allocatable": _amounts(node.allocatable),
        "idle": _amounts(node.idle),
        "used": _amounts(node.used),
        "releasing": _amounts(node.releasing),
        "pipelined": _amounts(node.pipelined),
        "unschedulable": node.unschedulable,
        "tasks": {task.key: task.status.text for task in node.sorted_tasks()},
    }


def _job(job: Job) -> Data:
    return {
        "queue": job.queue,
        "priority": job.priority,
        "phase": job.phase,
        "minAvailable": job.min_available,
        "minResources": None if job.min_resources is None else _amounts(job.min_resources),
        "tasks": {
            task.name: {"status": task.status.text, "node": task.node_name, "request": _amounts(task.resreq)}
            for task in job.tasks.values()
        },
    }


def _amounts(vector: Resources) -> dict[str, float]:
    """As the scheduler counts: milli-CPU, bytes, thousandths of what is whole, pods."""
    return {CPU: vector.cpu, MEMORY: vector.memory, **dict(vector.scalar_items())}
