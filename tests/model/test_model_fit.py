"""Fit errors and their texts (spec 01 §7.5)."""

from __future__ import annotations

import numpy as np

import builders
from builders import World
from vcscheduler.model.fit import CodedFailures, FitErrors, FitFailure, Status, histogram
from vcscheduler.model.status import Code
from vcscheduler.placement.search import Cursor, ErrorCache, Purpose, Sampling, Search


def test_f1_reasons_are_sorted_as_text() -> None:
    texts = {1: "Insufficient cpu", 2: "node(s) had untolerated taint(s)"}
    rows = np.arange(12)
    codes = np.array([1, *[2] * 10, 1])
    errors = FitErrors([CodedFailures(rows, codes, lambda code: (Status(Code.UNSCHEDULABLE, texts[code]),))])
    assert errors.text == ("0/12 nodes are unavailable: 10 node(s) had untolerated taint(s), 2 Insufficient cpu.")


def test_f2_hyper_node_and_plain_errors() -> None:
    errors = FitErrors.everywhere([3], Status(Code.ERROR, "node(s) pod number exceeded"))
    errors.hyper_node = "h1"
    assert errors.text == "In hyperNode h1: 0/1 nodes are unavailable: 1 node(s) pod number exceeded."
    assert errors.unresolvable_rows().tolist() == []


def test_f3_nothing_was_looked_at() -> None:
    assert FitErrors().text == "0/0 nodes are unavailable"
    assert FitErrors(base="Task a has failed, skip").text == "Task a has failed, skip"


def test_f4_which_nodes_eviction_cannot_help() -> None:
    statuses = {
        1: (Status(Code.UNSCHEDULABLE, "Insufficient cpu"),),
        2: (Status(Code.UNSCHEDULABLE, "x"), Status(Code.UNRESOLVABLE, "y")),
    }
    errors = FitErrors([CodedFailures(np.array([4, 7]), np.array([1, 2]), statuses.__getitem__)])
    assert errors.unresolvable_rows().tolist() == [7]
    assert errors.text == "0/2 nodes are unavailable: 1 Insufficient cpu, 1 x, 1 y."
    assert errors.by_rule() == {("", "Insufficient cpu"): 1, ("", "x"): 1, ("", "y"): 1}


def test_f5_only_the_first_short_resource_is_named() -> None:
    world = World(builders.node("n1", cpu=1, nvidia_com__gpu=0))
    task = world.task(builders.pod("p", cpu=3, requests={"nvidia.com/gpu": 2}))
    search = Search(world.table, [], [], [], Sampling(), Cursor(), None)
    found, errors = search.feasible(task, world.table.ready_rows, ErrorCache(reads=False), Purpose.ALLOCATE)
    assert not len(found)
    assert errors.text == "0/1 nodes are unavailable: 1 Insufficient cpu."


def test_a_failure_of_one_node_reads_as_its_reasons() -> None:
    failure = FitFailure(Status(Code.UNSCHEDULABLE, "a"), Status(Code.SUCCESS, ""), Status(Code.ERROR, "b"))
    assert str(failure) == "a, b"
    assert histogram({"y": 2, "x": 10}) == "10 x, 2 y"
