"""enqueue lets groups in, best queue first, none retried (spec 03 §2). More in tests/conformance/enqueue-*."""

from __future__ import annotations

from lab import Lab, configuration

ONLY = configuration(actions="enqueue")


def phases(lab: Lab) -> dict[str, str]:
    return {k.partition("/")[2]: v for k, v in lab.cycle().pod_group_phase.items()}


def waiting(lab: Lab, name: str, cpu: int | None = None, **how: object) -> Lab:
    least = {} if cpu is None else {"min_resources": {"cpu": cpu}}
    return lab.job(name, phase="Pending", group=least, **how)  # type: ignore[arg-type]


def test_without_proportion_the_budget_of_overcommit_alone_counts() -> None:
    tiers = [["priority", "gang", "conformance"], ["overcommit", "drf", "predicates", "nodeorder"]]
    lab = Lab(configuration(tiers, "enqueue")).queue("q").node("n1", cpu=10)
    for name, cpu in (("a", 6), ("b", 5), ("c", 2)):
        waiting(lab, name, cpu)
    assert phases(lab) == {"a": "Inqueue", "b": "Inqueue", "c": "Pending"}


def test_jobs_of_higher_priority_are_asked_first() -> None:
    lab = Lab(ONLY).queue("q").node("n1", cpu=10)
    waiting(lab, "low", 6, priority=1)
    waiting(lab, "high", 6, priority=9)
    assert phases(lab) == {"low": "Pending", "high": "Inqueue"}


def test_who_is_in_stays_in_and_keeps_what_was_promised() -> None:
    lab = Lab(ONLY).queue("q").node("n1", cpu=10)
    waiting(lab, "first", 6)
    assert phases(lab) == {"first": "Inqueue"}
    waiting(lab, "second", 6, priority=100)
    assert phases(lab) == {"first": "Inqueue", "second": "Pending"}


def test_a_group_of_an_unknown_queue_takes_no_part() -> None:
    lab = Lab(ONLY).queue("q").node("n1")
    waiting(lab, "lost", None, queue="nowhere")
    assert phases(lab) == {}
