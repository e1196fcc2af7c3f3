"""Virtual time: it jumps, processes die with their threads and locks, and a suspended one goes on later."""

from __future__ import annotations

from queue import Empty

import pytest

from simulator.scheduler import SECOND, Process, Scheduler
from simulator.threads import Condition, Event, Lock, SimpleQueue, Thread


def test_time_jumps_to_the_next_deadline(time: Scheduler) -> None:
    ends: list[int] = []

    def wait() -> None:
        assert not Event().wait(3600)
        ends.append(time.now_ns)
        with pytest.raises(Empty):
            SimpleQueue().get(timeout=60)
        ends.append(time.now_ns)

    time.start(Process(time, "one"), "waiter", wait)
    time.run(7200 * SECOND)
    assert ends == [3600 * SECOND, 3660 * SECOND]
    assert time.steps == 3


def test_a_condition_wakes_one_thread_at_a_time(time: Scheduler) -> None:
    changed, woken, process = Condition(), list[str](), Process(time, "one")

    def wait(name: str) -> None:
        with changed:
            assert changed.wait(100)
            woken.append(name)

    def notify() -> None:
        for _ in range(2):
            time.sleep(SECOND)
            with changed:
                changed.notify()
                woken.append("notified")

    for name in ("a", "b"):
        time.start(process, name, lambda name=name: wait(name))  # type: ignore[misc]
    time.start(process, "notifier", notify)
    time.run(10 * SECOND)
    assert [one == "notified" for one in woken] == [True, False, True, False]
    assert set(woken) == {"a", "b", "notified"}


def test_a_killed_process_does_nothing_more(time: Scheduler) -> None:
    done: list[str] = []
    process = Process(time, "one")

    def hold(lock: Lock) -> None:
        with lock:
            try:
                time.sleep(10 * SECOND)
            finally:
                done.append("ends")
                Event().wait(5)  # is not waited for
                done.append("never")

    def begin() -> None:
        lock = Lock()
        threads = [Thread(target=hold, args=(lock,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        done.append("never")

    time.start(process, "main", begin)
    time.run(SECOND)
    time.kill(process)
    time.run(100 * SECOND)
    assert done == ["ends"]


def test_a_suspended_process_goes_on_where_it_was(time: Scheduler) -> None:
    ticks: list[int] = []
    process = Process(time, "one")

    def tick() -> None:
        for _ in range(4):
            time.sleep(SECOND)
            ticks.append(time.now_ns // SECOND)

    time.start(process, "main", tick)
    time.run(2 * SECOND)
    time.suspend(process)
    time.run(60 * SECOND)
    time.resume(process)
    time.run(100 * SECOND)
    assert ticks == [1, 2, 60, 61]


def test_what_ends_a_thread_ends_the_simulation(time: Scheduler) -> None:
    def fail() -> None:
        raise ValueError("no number")

    time.start(Process(time, "one"), "main", fail)
    with pytest.raises(ValueError, match="no number"):
        time.run(SECOND)


def test_tasks_that_wake_each_other_at_one_instant_end_the_simulation(time: Scheduler) -> None:
    def go_on() -> None:
        while True:
            time.pause()

    for name in ("one", "other"):
        time.start(Process(time, name), "main", go_on)
    time.most_steps = 100
    with pytest.raises(AssertionError, match="101 steps: tasks keep each other busy"):
        time.run(SECOND)
