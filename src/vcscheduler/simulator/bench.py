"""Measuring scenarios: whole cycles in process, over the embedded cluster (docs/benchmarks.md).

What is measured is a cycle: session opened, actions, session closed. Taking in the events that build the state is
reported apart. Each scenario runs in a process of its own, so its peak memory is its own.
"""

from __future__ import annotations

import gc
import multiprocessing
import resource
import time
from dataclasses import asdict, dataclass, field
from datetime import timedelta

from vcscheduler.cache.cache import SchedulerCache
from vcscheduler.cluster.memory import MemoryCluster
from vcscheduler.config import parse_configuration
from vcscheduler.framework.registry import Registry
from vcscheduler.framework.scheduler import Scheduler
from vcscheduler.simulator.scenarios import SCENARIOS, START, WARM_UPS, Scenario

IDLE_CYCLES = 5


class BenchmarkFailed(Exception):
    """The scheduler did something else than the scenario expects; its times mean nothing then."""


@dataclass(slots=True)
class Run:
    """Seconds of one run. ``ingest``: events taken in. ``cycle``: the measured cycle, with its phases."""

    ingest: float
    cycle: float
    phases: dict[str, float]
    binds: int
    evictions: int


@dataclass(slots=True)
class Result:
    """All runs of a scenario. ``pods_per_second`` and ``cycle_ms`` are the median run's; ``peak_mib`` the process's."""

    scenario: str
    about: str
    pods_per_second: float
    cycle_ms: float
    phases: dict[str, float]
    peak_mib: float
    runs: list[Run] = field(default_factory=list)

    def as_data(self) -> dict[str, object]:
        return asdict(self)


def measure(name: str, runs: int = 3) -> Result:
    """Run a scenario ``runs`` times in a fresh process.

    Raises:
        BenchmarkFailed: the outcome is not the expected one.
    """
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_measure, (name, runs))


def _measure(name: str, runs: int) -> Result:
    scenario = SCENARIOS[name]
    warm_up()
    done = [_one_run(scenario) for _ in range(1 if scenario.large else runs)]
    middle = sorted(done, key=lambda r: r.cycle)[(len(done) - 1) // 2]
    return Result(
        scenario=name,
        about=scenario.about,
        pods_per_second=round((middle.binds + middle.evictions) / middle.cycle, 1),
        cycle_ms=round(middle.cycle * 1000, 3),
        phases={phase: round(seconds * 1000, 3) for phase, seconds in middle.phases.items()},
        peak_mib=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        runs=done,
    )


def warm_up() -> None:
    """Load what is loaded when it is first used, and compile the kernels where that was not done yet."""
    for scenario in WARM_UPS:
        _one_run(scenario)


def _one_run(scenario: Scenario) -> Run:
    now = START + timedelta(days=1)
    cluster = MemoryCluster(lambda: now)
    registry = Registry.default()
    configuration = parse_configuration(
        scenario.configuration, scenario.name, known_actions=registry.action_names
    ).configuration
    cache = SchedulerCache(cluster, lambda: now)
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        for obj in scenario.objects():
            cluster.apply(obj)
        cache.apply_events()
        ingest = time.perf_counter() - start
        gc.freeze()
        scheduler = Scheduler(cache, configuration, registry=registry, clock=lambda: now)
        times = scheduler.run_once()
        binds = len(cluster.bindings())
        evictions = len(cluster.terminating())
        if (binds, evictions) != (scenario.expected_binds, scenario.expected_evictions):
            raise BenchmarkFailed(
                f"scenario {scenario.name}: expected {scenario.expected_binds} binds and "
                f"{scenario.expected_evictions} evictions, found {binds} and {evictions}"
            )
        if scenario.idle:
            # The first cycle writes what the objects lack (conditions, queue sums); from the next on nothing changes.
            later = [scheduler.run_once() for _ in range(IDLE_CYCLES)]
            times = sorted(later, key=lambda t: t.total)[IDLE_CYCLES // 2]
        return Run(ingest, times.total, dict(times.phases), binds, evictions)
    finally:
        gc.unfreeze()
        gc.enable()
