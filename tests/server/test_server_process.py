"""A whole process over an embedded cluster: order of its start, its end, and who may write meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from fakes import Background, background
from leases import StoredLease

import lab
from vcscheduler.config import SchedulerOptions
from vcscheduler.objects import Queue
from vcscheduler.server.http import AddressError

OPTIONS = SchedulerOptions(
    leader_elect_lease_duration=3.0,
    leader_elect_renew_deadline=1.5,
    leader_elect_retry_period=0.2,
    debug_address="",
)


@pytest.fixture(autouse=True)
def _socket_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBUG_SOCKET_DIR", str(tmp_path / "socket"))


def test_it_leads_creates_the_queues_and_schedules() -> None:
    with background(OPTIONS) as running:
        running.cluster.apply_all([lab.pod_group("a", 2), lab.member("a", "a-0"), lab.member("a", "a-1")])
        running.until(running.bound("ns/a-1"))
        assert running.bound("ns/a-0")()
        queues = {queue.name: queue.spec for queue in running.cluster.objects(Queue)}
        assert (queues["root"].weight, queues["root"].reclaimable) == (1, False)
        assert (queues["default"].weight, queues["default"].reclaimable) == (1, True)
        holder = running.stored.lease.holder if running.stored.lease else ""
        told = {(e.kind, e.name, e.reason, e.message) for e in running.cluster.events()}
        assert ("Lease", "volcano", "LeaderElection", f"{holder} became leader") in told


def test_asked_to_end_it_sends_what_was_decided_and_gives_the_lease_up() -> None:
    with background(OPTIONS) as running:
        running.until(lambda: running.process.loop.cycles)
        running.process.stop()
        assert running.join() == 0
        assert running.backend.log == ["settled", "stopped", "lease closed"]
        assert running.stored.lease is not None
        assert running.stored.lease.holder == ""
        assert not running.process.may_write()


def test_a_lost_lease_ends_the_process_with_exit_code_1() -> None:
    with background(OPTIONS) as running:
        running.until(lambda: running.process.loop.cycles)
        assert running.stored.lease is not None
        running.stored.store(replace(running.stored.lease, holder="somebody else", duration_seconds=60))
        assert running.join() == 1
        assert not running.process.may_write()
        assert running.stored.lease.holder == "somebody else"
        assert "settled" not in running.backend.log, "nothing more may be written"


def test_an_api_server_out_of_reach_ends_it_within_the_renew_deadline() -> None:
    with background(OPTIONS) as running:
        running.until(lambda: running.process.loop.cycles)
        running.lease.cut = True
        began = time.monotonic()
        assert running.join() == 1
        assert time.monotonic() - began < 6


def test_two_replicas_one_schedules_the_other_takes_over() -> None:
    stored = StoredLease()
    with background(OPTIONS, stored) as first:
        first.until(lambda: first.process.loop.cycles)
        with background(OPTIONS, stored) as second:
            second.cluster.apply_all([lab.pod_group("a", 1), lab.member("a", "a-0")])
            time.sleep(0.5)
            assert second.process.loop.cycles == 0
            assert second.process.ready_problem() == ""
            assert not second.process.may_write()
            first.process.stop()
            assert first.join() == 0
            second.until(second.bound("ns/a-0"))
            assert second.process.may_write()


def test_it_decides_nothing_until_the_whole_cluster_is_known() -> None:
    with background(replace(OPTIONS, leader_elect=False), slow=1.0) as running:
        running.until(lambda: "no complete list" in running.process.ready_problem())
        assert running.process.loop.cycles == 0
        assert running.process.live_problem() == ""


def test_an_address_in_use_is_an_error_at_once() -> None:
    with background(replace(OPTIONS, enable_metrics=True, listen_address="127.0.0.1:0")) as running:
        taken = replace(OPTIONS, enable_metrics=True, listen_address=f"127.0.0.1:{running.port('metrics')}")
        with pytest.raises(AddressError, match=r"--listen-address: cannot listen on 127\.0\.0\.1:"):
            Background(taken)


def test_the_dump_has_six_documents_and_is_private(tmp_path: Path) -> None:
    with background(replace(OPTIONS, leader_elect=False, cache_dump_dir=str(tmp_path))) as running:
        running.cluster.apply_all([lab.pod_group("a", 1), lab.member("a", "a-0")])
        running.until(running.bound("ns/a-0"))
        running.process.dump()
        running.until(lambda: list(tmp_path.glob("snapshot-*.json")))
        running.process.bell.call(lambda: None).result(10)
        path = next(tmp_path.glob("snapshot-*.json"))
        assert path.stat().st_mode & 0o777 == 0o600
        text, documents, decoder = path.read_text(), [], json.JSONDecoder()
        while text.strip():
            document, end = decoder.raw_decode(text.lstrip())
            documents.append(document)
            text = text.lstrip()[end:]
        assert len(documents) == 6
        assert documents[0]["n1"]["tasks"] == {"ns/a-0": "Binding"}
        assert documents[5]["ns/a"]["tasks"]["a-0"]["node"] == "n1"


SCRIPT = """
import sys
sys.path[:0] = {paths!r}
import lab
from fakes import GatedCluster, MemoryBackend
from leases import FakeLeaseClient, StoredLease
from vcscheduler.cli.run import schedule
from vcscheduler.config import parse_flags
import builders

def make(options, gate):
    cluster = GatedCluster(lambda: lab.datetime.now(lab.UTC))
    cluster.gate = gate
    cluster.apply_all([lab.queue("q"), builders.node("n1"), lab.pod_group("a", 1), lab.member("a", "a-0")])
    return MemoryBackend(cluster, FakeLeaseClient(StoredLease()))

sys.exit(schedule(parse_flags(sys.argv[1:]), lambda options: make))
"""


def test_signals_dump_and_end_a_real_process(tmp_path: Path) -> None:
    here = Path(__file__).parent
    script = tmp_path / "process.py"
    script.write_text(SCRIPT.format(paths=[str(here), str(here.parent)]))
    flags = ["--debug-address=", f"--cache-dump-dir={tmp_path}", "--log-format=json", "-v=4", "--leader-elect=false"]
    process = subprocess.Popen(
        [sys.executable, str(script), *flags], stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    assert process.stderr is not None
    try:
        lines = []
        for line in process.stderr:
            lines.append(json.loads(line))
            if lines[-1]["msg"] == "scheduling begins":
                break
        process.send_signal(signal.SIGUSR1)
        process.send_signal(signal.SIGUSR2)
        due = time.monotonic() + 20
        while not list(tmp_path.glob("snapshot-*.json")) and time.monotonic() < due:
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        rest = [json.loads(line) for line in process.stderr]
        assert process.wait(20) == 0
    finally:
        process.kill()
    assert list(tmp_path.glob("snapshot-*.json"))
    messages = [line["msg"] for line in (*lines, *rest)]
    assert any(message.startswith("node n1: ") for message in messages)
    # The dump of the second signal may still be under way.
    assert "ending: asked to end" in messages
    assert {line["level"] for line in (*lines, *rest)} <= {"info", "debug", "warning"}
