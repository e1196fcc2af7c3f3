"""Delayed and periodic tasks."""

from __future__ import annotations

import threading

import pytest
from structlog.testing import capture_logs

from kraftlake.runtime.clock import ManualClock, SystemClock
from kraftlake.runtime.event_queue import EventQueue, KafkaEventQueue
from kraftlake.runtime.scheduler import Scheduler
from tests.waiting import PATIENCE


class Turned:
    """A scheduler whose queue is turned by hand."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.queue = EventQueue(self.clock, "scheduler")
        self.scheduler = Scheduler(self.queue)
        self.ran: list[str] = []

    def task(self, name: str = "task") -> None:
        self.ran.append(name)

    def pass_time(self, milliseconds: float) -> list[str]:
        del self.ran[:]
        self.clock.advance(milliseconds)
        self.queue.run_ready()
        return self.ran


def test_a_task_runs_once_after_its_delay() -> None:
    turned = Turned()
    turned.scheduler.schedule("t", turned.task, delay_ms=10)
    turned.scheduler.after(10, lambda: turned.task("after"))
    assert turned.pass_time(9) == []
    assert turned.pass_time(1) == ["task", "after"]
    assert turned.pass_time(1_000) == []


def test_a_periodic_task_runs_at_once_and_then_every_period() -> None:
    turned = Turned()
    turned.scheduler.schedule("t", turned.task, period_ms=10)
    assert [len(turned.pass_time(passed)) for passed in (0, 9, 1, 10)] == [1, 0, 1, 1]


def test_missed_runs_are_skipped() -> None:
    turned = Turned()
    turned.scheduler.schedule("t", turned.task, period_ms=10)
    turned.pass_time(0)
    assert turned.pass_time(95) == ["task"] * 2  # the one that was due, and one for now
    assert [len(turned.pass_time(passed)) for passed in (9, 1)] == [0, 1]


def test_a_cancelled_task_does_not_run_again_even_if_it_cancels_itself() -> None:
    turned = Turned()
    task = turned.scheduler.schedule("t", lambda: (turned.task(), task.cancel()), period_ms=10)  # type: ignore[func-returns-value]
    other = turned.scheduler.schedule("t", turned.task, delay_ms=5)
    other.cancel()
    assert turned.pass_time(0) == ["task"]
    assert turned.pass_time(100) == []
    assert turned.queue.size == 0


def test_a_fault_is_logged_with_the_task_name_and_the_task_runs_again() -> None:
    turned = Turned()

    def fails() -> None:
        turned.task()
        raise OSError("no disk")

    turned.scheduler.schedule("checkpoint", fails, period_ms=10)
    with capture_logs() as logs:
        turned.pass_time(0)
    assert [(entry["event"], entry["task"], entry["cause"]) for entry in logs] == [
        ("task_failed", "checkpoint", "OSError: no disk")
    ]
    assert turned.pass_time(10) == ["task"]


def test_a_period_must_be_above_zero() -> None:
    with pytest.raises(ValueError, match="every 0 ms"):
        Turned().scheduler.schedule("t", lambda: None, period_ms=0)


def test_after_a_shutdown_no_task_runs_and_no_fault_is_logged() -> None:
    turned = Turned()
    turned.scheduler.schedule("t", turned.task, period_ms=10)
    turned.scheduler.shutdown()
    with capture_logs() as logs:
        turned.scheduler.after(0, turned.task)
    assert turned.pass_time(100) == []
    assert logs == []


def test_on_a_queue_with_a_thread_tasks_run_until_shutdown() -> None:
    scheduler = Scheduler(KafkaEventQueue(SystemClock(), "scheduler"))
    ran = threading.Semaphore(0)
    scheduler.schedule("t", ran.release, period_ms=1)
    assert all(ran.acquire(timeout=PATIENCE) for _ in range(3))
    scheduler.shutdown()
    while ran.acquire(blocking=False):
        pass
    assert not ran.acquire(timeout=0.01)
