from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kraftlake.spark_jobs.beside import Behind, ahead


def test_an_item_is_made_while_the_one_before_is_worked_on() -> None:
    made = [threading.Event() for _ in range(4)]

    def items() -> Iterator[int]:
        for number in range(3):
            made[number].set()
            yield number
        made[3].set()

    seen = []
    for item in ahead(items()):
        assert made[item + 1].wait(30), "the next one is made without anybody asking for it"
        seen.append(item)
    assert seen == [0, 1, 2]


def test_what_making_an_item_raises_is_raised_behind_those_before() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("no second one")

    coming = ahead(items())
    assert next(coming) == 1
    with pytest.raises(ValueError, match="no second one"):
        next(coming)


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
