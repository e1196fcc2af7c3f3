"""The share of time that an activity takes."""

from __future__ import annotations

from kraftlake.runtime.clock import SystemClock
from kraftlake.runtime.event_queue import FunctionEvent, KafkaEventQueue
from kraftlake.runtime.time_ratio import TimeRatio

SECOND = 1_000_000_000


def test_the_ratio_is_the_default_without_recordings() -> None:
    ratio = TimeRatio(1.0)
    assert ratio.measure() == 1.0
    ratio.record(SECOND, 5 * SECOND)  # of a time before it looked
    assert ratio.measure() == 1.0


def test_each_measurement_restarts_the_sum() -> None:
    ratio = TimeRatio(1.0)
    ratio.record(0, 0)
    ratio.record(SECOND, 2 * SECOND)
    ratio.record(SECOND, 8 * SECOND)
    assert ratio.measure() == 0.25
    ratio.record(SECOND, 10 * SECOND)
    assert ratio.measure() == 0.5
    assert ratio.measure() == 1.0, "nothing was recorded since"


def test_the_ratio_is_at_most_one() -> None:
    ratio = TimeRatio(0.0)
    ratio.record(0, 0)
    ratio.record(3 * SECOND, 2 * SECOND)
    assert ratio.measure() == 1.0


def test_a_queue_reports_its_waiting_time() -> None:
    waits: list[tuple[int, int]] = []
    queue = KafkaEventQueue(SystemClock(), "q", on_idle=lambda *wait: waits.append(wait))
    queue.schedule_deferred("t", SystemClock().nanoseconds() + 1_000_000, FunctionEvent(lambda: None))
    queue.close()
    assert waits
    assert all(0 <= duration <= ended for duration, ended in waits)
