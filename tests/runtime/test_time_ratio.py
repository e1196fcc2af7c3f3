"""What share of the time something took."""

from __future__ import annotations

from kraftlake.runtime.clock import SystemClock
from kraftlake.runtime.event_queue import FunctionEvent, KafkaEventQueue
from kraftlake.runtime.time_ratio import TimeRatio

SECOND = 1_000_000_000


def test_it_is_the_default_until_something_was_recorded() -> None:
    ratio = TimeRatio(1.0)
    assert ratio.measure() == 1.0
    ratio.record(SECOND, 5 * SECOND)  # of a time before it looked
    assert ratio.measure() == 1.0


def test_each_measurement_begins_anew() -> None:
    ratio = TimeRatio(1.0)
    ratio.record(0, 0)
    ratio.record(SECOND, 2 * SECOND)
    ratio.record(SECOND, 8 * SECOND)
    assert ratio.measure() == 0.25
    ratio.record(SECOND, 10 * SECOND)
    assert ratio.measure() == 0.5
    assert ratio.measure() == 1.0, "nothing was recorded since"


def test_it_is_never_more_than_all_of_the_time() -> None:
    ratio = TimeRatio(0.0)
    ratio.record(0, 0)
    ratio.record(3 * SECOND, 2 * SECOND)
    assert ratio.measure() == 1.0


def test_a_queue_tells_how_long_it_waited() -> None:
    waits: list[tuple[int, int]] = []
    queue = KafkaEventQueue(SystemClock(), "q", on_idle=lambda *wait: waits.append(wait))
    queue.schedule_deferred("t", SystemClock().nanoseconds() + 1_000_000, FunctionEvent(lambda: None))
    queue.close()
    assert waits
    assert all(0 <= duration <= ended for duration, ended in waits)
