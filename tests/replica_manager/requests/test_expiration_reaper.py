"""Delayed requests are completed at their timeout by the reaper."""

from __future__ import annotations

from kraftlake.replica_manager.requests.delayed_requests import DelayedRequests
from kraftlake.replica_manager.requests.expiration_reaper import ExpirationReaper
from kraftlake.replica_manager.requests.purgatory import DelayedOperation
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.event_queue import EventQueue
from kraftlake.runtime.log import without_logs


class Waiting(DelayedOperation):
    """Waits only for its timeout."""

    def __init__(self, name: str, done: list[str]) -> None:
        super().__init__()
        self.name, self.done = name, done

    def can_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        self.done.append(self.name)


class Reaped:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.queue = EventQueue(self.clock, "reaper")
        self.delayed = DelayedRequests(self.clock)
        ExpirationReaper(self.delayed, self.queue)
        self.done: list[str] = []

    def wait(self, name: str, delay_ms: float, purgatory: str = "produce") -> Waiting:
        waiting = Waiting(name, self.done)
        getattr(self.delayed, purgatory).try_complete_else_watch(waiting, ["key"], delay_ms)
        return waiting

    def pass_time(self, milliseconds: float) -> list[str]:
        del self.done[:]
        self.clock.advance(milliseconds)
        self.queue.run_ready()
        return list(self.done)


def test_each_request_is_answered_at_its_timeout_in_every_purgatory():
    reaped = Reaped()
    reaped.wait("late", 30)
    reaped.wait("early", 10, "fetch")
    reaped.wait("middle", 20, "delete_records")
    assert [reaped.pass_time(passed) for passed in (9, 1, 10, 9, 1)] == [[], ["early"], ["middle"], [], ["late"]]
    assert reaped.queue.size == 0


def test_a_request_that_arrives_while_others_wait_expires_too():
    reaped = Reaped()
    reaped.wait("first", 10)
    assert reaped.pass_time(10) == ["first"]
    reaped.wait("second", 10)
    assert reaped.pass_time(10) == ["second"]


def test_any_number_of_requests_needs_one_event():
    reaped = Reaped()
    for number in range(100):
        reaped.wait(str(number), 100 - number)
    assert reaped.queue.size == 1


def test_a_request_answered_before_its_timeout_is_not_answered_again():
    reaped = Reaped()
    assert reaped.wait("first", 10).expire()
    assert reaped.pass_time(10) == []


def test_a_closed_queue_is_no_error():
    reaped = Reaped()
    reaped.wait("first", 10)
    reaped.queue.close()
    reaped.wait("second", 5)
    assert reaped.pass_time(20) == []


def test_an_exception_of_a_callback_stops_no_later_timeout():
    class Raising(Waiting):
        def on_complete(self) -> None:
            super().on_complete()
            raise RuntimeError("a client's callback")

    reaped = Reaped()
    reaped.delayed.produce.try_complete_else_watch(Raising("raises", reaped.done), ["key"], 10)
    reaped.wait("same", 10, "fetch")
    reaped.wait("later", 20)
    with without_logs():
        assert reaped.pass_time(10) == ["raises", "same"]
    assert reaped.pass_time(10) == ["later"]
    reaped.wait("new", 10)
    assert reaped.pass_time(10) == ["new"]


def test_whatever_a_purgatory_raises_the_next_deadline_is_kept(monkeypatch):
    reaped = Reaped()
    reaped.wait("soon", 10)
    reaped.wait("later", 20)
    expire = DelayedRequests.expire

    def failing(delayed: DelayedRequests) -> int:
        expire(delayed)
        raise MemoryError

    monkeypatch.setattr(DelayedRequests, "expire", failing)
    with without_logs():
        assert reaped.pass_time(10) == ["soon"]
        assert reaped.pass_time(10) == ["later"]
