"""Case files are read, run and compared as the format says; the engine here is a toy that fills the first node."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from vcscheduler.cluster.memory import Clock, MemoryCluster
from vcscheduler.objects import Node, Pod
from vcscheduler.simulator.conformance import (
    Case,
    CaseError,
    CycleRecord,
    Difference,
    compare,
    parse_case,
    read_case,
    run_case,
)

CASE = """\
id: first-node
about: pods go to the first node, the pod named victim goes away
now: 2026-11-29T16:15:00Z
config: {actions: allocate}
cycles: 2
objects:
- {apiVersion: v1, kind: Node, metadata: {name: n1}}
- apiVersion: v1
  kind: Pod
  metadata: {name: a, namespace: ns, uid: ua, labels: {app: y}}
  status: {phase: Pending}
- apiVersion: v1
  kind: Pod
  metadata: {name: victim, namespace: ns, uid: uv}
  spec: {nodeName: n1}
  status: {phase: Running}
expect:
- binds: {ns/a: n1}
  evicts: [ns/victim]
  taskStatus: {all: {Pending: 1, Running: 1}}
- bindCount: 0
  evictCount: 0
  taskStatus: {all: {Running: 1}}
"""


class FirstNode:
    """Binds every pending pod to the first node and evicts pods named victim."""

    def __init__(self, case: Case, cluster: MemoryCluster, clock: Clock) -> None:
        assert cluster.objects(Node) == []
        assert case.config == {"actions": "allocate"}
        assert clock() == datetime(2026, 11, 29, 16, 15, tzinfo=UTC)
        self._cluster = cluster

    def run_once(self) -> CycleRecord:
        first = self._cluster.objects(Node)[0].name
        counts: dict[str, int] = {}
        for pod in self._cluster.objects(Pod):
            counts[pod.status.phase] = counts.get(pod.status.phase, 0) + 1
            if not pod.spec.node_name:
                self._cluster.bind(pod, first, {})
            elif pod.name == "victim":
                self._cluster.evict(pod, "preempt")
        return CycleRecord(
            binds=self._cluster.bindings(),
            evicts=self._cluster.terminating(),
            task_status={"all": counts},
        )


def case_of(text: str = CASE, **changes: str) -> Case:
    for old, new in changes.items():
        text = text.replace(old, new)
    return parse_case(text, "case.yaml")


def test_a_case_that_holds_has_no_differences() -> None:
    assert run_case(case_of(), FirstNode) == []


def test_differences_name_the_cycle_the_key_and_both_values() -> None:
    case = parse_case(
        CASE.replace("{ns/a: n1}", "{ns/a: n2, ns/b: n1}").replace("Running: 1}}\n", "Running: 2}}\n"), "c"
    )
    first, second, third = run_case(case, FirstNode)
    assert first == Difference(1, "binds", {"ns/a": "n2", "ns/b": "n1"}, {"ns/a": "n1"})
    assert (second.cycle, second.key, third.cycle, third.key) == (1, "taskStatus", 2, "taskStatus")
    assert [str(entry) for entry in first.entries()] == [
        "cycle 1: binds[ns/a]: expected n2, found n1",
        "cycle 1: binds[ns/b]: expected n1, found None",
    ]


def test_keys_that_are_absent_are_not_compared() -> None:
    record = CycleRecord(binds={"ns/a": "n"}, evicts=["ns/b"], pipelined={"ns/c": "n"})
    assert compare({}, record, 1) == []
    assert compare({"pipelined": {"ns/c": "n"}}, record, 1) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("binds", {"ns/a": "n"}),
        ("bindCount", 1),
        ("evicts", ["ns/b", "ns/c"]),
        ("evictCount", 2),
        ("pipelined", {"ns/d": "n"}),
        ("podGroupPhase", {"ns/g": "Inqueue"}),
        ("taskStatus", {"ns/g": {"Binding": 1}}),
        ("conditions", {"ns/g": [{"type": "Scheduled", "status": "True"}]}),
    ],
)
def test_each_key_is_compared_exactly(key: str, value: object) -> None:
    record = CycleRecord(
        binds={"ns/a": "n"},
        evicts=["ns/b", "ns/c"],
        pipelined={"ns/d": "n"},
        pod_group_phase={"ns/g": "Inqueue"},
        task_status={"ns/g": {"Binding": 1}},
        conditions={"ns/g": [{"type": "Scheduled", "status": "True"}]},
    )
    assert compare({key: value}, record, 1) == []
    assert [each.key for each in compare({key: value}, CycleRecord(), 3)] == [key]


def test_an_entry_without_keys_may_be_left_empty() -> None:
    text = CASE[: CASE.index("expect:")].replace("cycles: 2", "cycles: 1") + "expect: [null]\n"
    assert run_case(parse_case(text, "c"), FirstNode) == []


def test_objects_stand_as_they_are() -> None:
    case = case_of()
    pod = case.objects[1]
    assert isinstance(pod, Pod)
    assert pod.metadata.creation_timestamp is None
    assert pod.spec.priority is None
    assert pod.metadata.labels == {"app": "y"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cycles: 2", "cycles: 3", "case.yaml:18:1: expect: found 2 entries, there must be one for each of 3 cycles"),
        ("cycles: 2", "cycles: 0", "case.yaml:5:9: cycles: found 0, allowed is 1 or more"),
        ("cycles: 2", "cycles: two", 'case.yaml:5:9: cycles: found "two", allowed is a whole number'),
        ("id: first-node\n", "", 'case.yaml:1:1: the key "id" is missing'),
        ("15:00Z", "15:00", "case.yaml:3:6: now: the time needs a time zone, such as the Z in 2026-11-29T16:15:00Z"),
        ("about:", "abuot:", 'case.yaml:2:1: abuot: no such key; did you mean "about"?'),
        ("  evicts:", "  evict:", 'case.yaml:19:3: expect[0].evict: no such key; did you mean "evicts"?'),
        ("kind: Node", "kind: Nod", "case.yaml:7:3: objects[0]: no such kind: v1/Nod"),
        (
            "nodeName: n1",
            "nodeName: 1",
            'case.yaml:15:20: objects[2].spec.nodeName: found 1, allowed is text; put it in quotes: "1"',
        ),
        ("app: y", "app: true", "case.yaml:10:61: objects[1].metadata.labels.app: found true, allowed is text"),
        ("{ns/a: n1}", "[ns/a]", "case.yaml:18:10: expect[0].binds: found a list, allowed is a mapping"),
        ("id: first-node", "id: [", "case.yaml:"),
    ],
)
def test_broken_cases_say_where(old: str, new: str, message: str) -> None:
    assert old in CASE
    with pytest.raises(CaseError) as caught:
        parse_case(CASE.replace(old, new, 1), "case.yaml")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_holds_several_documents_is_broken(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"gone.yaml: cannot be read: No such file"):
        read_case(tmp_path / "gone.yaml")
    with pytest.raises(CaseError, match=r"found 2 documents, a case is one"):
        parse_case(f"{CASE}---\n{CASE}", "c")
