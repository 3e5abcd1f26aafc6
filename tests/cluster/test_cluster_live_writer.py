"""The queue of writes and the writer, with writes that only note what happens to them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import ClassVar

import pytest

from vcscheduler.cluster.interface import ClusterError, ErrorReason
from vcscheduler.cluster.live.connection import Access, Connection
from vcscheduler.cluster.live.failures import ApiFailure
from vcscheduler.cluster.live.queue import Lane, Write, WriteQueue
from vcscheduler.cluster.live.writer import Writer, WriterLimits


class Note(Write):
    """Fails as often as told, then succeeds."""

    lane: ClassVar[Lane] = Lane.STATUS

    def __init__(self, key: str, label: str = "", *failures: ApiFailure, log: list[str] | None = None) -> None:
        super().__init__(key)
        self.label = label or key
        self.failures = list(failures)
        self.log = log if log is not None else []
        self.seconds = 0.0

    async def send(self, connection: Connection) -> None:
        self.log.append(f"send {self.label}{'?' if self.uncertain else ''}")
        await asyncio.sleep(self.seconds)
        if self.failures:
            raise self.failures.pop(0)

    def succeeded(self) -> None:
        self.log.append(f"done {self.label}")

    async def failed(self, failure: ApiFailure, connection: Connection) -> None:
        self.log.append(f"failed {self.label}: {failure}")


class Urgent(Note):
    lane: ClassVar[Lane] = Lane.URGENT

    def replaces(self, waiting: Write) -> bool:
        return isinstance(waiting, Latest)


class Latest(Note):
    def replaces(self, waiting: Write) -> bool:
        return isinstance(waiting, Latest)


class Event(Note):
    lane: ClassVar[Lane] = Lane.EVENTS


def taken(queue: WriteQueue, lane: Lane) -> Note | None:
    write = queue.take(lane)
    assert write is None or isinstance(write, Note)
    return write


def test_writes_of_an_object_go_out_one_after_another() -> None:
    queue = WriteQueue()
    first, second = Note("a", "1"), Note("a", "2")
    queue.put(first)
    queue.put(second)
    assert queue.take(Lane.STATUS) is first
    assert queue.take(Lane.STATUS) is None
    queue.done(first)
    assert queue.take(Lane.STATUS) is second
    queue.done(second)
    assert len(queue) == 0


def test_a_later_status_takes_the_place_of_one_that_waits_but_not_of_one_that_is_out() -> None:
    queue = WriteQueue()
    writes = [Latest("a", str(number)) for number in range(4)]
    queue.put(writes[0])
    assert queue.take(Lane.STATUS) is writes[0]
    assert queue.put(writes[1]) == []
    assert queue.put(writes[2]) == [writes[1]]
    assert queue.put(writes[3]) == [writes[2]]
    queue.done(writes[0])
    assert queue.take(Lane.STATUS) is writes[3]
    assert queue.replaced == 2


def test_a_binding_takes_the_place_of_a_waiting_condition_in_its_own_lane() -> None:
    queue = WriteQueue()
    told, bound = Latest("a", "told"), Urgent("a", "bound")
    queue.put(told)
    assert queue.put(bound) == [told]
    assert not queue.has(Lane.STATUS)
    assert queue.take(Lane.URGENT) is bound
    assert queue.take(Lane.URGENT) is None


def test_order_holds_across_lanes() -> None:
    queue = WriteQueue()
    status, urgent = Note("a", "status"), Urgent("a", "urgent")
    queue.put(status)
    queue.put(urgent)
    assert queue.take(Lane.URGENT) is None
    assert queue.take(Lane.STATUS) is status
    queue.done(status)
    assert queue.take(Lane.URGENT) is urgent


def test_what_is_sent_again_goes_before_later_writes_of_its_object() -> None:
    queue = WriteQueue()
    first, second = Note("a", "1"), Latest("a", "2")
    queue.put(first)
    queue.put(second)
    assert queue.take(Lane.STATUS) is first
    queue.again(first)
    assert queue.take(Lane.STATUS) is first
    queue.done(first)
    assert queue.take(Lane.STATUS) is second


LIMITS = WriterLimits(give_up=5.0, patience=0.0)


class Running:
    """A writer with its loop in another thread."""

    def __init__(self, limits: WriterLimits = LIMITS, gate: Callable[[], bool] = lambda: True) -> None:
        self.loop = asyncio.new_event_loop()
        self.writer = Writer(Connection(Access()), gate, limits)
        self.writer.open(self.loop)
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self) -> Writer:
        self.thread.start()
        return self.writer

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self.writer.close(0.0), self.loop).result(5.0)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


def unavailable(retry_after: float | None = None, uncertain: bool = False) -> ApiFailure:
    return ApiFailure(503, "", "not now", retry_after, uncertain)


def test_a_transient_failure_is_tried_again() -> None:
    note = Note("a", "", unavailable(), unavailable())
    with Running() as writer:
        writer.submit([note])
        assert writer.settled(60.0)
    assert note.log == ["send a", "send a", "send a", "done a"]
    assert (writer.counts.retried, writer.counts.sent, writer.counts.failed) == (2, 1, 0)


def test_uncertainty_stays_until_the_write_has_settled_it() -> None:
    note = Note("a", "", unavailable(uncertain=True), unavailable())
    with Running() as writer:
        writer.submit([note])
        assert writer.settled(60.0)
    assert note.log == ["send a", "send a?", "send a?", "done a"]


def test_a_final_failure_is_told_and_the_next_write_of_the_object_goes_on() -> None:
    log: list[str] = []
    with Running() as writer:
        writer.submit([Note("a", "1", ApiFailure(422, "", "no"), log=log), Note("a", "2", log=log)])
        assert writer.settled(60.0)
    assert log == ["send 1", "failed 1: no", "send 2", "done 2"]


def test_the_server_says_how_long_to_wait() -> None:
    note = Note("a", "", ApiFailure(429, "", "slow down", 0.3))
    with Running() as writer:
        started = time.monotonic()
        writer.submit([note])
        assert writer.settled(60.0)
        assert time.monotonic() - started >= 0.3
    assert writer.counts.throttled == 1


def test_writes_that_fail_for_too_long_are_given_up() -> None:
    note = Note("a", "", *[unavailable() for _ in range(100)])
    with Running(WriterLimits(give_up=0.2)) as writer:
        writer.submit([note])
        assert writer.settled(60.0)
    assert note.log[-1] == "failed a: not now"
    assert writer.backlog == 0


def test_a_mistake_in_a_write_does_not_stop_the_writer(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Note):
        async def send(self, connection: Connection) -> None:
            raise ZeroDivisionError("oops")

    broken, fine = Broken("a"), Note("a")
    with Running() as writer:
        writer.submit([broken, fine])
        assert writer.settled(60.0)
    assert broken.log == ["failed a: a: ZeroDivisionError: oops"]
    assert fine.log == ["send a", "done a"]


def test_without_leadership_nothing_is_sent() -> None:
    note = Note("a")
    with Running(gate=lambda: False) as writer:
        writer.submit([note])
        assert writer.settled(60.0)
    assert note.log == ["failed a: this scheduler is not the leader, it writes nothing"]


def test_leadership_is_asked_for_before_each_attempt() -> None:
    answers = [True, False]
    note = Note("a", "", unavailable())
    with Running(gate=lambda: answers.pop(0)) as writer:
        writer.submit([note])
        assert writer.settled(60.0)
    assert note.log == ["send a", "failed a: this scheduler is not the leader, it writes nothing"]


def test_who_hands_over_too_much_waits_and_is_then_refused() -> None:
    slow = Note("a")
    slow.seconds = 0.4
    with Running(WriterLimits(waiting=1, patience=5.0)) as writer:
        writer.submit([slow])
        assert writer.saturated
        with pytest.raises(ClusterError) as caught:
            writer.submit([Note("b")], wait=False)
        assert caught.value.reason is ErrorReason.UNAVAILABLE
        writer.submit([Note("c")])  # Waits until there is room.
        assert "done a" in slow.log
        assert writer.settled(60.0)


def test_events_let_bindings_go_first_and_give_way_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vcscheduler.cluster.live.writer._EVENT_PATIENCE", 60.0)
    log: list[str] = []
    with Running(WriterLimits(in_flight=1, events=3)) as writer:
        bindings = [Urgent(f"u{number}", log=log) for number in range(5)]
        for each in bindings:
            each.seconds = 0.01

        def both() -> None:
            taken_in.extend(writer.submit_event(Event(f"e{number}", log=log)) for number in range(5))

        taken_in: list[bool] = []
        writer.submit(bindings)
        writer._loop.call_soon_threadsafe(both)  # type: ignore[union-attr]
        assert writer.settled(60.0)
        end = time.monotonic() + 60.0
        while "done e2" not in log and time.monotonic() < end:
            time.sleep(0.01)
    assert taken_in == [True, True, True, False, False]
    sent = [line.removeprefix("send ") for line in log if line.startswith("send")]
    assert sent == ["u0", "u1", "u2", "u3", "u4", "e0", "e1", "e2"]
    assert writer.counts.events_dropped == 2


def test_events_that_waited_long_go_out_between_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vcscheduler.cluster.live.writer._EVENT_PATIENCE", 0.05)
    log: list[str] = []
    with Running(WriterLimits(in_flight=2)) as writer:
        bindings = [Urgent(f"u{number}", log=log) for number in range(40)]
        for each in bindings:
            each.seconds = 0.02
        writer.submit(bindings)
        writer._loop.call_soon_threadsafe(writer.submit_event, Event("e", log=log))  # type: ignore[union-attr]
        assert writer.settled(60.0)
    assert "done e" in log[: log.index("done u39")]


def test_never_more_requests_at_a_time_than_allowed() -> None:
    out, most = 0, 0

    class Counted(Note):
        async def send(self, connection: Connection) -> None:
            nonlocal out, most
            out += 1
            most = max(most, out)
            await asyncio.sleep(0.001)
            out -= 1

    with Running(WriterLimits(in_flight=7)) as writer:
        writer.submit([Counted(f"k{number}") for number in range(200)])
        assert writer.settled(60.0)
    assert most == 7
