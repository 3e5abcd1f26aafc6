"""What scheduling on a real API server costs, measured beside what the server itself can take.

    make bench-live        (or, with tests/ on the path: python -m live.bench [-o json] [--only gangs,single])

One control plane with 1,000 nodes played by kwok, everything on the same machine. The limit is a loop that only posts
bindings, 32 at a time. Figures of Volcano for comparison are from the same kind of machine (2 cores).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from live import api
from live.api import Api, Document
from live.bench_client import PODS, Client
from live.kubeenv import ControlPlane
from live.replica import Replica
from live.tools import find

ROOT = Path(__file__).parents[2]
NODES = 1_000
RAW_BINDINGS = 3_000
GANGS, GANG_SIZE = 10, 500
SMALL_GROUPS = 2_000
SINGLE_PODS = 200
IDLE_SECONDS = 30.0
MANY_NODES, MANY_PODS = 5_000, 20_000
GROUPS = api.PODGROUPS.format("default")
WRITTEN = ("pods/binding", "events", "podgroups", "pods/status", "queues/status")


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value; `target` is what it must not exceed, or must reach where `least`."""

    name: str
    value: float
    unit: str
    target: float | None = None
    least: bool = False
    volcano: str = ""

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value >= self.target if self.least else self.value <= self.target


class Bench:
    """The measurements, in order, over one control plane."""

    def __init__(self, plane: ControlPlane, client: Client, folder: Path, only: frozenset[str]) -> None:
        self._plane = plane
        self._client = client
        self._folder = folder
        self._only = only
        self.figures: list[Figure] = []

    def _tell(self, *figures: Figure) -> None:
        self.figures += figures
        for each in figures:
            print(f"{each.name}: {each.value:.4g} {each.unit}", file=sys.stderr, flush=True)

    async def run(self) -> None:
        self._tell(Figure("load average of the machine before", os.getloadavg()[0], ""))
        await self._nodes(0, NODES)
        await self._client.watch()
        parts = {"gangs": self.gangs, "small": self.small_groups, "single": self.single_pods, "restart": self.restart}
        for name, part in parts.items():
            if not self._only or name in self._only:
                await part()
                if name != "restart":
                    await self._client.clear_pods()

    async def _nodes(self, first: int, last: int) -> None:
        await self._client.create(
            "/api/v1/nodes", (api.node(f"n{number:04d}", cpu=32) for number in range(first, last))
        )

    # --- the limit ----------------------------------------------------------------------------------------------------

    async def _raw(self) -> float:
        """Bindings a second when nothing else is done."""
        client = self._client
        names = [f"raw-{number}" for number in range(RAW_BINDINGS)]
        await client.create(PODS, (api.pod(name, scheduler="none") for name in names))
        await asyncio.sleep(2.0)
        seconds = await client.all("POST", (_binding(name, number % NODES) for number, name in enumerate(names)))
        await client.until_running(len(names), 120.0)
        await client.clear_pods()
        return RAW_BINDINGS / seconds

    # --- what is measured ---------------------------------------------------------------------------------------------

    async def gangs(self) -> None:
        client, count = self._client, GANGS * GANG_SIZE
        before = await self._raw()
        names = [f"g{gang}-{number}" for gang in range(GANGS) for number in range(GANG_SIZE)]
        await client.create(PODS, (api.pod(name, name.partition("-")[0]) for name in names))
        replica = await self._scheduling("gangs")
        asked = await client.requests()
        cpu, began = replica.cpu_seconds, time.monotonic()
        # Pods without their PodGroup are nobody's: the clock starts with ten requests that make them schedulable.
        await client.create(GROUPS, (api.pod_group(f"g{gang}", GANG_SIZE) for gang in range(GANGS)))
        times = await client.until_bound(names, 120.0)
        used = replica.cpu_seconds - cpu
        await client.until_running(count, 120.0)
        await self._quiet(replica)
        rate = count / (times[-1] - began)
        writes = await self._writes(asked, count)
        await self._idle(replica)
        replica.end()
        await client.clear_pods()
        limit = (before + await self._raw()) / 2
        self._tell(
            Figure("limit: bindings posted by a plain loop", limit, "/s"),
            Figure(f"{GANGS} gangs of {GANG_SIZE}", rate, "pods/s", volcano="191"),
            Figure("  of the limit", rate / limit * 100, "%", target=70.0, least=True),
            Figure("  created to first bind", (times[0] - began) * 1000, "ms"),
            Figure("  CPU of the scheduler", used / count * 1000, "ms/pod", volcano="4.4"),
            *_per_pod(writes, 1, 1, 0.1),
        )

    async def small_groups(self) -> None:
        client = self._client
        names = [f"s-{number}" for number in range(SMALL_GROUPS)]
        await client.create(GROUPS, (api.pod_group(name, 1) for name in names))
        await client.create(PODS, (api.pod(name, name) for name in names))
        await asyncio.sleep(2.0)
        asked = await client.requests()
        replica = self._replica("small")
        times = await client.until_bound(names, 120.0)
        used = replica.cpu_seconds
        await client.until_running(len(names), 120.0)
        await self._quiet(replica)
        writes = await self._writes(asked, len(names))
        replica.end()
        self._tell(
            Figure(
                f"{SMALL_GROUPS:,} one-pod groups", len(names) / (times[-1] - times[0]), "pods/s", 400.0, True, "193"
            ),
            Figure("  start of the process to first bind", times[0] - replica.started, "s"),
            Figure("  CPU of the scheduler, start included", used / len(names) * 1000, "ms/pod", volcano="4.4"),
            *_per_pod(writes, 1, 3, 2),
        )

    async def single_pods(self) -> None:
        client = self._client
        replica = await self._scheduling("single")
        sent: dict[str, float] = {}
        for number in range(SINGLE_PODS):
            name = f"one-{number}"
            await client.call("POST", GROUPS, api.pod_group(name, 1))
            sent[name] = time.monotonic()
            await client.call("POST", PODS, api.pod(name, name))
            await asyncio.sleep(0.1)
        await client.until_bound(sent, 30.0)
        waited = sorted((client.bound[name] - at) * 1000 for name, at in sent.items())
        replica.end()
        self._tell(
            Figure("single pod, created to bound, p50", statistics.median(waited), "ms", 50.0, volcano="432"),
            Figure("  p99", waited[int(len(waited) * 0.99) - 1], "ms", 150.0, volcano="1,031"),
            Figure("  longest", waited[-1], "ms"),
        )

    async def _idle(self, replica: Replica) -> None:
        cpu, began = replica.cpu_seconds, time.monotonic()
        await asyncio.sleep(IDLE_SECONDS)
        share = (replica.cpu_seconds - cpu) / (time.monotonic() - began)
        pods = GANGS * GANG_SIZE
        self._tell(
            Figure(f"idle, {pods:,} running pods", share * 100, "% of a core", 1.0, volcano="18"),
            Figure("  resident memory", replica.resident_bytes / 1e6, "MB", 300.0, volcano="468"),
        )

    async def restart(self) -> None:
        client = self._client
        await self._nodes(NODES, MANY_NODES)
        group_size = 100
        groups = MANY_PODS // group_size
        running = {"phase": "Running", "running": group_size}
        documents = ({**api.pod_group(f"r{number}", group_size), "status": running} for number in range(groups))
        await client.create(GROUPS, documents)
        pods = (
            api.pod(f"r{number % groups}-{number}", f"r{number % groups}", nodeName=f"n{number % MANY_NODES:04d}")
            for number in range(MANY_PODS)
        )
        await client.create(PODS, pods)
        await client.until_running(MANY_PODS, 300.0)
        await client.call("POST", GROUPS, api.pod_group("waits", 1))
        await client.call("POST", PODS, api.pod("waits", "waits"))
        await asyncio.sleep(5.0)
        replica = self._replica("restart")
        (at,) = await client.until_bound(["waits"], 60.0)
        await self._quiet(replica)
        self._tell(
            Figure(
                f"restart, {MANY_NODES:,} nodes, {MANY_PODS:,} running pods: first bind", at - replica.started, "s", 5.0
            ),
            Figure("  resident memory", replica.resident_bytes / 1e6, "MB"),
        )
        replica.end()

    # --- steps --------------------------------------------------------------------------------------------------------

    def _replica(self, name: str) -> Replica:
        replica = Replica(self._plane.kubeconfig, self._folder / f"{name}.log", "-v=2")
        replica.start()
        return replica

    async def _scheduling(self, name: str) -> Replica:
        """One that has begun to schedule."""
        replica = self._replica(name)
        end = time.monotonic() + 60.0
        while "scheduling begins" not in replica.log:
            if not replica.runs or time.monotonic() > end:
                raise RuntimeError(f"the scheduler did not start:\n{replica.log[-3000:]}")
            await asyncio.sleep(0.1)
        await asyncio.sleep(2.0)
        return replica

    async def _quiet(self, replica: Replica) -> None:
        """Until nothing is left to be written, events included."""
        sent = -1.0
        end = time.monotonic() + 60.0
        while time.monotonic() < end:
            await asyncio.sleep(2.5)
            found = await asyncio.to_thread(replica.metrics)
            if found["vcscheduler_api_writes_sent_total"] == sent:
                return
            sent = found["vcscheduler_api_writes_sent_total"]
        raise RuntimeError("the scheduler does not stop writing")

    async def _writes(self, before: dict[str, int], pods: int) -> dict[str, float]:
        """Requests a pod by what was written, kwok's part (it sets each pod's status once) taken off."""
        after = await self._client.requests()
        counts = {name: after.get(name, 0) - before.get(name, 0) for name in WRITTEN}
        counts["pods/status"] -= pods
        return {name: count / pods for name, count in counts.items()}


def _per_pod(writes: dict[str, float], binds: float, events: float, groups: float) -> list[Figure]:
    """Against what the reference writes; a few events about PodGroups come on top of those about pods."""
    targets = {"pods/binding": binds, "events": events * 1.05, "podgroups": groups}
    return [Figure(f"  writes a pod: {name}", value, "", targets.get(name)) for name, value in writes.items()]


def _binding(name: str, node: int) -> tuple[str, Document]:
    target = {"apiVersion": "v1", "kind": "Node", "name": f"n{node:04d}"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    return f"{PODS}/{name}/binding", body


def table(figures: Iterable[Figure]) -> str:
    lines = [f"{'':<62} {'measured':>18} {'target':>12}  {'':<7} {'Volcano':>8}"]
    for each in figures:
        target = "" if each.target is None else f"{'>=' if each.least else '<='} {each.target:g}"
        met = {None: "", True: "met", False: "MISSED"}[each.met]
        value = f"{each.value:,.2f}" if each.value < 10 else f"{each.value:,.0f}"
        lines.append(f"{each.name:<62} {value + ' ' + each.unit:>18} {target:>12}  {met:<7} {each.volcano:>8}")
    return "\n".join(lines)


async def measure(plane: ControlPlane, folder: Path, only: frozenset[str]) -> list[Figure]:
    client = Client(plane)
    bench = Bench(plane, client, folder, only)
    try:
        await bench.run()
    finally:
        await client.close()
    return bench.figures


def main() -> int:
    arguments = argparse.ArgumentParser(prog="live.bench", description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("-o", dest="output", choices=("table", "json"), default="table")
    arguments.add_argument("--only", default="", help="gangs, small, single, restart")
    arguments.add_argument("--keep", type=Path, help="a folder for the schedulers' logs")
    chosen = arguments.parse_args()
    binaries = find()
    if binaries is None:
        print("no programs of a control plane; run make bench-live", file=sys.stderr)
        return 3
    plane = ControlPlane(binaries)
    plane.start()
    try:
        administrator = Api(plane.url, plane.token, plane.ca)
        administrator.install(ROOT / "deploy" / "crds")
        for name in ("default", "volcano-system"):
            _ensure_namespace(administrator, name)
        administrator.create(api.QUEUES, api.queue("default"))
        administrator.merge(f"{api.QUEUES}/default/status", {"status": {"state": "Open"}})
        with tempfile.TemporaryDirectory() as scratch:
            folder = chosen.keep or Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            figures = asyncio.run(measure(plane, folder, frozenset(filter(None, chosen.only.split(",")))))
    finally:
        plane.stop()
    if chosen.output == "json":
        print(json.dumps([{**asdict(each), "met": each.met} for each in figures], indent=2))
    else:
        print(table(figures))
    return 0


def _ensure_namespace(administrator: Api, name: str) -> None:
    with suppress(api.Refused):
        administrator.create(
            "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        )


if __name__ == "__main__":
    sys.exit(main())
