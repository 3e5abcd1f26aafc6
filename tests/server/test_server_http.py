"""What is served, to whom, and how it is encrypted."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from fakes import Background, background

import lab
from vcscheduler.config import SchedulerOptions
from vcscheduler.server.http import AddressError, bind

OPTIONS = SchedulerOptions(
    leader_elect=False,
    enable_metrics=True,
    enable_healthz=True,
    listen_address="127.0.0.1:0",
    healthz_address="127.0.0.1:0",
    debug_address="127.0.0.1:0",
)


@pytest.fixture(autouse=True)
def _socket_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBUG_SOCKET_DIR", str(tmp_path / "socket"))


@pytest.fixture
def running() -> Iterator[Background]:
    with background(OPTIONS) as found:
        found.cluster.apply_all(
            [
                lab.pod_group("a", 1),
                lab.member("a", "a-0", annotations={"example.com/token": "tell-nobody"}),
                lab.pod_group("big", 1, min_resources={"cpu": 8}),
                lab.member("big", "big-0", cpu=8),
                lab.pod_group("lost", 1),
                lab.member("lost", "lost-0", nodeSelector={"disk": "none"}),
            ]
        )
        found.until(found.bound("ns/a-0"))
        yield found


def get(port: int, path: str) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


def view(running: Background, path: str) -> dict[str, object]:
    status, kind, text = get(running.port("debug"), path)
    assert (status, kind) == (200, "application/json"), text
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


def test_metrics_and_health(running: Background) -> None:
    status, kind, text = get(running.port("metrics"), "/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert 'volcano_action_scheduling_latency_milliseconds_count{action="allocate"}' in text
    assert "process_resident_memory_bytes" in text
    for path in ("/healthz", "/healthz/ping", "/livez", "/readyz"):
        assert get(running.port("health"), path) == (200, "text/plain; charset=utf-8", "ok")
    assert get(running.port("health"), "/metrics")[0] == 404


def test_not_ready_is_said_with_the_reason() -> None:
    with background(OPTIONS, slow=60) as found:
        found.until(lambda: "no complete list" in found.process.ready_problem())
        assert get(found.port("health"), "/readyz")[::2] == (503, "pods: no complete list yet")
        assert get(found.port("health"), "/livez")[0] == 200
        assert get(found.port("metrics"), "/metrics")[0] == 200
        assert get(found.port("debug"), "/debug/jobs/ns/a")[0] == 503


def test_debug_views(running: Background) -> None:
    assert set(view(running, "/debug")) == {
        "/debug/cache",
        "/debug/session",
        "/debug/queues",
        "/debug/jobs",
        "/debug/jobs/{namespace}/{name}",
    }
    cache = view(running, "/debug/cache")
    assert (cache["nodes"], cache["tasks"]) == (1, {"Binding": 1, "Pending": 2})
    session = view(running, "/debug/session")
    assert {"total", "open", "enqueue", "allocate", "backfill", "close"} <= set(session["milliseconds"])  # type: ignore[call-overload]
    assert view(running, "/debug/queues")["q"]["allocated"]["cpu"] == "1"  # type: ignore[index]
    assert view(running, "/debug/jobs")["ns/a"]["phase"] == "Inqueue"  # type: ignore[index]


def test_the_story_of_a_job(running: Background) -> None:
    bound = view(running, "/debug/jobs/ns/a")
    assert bound["waits"] is None
    assert bound["pods"] == [{"name": "a-0", "status": "Binding", "node": "n1"}]
    assert [each["what"] for each in bound["story"]] == [  # type: ignore[index, attr-defined]
        "1 task bound to n1",
        "phase Pending became Inqueue",
    ]
    refused = view(running, "/debug/jobs/ns/big")["waits"]
    assert refused["cause"] == "NotAdmitted"  # type: ignore[index]
    waits = view(running, "/debug/jobs/ns/lost")["waits"]
    assert waits["cause"] == "NoNode"  # type: ignore[index]
    assert "node affinity" in json.dumps(waits)
    status, _, text = get(running.port("debug"), "/debug/jobs/ns/none")
    assert (status, json.loads(text)) == (
        404,
        {"error": "there is no PodGroup ns/none with a queue that exists"},
    )


def test_no_view_shows_annotations(running: Background) -> None:
    for path in ("/debug/cache", "/debug/session", "/debug/queues", "/debug/jobs", "/debug/jobs/ns/a"):
        assert "tell-nobody" not in get(running.port("debug"), path)[2]


def test_debug_views_listen_on_localhost_unless_told_otherwise() -> None:
    assert SchedulerOptions().debug_address.startswith("127.0.0.1:")


def test_a_second_scheduler_on_the_machine_does_without_debug_views(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(AddressError, match="--debug-address: cannot listen on"):
            Background(replace(OPTIONS, debug_address=taken))
        monkeypatch.setattr(
            "vcscheduler.server.endpoints.SchedulerOptions", lambda: replace(OPTIONS, debug_address=taken)
        )
        with background(replace(OPTIONS, debug_address=taken)) as found:
            assert "debug" not in found.process.endpoints.listeners


@pytest.mark.parametrize("address", ["8080", "localhost", ":http", ":70000", ""])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(AddressError, match="--listen-address: expected HOST:PORT or :PORT"):
        bind(address, "listen-address")


def test_an_address_without_host_is_everywhere() -> None:
    with bind(":0", "listen-address") as listening:
        port = listening.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), 5).close()


# --- TLS --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    own = ca.issue_cert("127.0.0.1", key_type=trustme.KeyType.ECDSA)
    own.cert_chain_pems[0].write_to_path(str(tmp_path / "tls.pem"))
    own.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    return ca


def with_tls(folder: Path) -> SchedulerOptions:
    return replace(
        OPTIONS,
        ca_cert_file=str(folder / "ca.pem"),
        tls_cert_file=str(folder / "tls.pem"),
        tls_private_key_file=str(folder / "key.pem"),
    )


def tls_get(port: int, context: ssl.SSLContext) -> tuple[int, str]:
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=20)
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_health_over_tls_with_and_without_a_client_certificate(tmp_path: Path, authority: trustme.CA) -> None:
    with background(with_tls(tmp_path)) as found:
        port = found.port("health")
        context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        assert tls_get(port, context) == (200, "ok")
        authority.issue_cert("client.test").configure_cert(context)
        assert tls_get(port, context) == (200, "ok")
        stranger = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        trustme.CA().issue_cert("client.test").configure_cert(stranger)
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
            tls_get(port, stranger)
        old = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        old.set_ciphers("ECDHE-ECDSA-AES256-SHA384:@SECLEVEL=0")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            tls_get(port, old)
        assert get(found.port("metrics"), "/metrics")[0] == 200, "TLS is for the health server only"


def test_two_of_three_files_mean_no_tls(tmp_path: Path, authority: trustme.CA) -> None:
    with background(replace(with_tls(tmp_path), ca_cert_file="")) as found:
        assert get(found.port("health"), "/healthz")[0] == 200


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("ca.pem", None, "--ca-cert-file: .*ca.pem cannot be read"),
        ("key.pem", None, "--tls-private-key-file: .*key.pem cannot be read"),
        ("ca.pem", "nothing", "--ca-cert-file: .* holds no certificates"),
        ("key.pem", "nothing", "--tls-cert-file, --tls-private-key-file: no certificate and its key"),
    ],
)
def test_files_that_cannot_be_used_are_an_error_at_start(
    tmp_path: Path, authority: trustme.CA, name: str, content: str | None, message: str
) -> None:
    path = tmp_path / name
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(AddressError, match=message):
        Background(with_tls(tmp_path))


# --- the log level's socket -------------------------------------------------------------------------------------------


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=20)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


def test_the_log_level_can_be_raised_for_a_while(running: Background, tmp_path: Path) -> None:
    path = tmp_path / "socket" / "klog-klog.sock"
    assert path.stat().st_mode & 0o077 == 0

    def ask(what: str) -> tuple[int, str]:
        connection = _Unix(path)
        connection.request("GET", what)
        answer = connection.getresponse()
        found = answer.status, answer.read().decode()
        connection.close()
        return found

    assert ask("/getlevel") == (200, "0\n")
    assert ask("/setlevel?level=5&duration=300ms")[0] == 200
    assert ask("/getlevel") == (200, "5\n")
    running.until(lambda: ask("/getlevel") == (200, "0\n"))
    for bad in (
        "level=0&duration=1s",
        "level=x&duration=1s",
        "level=3&duration=0s",
        "level=3&duration=soon",
        "level=3",
    ):
        assert ask(f"/setlevel?{bad}")[0] == 400, bad
