"""Leader election: one leader at a time, whatever happens to requests, answers and processes."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from leases import FakeLeaseClient, StoredLease, run_virtual

from vcscheduler.server.leader import ElectionTimes, LeaderElection, Lease

TIMES = ElectionTimes(lease=15, renew=10, retry=2)
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def candidate(stored: StoredLease, name: str, seed: int = 0) -> tuple[LeaderElection, FakeLeaseClient]:
    client = FakeLeaseClient(stored, random.Random(f"{name}{seed}"))
    clock = asyncio.get_running_loop().time
    election = LeaderElection(client, name, TIMES, clock=clock, now=lambda: NOW, rng=random.Random(f"{seed}{name}"))
    return election, client


def test_the_first_candidate_creates_the_lease_and_leads() -> None:
    async def main() -> None:
        stored = StoredLease()
        election, _ = candidate(stored, "a")
        started = asyncio.Event()
        task = asyncio.create_task(election.run(started.set))
        await asyncio.wait_for(started.wait(), 1)
        assert stored.lease == Lease("a", 15, NOW, NOW, 0, "1")
        assert election.holds()
        assert election.leader == "a"
        task.cancel()

    run_virtual(main)


def test_a_leader_renews_every_retry_period_and_keeps_its_transitions() -> None:
    async def main() -> None:
        stored = StoredLease()
        election, client = candidate(stored, "a")
        task = asyncio.create_task(election.run(lambda: None))
        await asyncio.sleep(60)
        assert election.holds()
        assert stored.lease is not None
        assert stored.lease.transitions == 0
        assert 28 <= client.requests <= 32
        task.cancel()

    run_virtual(main)


def test_the_other_one_waits_until_the_lease_has_run_out() -> None:
    async def main() -> None:
        stored = StoredLease()
        first, client = candidate(stored, "a")
        second, _ = candidate(stored, "b")
        one = asyncio.create_task(first.run(lambda: None))
        await asyncio.sleep(5)
        times: list[float] = []
        clock = asyncio.get_running_loop().time
        two = asyncio.create_task(second.run(lambda: times.append(clock())))
        await asyncio.sleep(60)
        assert not second.holds()
        assert not times
        client.cut = True
        cut = clock()
        await asyncio.wait_for(one, 30)
        assert not first.holds()
        assert clock() - cut <= 10 + 2, "it gives up after the renew deadline"
        await asyncio.sleep(30)
        assert second.holds()
        assert 13 <= times[0] - cut <= 15 + 2 * 2.2 + 1
        assert stored.lease is not None
        assert stored.lease.transitions == 1
        two.cancel()

    run_virtual(main)


def test_a_released_lease_is_taken_at_the_next_try() -> None:
    async def main() -> None:
        stored = StoredLease()
        first, _ = candidate(stored, "a")
        second, _ = candidate(stored, "b")
        one = asyncio.create_task(first.run(lambda: None))
        await asyncio.sleep(3)
        two = asyncio.create_task(second.run(lambda: None))
        await asyncio.sleep(3)
        one.cancel()
        await first.release()
        assert stored.lease is not None
        assert stored.lease.holder == ""
        assert not first.holds()
        await asyncio.sleep(2 * 2.2 + 0.1)
        assert second.holds()
        two.cancel()

    run_virtual(main)


def test_a_stopped_process_loses_its_right_by_the_clock_alone() -> None:
    async def main() -> None:
        stored = StoredLease()
        election, client = candidate(stored, "a")
        task = asyncio.create_task(election.run(lambda: None))
        await asyncio.sleep(3)
        assert election.holds()
        task.cancel()  # Nothing of it runs any more, as under SIGSTOP.
        before = client.requests
        await asyncio.sleep(10)
        assert not election.holds()
        assert client.requests == before

    run_virtual(main)


def test_a_lease_taken_away_is_noticed_at_the_next_renewal() -> None:
    async def main() -> None:
        stored = StoredLease()
        election, _ = candidate(stored, "a")
        task = asyncio.create_task(election.run(lambda: None))
        await asyncio.sleep(3)
        assert stored.lease is not None
        stored.store(replace(stored.lease, holder="somebody"))
        await asyncio.wait_for(task, 2.1)
        assert not election.holds()
        assert election.leader == "somebody"

    run_virtual(main)


def test_a_write_whose_answer_was_lost_is_found_by_reading() -> None:
    async def main() -> None:
        stored = StoredLease()
        election, client = candidate(stored, "a")
        task = asyncio.create_task(election.run(lambda: None))
        await asyncio.sleep(3)
        client.lose_answers = True
        await asyncio.sleep(6)
        client.lose_answers = False
        await asyncio.sleep(30)
        assert election.holds()
        assert not task.done()
        task.cancel()

    run_virtual(main)


@pytest.mark.parametrize("seed", range(5))
def test_never_two_leaders_in_twenty_forced_losses(seed: int) -> None:
    """Candidates that lose come back after a while, as restarted processes do. Who may write is asked all the time."""

    async def main() -> None:
        rng = random.Random(seed)
        stored = StoredLease()
        current: dict[str, tuple[LeaderElection, FakeLeaseClient]] = {}
        leaders: list[str] = []

        async def replica(name: str) -> None:
            life = 0
            while True:
                life += 1
                identity = f"{name}-{life}"
                election, client = candidate(stored, identity, seed)
                client.delay = 0.5
                current[name] = election, client
                task = asyncio.create_task(election.run(lambda id=identity: leaders.append(id)))  # type: ignore[misc]
                try:
                    await task
                finally:
                    task.cancel()
                await asyncio.sleep(rng.uniform(0.5, 5))

        async def watch() -> None:
            while True:
                holding = [e.identity for e, _ in current.values() if e.holds()]
                assert len(holding) <= 1, holding
                await asyncio.sleep(0.2)

        replicas = [asyncio.create_task(replica(name)) for name in ("a", "b")]
        watcher = asyncio.create_task(watch())
        losses = 0
        while losses < 20:
            await asyncio.sleep(rng.uniform(1, 20))
            led = [(e, c) for e, c in current.values() if e.holds()]
            if not led:
                continue
            _election, client = led[0]
            losses += 1
            how = rng.randrange(4)
            if how == 0:
                client.cut = True
            elif how == 1:
                client.lose_answers = True
            elif how == 2:
                assert stored.lease is not None
                stored.store(replace(stored.lease, holder="intruder", duration_seconds=15))
            else:
                client.delay = 40.0
            await asyncio.sleep(rng.uniform(5, 30))
            client.cut = client.lose_answers = False
            client.delay = 0.5
        await asyncio.sleep(60)
        assert not watcher.done(), watcher.exception() if watcher.done() else ""
        assert sum(e.holds() for e, _ in current.values()) == 1
        assert len(leaders) >= 5
        for task in (*replicas, watcher):
            task.cancel()

    run_virtual(main)
