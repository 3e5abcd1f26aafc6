"""The scheduler as a conformance case runs it: a cache over the case's cluster, and a record of every cycle."""

from __future__ import annotations

from functools import cache

from vcscheduler.cache.cache import SchedulerCache
from vcscheduler.cluster.memory import Clock, MemoryCluster
from vcscheduler.config import configuration_from_value
from vcscheduler.framework.registry import Registry
from vcscheduler.framework.scheduler import Scheduler
from vcscheduler.framework.session import Session
from vcscheduler.model.status import PIPELINED, TaskStatus
from vcscheduler.objects import PodGroup
from vcscheduler.simulator.conformance import Case, CycleRecord


@cache
def _registry() -> Registry:
    """Actions and plugins are looked up once a process."""
    return Registry.default()


class SchedulerEngine:
    """The scheduler over one cluster, under the configuration of one case.

    Raises:
        ConfigurationError: the case's configuration cannot be used.
        PluginError: it names an action that is not supported.
    """

    def __init__(self, case: Case, cluster: MemoryCluster, clock: Clock) -> None:
        registry = _registry()
        parsed = configuration_from_value(
            case.config,
            f"{case.source}: config",
            known_actions=registry.action_names,
            known_plugins=registry.plugin_names,
        )
        self._cluster = cluster
        self._scheduler = Scheduler(
            SchedulerCache(cluster, clock), parsed.configuration, registry=registry, clock=clock
        )

    def run_once(self) -> CycleRecord:
        record = CycleRecord()

        def observe(ssn: Session) -> None:
            for job in ssn.sorted_jobs(ssn.jobs.values()):
                record.task_status[job.id] = {
                    status.text: job.counts[status] for status in TaskStatus if job.counts[status]
                }
                record.pipelined.update((task.key, task.node_name) for task in job.tasks_in(PIPELINED))

        self._scheduler.run_once(observe)
        record.binds = dict(sorted(self._cluster.bindings().items()))
        record.evicts = self._cluster.terminating()
        for name in record.task_status:
            pod_group = self._cluster.get(PodGroup, name)
            if pod_group is None:
                continue
            record.pod_group_phase[name] = pod_group.status.phase
            conditions = [
                {
                    key: value
                    for key, value in (
                        ("type", condition.type),
                        ("status", condition.status),
                        ("reason", condition.reason),
                        ("message", condition.message),
                    )
                    if value
                }
                for condition in pod_group.status.conditions
            ]
            if conditions:
                record.conditions[name] = conditions
        return record
