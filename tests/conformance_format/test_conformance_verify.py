"""Which case files are run, and what is told of the outcome."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from vcscheduler.cluster.memory import Clock, MemoryCluster
from vcscheduler.objects import Node, Pod
from vcscheduler.simulator.conformance import Case, CycleRecord, Difference
from vcscheduler.simulator.verify import (
    Outcome,
    SelectionError,
    collect,
    summary,
    verify,
    verify_file,
    write_junit,
)

CASE = """\
id: one
now: 2026-11-29T16:15:00Z
config: {actions: "enqueue", tiers: []}
cycles: 1
objects:
- {apiVersion: v1, kind: Node, metadata: {name: n1}}
- {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: ns, uid: ua}}
expect: [{binds: {ns/a: n1}}]
"""


class Binder:
    def __init__(self, case: Case, cluster: MemoryCluster, clock: Clock) -> None:
        self._cluster = cluster

    def run_once(self) -> CycleRecord:
        for pod in self._cluster.objects(Pod):
            self._cluster.bind(pod, self._cluster.objects(Node)[0].name, {})
        return CycleRecord(binds=self._cluster.bindings())


def failing(case: Case, cluster: MemoryCluster, clock: Clock) -> Binder:
    raise RuntimeError("the engine\nbroke")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "cases"
    for name in ("allocate/a-1.yaml", "allocate/a-2.yaml", "preempt/deep/p-1.yml", "preempt/notes.txt"):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(CASE)
    return root


def names(files: list[Path]) -> list[str]:
    return [file.name for file in files]


class TestSelection:
    def test_folders_are_searched_in_order_of_names(self, folder: Path) -> None:
        assert names(collect([folder])) == ["a-1.yaml", "a-2.yaml", "p-1.yml"]

    def test_a_file_is_run_once_however_often_it_is_named(self, folder: Path) -> None:
        assert names(collect([folder / "allocate/a-2.yaml", folder, folder / "allocate"])) == [
            "a-2.yaml",
            "a-1.yaml",
            "p-1.yml",
        ]

    def test_a_list_names_files_relative_to_itself(self, folder: Path) -> None:
        listing = folder / "some.txt"
        listing.write_text("# chosen\npreempt/deep/p-1.yml\n\nallocate/a-1.yaml\nallocate/gone.yaml\n")
        assert names(collect([], [listing])) == ["p-1.yml", "a-1.yaml", "gone.yaml"]

    def test_text_chooses_by_path_below_the_folder_given(self, folder: Path) -> None:
        assert names(collect([folder], text="preempt")) == ["p-1.yml"]
        assert names(collect([folder / "allocate"], text="allocate")) == ["a-1.yaml", "a-2.yaml"]
        assert names(collect([folder], text="a-2")) == ["a-2.yaml"]

    def test_nothing_to_run_is_an_error(self, folder: Path) -> None:
        for paths, lists, text, message in (
            ([folder / "gone"], [], "", "gone: no such file or folder"),
            ([folder], [], "zzz", "no case has 'zzz' in its path"),
            ([], [], "", "no cases were given"),
            ([], [folder / "gone.txt"], "", "gone.txt: cannot be read: No such file or directory"),
        ):
            with pytest.raises(SelectionError, match=message):
                collect(paths, lists, text)

    def test_a_folder_without_cases_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(SelectionError, match="no case files in this folder"):
            collect([tmp_path])


class TestOutcomes:
    def test_a_case_that_holds_passes(self, folder: Path) -> None:
        outcome = verify_file(folder / "allocate/a-1.yaml", Binder)
        assert outcome.passed
        assert str(outcome) == "one: passed"

    def test_a_failure_is_one_line_with_the_differing_keys(self) -> None:
        differences = (
            Difference(1, "binds", {"a": "n"}, {}),
            Difference(1, "evicts", ["b"], []),
            Difference(3, "binds", {}, {"c": "n"}),
        )
        outcome = Outcome("f.yaml", "case-1", differences)
        assert str(outcome) == "case-1: cycle 1: binds, evicts; cycle 3: binds"
        assert outcome.details() == [
            "cycle 1: binds[a]: expected n, found None",
            "cycle 1: evicts: expected ['b'], found []",
            "cycle 3: binds[c]: expected None, found n",
        ]

    def test_a_broken_file_is_a_failure_with_one_message(self, folder: Path) -> None:
        broken = folder / "broken.yaml"
        broken.write_text(CASE.replace("cycles: 1", "cycles: 0"))
        assert str(verify_file(broken, Binder)) == f"broken: {broken}:4:9: cycles: found 0, allowed is 1 or more"

    def test_a_configuration_that_cannot_be_used_is_a_failure(self, folder: Path) -> None:
        file = folder / "config.yaml"
        file.write_text(CASE.replace("enqueue", "enqueu"))
        outcome = verify_file(file)
        assert not outcome.passed
        assert "enqueu" in str(outcome)
        assert outcome.trace == ""

    def test_an_error_inside_the_engine_is_a_failure_with_its_place(self, folder: Path) -> None:
        outcome = verify_file(folder / "allocate/a-1.yaml", failing)
        assert str(outcome).startswith("one: RuntimeError: the engine broke (at test_conformance_verify.py:")
        assert outcome.details()[0].startswith("Traceback")

    def test_the_summary_counts(self) -> None:
        assert summary([Outcome("f", "a"), Outcome("g", "b", error="x"), Outcome("h", "c")]) == "2 passed, 1 failed"

    def test_many_cases_run_in_several_processes_in_the_order_given(self, folder: Path) -> None:
        files = []
        for index in range(10):
            files.append(folder / f"broken-{index}.yaml")
            files[-1].write_text("[]")
        assert [outcome.id for outcome in verify(files, processes=2)] == [file.stem for file in files]

    def test_the_junit_report_has_a_test_case_each(self, tmp_path: Path) -> None:
        report = tmp_path / "report.xml"
        write_junit(
            [
                Outcome("x/a.yaml", "a", seconds=0.25),
                Outcome("x/b.yaml", "b", (Difference(1, "binds", {"p": "n"}, {}),)),
                Outcome("y/c.yaml", "c", error="cannot \x1bbe read"),
            ],
            report,
        )
        suite = ElementTree.parse(report).getroot()[0]
        assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
        passed, failed, broken = suite
        assert (passed.get("classname"), passed.get("name"), list(passed)) == ("x", "a", [])
        assert (failed[0].tag, failed[0].get("message")) == ("failure", "b: cycle 1: binds")
        assert failed[0].text == "cycle 1: binds[p]: expected n, found None"
        assert (broken[0].tag, broken[0].get("message")) == ("error", "c: cannot be read")
