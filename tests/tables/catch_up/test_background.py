from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from kraftlake.tables.catch_up.background import BackgroundWorker


def test_tasks_run_behind_one_after_the_other() -> None:
    go, done = threading.Event(), []

    def wait() -> None:
        go.wait(30)
        done.append(1)

    with BackgroundWorker() as background:
        background.start(wait)
        assert not done
        go.set()
        background.start(lambda: done.append(2))
        assert done[0] == 1
    assert done == [1, 2]


def test_what_a_task_raises_is_raised_once_by_who_waits_for_it() -> None:
    def fail() -> None:
        raise ValueError("full disk")

    with BackgroundWorker() as background:
        background.start(fail)
        with pytest.raises(ValueError, match="full disk"):
            background.wait()
        background.wait()
    with pytest.raises(ValueError, match="full disk"), BackgroundWorker() as background:
        background.start(fail)


def fail_as(word: str) -> Callable[[], None]:
    def fail() -> None:
        raise ValueError(word)

    return fail


def test_the_own_thread_may_be_some_tasks_ahead_and_no_more() -> None:
    go, done = threading.Event(), []

    def wait() -> None:
        go.wait(30)
        done.append(0)

    with BackgroundWorker(3) as background:
        for number in range(3):
            task = wait if number == 0 else partial(done.append, number)
            background.start(task)
            assert not done
        go.set()
        for number in range(3, 9):
            background.start(partial(done.append, number))
            assert len(done) >= number - 2
        background.wait()
        assert done == list(range(9))


def test_nothing_is_begun_behind_a_task_that_failed_and_the_first_fault_is_raised() -> None:
    go, done = threading.Event(), []

    def fail_late() -> None:
        go.wait(30)
        raise ValueError("first")

    with BackgroundWorker(4) as background:
        background.start(fail_late)
        background.start(lambda: done.append(1))
        background.start(fail_as("second"))
        go.set()
        with pytest.raises(ValueError, match="first"):
            background.wait()
        assert not done
        background.start(lambda: done.append(3))
        background.wait()
        assert done == [3]


def test_what_waits_for_its_turn_is_left_when_the_run_ends_with_a_fault() -> None:
    begun, go, done = threading.Event(), threading.Event(), []

    def wait() -> None:
        begun.set()
        go.wait(30)

    def stop() -> None:
        with BackgroundWorker(3) as background:
            background.start(wait)
            background.start(lambda: done.append(1))
            background._tasks[-1].add_done_callback(lambda _: go.set())  # called when it is left, too
            begun.wait(30)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert not done
