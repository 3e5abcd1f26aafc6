"""capacity: quotas of devices got through ResourceClaims (spec 04 §7.7)."""

from collections.abc import Mapping
from fractions import Fraction

import pytest
from plugin_cluster import Cluster

from vcscheduler.framework.session import Session
from vcscheduler.framework.statement import Statement
from vcscheduler.model.job import Job
from vcscheduler.model.status import PENDING, RUNNING, TaskStatus
from vcscheduler.model.task import Task
from vcscheduler.objects import ResourceClaim
from vcscheduler.objects.meta import ObjectMeta
from vcscheduler.objects.pod import PodResourceClaim, PodResourceClaimStatus
from vcscheduler.objects.resource_claims import (
    DeviceCapacityRequest,
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from vcscheduler.plugins.capacity import CapacityPlugin
from vcscheduler.plugins.capacity.devices import DeviceQuotas, Devices

TREE = {"enable_hierarchy": True}


def claim(
    c: Cluster,
    name: str,
    device_class: str = "gpu.com",
    count: int = 1,
    consumes: Mapping[str, str] | None = None,
    **exactly: str,
) -> str:
    capacity = DeviceCapacityRequest(requests=dict(consumes)) if consumes else None
    request = ExactDeviceRequest(
        device_class_name=device_class,
        count=count,
        capacity=capacity,
        allocation_mode=exactly.get("mode", ""),
    )
    c.cache.listers.resource_claims[f"ns/{name}"] = ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="ns"),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=[DeviceRequest(name="r", exactly=request)])),
    )
    return name


def uses(
    c: Cluster,
    job: Job,
    name: str,
    *claims: str,
    status: TaskStatus = PENDING,
    node: str = "",
    role: str = "",
) -> Task:
    task = c.task(job, name, status, node=node, role=role, cpu=1)
    task.pod.spec.resource_claims = [PodResourceClaim(name=f"use-{each}", resource_claim_name=each) for each in claims]
    return task


def cluster(capability: Mapping[str, object]) -> tuple[Cluster, Job]:
    c = Cluster()
    c.node("n1", cpu=50)
    c.queue("q", capability=capability)
    return c, c.job("j", "q")


def quotas(ssn: Session) -> DeviceQuotas:
    (plugin,) = ssn.plugins
    assert isinstance(plugin, CapacityPlugin)
    assert plugin.devices is not None
    return plugin.devices


def held(ssn: Session, queue: str = "q") -> dict[str, int]:
    return {name: a.count for name, a in quotas(ssn)._accounts[queue].allocated.items() if a.count}


def counted(devices: Devices) -> dict[str, tuple[int, dict[str, Fraction]]]:
    return {name: (a.count, a.consumed) for name, a in devices.items()}


def test_a_claim_counts_once_however_many_tasks_share_it() -> None:
    """EX-CAP-12."""
    c, job = cluster({"deviceclass/gpu.com": 1})
    node = c.cache.table.nodes[0]
    claim(c, "one")
    claim(c, "two")
    claim(c, "cards", "nic.com", 100)
    first, sharing, another, cards = (
        uses(c, job, "a", "one"),
        uses(c, job, "b", "one"),
        uses(c, job, "c", "two"),
        uses(c, job, "d", "cards"),
    )
    queue = c.cache.queues["q"]
    ssn = c.session(CapacityPlugin)
    assert ssn.allocatable_count(queue, first, 5) == 1
    stmt = Statement(ssn)
    stmt.allocate(first, node)
    assert [ssn.allocatable(queue, t) for t in (another, sharing, cards)] == [False, True, True]
    stmt.allocate(sharing, node)
    assert held(ssn) == {"gpu.com": 1}
    stmt.discard()
    assert held(ssn) == {}
    assert ssn.allocatable(queue, another)


def test_running_tasks_are_charged_at_open_and_refunded_with_the_last_of_them() -> None:
    c, job = cluster({"deviceclass/gpu.com": 2})
    claim(c, "one", count=2)
    a = uses(c, job, "a", "one", status=RUNNING, node="n1")
    b = uses(c, job, "b", "one", status=RUNNING, node="n1")
    waiting = uses(c, job, "w", claim(c, "two"))
    ssn = c.session(CapacityPlugin)
    assert held(ssn) == {"gpu.com": 2}
    stmt = Statement(ssn)
    stmt.evict(a, "test")
    assert not ssn.allocatable(ssn.queues["q"], waiting)
    stmt.evict(b, "test")
    assert held(ssn) == {}
    assert ssn.allocatable(ssn.queues["q"], waiting)


def test_consumed_capacity_is_limited_by_dimension() -> None:
    c, job = cluster({"deviceclass/gpu.com": 0, "memory.deviceclass/gpu.com": "20Gi"})
    node = c.cache.table.nodes[0]
    tasks = [uses(c, job, f"t{i}", claim(c, f"c{i}", count=2, consumes={"memory": "5Gi"})) for i in range(3)]
    unlisted = uses(c, job, "u", claim(c, "cores", consumes={"cores": "1"}))
    ssn = c.session(CapacityPlugin)
    queue = ssn.queues["q"]
    assert counted(quotas(ssn).claims_of(tasks[0])["ns/c0"]) == {"gpu.com": (2, {"memory": 10 * 2**30})}
    assert not ssn.allocatable(queue, unlisted)
    stmt = Statement(ssn)
    stmt.allocate(tasks[0], node)
    assert ssn.allocatable(queue, tasks[1])
    stmt.allocate(tasks[1], node)
    assert not ssn.allocatable(queue, tasks[2])
    plain = c.session(CapacityPlugin, arguments={"capacity.DRAConsumableCapacityEnable": False})
    assert plain.allocatable(queue, tasks[2])
    assert plain.allocatable(queue, unlisted)


def test_only_requests_for_exactly_some_devices_count() -> None:
    c, job = cluster({"deviceclass/gpu.com": 1})
    claim(c, "all", mode="All")
    claim(c, "nameless", "")
    claim(c, "none", count=0)
    c.cache.listers.resource_claims["ns/either"] = ResourceClaim(
        metadata=ObjectMeta(name="either", namespace="ns"),
        spec=ResourceClaimSpec(
            devices=DeviceClaim(
                requests=[DeviceRequest(first_available=[DeviceSubRequest(device_class_name="gpu.com")])]
            )
        ),
    )
    task = uses(c, job, "t", "all", "nameless", "either", "missing", "none")
    made = uses(c, job, "made")
    made.pod.spec.resource_claims = [
        PodResourceClaim(name="x", resource_claim_template_name="template"),
        PodResourceClaim(name="unmade", resource_claim_template_name="template"),
    ]
    made.pod.status.resource_claim_statuses = [PodResourceClaimStatus(name="x", resource_claim_name="none")]
    ssn = c.session(CapacityPlugin)
    for each in (task, made):
        assert {key: counted(d) for key, d in quotas(ssn).claims_of(each).items()} == {"ns/none": {"gpu.com": (1, {})}}


@pytest.mark.parametrize(
    ("minimum", "roles", "expected"),
    [(0, {}, 0), (1, {}, 1), (2, {}, 3), (9, {}, 6), (1, {"w": 3}, 6), (1, {"w": 0}, 0), (1, {"ps": 4}, 4)],
)
def test_the_minimum_of_a_job(minimum: int, roles: dict[str, int], expected: int) -> None:
    """Tasks a (role ps, 1 device), b (role w, 2) and c (role w, 3); those without devices do not count."""
    c = Cluster()
    c.node("n1", cpu=50)
    c.queue("q", capability={"deviceclass/gpu.com": 9})
    job = c.job("j", "q", minimum=minimum, roles=roles)
    c.tasks(job, "0", role="w", cpu=1)
    for name, count, role in (("c", 3, "w"), ("b", 2, "w"), ("a", 1, "ps")):
        uses(c, job, name, claim(c, f"claim-{name}", count=count), role=role)
    devices = quotas(c.session(CapacityPlugin)).minimum(job)
    assert sum(a.count for a in devices.values()) == expected


def test_admission_counts_what_was_admitted_in_this_session() -> None:
    c = Cluster()
    c.node("n1", cpu=50)
    c.queue("q", capability={"deviceclass/gpu.com": 1})
    first, second = (c.job(n, "q", phase="Pending", min_resources={"cpu": 1}) for n in ("first", "second"))
    uses(c, first, "a", claim(c, "one"))
    uses(c, second, "b", claim(c, "two"))
    ssn = c.session(CapacityPlugin)
    assert ssn.job_enqueueable(first)
    ssn.job_enqueued(first)
    assert not ssn.job_enqueueable(second)
    assert c.cache.events == [
        (
            "ns/second",
            "Normal",
            "Unschedulable",
            "queue resource quota insufficient: insufficient dra-resource-exceeded",
        )
    ]
    off = c.session(CapacityPlugin, arguments={"capacity.DynamicResourceAllocationEnable": "false"})
    off.job_enqueued(first)
    assert off.job_enqueueable(second)


def test_queues_above_are_charged_too() -> None:
    c = Cluster()
    node = c.node("n1", cpu=50)
    c.queue("root")
    c.queue("parent", capability={"deviceclass/gpu.com": 2})
    for name in ("x", "y"):
        c.queue(name, parent="parent", capability={"deviceclass/gpu.com": 5, "deviceclass/nic.com": 5})
    c.queue("plain", parent="parent")
    claim(c, "shared")
    for name in ("x", "y"):
        uses(
            c,
            c.job(f"j{name}", name),
            f"r{name}",
            "shared",
            claim(c, "nic", "nic.com"),
            status=RUNNING,
            node="n1",
        )
    uses(c, c.job("jp", "plain"), "rp", claim(c, "unseen"), status=RUNNING, node="n1")
    waiting = uses(c, c.job("jw", "x"), "w", claim(c, "own"))
    ssn = c.session(CapacityPlugin, flags=TREE)
    # The claim that x and y share counts for both; nic.com is not limited in parent; plain keeps no account.
    assert held(ssn, "parent") == {"gpu.com": 2}
    assert held(ssn, "x") == {"gpu.com": 1, "nic.com": 1}
    assert not ssn.allocatable(ssn.queues["x"], waiting)
    stmt = Statement(ssn)
    stmt.evict(ssn.jobs["ns/jy"].tasks["ns-ry"], "test")
    assert held(ssn, "parent") == {"gpu.com": 1}
    assert ssn.allocatable(ssn.queues["x"], waiting)
    stmt.allocate(waiting, node)
    assert held(ssn, "parent") == {"gpu.com": 2}


def test_without_device_keys_nothing_is_kept() -> None:
    c, job = cluster({"cpu": 5})
    task = uses(c, job, "a", claim(c, "one", count=100))
    ssn = c.session(CapacityPlugin)
    (plugin,) = ssn.plugins
    assert isinstance(plugin, CapacityPlugin)
    assert plugin.devices is None
    assert ssn.allocatable_count(ssn.queues["q"], task, 3) == 3
