"""A scheduler whose API server and network misbehave at random, for thousands of faults; then the books are compared.

``VCSCHEDULER_FAULTS`` says how many faults (2,000), ``VCSCHEDULER_SEED`` which.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest

from live import api
from live.api import Document, Refused
from live.place import Conductor, Place
from live.proxy import FaultProxy
from vcscheduler.cluster.live import LiveOptions, WatchTiming, WriterLimits
from vcscheduler.model.status import PENDING, RUNNING
from vcscheduler.objects import milli_value

FAULTS = int(os.environ.get("VCSCHEDULER_FAULTS", "2000"))
SEED = int(os.environ.get("VCSCHEDULER_SEED", "1"))
NODES, CPUS = 12, 8

OPTIONS = LiveOptions(
    timing=WatchTiming(shortest=2.0, longest=4.0, audit=2.0, silence=10.0, first_retry=0.02, last_retry=0.5),
    limits=WriterLimits(give_up=4.0, patience=2.0),
    request_seconds=3.0,
)


@pytest.fixture
def proxy(place: Place) -> Iterator[FaultProxy]:
    proxy = FaultProxy(place.plane.url, place.plane.ca, SEED)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()


class Traffic:
    """What users do meanwhile: gangs come, gangs go, single pods are taken away."""

    def __init__(self, place: Place, seed: int) -> None:
        self._place = place
        self._random = random.Random(seed)
        self._number = 0
        self.gangs: dict[str, int] = {}
        self.touched: set[str] = set()
        """Gangs that are not whole by somebody else's doing."""

    def move(self, conductor: Conductor) -> None:
        draw = self._random.random()
        if draw < 0.5 and len(self.gangs) < 25:
            self._number += 1
            name, size = f"g{self._number}", self._random.randint(1, 12)
            self._place.gang(name, size, cpu=self._random.choice(("250m", "500m", "1")))
            self.gangs[name] = size
        elif draw < 0.8 and len(self.gangs) > 5:
            self._remove(self._random.choice(sorted(self.gangs)))
        elif draw < 0.9 and self.gangs:
            name = self._random.choice(sorted(self.gangs))
            self.touched.add(name)
            with suppress(Refused):
                self._place.api.delete(f"{self._place.pods_path}/{name}-0", {"gracePeriodSeconds": 0})
        elif self.gangs:
            name = self._random.choice(sorted(self.gangs))
            pod = conductor.cluster.known_pod(f"default/{name}-{self.gangs[name] - 1}")
            if pod is not None and pod.status.phase == "Running":
                self.touched.add(name)
                conductor.cluster.evict(pod, "shuffle")

    def _remove(self, name: str) -> None:
        size = self.gangs.pop(name)
        place = self._place
        place.api.delete(f"{place.groups_path}/{name}")
        for number in range(size):
            with suppress(Refused):
                place.api.delete(f"{place.pods_path}/{name}-{number}", {"gracePeriodSeconds": 0})


def used_cpu(pods: list[Document]) -> Counter[str]:
    """milli-CPU by node, as the API server sees it."""
    used: Counter[str] = Counter()
    for pod in pods:
        if pod["spec"].get("nodeName") and pod["status"]["phase"] not in ("Succeeded", "Failed"):
            requests = pod["spec"]["containers"][0]["resources"]["requests"]
            used[pod["spec"]["nodeName"]] += milli_value(requests["cpu"])
    return used


def assert_no_node_is_overcommitted(place: Place) -> None:
    over = {node: cpu for node, cpu in used_cpu(place.pods()).items() if cpu > CPUS * 1000}
    assert over == {}


def differences(place: Place, conductor: Conductor) -> list[str]:
    """Where the scheduler's books are not what the API server has."""
    pods = place.pods()
    stored = {each["metadata"]["uid"]: each for each in pods}
    tasks = {task.uid: task for job in conductor.cache.jobs.values() for task in job.tasks.values()}
    found = [f"pod {tasks[uid].key} is not there" for uid in tasks.keys() - stored.keys()]
    for uid, pod in stored.items():
        task, node = tasks.get(uid), pod["spec"].get("nodeName", "")
        status = RUNNING if pod["status"]["phase"] == "Running" else PENDING
        if task is None:
            found.append(f"pod {pod['metadata']['name']} is not known")
        elif (task.status, task.node_name) != (status, node):
            found.append(f"pod {task.key} is {status} on {node or '-'}, known as {task.status} on {task.node_name}")
    used = used_cpu(pods)
    for node in conductor.cache.table.nodes:
        if node.object is not None and node.idle.cpu != CPUS * 1000 - used[node.name]:
            found.append(f"node {node.name} has {node.idle.cpu} idle of {CPUS * 1000}, used are {used[node.name]}")
    return found


def half_bound(place: Place, gangs: set[str]) -> dict[str, int]:
    bound = Counter(name.rpartition("-")[0] for name in place.bound())
    sizes = Counter(each["metadata"]["name"].rpartition("-")[0] for each in place.pods())
    return {name: bound[name] for name in gangs if bound[name] not in (0, sizes[name])}


def test_faults_at_random_leave_no_trace(place: Place, proxy: FaultProxy, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")
    place.nodes(NODES, cpu=CPUS)
    traffic = Traffic(place, SEED)
    with place.connected(place.access(server=proxy.url), OPTIONS) as conductor:
        conductor.sync(30.0)
        tasks_at_start = running_tasks(conductor)
        proxy.budget = FAULTS
        started, cycles = time.monotonic(), 0
        limit = 60.0 + FAULTS / 10
        while proxy.injected < FAULTS:
            assert time.monotonic() - started < limit, f"{proxy.injected} of {FAULTS} faults in {limit:g} s"
            traffic.move(conductor)
            conductor.woken.clear()
            conductor.scheduler.run_once()
            cycles += 1
            if cycles % 50 == 0:
                assert_no_node_is_overcommitted(place)
            conductor.woken.wait(0.05)
        faulty = time.monotonic() - started
        whole = set(traffic.gangs) - traffic.touched

        def at_rest() -> bool:
            return (
                conductor.cluster.settled(0.0)
                and conductor.cluster.statuses_under_way == 0
                and not differences(place, conductor)
                and not half_bound(place, whole)
            )

        try:
            conductor.cycles_until(at_rest, "the books to agree", timeout=30.0)
        except AssertionError as error:
            raise AssertionError(
                f"{error}: backlog {conductor.cluster.backlog}, statuses {conductor.cluster.statuses_under_way}, "
                f"{differences(place, conductor)}, half bound: {half_bound(place, whole)}"
            ) from None
        assert_no_node_is_overcommitted(place)
        assert [uid for uid, times in proxy.bindings.items() if times > 1] == []
        assert conductor.cluster.backlog == 0
        assert running_tasks(conductor) <= tasks_at_start
        print(
            f"{proxy.injected} faults in {faulty:.0f} s, {proxy.requests} requests, {cycles} cycles, "
            f"{len(proxy.bindings)} bindings, {conductor.cluster.relists} lists, {conductor.cluster.counts}: "
            f"{dict(sorted(proxy.faults.items()))}"
        )
    assert place.bound()


def running_tasks(conductor: Conductor) -> int:
    """Of the cluster's event loop."""
    loop = conductor.cluster._loop
    assert loop is not None

    async def count() -> int:
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    return asyncio.run_coroutine_threadsafe(count(), loop).result(5.0)


def test_books_that_differ_are_noticed(place: Place) -> None:
    """The comparison above must be able to fail."""
    place.nodes(1, cpu=CPUS)
    with place.connected() as conductor:
        conductor.sync()
        place.gang("a", 2)
        place.api.create(place.pods_path, api.pod("a-9", "a"))
        place.api.create(
            f"{place.pods_path}/a-0/binding",
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a-0"}, "target": {"name": "n0000"}},
        )
        assert len(differences(place, conductor)) >= 3
        assert half_bound(place, {"a"}) == {"a": 1}
