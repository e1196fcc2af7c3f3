from __future__ import annotations

import threading

import pytest

from kraftlake.spark_jobs.beside import Behind


def test_tasks_run_behind_one_after_the_other() -> None:
    go, done = threading.Event(), []

    def wait() -> None:
        go.wait(30)
        done.append(1)

    with Behind() as behind:
        behind.start(wait)
        assert not done
        go.set()
        behind.start(lambda: done.append(2))
        assert done[0] == 1
    assert done == [1, 2]


def test_what_a_task_raises_is_raised_once_by_who_waits_for_it() -> None:
    def fail() -> None:
        raise ValueError("full disk")

    with Behind() as behind:
        behind.start(fail)
        with pytest.raises(ValueError, match="full disk"):
            behind.wait()
        behind.wait()
    with pytest.raises(ValueError, match="full disk"), Behind() as behind:
        behind.start(fail)


def test_of_two_that_fail_side_by_side_the_fault_of_the_own_thread_is_raised() -> None:
    def fail() -> None:
        raise ValueError("task")

    def fail_too() -> None:
        raise ValueError("own")

    with Behind() as beside:
        assert beside.along(lambda: None, lambda: 3) == 3
        with pytest.raises(ValueError, match="own"):
            beside.along(fail, fail_too)
        with pytest.raises(ValueError, match="task"):
            beside.along(fail, lambda: 3)
        beside.wait()


def test_who_fails_waits_for_the_task_beside_it() -> None:
    go, done = threading.Event(), []

    def fail() -> None:
        go.set()
        raise ValueError("own")

    with Behind() as beside:
        with pytest.raises(ValueError, match="own"):
            beside.along(lambda: done.append(go.wait(30)), fail)
        assert done == [True]
