"""The smaller parts of the live cluster: lines, patches, failures, events, statuses under way, credentials."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from vcscheduler.cluster.interface import ErrorReason
from vcscheduler.cluster.live.access import ObjectAccess, merge, merge_patch
from vcscheduler.cluster.live.connection import Access, Connection, ConnectionFailed, query_of
from vcscheduler.cluster.live.decoding import Lines
from vcscheduler.cluster.live.failures import ApiFailure, failure_of
from vcscheduler.cluster.live.object_writes import StatusBook, as_written, lay_over_pod_group
from vcscheduler.cluster.live.queue import Write
from vcscheduler.cluster.live.recorder import Recorder, WriteEvent
from vcscheduler.cluster.live.resources import PODGROUPS, PODS, Watched
from vcscheduler.objects import ObjectMeta, PodGroup, PodGroupCondition, PodGroupStatus


@given(st.lists(st.binary(max_size=8).map(lambda each: each.replace(b"\n", b""))), st.data())
def test_lines_are_the_same_however_the_bytes_arrive(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    cutter, found = Lines(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += cutter.feed(stream[start:end])
    assert found == [line for line in lines if line]


plain = st.recursive(
    st.integers() | st.text(max_size=3) | st.booleans(),
    lambda inner: st.dictionaries(st.text(max_size=2), inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=2), plain), st.dictionaries(st.text(max_size=2), plain))
def test_a_merge_patch_leads_from_the_old_to_the_new(old: dict[str, object], new: dict[str, object]) -> None:
    result = json.loads(json.dumps(old))
    merge(result, merge_patch(old, new))
    assert result == new


@pytest.mark.parametrize(
    ("status", "reason", "transient", "uncertain", "means"),
    [
        (404, "NotFound", False, False, ErrorReason.NOT_FOUND),
        (409, "AlreadyExists", False, False, ErrorReason.ALREADY_EXISTS),
        (409, "Conflict", False, False, ErrorReason.CONFLICT),
        (422, "Invalid", False, False, ErrorReason.INVALID),
        (403, "Forbidden", False, False, ErrorReason.FORBIDDEN),
        (429, "TooManyRequests", True, False, ErrorReason.UNAVAILABLE),
        (500, "InternalError", True, True, ErrorReason.INTERNAL),
        (503, "ServiceUnavailable", True, True, ErrorReason.UNAVAILABLE),
        (504, "Timeout", True, True, ErrorReason.TIMEOUT),
    ],
)
def test_what_an_answer_means(status: int, reason: str, transient: bool, uncertain: bool, means: ErrorReason) -> None:
    body = json.dumps({"kind": "Status", "reason": reason, "message": "m"}).encode()
    failure = failure_of("POST", "/x", status, body, "2" if status == 429 else None)
    assert (failure.transient, failure.uncertain) == (transient, uncertain)
    assert failure.retry_after == (2.0 if status == 429 else None)
    assert failure.as_cluster_error().reason is means
    assert not failure_of("GET", "/x", status, body, None).uncertain


def test_an_answer_that_is_no_status_is_shown_shortened() -> None:
    failure = failure_of("GET", "/x", 502, b"<html>" + b"x" * 1000, None)
    assert failure.message.startswith("<html>xxx")
    assert len(failure.message) == 200


def test_paths_and_queries_are_quoted() -> None:
    assert PODS.item("a b", "../c", "status") == "/api/v1/namespaces/a%20b/pods/..%2Fc/status"
    assert query_of({"continue": "a+b=c&d/e"}) == "continue=a%2Bb%3Dc%26d/e"


def test_what_is_watched_follows_the_flags() -> None:
    def names(watched: Watched, *served: str) -> list[str]:
        return [each.plural for each in watched.resources(served)]

    usual = names(Watched())
    assert usual[-3:] == ["numatopologies", "podgroups", "pods"]
    assert not {"nodeshards", "resourceclaims"} & set(usual)
    assert "resourceclaims" in names(Watched(), "resource.k8s.io/v1")
    assert "resourceclaims" not in names(Watched(dynamic_resource_allocation=False), "resource.k8s.io/v1")
    few = Watched(
        priority_classes=False, numatopologies=False, csi_storage=False, workloads=False, disruption_budgets=False
    )
    gone = set(usual) - set(names(few))
    assert gone == {
        *("priorityclasses", "numatopologies", "csidrivers", "csistoragecapacities"),
        *("replicationcontrollers", "replicasets", "statefulsets", "poddisruptionbudgets"),
    }
    assert "nodeshards" in names(Watched(node_shards=True))


# --- events -----------------------------------------------------------------------------------------------------------


class Outbox:
    def __init__(self) -> None:
        self.writes: list[WriteEvent] = []

    def submit(self, write: Write) -> bool:
        assert isinstance(write, WriteEvent)
        self.writes.append(write)
        return True


def recorder() -> tuple[Recorder, Outbox]:
    outbox = Outbox()
    return Recorder("volcano", lambda kind, namespace, name: f"uid-{name}", outbox.submit), outbox


def test_repeats_that_wait_are_one_write() -> None:
    tell, outbox = recorder()
    for _ in range(5):
        tell.record("Pod", "ns", "p", "Normal", "Scheduled", "m")
    [write] = outbox.writes
    assert write.told.count == 5
    assert write.told.uid == "uid-p"


def test_more_than_ten_of_a_kind_become_one() -> None:
    tell, outbox = recorder()
    for number in range(15):
        tell.record("Pod", "ns", "p", "Warning", "FailedScheduling", f"m{number}")
    assert len(outbox.writes) == 11
    assert outbox.writes[-1].told.message == "(combined from similar events): m14"
    assert outbox.writes[-1].told.count == 5


def test_an_object_may_be_talked_about_25_times() -> None:
    tell, outbox = recorder()
    for _ in range(40):
        tell.record("PodGroup", "ns", "g", "Warning", "Unschedulable", "m")
    assert outbox.writes[0].told.count == 25
    assert tell.suppressed == 15
    tell.record("PodGroup", "ns", "another", "Warning", "Unschedulable", "m")
    assert len(outbox.writes) == 2


def test_names_of_events_are_valid_however_long_the_object_is_called() -> None:
    tell, outbox = recorder()
    tell.record("Pod", "ns", "a" * 229 + "-" + "b" * 20, "Normal", "Scheduled", "m")
    name = outbox.writes[0].told.event_name
    assert len(name) <= 253
    assert name.startswith("a" * 229 + ".")


# --- statuses under way -----------------------------------------------------------------------------------------------


def group(version: str, phase: str, uid: str = "u") -> PodGroup:
    metadata = ObjectMeta(name="g", namespace="ns", uid=uid, resource_version=version)
    return PodGroup(metadata=metadata, status=PodGroupStatus(phase=phase))


def book() -> StatusBook[PodGroup]:
    return StatusBook(PODGROUPS, PodGroup, lay_over_pod_group, "")


def test_events_from_before_a_write_show_what_was_written() -> None:
    statuses, wanted = book(), group("", "Running")
    statuses.expect(wanted)
    assert statuses.shown(group("5", "Inqueue")).status.phase == "Running"
    statuses.stored(wanted, "8", group("5", "Inqueue"))
    assert statuses.shown(group("7", "Inqueue")).status.phase == "Running"
    assert statuses.shown(group("8", "Running")).status.phase == "Running"
    assert len(statuses) == 0
    assert statuses.shown(group("9", "Pending")).status.phase == "Pending"


def test_a_watch_that_is_faster_than_the_answer_leaves_nothing_behind() -> None:
    statuses, wanted = book(), group("", "Running")
    statuses.expect(wanted)
    shown = statuses.shown(group("8", "Running"))
    statuses.answered(group("8", "Running"), shown)
    statuses.stored(wanted, "8", shown)
    assert len(statuses) == 0
    assert statuses.newest(shown, "ns/g") is shown


def test_a_later_write_is_not_ended_by_an_earlier_one() -> None:
    statuses, first, second = book(), group("", "Inqueue"), group("", "Running")
    statuses.expect(first)
    statuses.expect(second)
    statuses.stored(first, "8", None)
    statuses.failed(first)
    assert statuses.shown(group("8", "Inqueue")).status.phase == "Running"


def test_the_newest_version_is_of_the_same_object() -> None:
    statuses = book()
    statuses.answered(group("8", "Running"), None)
    assert statuses.newest(group("5", "Inqueue"), "ns/g") == group("8", "Running")
    made_anew = group("9", "Pending", uid="other")
    assert statuses.newest(made_anew, "ns/g") is made_anew


def test_times_are_written_as_the_server_keeps_them() -> None:
    at = datetime(2026, 11, 29, 12, 0, 1, 999, tzinfo=timezone(timedelta(hours=2)))
    told = PodGroupCondition(type="Scheduled", last_transition_time=at)
    written = as_written(PodGroup(status=PodGroupStatus(conditions=[told])))
    assert written.status.conditions[0].last_transition_time == datetime(2026, 11, 29, 10, 0, 1, tzinfo=UTC)
    assert told.last_transition_time is at


# --- the connection ---------------------------------------------------------------------------------------------------

Handler = Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]]


def served(handler: Handler, kubeconfig: Path, work: Callable[[Connection], Coroutine[Any, Any, None]]) -> None:
    """Do the work over a connection to a server on loopback that answers as the handler does."""

    async def run() -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        write_kubeconfig(kubeconfig, runner.addresses[0][1], "first")
        connection = Connection(Access(kubeconfig=str(kubeconfig)), timeout=0.5)
        await connection.open()
        try:
            await work(connection)
        finally:
            await connection.close()
            await runner.cleanup()

    asyncio.run(run())


def write_kubeconfig(path: Path, port: int, token: str) -> None:
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
                "users": [{"name": "u", "user": {"token": token}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )


def test_a_token_that_ran_out_is_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        if seen[-1] == "Bearer second":
            return web.json_response({"fine": True})
        return web.json_response({"message": "no longer"}, status=401)

    async def work(connection: Connection) -> None:
        monkeypatch.setattr(connection, "_loaded_at", float("-inf"))
        write_kubeconfig(kubeconfig, int(connection.server.rpartition(":")[2]), "second")
        assert json.loads(await connection.call("POST", "/x", b"{}")) == {"fine": True}

    served(handler, kubeconfig, work)
    assert seen == ["Bearer first", "Bearer second"]


def test_an_answer_that_does_not_come_leaves_a_write_uncertain_and_a_read_not(tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.Response:
        await asyncio.sleep(2.0)
        return web.Response()

    async def work(connection: Connection) -> None:
        for method, uncertain in (("POST", True), ("GET", False)):
            with pytest.raises(ApiFailure) as caught:
                await connection.call(method, "/x")
            assert (caught.value.status, caught.value.uncertain) == (0, uncertain)
            assert caught.value.transient

    served(handler, tmp_path / "kubeconfig", work)


def test_without_the_right_to_patch_the_object_is_read_changed_and_replaced(tmp_path: Path) -> None:
    asked: list[str] = []
    stored = {"metadata": {"name": "p", "uid": "1", "resourceVersion": "5"}, "spec": {"kept": [1]}, "status": {"a": 1}}

    async def handler(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.path_qs}")
        if request.method == "PATCH" or request.path.endswith("/p"):
            return web.json_response({"message": "no"}, status=403)
        if request.method == "GET":
            return web.json_response({"items": [stored]})
        return web.json_response(await request.json())

    async def work(connection: Connection) -> None:
        access = ObjectAccess(connection)
        for _ in range(2):
            patch: dict[str, object] = {"metadata": {"uid": "1"}, "status": {"a": None, "b": 2}}
            answer = json.loads(await access.patch(PODS, "ns", "p", "status", patch))
            assert answer["spec"] == {"kept": [1]}
            assert answer["status"] == {"b": 2}
            assert (answer["apiVersion"], answer["kind"]) == ("v1", "Pod")
        with pytest.raises(ApiFailure, match="uid 2 was expected, 1 is stored"):
            await access.patch(PODS, "ns", "p", "status", {"metadata": {"uid": "2"}, "status": {}})

    served(handler, tmp_path / "kubeconfig", work)
    path = "/api/v1/namespaces/ns/pods"
    again = [f"GET {path}?fieldSelector=metadata.name%3Dp", f"PUT {path}/p/status"]
    assert asked == [f"PATCH {path}/p/status", f"GET {path}/p", *again, *again, again[0]]


def test_no_usable_kubeconfig_is_said_shortly(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("current-context: nowhere\n")

    async def work() -> None:
        with pytest.raises(ConnectionFailed, match=f"cannot reach a cluster by {path}"):
            await Connection(Access(kubeconfig=str(path))).open()

    asyncio.run(work())
