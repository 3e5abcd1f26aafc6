"""The reflector against a server that plays by a script: every edge of list and watch, without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

import pytest

from vcscheduler.cluster.live.connection import Connection
from vcscheduler.cluster.live.failures import ApiFailure
from vcscheduler.cluster.live.reflector import Features, Reflector, WatchTiming
from vcscheduler.cluster.live.resources import PODS
from vcscheduler.objects import KubernetesObject, Pod

Document = dict[str, Any]

TIMING = WatchTiming(first_retry=0.001, last_retry=0.002)


def document(name: str, version: int, uid: str = "", **fields: Any) -> Document:
    metadata = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"nodeName": "n1"}, **fields}


def event(type: str, obj: Document) -> bytes:
    return json.dumps({"type": type, "object": obj}).encode() + b"\n"


def bookmark(version: int, end: bool = False) -> bytes:
    annotations = {"k8s.io/initial-events-end": "true"} if end else {}
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(version), "annotations": annotations}})


def gone() -> bytes:
    return event("ERROR", {"code": 410, "reason": "Expired", "message": "too old"})


class Script(Connection):
    """Answers requests one after another as written down; then keeps silent."""

    def __init__(self, *answers: ApiFailure | Document | list[bytes]) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, str]] = []
        self.finished = asyncio.Event()

    def _next(self, query: str) -> ApiFailure | Document | list[bytes] | None:
        self.asked.append({key: value for key, [value] in parse_qs(query).items()})
        if not self.answers:
            self.finished.set()
            return None
        answer = self.answers.pop(0)
        if isinstance(answer, ApiFailure):
            raise answer
        return answer

    async def call(self, method: str, path: str, *_: object, query: str = "", **__: object) -> bytes:
        answer = self._next(query)
        if answer is None:
            await asyncio.Event().wait()
        assert isinstance(answer, dict), f"a list was asked for: {query}"
        return json.dumps(answer).encode()

    @asynccontextmanager
    async def stream(self, path: str, query: str, silence: float) -> AsyncIterator[AsyncIterator[bytes]]:
        answer = self._next(query)
        if answer is None:
            await asyncio.Event().wait()
        assert isinstance(answer, list), f"a watch was asked for: {query}"

        async def chunks() -> AsyncIterator[bytes]:
            for each in answer:
                if each == b"CUT":
                    raise ApiFailure(0, "", "cut")
                yield each

        yield chunks()


class Diary:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def changed(self, old: KubernetesObject | None, new: KubernetesObject | None, /) -> None:
        if new is None:
            assert old is not None
            self.lines.append(f"-{old.name}")
        else:
            self.lines.append(f"{'+' if old is None else '~'}{new.name}@{new.metadata.resource_version}")

    def batch_ended(self) -> None:
        """Batches are of no interest here."""


def play(
    *answers: ApiFailure | Document | list[bytes], streaming: bool = True, pages_first: bool = False, **arguments: Any
):
    """Run the reflector through the script. Returns what it told, itself, and the script."""

    async def run() -> tuple[list[str], Reflector[Pod], Script]:
        script, diary, features = Script(*answers), Diary(), Features()
        features.streaming_lists = streaming
        features.pages_first = pages_first
        timing = arguments.pop("timing", TIMING)
        reflector = Reflector(PODS, Pod, script, diary, features, timing, **arguments)
        task = asyncio.ensure_future(reflector.run())
        done, _ = await asyncio.wait([task, asyncio.ensure_future(script.finished.wait())], timeout=5.0)
        assert done, f"the script was not played to its end, left: {script.answers}"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return diary.lines, reflector, script

    return asyncio.run(run())


START = [event("ADDED", document("b", 5)) + event("ADDED", document("a", 7)), bookmark(10, end=True)]


def test_a_streaming_list_is_told_in_the_order_of_names_when_it_is_complete() -> None:
    told, reflector, script = play(START)
    assert told == ["+a@7", "+b@5"]
    assert reflector.synced
    assert script.asked[0]["sendInitialEvents"] == "true"
    assert script.asked[0]["resourceVersionMatch"] == "NotOlderThan"
    assert script.asked[1]["resourceVersion"] == "10"


def test_nothing_is_told_of_a_streaming_list_that_is_cut() -> None:
    told, reflector, script = play([event("ADDED", document("a", 5)), b"CUT"])
    assert told == []
    assert not reflector.synced
    assert script.asked[1]["sendInitialEvents"] == "true"


def test_changes_are_told_and_a_watch_resumes_from_the_last_one() -> None:
    told, _, script = play(
        [*START, event("MODIFIED", document("a", 11)) + event("DELETED", document("b", 12)), b"CUT"],
        [event("ADDED", document("c", 13)), bookmark(20)],
    )
    assert told == ["+a@7", "+b@5", "~a@11", "-b", "+c@13"]
    assert [each.get("resourceVersion") for each in script.asked] == [None, "12", "20"]


def test_events_that_come_again_are_told_once() -> None:
    again = event("MODIFIED", document("a", 11)) + event("DELETED", document("a", 12))
    told, reflector, _ = play([*START, again + again + event("ADDED", document("b", 5)), b"CUT"], [again])
    assert told == ["+a@7", "+b@5", "~a@11", "-a"]
    assert set(reflector.objects) == {"ns/b"}


def test_an_event_cut_in_two_is_put_together_and_half_an_event_is_nothing() -> None:
    line = event("ADDED", document("c", 11))
    told, _, script = play([*START, line[:20], line[20:], event("ADDED", document("d", 12))[:30]])
    assert told[-1] == "+c@11"
    assert script.asked[-1]["resourceVersion"] == "11"


@pytest.mark.parametrize("refusal", [[gone()], ApiFailure(410, "Expired", "too old")])
def test_too_old_a_version_leads_to_a_new_list_whose_difference_is_told(refusal: Any) -> None:
    fresh = [event("ADDED", document("a", 30)) + event("ADDED", document("c", 31)), bookmark(40, end=True)]
    told, reflector, script = play(START, refusal, fresh)
    assert told == ["+a@7", "+b@5", "-b", "~a@30", "+c@31"]
    assert set(reflector.objects) == {"ns/a", "ns/c"}
    assert "resourceVersion" not in script.asked[2]


def test_a_pod_made_anew_under_the_same_name_is_a_deletion_and_an_addition() -> None:
    told, _, _ = play([*START, event("MODIFIED", document("a", 11, uid="other"))])
    assert told[2:] == ["-a", "+a@11"]


def page(token: str, *documents: Document, version: int = 50) -> Document:
    return {"metadata": {"resourceVersion": str(version), "continue": token}, "items": list(documents)}


def test_a_server_without_streaming_lists_is_listed_page_by_page() -> None:
    told, _, script = play(
        ApiFailure(422, "Invalid", "sendInitialEvents is forbidden"),
        page("t1", document("a", 5)),
        page("", document("b", 6)),
        [event("ADDED", document("c", 51))],
    )
    assert told == ["+a@5", "+b@6", "+c@51"]
    assert [each.get("continue") for each in script.asked[1:3]] == [None, "t1"]
    assert script.asked[1]["limit"] == "2500"
    assert script.asked[3]["resourceVersion"] == "50"


def test_the_first_list_comes_in_pages_and_later_ones_are_streamed() -> None:
    told, _, script = play(
        page("", document("a", 5)),
        [gone()],
        [event("ADDED", document("a", 5)) + event("ADDED", document("b", 60)), bookmark(70, end=True)],
        pages_first=True,
    )
    assert told == ["+a@5", "+b@60"]
    assert script.asked[0]["limit"] == "2500"
    assert script.asked[2]["sendInitialEvents"] == "true"


def test_a_page_token_that_ran_out_starts_the_list_anew_in_one_piece() -> None:
    told, _, script = play(
        page("t1", document("a", 5)),
        ApiFailure(410, "Expired", "the token is too old"),
        page("", document("b", 6)),
        streaming=False,
    )
    assert told == ["+b@6"]
    assert "limit" not in script.asked[2]


def test_an_object_that_cannot_be_read_is_passed_over_and_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    broken = document("x", 8, spec={"nodeName": ["not", "text"]})
    start = [event("ADDED", broken) + event("ADDED", document("a", 7)), bookmark(10, end=True)]
    told, _, _ = play(
        [*start, event("MODIFIED", broken | {"metadata": broken["metadata"] | {"resourceVersion": "11"}})]
    )
    assert told == ["+a@7"]
    assert [each.message for each in caplog.records if "cannot be read" in each.message] == [
        "Pod ns/x cannot be read and is passed over: Expected `str`, got `array` - at `$.spec.nodeName`"
    ]


def test_an_object_that_can_be_read_no_more_keeps_its_last_readable_state() -> None:
    broken = document("a", 30, spec={"nodeName": 7})
    told, reflector, _ = play(START, [gone()], [event("ADDED", broken), bookmark(40, end=True)])
    assert told == ["+a@7", "+b@5", "-b"]
    assert reflector.objects["ns/a"].metadata.resource_version == "7"


def test_nulls_mean_absent() -> None:
    odd = document("a", 5, status={"conditions": None, "phase": None})
    told, reflector, _ = play([event("ADDED", odd), bookmark(10, end=True)])
    assert told == ["+a@5"]
    assert reflector.objects["ns/a"].status.conditions == []


def test_denial_is_remembered_until_it_works() -> None:
    denied = ApiFailure(403, "Forbidden", "pods is forbidden")
    told, reflector, _ = play(denied)
    assert (told, reflector.synced, reflector.problem) == ([], False, denied)
    told, reflector, _ = play(denied, START)
    assert (told, reflector.problem) == (["+a@7", "+b@5"], None)


def test_unwanted_objects_do_not_exist_until_they_are_wanted() -> None:
    def unbound(name: str, version: int) -> Document:
        return document(name, version, spec={})

    told, reflector, _ = play(
        [event("ADDED", unbound("a", 5)), bookmark(10, end=True)],
        [event("MODIFIED", document("a", 11)) + event("MODIFIED", unbound("a", 12))],
        wanted=lambda pod: bool(pod.spec.node_name),
    )
    assert told == ["+a@11", "-a"]
    assert reflector.objects == {}


def test_updates_that_say_nothing_new_are_not_told_but_kept() -> None:
    told, reflector, _ = play([*START, event("MODIFIED", document("a", 11))], unchanged=lambda old, new: True)
    assert told == ["+a@7", "+b@5"]
    assert reflector.objects["ns/a"].metadata.resource_version == "11"


def test_an_audit_finds_what_a_watch_kept_back() -> None:
    timing = WatchTiming(first_retry=0.001, last_retry=0.002, audit=0.0)
    told, _, _ = play(START, [event("ADDED", document("c", 9)), bookmark(40, end=True)], timing=timing)
    assert told == ["+a@7", "+b@5", "-a", "-b", "+c@9"]


def test_garbage_in_place_of_an_answer_is_survived() -> None:
    told, _, _ = play([b"<html>\n"], START)
    assert told == ["+a@7", "+b@5"]
