"""Prefetched items: the same items and exceptions as without prefetching, and no thread is left."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.runtime.prefetching import prefetch


@pytest.fixture(autouse=True, params=[1, 2], ids=["one processor", "two processors"])
def processors(request: pytest.FixtureRequest) -> Iterator[int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _: set(range(request.param)))
        yield request.param


def ours() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "one-ahead"]


@given(st.lists(st.integers() | st.none()))
def test_the_items_come_in_their_order(items: list[int | None]) -> None:
    with prefetch(items) as made:
        assert list(made) == items
    assert not ours()


@given(st.integers(0, 5))
def test_an_exception_is_raised_in_place_of_its_item(good: int) -> None:
    def items() -> Iterator[int]:
        yield from range(good)
        raise ValueError("the next one")

    with prefetch(items()) as made:
        assert [next(made) for _ in range(good)] == list(range(good))
        with pytest.raises(ValueError, match="the next one"):
            next(made)
    assert not ours()


def test_at_most_one_item_is_made_ahead(processors: int) -> None:
    made_so_far: list[int] = []
    second = threading.Event()

    def items() -> Iterator[int]:
        for number in range(10):
            made_so_far.append(number)
            if number:
                second.set()
            yield number

    with prefetch(items()) as made:
        assert next(made) == 0
        if processors == 2:
            assert second.wait(10)
        assert made_so_far == list(range(processors))


def test_leaving_the_context_early_stops_the_thread() -> None:
    closed: list[bool] = []

    def items() -> Iterator[int]:
        try:
            yield from range(10)
        finally:
            closed.append(True)

    source = items()
    with prefetch(source) as made:
        next(made)
    assert not ours()
    source.close()
    assert closed == [True]


def test_items_are_made_on_another_thread_where_there_is_a_processor_for_it(processors: int) -> None:
    with prefetch(threading.get_ident() for _ in range(2)) as made:
        assert (set(made) == {threading.get_ident()}) == (processors == 1)


def test_without_the_affinity_of_the_process_the_processors_of_the_machine_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    with prefetch(threading.get_ident() for _ in range(2)) as made:
        assert threading.get_ident() not in set(made)
