"""Sources of node load: a file, and servers asked in the background (spec 02 §2.9)."""

import base64
import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from vcscheduler.plugins.usage.load import LoadCollector, LoadSourceError, NodeLoad, interval_of
from vcscheduler.plugins.usage.sources import load_source

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NODES = ["n1", "n2"]

Answer = Callable[[str, dict[str, str], Any], object]


class Fake:
    """A server whose answers are given by a function of path, headers and body; None = 404."""

    def __init__(self) -> None:
        self.answer: Answer = lambda path, headers, body: None
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                found = fake.answer(self.path, dict(self.headers), body)
                data = found if isinstance(found, bytes) else json.dumps(found).encode()
                self.send_response(404 if found is None else 200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()


@pytest.fixture
def fake() -> Iterator[Fake]:
    server = Fake()
    yield server
    server.server.shutdown()
    server.thread.join()
    server.server.server_close()


def sample(instance: str, value: str) -> dict[str, object]:
    return {"metric": {"instance": instance}, "value": [1.0, value]}


def test_prometheus_is_asked_for_all_nodes_at_once(fake: Fake) -> None:
    asked = []

    def answer(path: str, headers: dict[str, str], body: object) -> object:
        query = parse_qs(urlsplit(path).query)
        asked.append((urlsplit(path).path, query["time"]))
        cpu = "node_cpu_seconds_total" in query["query"][0]
        values = ("12.5", "NaN", "70") if cpu else ("25", "1", "80")
        result = [sample(i, v) for i, v in zip(("n1:9100", "n2", "other"), values)]
        return {"status": "success", "data": {"resultType": "vector", "result": result}}

    fake.answer = answer
    source = load_source({"type": "prometheus", "address": fake.address + "/"})
    assert source.read(NODES, NOW) == {"n1": NodeLoad(12.5, 25, NOW)}
    assert asked == [("/api/v1/query", [str(NOW.timestamp())])] * 2


def test_custom_metrics_of_the_older_version_too(fake: Fake) -> None:
    at = NOW - timedelta(seconds=90)

    def answer(path: str, headers: dict[str, str], body: object) -> object:
        if not path.startswith("/apis/custom.metrics.k8s.io/v1beta1/nodes/*/"):
            return None
        value = {"node_cpu_usage_avg": "425m", "node_memory_usage_avg": "0.5"}[path.rsplit("/", 1)[1]]
        item = {"describedObject": {"name": "n1"}, "value": value, "timestamp": at.isoformat()}
        return {"items": [item]}

    fake.answer = answer
    source = load_source({"type": "prometheus_adaptor", "address": fake.address})
    assert source.read(NODES, NOW) == {"n1": NodeLoad(42.5, 50, at)}


def test_elasticsearch_averages_by_host(fake: Fake) -> None:
    asked: list[tuple[str, str | None, Any]] = []

    def answer(path: str, headers: dict[str, str], body: object) -> object:
        asked.append((path, headers.get("Authorization"), body))
        buckets = [
            {"key": "n1", "cpu": {"value": 0.25}, "memory": {"value": 0.5}},
            {"key": "n2", "cpu": {"value": None}, "memory": {"value": 0.5}},
        ]
        return {"aggregations": {"nodes": {"buckets": buckets}}}

    fake.answer = answer
    settings = {
        "type": "elasticsearch",
        "address": fake.address,
        "elasticsearch.username": "u",
        "elasticsearch.password": "p",
        "elasticsearch.hostnameFieldName": "agent.name",
    }
    assert load_source(settings).read(NODES, NOW) == {"n1": NodeLoad(25, 50, NOW)}
    ((path, authorization, body),) = asked
    assert path == "/metricbeat-*/_search"
    assert authorization == f"Basic {base64.b64encode(b'u:p').decode()}"
    assert body["query"]["bool"]["filter"][1] == {"terms": {"agent.name": NODES}}


@pytest.mark.parametrize("answer", [None, b"not json", {"data": {}}])
def test_answers_that_cannot_be_used(fake: Fake, answer: object) -> None:
    fake.answer = lambda path, headers, body: answer
    for kind in ("prometheus", "prometheus_adaptor", "elasticsearch"):
        with pytest.raises(LoadSourceError, match=r"^http://127\.0\.0\.1"):
            load_source({"type": kind, "address": fake.address}).read(NODES, NOW)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"type": "promtheus"}, "metrics.type: unknown type 'promtheus'; did you mean 'prometheus'?"),
        ({"type": "prometheus"}, "metrics.address: missing; expected an address such as http://"),
        ({"type": "prometheus", "address": "prometheus:9090"}, "metrics.address: found 'prometheus:9090'"),
        ({"type": "elasticsearch", "address": "file:///etc/hosts"}, "metrics.address: found 'file:///etc/hosts'"),
        ({"type": "prometheus_adaptor"}, "needs an address at which the Kubernetes API answers"),
        ({"type": "file"}, "metrics.address: missing; type file needs the path"),
    ],
)
def test_sources_that_cannot_be(settings: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(LoadSourceError) as raised:
        load_source(settings)
    assert message in str(raised.value)


def file(tmp_path: Path, text: str) -> dict[str, str]:
    path = tmp_path / "load.yaml"
    path.write_text(text + "\n")
    return {"type": "file", "address": str(path)}


def test_a_file(tmp_path: Path) -> None:
    text = (
        "n1: {cpu: 42.5, memory: 61}\n"
        "n2: {cpu: 7, memory: 1, time: '2026-03-01T11:59:00Z'}\n"
        "gone: {cpu: 1, memory: 1}\n"
    )
    assert load_source(file(tmp_path, text)).read(NODES, NOW) == {
        "n1": NodeLoad(42.5, 61, NOW),
        "n2": NodeLoad(7, 1, NOW - timedelta(minutes=1)),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- n1", "1:1: expected node names with their load"),
        ("n1: 5", "1:5: n1: expected a mapping such as"),
        ("n1: {cpu: 5}", "1:5: n1.memory: expected a number of percent, found None"),
        ("n1: {cpu: high, memory: 1}", "1:11: n1.cpu: expected a number of percent, found 'high'"),
        ("n1: {cpu: .nan, memory: 1}", "1:11: n1.cpu: expected a number of percent, found nan"),
        ("n1:\n  cpu: 1\n  memry: 1", "3:10: n1.memry: unknown field, did you mean 'memory'?"),
        ("n1: {cpu: 1, memory: 1, time: '12:00'}", "1:31: n1.time: expected a time with zone"),
        ("n1: {cpu: 1, memory: 1, time: 2026-03-01}", "1:31: n1.time: expected a time with zone"),
        ("n1: {", "2:1: expected a value here"),
    ],
)
def test_mistakes_in_a_file_are_named_with_their_place(tmp_path: Path, text: str, message: str) -> None:
    settings = file(tmp_path, text)
    with pytest.raises(LoadSourceError) as raised:
        load_source(settings).read(NODES, NOW)
    assert str(raised.value).startswith(f"{settings['address']}:{message}")


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(LoadSourceError, match=r"metrics\.address: .*nowhere: No such file"):
        load_source({"type": "file", "address": str(tmp_path / "nowhere")}).read(NODES, NOW)


@pytest.mark.parametrize(
    ("text", "seconds"), [("", 30), ("5s", 5), ("1m30s", 90), ("0s", 30), ("-1s", 30), ("often", 30)]
)
def test_interval(text: str, seconds: float) -> None:
    assert interval_of({"interval": text}) == seconds


class Counting:
    """A source that counts its questions, and waits before it answers where it is far away."""

    def __init__(self, local: bool = True) -> None:
        self.local = local
        self.asked = 0
        self.may_answer = threading.Event()
        self.error: str | None = None

    def read(self, nodes: object, now: datetime) -> dict[str, NodeLoad]:
        self.asked += 1
        if not self.local:
            assert self.may_answer.wait(10)
        if self.error is not None:
            raise LoadSourceError(self.error)
        return {"n1": NodeLoad(self.asked, 0, now)}


def test_a_local_source_is_read_at_most_every_interval() -> None:
    source = Counting()
    collector = LoadCollector(lambda settings: source, {"gone": NodeLoad(1, 1, NOW), "n2": NodeLoad(2, 2, NOW)})
    settings = {"type": "file", "interval": "10s"}
    collector.refresh({}, lambda: NODES, NOW)
    assert source.asked == 0
    for seconds in (0, 9.9, 10, 15, 20):
        collector.refresh(settings, lambda: NODES, NOW + timedelta(seconds=seconds))
    assert source.asked == 3
    assert {name: load.cpu for name, load in collector.loads.items()} == {"n1": 3, "n2": 2}


def test_an_error_leaves_the_old_values(caplog: pytest.LogCaptureFixture) -> None:
    source = Counting()
    collector = LoadCollector(lambda settings: source)
    collector.refresh({"type": "file"}, lambda: NODES, NOW)
    source.error = "broken"
    collector.refresh({"type": "file"}, lambda: NODES, NOW + timedelta(seconds=30))
    assert (source.asked, collector.loads["n1"].cpu) == (2, 1)
    assert "node load: broken" in caplog.text


def test_an_unknown_type_is_reported_at_every_interval(caplog: pytest.LogCaptureFixture) -> None:
    collector = LoadCollector(load_source)
    for seconds in (0, 10, 30):
        collector.refresh({"type": "x"}, lambda: NODES, NOW + timedelta(seconds=seconds))
    assert caplog.text.count("unknown type 'x'") == 2


def test_a_server_is_asked_in_the_background_and_once_at_a_time() -> None:
    source = Counting(local=False)
    collector = LoadCollector(lambda settings: source)
    for seconds in (0, 30, 60):
        collector.refresh({"type": "prometheus"}, lambda: NODES, NOW + timedelta(seconds=seconds))
    assert collector.loads == {}
    source.may_answer.set()
    collector.wait(10)
    assert source.asked == 1
    assert dict(collector.loads) == {"n1": NodeLoad(1, 0, NOW)}
