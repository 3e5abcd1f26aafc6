"""conformance: system pods stay (spec 04 §4)."""

from plugin_cluster import Cluster, names

from vcscheduler.model.status import RUNNING, EvictionKind
from vcscheduler.plugins.conformance import ConformancePlugin


def test_system_pods_are_never_victims() -> None:
    """EX-CONF-1."""
    c = Cluster()
    first = c.task(c.job("a", namespace="a"), "first", RUNNING)
    system = c.task(c.job("b", namespace="kube-system"), "system", RUNNING)
    critical = c.task(c.job("c", namespace="b"), "critical", RUNNING, priority_class="system-node-critical")
    high = c.task(c.job("d", namespace="c"), "high", RUNNING, priority_class="high", priority=2_000_001_000)
    cluster_critical = c.task(c.job("e", namespace="c"), "cc", RUNNING, priority_class="system-cluster-critical")
    preemptor = c.task(c.job("p"), "p")
    candidates = [first, system, critical, high, cluster_critical]
    ssn = c.session(ConformancePlugin)
    assert names(ssn.preemptable(preemptor, candidates)) == ["first", "high"]
    assert names(ssn.reclaimable(preemptor, candidates)) == ["first", "high"]
    kind = EvictionKind.GANG_PREEMPT
    assert names(ssn.unified_evictable(kind, c.cache.jobs["ns/p"], candidates)) == ["first", "high"]
