"""The active controller knows how far the nodes are that follow the log, and when each had all of it."""

from __future__ import annotations

from kraftlake.runtime.clock import ManualClock
from kraftlake.server.controller.replica_progress import ReplicaProgress


def caught_up(progress: ReplicaProgress, end_offset: int) -> int:
    """When the observer 7 had the whole log."""
    _, (observer,) = progress.described(leader=101, controllers=(), brokers=(), end_offset=end_offset)
    return observer.last_caught_up_ms


def test_a_node_that_is_always_a_little_behind_a_growing_log_was_caught_up_at_its_last_report() -> None:
    clock = ManualClock(1000)
    progress = ReplicaProgress(clock)
    progress.note(7, 3, end_offset=10)
    assert caught_up(progress, 10) == -1, "it has never had all of it"
    clock.advance(500)
    progress.note(7, 10, end_offset=12)
    assert caught_up(progress, 12) == 1000, "it has now what there was then"
    clock.advance(500)
    progress.note(7, 11, end_offset=15)
    assert caught_up(progress, 15) == 1000, "it lacks some of what there was at 1500"
    clock.advance(500)
    progress.note(7, 15, end_offset=15)
    assert caught_up(progress, 15) == 2500
