"""Requests that have waited long enough are answered at their time, without anybody asking."""

from __future__ import annotations

from kraftlake.replica_manager import ReplicaManagerConfig
from kraftlake.replica_manager.delayed_operations import DelayedRequests
from kraftlake.replica_manager.expiration_reaper import ExpirationReaper
from kraftlake.replica_manager.purgatory import DelayedOperation
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.event_queue import EventQueue


class Waiting(DelayedOperation):
    """Waits for nothing but its time."""

    def __init__(self, name: str, done: list[str]) -> None:
        super().__init__()
        self.name, self.done = name, done

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        self.done.append(self.name)


class Reaped:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.queue = EventQueue(self.clock, "reaper")
        self.delayed = DelayedRequests(ReplicaManagerConfig(), self.clock)
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


def test_each_request_is_answered_at_its_own_time_whatever_purgatory_it_waits_in():
    reaped = Reaped()
    reaped.wait("late", 30)
    reaped.wait("early", 10, "fetch")
    reaped.wait("middle", 20, "delete_records")
    assert [reaped.pass_time(passed) for passed in (9, 1, 10, 9, 1)] == [[], ["early"], ["middle"], [], ["late"]]
    assert reaped.queue.size == 0


def test_a_request_that_comes_while_others_wait_is_not_forgotten():
    reaped = Reaped()
    reaped.wait("first", 10)
    assert reaped.pass_time(10) == ["first"]
    reaped.wait("second", 10)
    assert reaped.pass_time(10) == ["second"]


def test_one_event_waits_however_many_requests_do():
    reaped = Reaped()
    for number in range(100):
        reaped.wait(str(number), 100 - number)
    assert reaped.queue.size == 1


def test_what_was_answered_before_its_time_is_not_answered_again():
    reaped = Reaped()
    assert reaped.wait("first", 10).force_complete()
    assert reaped.pass_time(10) == []


def test_a_queue_that_was_closed_is_no_fault():
    reaped = Reaped()
    reaped.wait("first", 10)
    reaped.queue.close()
    reaped.wait("second", 5)
    assert reaped.pass_time(20) == []
