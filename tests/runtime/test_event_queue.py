"""The thread of an event queue: events run one at a time, faults go to their owner, and `close` loses no event."""

from __future__ import annotations

import threading
from queue import SimpleQueue

from structlog.testing import capture_logs

from kraftlake.runtime.clock import ManualClock, SystemClock
from kraftlake.runtime.errors import QueueFullError
from kraftlake.runtime.event_order import EventQueueClosedError
from kraftlake.runtime.event_queue import EventQueue, FunctionEvent, KafkaEventQueue
from tests.waiting import PATIENCE


def test_a_queue_without_a_thread_runs_ready_events_when_it_is_called() -> None:
    clock, ran = ManualClock(), list[str]()
    queue = EventQueue(clock, "q")
    queue.append(FunctionEvent(lambda: ran.append("first")))
    queue.schedule_deferred("t", 5_000_000, FunctionEvent(lambda: ran.append("later")))

    assert queue.run_ready() == 1
    clock.advance(5)
    assert queue.run_ready() == 1
    assert ran == ["first", "later"]


def test_an_exception_goes_to_the_owner_of_the_event_and_the_next_event_runs() -> None:
    faults: list[Exception] = []
    queue = EventQueue(ManualClock(), "q")
    fault = ValueError("broken")

    def fail() -> None:
        raise fault

    queue.append(FunctionEvent(fail, faults.append))
    queue.append(FunctionEvent(fail))
    queue.append(FunctionEvent(lambda: None))

    with capture_logs() as logs:
        assert queue.run_ready() == 3
    assert faults == [fault]
    assert [entry["cause"] for entry in logs] == ["ValueError: broken"], "a fault without an owner is logged"


def test_a_refused_event_learns_why() -> None:
    faults: list[Exception] = []
    queue = EventQueue(ManualClock(), "q", limit=1)
    assert queue.append(FunctionEvent(lambda: None))
    assert not queue.append(FunctionEvent(lambda: None, faults.append))
    queue.close()
    assert not queue.append(FunctionEvent(lambda: None, faults.append))
    assert [type(fault) for fault in faults] == [QueueFullError, EventQueueClosedError]


def test_the_thread_runs_events_one_after_the_other_from_many_threads() -> None:
    queue = KafkaEventQueue(SystemClock(), "q")
    running, most, count = 0, 0, 0

    def count_up() -> None:
        nonlocal running, most, count
        running += 1
        most = max(most, running)
        count += 1
        running -= 1

    def add() -> None:
        for _ in range(200):
            queue.append(FunctionEvent(count_up))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    queue.close()

    assert (count, most) == (800, 1)


def test_the_thread_wakes_for_a_deferred_event() -> None:
    clock = SystemClock()
    queue = KafkaEventQueue(clock, "q")
    ran: SimpleQueue[int] = SimpleQueue()
    due = clock.nanoseconds() + 5_000_000
    queue.schedule_deferred("t", due, FunctionEvent(lambda: ran.put(clock.nanoseconds())))
    assert ran.get(timeout=PATIENCE) >= due
    queue.close()


def test_a_deferred_event_runs_when_the_clock_is_advanced_by_hand() -> None:
    clock = ManualClock()
    queue = KafkaEventQueue(clock, "q")
    ran: SimpleQueue[str] = SimpleQueue()
    queue.schedule_deferred("t", 10**15, FunctionEvent(lambda: ran.put("ran")))
    clock.advance(10**9)
    queue.wake_up()
    assert ran.get(timeout=PATIENCE) == "ran"
    queue.close()


def test_close_runs_queued_events_refuses_deferred_ones_and_cleans_up_last() -> None:
    seen: list[str] = []
    queue = KafkaEventQueue(SystemClock(), "q", cleanup=lambda: seen.append("cleanup"))
    gate = threading.Event()
    queue.append(FunctionEvent(lambda: gate.wait(PATIENCE) and None))
    queue.schedule_deferred(
        "t",
        queue.clock.nanoseconds() + 10**15,
        FunctionEvent(lambda: None, lambda error: seen.append(type(error).__name__)),
    )
    queue.append(FunctionEvent(lambda: seen.append("queued")))
    queue.begin_shutdown()
    gate.set()
    queue.close()
    assert seen == ["EventQueueClosedError", "queued", "cleanup"]


def test_an_event_may_close_its_own_queue() -> None:
    done = threading.Event()
    queue = KafkaEventQueue(SystemClock(), "q", cleanup=done.set)
    queue.append(FunctionEvent(queue.close))
    assert done.wait(PATIENCE)
