"""resourcequota: quotas at the gate (spec 04 §9)."""

from plugin_cluster import Cluster

from vcscheduler.objects import ResourceQuota
from vcscheduler.objects.core import ResourceQuotaStatus
from vcscheduler.objects.meta import ObjectMeta
from vcscheduler.plugins.resourcequota import ResourceQuotaPlugin


def quota(c: Cluster, name: str, hard: dict[str, str], used: dict[str, str], namespace: str = "ns") -> None:
    c.cache.listers.quotas[f"{namespace}/{name}"] = ResourceQuota(
        metadata=ObjectMeta(name=name, namespace=namespace),
        status=ResourceQuotaStatus(hard=dict(hard), used=dict(used)),
    )


def test_what_was_admitted_in_the_session_counts() -> None:
    """EX-RQ-1."""
    c = Cluster()
    quota(c, "a", {"cpu": "4", "requests.memory": "8Gi"}, {"cpu": "1"})
    first, second, unlimited = (
        c.job(n, phase="Pending", min_resources={"cpu": 2, "memory": 100}) for n in ("first", "second", "third")
    )
    elsewhere = c.job("j", namespace="other", phase="Pending", min_resources={"cpu": 99})
    none = c.job("none", phase="Pending")
    unlimited.pod_group.spec.min_resources = None  # type: ignore[union-attr]
    ssn = c.session(ResourceQuotaPlugin)
    assert ssn.job_enqueueable(first)
    ssn.job_enqueued(first)
    assert not ssn.job_enqueueable(second)
    assert c.cache.events == [
        (
            "ns/second",
            "Normal",
            "Unschedulable",
            "resource quota insufficient, requested: cpu 2, used: cpu 3, limited: cpu 4",
        )
    ]
    assert all(ssn.job_enqueueable(j) for j in (unlimited, elsewhere, none))


def test_the_strictest_quota_decides_and_the_limit_itself_is_allowed() -> None:
    """EX-RQ-2."""
    c = Cluster()
    quota(c, "wide", {"cpu": "10"}, {})
    quota(c, "narrow", {"cpu": "3"}, {})
    quota(c, "exact", {"cpu": "2"}, {}, namespace="exact")
    too_much = c.job("j", phase="Pending", min_resources={"cpu": 4})
    fits = c.job("k", phase="Pending", min_resources={"cpu": 3})
    exact = c.job("l", namespace="exact", phase="Pending", min_resources={"cpu": 2})
    ssn = c.session(ResourceQuotaPlugin)
    assert [ssn.job_enqueueable(j) for j in (too_much, fits, exact)] == [False, True, True]
