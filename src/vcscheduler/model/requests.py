"""What a pod requests: Volcano's vector, and the figures that Kubernetes' scorers compute for the same pod.

The two differ: Volcano counts thousandths of every scalar and CSI volumes, Kubernetes counts whole units and assumes
100m and 200 MiB for containers that request nothing (spec 01 §2.2-2.4, spec 05 §2, §5.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from vcscheduler.model.resources import CPU, EPSILON, MEMORY, PODS, Resources
from vcscheduler.objects import Container, Pod
from vcscheduler.objects.quantity import milli_value, value

GPU = "nvidia.com/gpu"
DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024

QuantityMap = Mapping[str, str | int | float]


def effective_requests(pod: Pod) -> Callable[[Container, bool], QuantityMap]:
    """How to get a container's requests, taking an in-place resize under way into account (spec 01 §2.4)."""
    statuses = {s.name: s for s in pod.status.container_statuses if s.resources is not None}
    init_statuses = {s.name: s for s in pod.status.init_container_statuses if s.resources is not None}
    if not statuses and not init_statuses:
        return lambda c, _init: c.resources.requests
    pending = next((c for c in pod.status.conditions if c.type == "PodResizePending"), None)
    infeasible = pending is not None and pending.reason == "Infeasible"

    def requests(c: Container, init: bool) -> QuantityMap:
        if init and c.restart_policy != "Always":
            return c.resources.requests
        status = (init_statuses if init else statuses).get(c.name)
        if status is None or status.resources is None:
            return c.resources.requests
        sources = [status.resources.requests, status.allocated_resources]
        if not infeasible:
            sources.insert(0, c.resources.requests)
        largest: dict[str, str | int | float] = {}
        for source in sources:
            for name, q in source.items():
                if name not in largest or milli_value(q) > milli_value(largest[name]):
                    largest[name] = q
        return largest

    return requests


def _supported_at_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def pod_resources(
    pod: Pod, csi_volumes: Mapping[str, int] | None = None, ignored: frozenset[str] = frozenset()
) -> Resources:
    """The pod's vector: containers, init peak, sidecars, pod-level requests, overhead, one pod, CSI volume counts.

    ``csi_volumes``: dimension ``attachable-volumes-csi-<driver>`` -> number of volumes.
    """
    requests = effective_requests(pod)
    spec = pod.spec
    total = Resources()
    for c in spec.containers:
        total.add(Resources.from_list(requests(c, False), ignored))
    if spec.init_containers:
        sidecars, peak = Resources(), Resources()
        for c in spec.init_containers:
            vec = Resources.from_list(requests(c, True), ignored)
            if c.restart_policy == "Always":
                total.add(vec)
                sidecars.add(vec)
                candidate = sidecars.clone()
            else:
                candidate = vec.add(sidecars)
            peak.set_max(candidate)
        total.set_max(peak)
    total.add_scalar(PODS, 1.0)
    if spec.resources is not None:
        level = {n: q for n, q in spec.resources.requests.items() if _supported_at_pod_level(n)}
        if level:
            vec = Resources.from_list(level, ignored)
            if CPU in level:
                total.cpu = vec.cpu
            if MEMORY in level:
                total.memory = vec.memory
            for scalar, v in vec.scalar_items():
                total.set_scalar(scalar, v)
    if spec.overhead:
        total.add(Resources.from_list(spec.overhead, ignored))
    for name, volumes in (csi_volumes or {}).items():
        total.add_scalar(name, float(volumes))
    total.max_tasks = 0
    return total


@dataclass(frozen=True, slots=True)
class KubeRequest:
    """A pod's figures in Kubernetes' own accounting. CPU in milli-cores, memory in bytes, GPUs whole.

    ``nonzero_*``: with defaults, as a node accounts them; ``scored_*``: with defaults, as the resource scorers see
    the pod to place (pod-level requests do not count there, spec 05 §5.3).
    """

    cpu: int
    memory: int
    gpu: int
    nonzero_cpu: int
    nonzero_memory: int
    scored_cpu: int
    scored_memory: int


def kube_request(pod: Pod) -> KubeRequest:
    requests = effective_requests(pod)
    spec = pod.spec
    level = spec.resources.requests if spec.resources is not None else {}
    supported_level = {n: q for n, q in level.items() if _supported_at_pod_level(n)}

    def total(name: str, convert: Callable[[str | int | float], int], default: int, with_level: bool) -> int:
        def of(c: Container, init: bool) -> int:
            q = requests(c, init).get(name)
            return default if q is None else convert(q)

        amount = sum(of(c, False) for c in spec.containers)
        sidecars = peak = 0
        for c in spec.init_containers:
            if c.restart_policy == "Always":
                n = of(c, True)
                amount += n
                sidecars += n
                peak = max(peak, sidecars)
            else:
                peak = max(peak, of(c, True) + sidecars)
        amount = max(amount, peak)
        if with_level and name in supported_level:
            amount = convert(supported_level[name])
        if name in spec.overhead:
            amount += convert(spec.overhead[name])
        return amount

    def node_default(name: str, default: int) -> int:
        if not supported_level:
            return default
        given = name in supported_level or any(
            name in requests(c, init)
            for containers, init in ((spec.containers, False), (spec.init_containers, True))
            for c in containers
        )
        return 0 if given else default

    return KubeRequest(
        cpu=total(CPU, milli_value, 0, True),
        memory=total(MEMORY, value, 0, True),
        gpu=total(GPU, value, 0, True),
        nonzero_cpu=total(CPU, milli_value, node_default(CPU, DEFAULT_MILLI_CPU), True),
        nonzero_memory=total(MEMORY, value, node_default(MEMORY, DEFAULT_MEMORY), True),
        scored_cpu=total(CPU, milli_value, DEFAULT_MILLI_CPU, False),
        scored_memory=total(MEMORY, value, DEFAULT_MEMORY, False),
    )


HostPort = tuple[str, str, int]


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Wanted host ports as (IP, protocol, port), normalised (spec 05 §4.4)."""
    running: Iterable[Container] = (
        *pod.spec.containers,
        *(c for c in pod.spec.init_containers if c.restart_policy == "Always"),
    )
    return tuple(
        (p.host_ip or "0.0.0.0", p.protocol or "TCP", p.host_port) for c in running for p in c.ports if p.host_port > 0
    )


def is_best_effort(resreq: Resources) -> bool:
    return resreq.cpu < EPSILON and resreq.memory < EPSILON and resreq.is_empty()
