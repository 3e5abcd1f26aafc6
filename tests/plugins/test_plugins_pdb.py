"""pdb: disruption budgets (spec 04 §10)."""

from plugin_cluster import NOW, Cluster, names

from vcscheduler.model.status import RUNNING
from vcscheduler.model.task import Task
from vcscheduler.objects import PodDisruptionBudget
from vcscheduler.objects.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from vcscheduler.objects.policy import PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from vcscheduler.plugins.pdb import PdbPlugin

APP = LabelSelector(match_labels={"app": "x"})


def budget(
    c: Cluster,
    name: str,
    allowed: int,
    selector: LabelSelector | None = APP,
    disrupted: tuple[str, ...] = (),
    namespace: str = "ns",
) -> None:
    c.cache.listers.disruption_budgets[f"{namespace}/{name}"] = PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodDisruptionBudgetSpec(selector=selector),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted, NOW)),
    )


def cluster() -> tuple[Cluster, Task, list[Task]]:
    """(cluster, preemptor, candidates p1, p2 and the unlabelled p3)."""
    c = Cluster()
    job = c.job("j")
    tasks = [
        c.task(job, "p1", RUNNING, labels={"app": "x", "first": "yes"}),
        c.task(job, "p2", RUNNING, labels={"app": "x"}),
        c.task(job, "p3", RUNNING),
    ]
    return c, c.task(c.job("p"), "preemptor"), tasks


def test_budgets_are_kept_and_unlabelled_pods_are_never_victims() -> None:
    """EX-PDB-1."""
    c, preemptor, tasks = cluster()
    assert names(c.session(PdbPlugin).preemptable(preemptor, tasks)) == ["p1", "p2"]
    budget(c, "a", 1)
    ssn = c.session(PdbPlugin)
    ssn.explaining_victims = True
    assert names(ssn.preemptable(preemptor, tasks)) == ["p1"]
    assert names(ssn.reclaimable(preemptor, tasks)) == ["p1"]
    assert names(ssn.victim_tasks(tasks)) == ["p1"]
    assert [(t.name, allowed, why) for _, _, t, allowed, why in ssn.victim_notes[:3]] == [
        ("p1", True, "no disruption budget stands against it"),
        ("p2", False, "a disruption budget would be violated"),
        ("p3", False, "pods without labels are never victims while this plugin is on"),
    ]
    budget(c, "a", 1, disrupted=("p1",))
    assert names(c.session(PdbPlugin).preemptable(preemptor, tasks)) == ["p1", "p2"]


def test_a_violating_pod_uses_up_other_budgets() -> None:
    """EX-PDB-2."""
    c, preemptor, tasks = cluster()
    budget(c, "a", 0, LabelSelector(match_labels={"first": "yes"}))
    budget(c, "b", 1)
    assert c.session(PdbPlugin).preemptable(preemptor, tasks) == []


def test_empty_missing_and_invalid_selectors_select_nothing() -> None:
    c, preemptor, tasks = cluster()
    invalid = LabelSelector(match_expressions=[LabelSelectorRequirement(key="app", operator="Near")])
    for i, selector in enumerate((LabelSelector(), None, invalid)):
        budget(c, f"b{i}", 0, selector)
    budget(c, "elsewhere", 0, namespace="other")
    assert names(c.session(PdbPlugin).preemptable(preemptor, tasks)) == ["p1", "p2"]
