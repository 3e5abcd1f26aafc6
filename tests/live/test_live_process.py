"""``vcscheduler run`` as a process on a real API server: over several cycles, in company, and killed at any moment."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from live import api
from live.api import Document, Refused, wait_until
from live.history import History
from live.place import Place
from live.replica import Replica, samples

SEED = int(os.environ.get("VCSCHEDULER_SEED", "1"))
MOMENTS = 20
LEASE = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases/volcano"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
ELECTION = (
    "--leader-elect-lease-duration=2s",
    "--leader-elect-renew-deadline=1500ms",
    "--leader-elect-retry-period=300ms",
)
ALONE = "--leader-elect=false"
QUICK = "--schedule-period=200ms"
PLUGINS = """
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
PREEMPT = 'actions: "enqueue, allocate, preempt, backfill"' + PLUGINS
RECLAIM = 'actions: "enqueue, allocate, reclaim, backfill"' + PLUGINS


@pytest.fixture
def cluster(place: Place) -> Iterator[Place]:
    """The place, with the namespace of the lease and two priority classes."""
    with suppress(Refused):
        place.api.create("/api/v1/namespaces", {"metadata": {"name": "volcano-system"}})
    for name, value in (("low", 10), ("high", 1000)):
        place.api.create(PRIORITIES, {"metadata": {"name": name}, "value": value})
    yield place
    for name in ("low", "high"):
        place.api.delete(f"{PRIORITIES}/{name}")
    with suppress(Refused):
        place.api.delete(LEASE)


@contextmanager
def running(place: Place, folder: Path, *flags: str, configuration: str = "", name: str = "one") -> Iterator[Replica]:
    replica = Replica(place.plane.kubeconfig, folder / f"{name}.log", QUICK, *flags, configuration=configuration)
    replica.start()
    try:
        yield replica
        assert replica.end() == 0, replica.log[-3000:]
    finally:
        replica.kill()


def gang(
    place: Place, name: str, size: int, minimum: int, queue: str = "default", priority: str = "", **pod: object
) -> None:
    group = api.pod_group(name, minimum, queue)
    spec = {"priorityClassName": priority} if priority else {}
    group["spec"].update(spec)
    place.api.create(place.groups_path, group)
    place.api.create_many(place.pods_path, [api.pod(f"{name}-{each}", name, **spec, **pod) for each in range(size)])


def bound_of(place: Place, name: str) -> int:
    return sum(key.rpartition("-")[0] == name for key in place.bound())


def remove(place: Place, name: str) -> None:
    place.api.delete(f"{place.groups_path}/{name}")
    for each in place.pods():
        if each["metadata"]["name"].rpartition("-")[0] == name:
            with suppress(Refused):
                place.api.delete(f"{place.pods_path}/{each['metadata']['name']}", {"gracePeriodSeconds": 0})


def test_a_gang_of_1000_is_bound_whole(cluster: Place, tmp_path: Path) -> None:
    cluster.nodes(40, cpu=32)
    with History(cluster.plane, cluster.api, 32_000) as history, running(cluster, tmp_path, ALONE):
        cluster.gang("training", 1000, cpu="1")
        wait_until(lambda: cluster.status("training").get("running") == 1000, "the gang to run", 60.0)
        assert len(cluster.bound()) == 1000
        history.caught_up()
    assert (history.wrongs, history.bindings) == ([], 1000)


def test_a_gang_of_1000_without_room_for_one_of_them_is_not_begun(cluster: Place, tmp_path: Path) -> None:
    cluster.nodes(40, cpu=25)
    cluster.api.create(cluster.pods_path, api.pod("other", cpu="1", scheduler="none", nodeName="n0000"))
    with History(cluster.plane, cluster.api, 25_000) as history, running(cluster, tmp_path, ALONE):
        cluster.gang("training", 1000, cpu="1")
        reason = "0/40 nodes are unavailable: 40 Insufficient cpu."
        wait_until(
            lambda: any(
                each["reason"] == "Unschedulable" and "1000 tasks" in each["message"]
                for each in cluster.events("training")
            ),
            f"the gang to wait: {reason}",
            60.0,
        )
        assert set(cluster.bound()) == {"other"}
        cluster.api.delete(f"{cluster.pods_path}/other", {"gracePeriodSeconds": 0})
        wait_until(lambda: len(cluster.bound()) == 1000, "the gang to be bound", 60.0)
    assert history.wrongs == []


def test_preempted_pods_leave_and_their_successors_come_back(cluster: Place, tmp_path: Path) -> None:
    cluster.nodes(4, cpu=4)
    with (
        History(cluster.plane, cluster.api, 4_000) as history,
        running(cluster, tmp_path, ALONE, configuration=PREEMPT),
    ):
        gang(cluster, "low", 16, 4, priority="low", cpu="1")
        wait_until(lambda: cluster.status("low").get("running") == 16, "the low gang to run")
        gang(cluster, "high", 6, 6, priority="high", cpu="1")
        wait_until(lambda: cluster.status("high").get("running") == 6, "the high gang to run")
        assert bound_of(cluster, "low") == 10
        assert set(history.deletions) <= {f"low-{number}" for number in range(16)}
        assert len(history.deletions) == 6
        # What was evicted is created anew and waits, then takes the place of what ends.
        lost = sorted(history.deletions)
        cluster.api.create_many(
            cluster.pods_path, [api.pod(name, "low", cpu="1", priorityClassName="low") for name in lost]
        )
        wait_until(
            lambda: {each["involvedObject"]["name"] for each in cluster.events()} >= set(lost), "the new pods to wait"
        )
        assert bound_of(cluster, "low") == 10
        remove(cluster, "high")
        wait_until(lambda: cluster.status("low").get("running") == 16, "the low gang to run again")
        history.caught_up()
    assert history.wrongs == []


def test_a_queue_takes_back_its_share_and_gives_it_back(cluster: Place, tmp_path: Path) -> None:
    cluster.open_queue("first")
    cluster.open_queue("second")
    cluster.nodes(4, cpu=4)
    with (
        History(cluster.plane, cluster.api, 4_000) as history,
        running(cluster, tmp_path, ALONE, configuration=RECLAIM),
    ):
        gang(cluster, "a", 16, 2, queue="first", cpu="1")
        wait_until(lambda: cluster.status("a").get("running") == 16, "the first queue to fill the cluster")
        gang(cluster, "b", 8, 8, queue="second", cpu="1")
        wait_until(lambda: cluster.status("b").get("running") == 8, "the second queue to have its half")
        assert bound_of(cluster, "a") == 8
        assert len(history.deletions) == 8
        lost = sorted(history.deletions)
        cluster.api.create_many(cluster.pods_path, [api.pod(name, "a", cpu="1") for name in lost])
        time.sleep(1.0)
        assert (bound_of(cluster, "a"), bound_of(cluster, "b")) == (8, 8)
        remove(cluster, "b")
        wait_until(lambda: cluster.status("a").get("running") == 16, "the first queue to fill the cluster again")
        history.caught_up()
    assert history.wrongs == []


def test_a_node_with_too_much_on_it_is_noticed(cluster: Place) -> None:
    """The history above must be able to tell."""
    cluster.nodes(1, cpu=8)
    with History(cluster.plane, cluster.api, 8_000) as history:
        for number in range(2):
            cluster.api.create(cluster.pods_path, api.pod(f"a-{number}", cpu="5", nodeName="n0000"))
        history.caught_up()
    assert history.wrongs[0] == "node n0000 has 10000 milli-CPU of 8000 with pod a-1"
    assert history.bindings == 2


# --- work that goes on, whatever happens to schedulers ----------------------------------------------------------------

NODES, CPUS = 16, 8


class Work:
    """Users in a thread of their own: gangs come, gangs go. There is room for all of them at any time."""

    def __init__(self, place: Place, seed: int) -> None:
        self._place = place
        self._random = random.Random(seed)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="work", daemon=True)
        self._number = 0
        self.gangs: dict[str, int] = {}
        self.error: Exception | None = None

    def __enter__(self) -> Work:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        self._ends.set()
        self._thread.join(20.0)

    def _run(self) -> None:
        try:
            while not self._ends.wait(self._random.uniform(0.0, 0.3)):
                self._move()
        except Exception as error:
            self.error = error

    def _move(self) -> None:
        used = sum(self.gangs.values())
        size = self._random.choice((1, 2, 5, 10, 20))
        if used + size <= NODES * CPUS * 0.75:
            self._number += 1
            name = f"g{self._number}"
            self.gangs[name] = size
            self._place.gang(name, size, cpu="1")
        else:
            name = self._random.choice(sorted(self.gangs))
            size = self.gangs.pop(name)
            self._place.api.delete(f"{self._place.groups_path}/{name}")
            for number in range(size):
                self._place.api.delete(f"{self._place.pods_path}/{name}-{number}", {"gracePeriodSeconds": 0})


def half_bound(place: Place, gangs: dict[str, int]) -> dict[str, int]:
    """Gangs that do not have all of their pods on nodes, and how many have one."""
    found = Counter(name.rpartition("-")[0] for name in place.bound())
    return {name: found[name] for name, size in gangs.items() if found[name] != size}


def successes(place: Place) -> int:
    """Bindings that the API server has taken since it began."""
    text = place.api.call("GET", "/metrics")["message"]
    wanted = ('resource="pods"', 'subresource="binding"', 'code="201"')
    return int(
        sum(
            value
            for name, value in samples(text).items()
            if name.startswith("apiserver_request_total{") and all(part in name for part in wanted)
        )
    )


def json_documents(text: str) -> list[Document]:
    """Those that are complete, of a file that is perhaps still being written."""
    decoder, found = json.JSONDecoder(), []
    with suppress(json.JSONDecodeError):
        while text := text.lstrip():
            document, end = decoder.raw_decode(text)
            found.append(document)
            text = text[end:]
    return found


def dumped(replica: Replica, folder: Path) -> tuple[Document, Document]:
    """Nodes and jobs as the scheduler believes them to be."""
    for old in folder.glob("snapshot-*.json"):
        old.unlink()
    replica.signal(signal.SIGUSR1)
    found: list[Document] = []

    def complete() -> bool:
        found[:] = [each for path in folder.glob("snapshot-*.json") for each in json_documents(path.read_text())]
        return len(found) == 6

    wait_until(complete, "the dump")
    return found[0], found[-1]


def differences(place: Place, replica: Replica, folder: Path) -> list[str]:
    """Where what the scheduler believes is not what the API server has."""
    nodes, jobs = dumped(replica, folder)
    pods = place.pods()
    stored = {
        each["metadata"]["name"]: (each["status"]["phase"], each["spec"].get("nodeName", ""))
        for each in pods
        if "scheduling.k8s.io/group-name" in each["metadata"]["annotations"]
    }
    believed = {name: (task["status"], task["node"]) for job in jobs.values() for name, task in job["tasks"].items()}
    found = [
        f"{name}: {stored.get(name)}, believed {believed.get(name)}"
        for name in sorted(stored.keys() | believed.keys())
        if stored.get(name) != believed.get(name)
    ]
    used = Counter(node for _, node in stored.values() if node)
    for name, node in nodes.items():
        if (node["used"]["cpu"], node["idle"]["cpu"]) != (used[name] * 1000, (CPUS - used[name]) * 1000):
            found.append(
                f"{name}: {used[name]} CPU are used, believed {node['used']['cpu']}, idle {node['idle']['cpu']}"
            )
    return found


def assert_whole(place: Place, work: Work, history: History, replica: Callable[[], Replica], folder: Path) -> None:
    """After the work has ended: everything is where it should be, and never was where it should not be."""
    work.end()
    assert work.error is None
    wait_until(lambda: not half_bound(place, work.gangs), "all gangs to be bound", 30.0)
    wait_until(lambda: all(each["status"]["phase"] == "Running" for each in place.pods()), "all pods to run", 30.0)
    wait_until(lambda: not differences(place, replica(), folder), "the scheduler to know what is", 20.0)
    history.caught_up()
    assert history.wrongs == []


def test_killed_at_20_moments_nothing_is_bound_twice_or_half(cluster: Place, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    cluster.nodes(NODES, cpu=CPUS)
    replica = Replica(cluster.plane.kubeconfig, tmp_path / "log", QUICK, ALONE, f"--cache-dump-dir={tmp_path}")
    before = successes(cluster)
    with History(cluster.plane, cluster.api, CPUS * 1000) as history, Work(cluster, SEED) as work:
        try:
            for _ in range(MOMENTS):
                replica.start()
                if chance.random() < 0.8:
                    wait_until(lambda: replica.schedules, "a start", 30.0)
                    time.sleep(chance.uniform(0.0, 0.8))
                else:
                    time.sleep(chance.uniform(0.2, 1.0))
                assert replica.runs, replica.log[-3000:]
                replica.kill()
            replica.start()
            assert_whole(cluster, work, history, lambda: replica, tmp_path)
            # One whose sender died before the answer came counts as no success.
            assert 100 < successes(cluster) - before <= history.bindings
            assert replica.end() == 0
        finally:
            replica.kill()


def test_leadership_taken_away_20_times_leaves_nothing_bound_twice_or_half(cluster: Place, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    cluster.nodes(NODES, cpu=CPUS)
    replicas = [
        Replica(cluster.plane.kubeconfig, tmp_path / f"log{number}", QUICK, *ELECTION, f"--cache-dump-dir={tmp_path}")
        for number in range(2)
    ]
    before = successes(cluster)
    taken: Counter[str] = Counter()
    with History(cluster.plane, cluster.api, CPUS * 1000) as history, Work(cluster, SEED) as work:
        try:
            for each in replicas:
                each.start()
            for _ in range(MOMENTS):
                leader = leading(replicas)
                time.sleep(chance.uniform(0.0, 0.5))
                taken[take_away(cluster, leader, chance)] += 1
            assert_whole(cluster, work, history, lambda: leading(replicas), tmp_path)
            # One whose sender died before the answer came counts as no success.
            assert 100 < successes(cluster) - before <= history.bindings
            assert len(taken) == 4
            wait_until(lambda: all(each.answers for each in replicas), "both to run", 30.0)
            assert [each.end() for each in replicas] == [0, 0]
        finally:
            for each in replicas:
                each.kill()


def leading(replicas: list[Replica]) -> Replica:
    """The one that leads and schedules. Those that ended are started again, as their Deployment would."""
    end = time.monotonic() + 30.0
    while time.monotonic() < end:
        for each in replicas:
            if not each.runs:
                assert each.code in (0, 1, -signal.SIGKILL), each.log[-3000:]
                each.start()
        for each in replicas:
            if each.answers and each.metrics()["vcscheduler_leader"] and each.schedules:
                return each
        time.sleep(0.05)
    raise AssertionError("\n\n".join(each.log[-2000:] for each in replicas))


def take_away(place: Place, leader: Replica, chance: random.Random) -> str:
    """Take the leadership away from its holder; how."""
    how = chance.choice(("somebody else's lease", "asked to end", "killed", "frozen"))
    if how == "asked to end":
        assert leader.end() in (0, 1), leader.log[-3000:]
    elif how == "killed":
        leader.kill()
    elif how == "frozen":
        # It wakes up believing that it leads, with writes under way.
        leader.signal(signal.SIGSTOP)
        time.sleep(2.5)
        leader.signal(signal.SIGCONT)
        wait_until(lambda: not leader.runs, "the frozen one to notice", 10.0)
    else:
        now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
        place.api.merge(LEASE, {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 1, "renewTime": now}})
        wait_until(lambda: not leader.runs, "the leader to notice", 10.0)
    return how
