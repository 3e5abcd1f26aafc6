"""The lease as it goes over the API."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from vcscheduler.cluster.live import Connection
from vcscheduler.cluster.live.failures import ApiFailure
from vcscheduler.server.leader import Lease, LeaseConflict
from vcscheduler.server.live import ApiLease

PATH = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases"
NOW = datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=UTC)


class Scripted:
    """Answers requests in order and remembers them."""

    def __init__(self, *answers: dict[str, Any] | ApiFailure) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[str, str, Any]] = []

    async def call(self, method: str, path: str, body: bytes | None = None) -> bytes:
        self.requests.append((method, path, json.loads(body) if body else None))
        answer = self.answers.pop(0)
        if isinstance(answer, ApiFailure):
            raise answer
        return json.dumps(answer).encode()


def lease(*answers: dict[str, Any] | ApiFailure) -> tuple[ApiLease, Scripted]:
    connection = Scripted(*answers)
    return ApiLease(cast(Connection, connection), "volcano-system", "volcano"), connection


STORED = {
    "metadata": {"name": "volcano", "resourceVersion": "5", "uid": "u", "labels": {"team": "batch"}},
    "spec": {
        "holderIdentity": "vm_1",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-03-01T11:00:00.000000Z",
        "renewTime": "2026-03-01T11:59:58.123456Z",
        "leaseTransitions": 3,
        "strategy": "OldestEmulationVersion",
    },
}


def test_reading() -> None:
    found, connection = lease(STORED, {"metadata": {"resourceVersion": "1"}, "spec": {"holderIdentity": None}})
    read = asyncio.run(found.get())
    assert read is not None
    assert (read.holder, read.duration_seconds, read.transitions, read.version) == ("vm_1", 15, 3, "5")
    assert asyncio.run(found.get()) == Lease(version="1")
    assert connection.requests[0] == ("GET", f"{PATH}/volcano", None)


def test_a_lease_that_does_not_exist_is_none_and_other_failures_are_told() -> None:
    found, _ = lease(ApiFailure(404, "NotFound", "no lease"), ApiFailure(503, "", "busy"))
    assert asyncio.run(found.get()) is None
    with pytest.raises(ApiFailure, match="busy"):
        asyncio.run(found.get())


def test_updating_keeps_what_others_wrote_and_names_the_version() -> None:
    found, connection = lease(STORED, STORED)
    asyncio.run(found.get())
    asyncio.run(found.update(Lease("vm_2", 15, NOW, NOW, 4, "5")))
    method, path, body = connection.requests[1]
    assert (method, path) == ("PUT", f"{PATH}/volcano")
    assert body["metadata"] == {**STORED["metadata"], "namespace": "volcano-system"}
    assert body["spec"] == {
        "holderIdentity": "vm_2",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-03-01T12:00:00.000005Z",
        "renewTime": "2026-03-01T12:00:00.000005Z",
        "leaseTransitions": 4,
        "strategy": "OldestEmulationVersion",
    }


@pytest.mark.parametrize("verb", ["create", "update"])
def test_a_conflict_is_told_as_one(verb: str) -> None:
    found, _ = lease(ApiFailure(409, "Conflict", "it was changed"))
    with pytest.raises(LeaseConflict, match="it was changed"):
        asyncio.run(getattr(found, verb)(Lease("vm_2", 15, NOW, NOW)))
