"""How the scheduler was started: the values of its flags, named for the code that reads them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

DEFAULT_FEATURE_GATES: Mapping[str, bool] = {
    "WorkLoadSupport": True,
    "VolcanoJobSupport": True,
    "PodDisruptionBudgetsSupport": True,
    "PriorityClass": True,
    "ResourceTopology": True,
    "CSIStorage": False,
    "SchedulingGatesQueueAdmission": False,
}
"""Volcano's own feature gates (spec 02 §1.4)."""


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """The settings behind the flags of `vc-scheduler`, and ours. Durations are seconds.

    `exact_search` is ours: all nodes are searched for each task. Setting any of the three flags that tune
    upstream's sampling of nodes switches it off, and the sampling on.
    """

    master: str = ""
    kubeconfig: str = ""
    kube_api_qps: float = 2000.0
    kube_api_burst: int = 2000
    ca_cert_file: str = ""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    scheduler_names: tuple[str, ...] = ("volcano",)
    scheduler_conf: str = ""
    disable_default_scheduler_config: bool = False
    schedule_period: float = 1.0
    resource_sync_timeout: float = 60.0
    default_queue: str = "default"
    minimum_feasible_nodes: int = 100
    minimum_percentage_nodes_to_find: int = 5
    percentage_nodes_to_find: int = 0
    plugins_dir: str = ""
    node_selector: tuple[str, ...] = ()
    ignored_provisioners: tuple[str, ...] = ()
    csi_storage: bool = True
    priority_class: bool = True
    scheduler_sharding_mode: str = "none"
    scheduler_sharding_name: str = "volcano"
    gate_removal_worker_num: int = 5
    cache_dumper: bool = True
    cache_dump_dir: str = "/tmp"
    listen_address: str = ":8080"
    enable_metrics: bool = False
    enable_healthz: bool = False
    healthz_address: str = ":11251"
    leader_elect: bool = True
    leader_elect_lease_duration: float = 15.0
    leader_elect_renew_deadline: float = 10.0
    leader_elect_retry_period: float = 2.0
    leader_elect_resource_name: str = "volcano"
    leader_elect_resource_namespace: str = "volcano-system"
    lock_object_namespace: str = ""
    feature_gates: Mapping[str, bool] = field(default_factory=lambda: dict(DEFAULT_FEATURE_GATES))
    verbosity: int = 0
    version: bool = False
    exact_search: bool = True
    tie_break: Literal["first", "random"] = "first"
    seed: int | None = None
    log_format: Literal["logfmt", "json"] = "logfmt"
    debug_address: str = "127.0.0.1:11252"
    with_controllers: bool = False
    disable_failing_plugins: bool = False

    def lease_namespace(self) -> str:
        """Where the leader's Lease lives: the deprecated flag wins when it is set."""
        return self.lock_object_namespace or self.leader_elect_resource_namespace

    def problems(self) -> tuple[str, ...]:
        """Settings that cannot work together; upstream checks them at start (spec 02 §1.1, step 2)."""
        problems = self._seed_problems()
        return problems + self._election_problems() if self.leader_elect else problems

    def _seed_problems(self) -> tuple[str, ...]:
        if self.seed is None or self.tie_break == "random":
            return ()
        return ("--seed has no effect without --tie-break random: equal nodes go by name then",)

    def _election_problems(self) -> tuple[str, ...]:
        lease, renew = self.leader_elect_lease_duration, self.leader_elect_renew_deadline
        retry = self.leader_elect_retry_period
        found = [
            f"--leader-elect-{name} must be longer than 0, found {value:g}s"
            for name, value in (("lease-duration", lease), ("renew-deadline", renew), ("retry-period", retry))
            if value <= 0
        ]
        if not found and lease <= renew:
            found.append(f"--leader-elect-lease-duration ({lease:g}s) must exceed the renew deadline ({renew:g}s)")
        if not found and renew <= 1.2 * retry:
            found.append(
                f"--leader-elect-renew-deadline ({renew:g}s) must exceed 1.2 times the retry period ({retry:g}s)"
            )
        if not self.leader_elect_resource_name:
            found.append("--leader-elect-resource-name must not be empty")
        if not self.lease_namespace():
            found.append("--leader-elect-resource-namespace must not be empty")
        return tuple(found)
