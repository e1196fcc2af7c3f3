"""Delayed requests under real threads: each is answered exactly once."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import current_thread

from kraftlake.replica_manager.requests.expiration_reaper import ExpirationReaper
from kraftlake.replica_manager.requests.purgatory import DelayedOperation
from tests.simulation import waiting_requests
from tests.simulation.waiting_requests import WaitingRequests

SEEDS = 2_000 if os.environ.get("KRAFTLAKE_TESTS") == "long" else 100
ENOUGH_SEEDS = 500
"""A planted fault is seen within a few runs; the threads act differently in each run."""


def test_each_request_is_answered_once_by_its_condition_or_its_timeout():
    runs = [WaitingRequests(seed) for seed in range(SEEDS)]
    for run in runs:
        run.run()
    # a history in which nothing happens shows nothing
    expired, all_ = sum(run.expired for run in runs), sum(len(run.requests) for run in runs)
    assert 10 * len(runs) < all_
    assert len(runs) < expired < all_ - len(runs)


def first_fault() -> str:
    """The failure of the first run that fails."""
    for seed in range(ENOUGH_SEEDS):
        try:
            WaitingRequests(seed).run()
        except AssertionError as error:
            return str(error)
    return ""


def test_the_simulation_sees_an_operation_that_expires_during_a_check(monkeypatch):
    complete_if = DelayedOperation._complete_if

    def without_lock(operation: DelayedOperation, condition: Callable[[], bool], then: Callable[[], None]) -> bool:
        if condition == operation.can_complete:
            return complete_if(operation, condition, then)
        if operation.is_completed:
            return False
        operation._completed = True
        operation._contained(then, "on_complete")
        return True

    monkeypatch.setattr(DelayedOperation, "_complete_if", without_lock)
    assert "looks at it" in first_fault()


def test_the_simulation_sees_callbacks_under_the_lock_of_their_operation(monkeypatch):
    complete_if = DelayedOperation._complete_if

    def under_lock(operation: DelayedOperation, condition: Callable[[], bool], then: Callable[[], None]) -> bool:
        with operation._lock:
            return complete_if(operation, condition, then)

    monkeypatch.setattr(DelayedOperation, "_complete_if", under_lock)
    monkeypatch.setattr(waiting_requests, "PATIENCE", 5.0)  # the fault is also a deadlock, in some runs
    assert "under the operation's lock" in first_fault()


def test_the_simulation_sees_a_callback_that_raises_into_another_thread(monkeypatch):
    monkeypatch.setattr(DelayedOperation, "_contained", lambda _, call, what: bool(call()))
    assert "a callback of another request raises here" in first_fault()


def test_the_simulation_sees_a_callback_that_stops_all_timeouts(monkeypatch):
    contained = DelayedOperation._contained

    def escape(operation: DelayedOperation, call: Callable[[], bool | None], what: str) -> bool:
        if current_thread().name.startswith("reaper"):
            return bool(call())
        return contained(operation, call, what)

    def expire(reaper: ExpirationReaper) -> None:
        reaper._delayed.expire()
        following = reaper._delayed.next_deadline()
        if following is not None:
            reaper._wake_by(following)

    monkeypatch.setattr(DelayedOperation, "_contained", escape)
    monkeypatch.setattr(ExpirationReaper, "_expire", expire)
    assert "never answered" in first_fault()
