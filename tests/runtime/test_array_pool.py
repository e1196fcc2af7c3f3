"""Memory that is used again: never while anybody can see it, and never much of it is kept."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.runtime import array_pool

ROWS = array_pool.FROM_BYTES // 56 + 1


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_pool, "_unused", {})
        yield


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def test_an_array_that_is_gone_leaves_its_memory_to_the_next_one() -> None:
    array = array_pool.empty((2 * ROWS, 14), np.int32)
    before = address(array)
    del array
    again = array_pool.empty((2 * ROWS - 7, 14), np.int32)
    assert address(again) == before
    assert (again.shape, again.dtype) == ((2 * ROWS - 7, 14), np.int32)


@pytest.mark.parametrize("hold", [lambda a: a[3:], lambda a: a.data, lambda a: a.reshape(-1).view(np.uint8).data[5:]])
def test_a_view_of_any_kind_holds_its_memory(hold) -> None:  # type: ignore[no-untyped-def]
    array = array_pool.empty((ROWS, 14), np.int32)
    before = address(array)
    view = hold(array)
    del array
    assert address(array_pool.empty((ROWS, 14), np.int32)) != before
    del view
    assert before in {address(array) for array in [array_pool.empty((ROWS, 14), np.int32) for _ in range(2)]}


def test_small_arrays_and_larger_ones_than_are_kept_come_from_the_system() -> None:
    small = array_pool.empty(10, np.int64)
    large = array_pool.empty(array_pool.KEPT_BYTES + 1, np.uint8)
    assert small.base is None
    assert large.base is None
    del small, large
    assert array_pool._unused == {}


def test_what_nobody_uses_is_given_back() -> None:
    held = array_pool.empty((ROWS, 14), np.int32)
    array_pool.empty((ROWS, 14), np.int32)
    assert len(array_pool._unused) == 1
    array_pool.give_back()
    assert array_pool._unused == {}
    before = address(held)
    del held
    assert address(array_pool.empty((ROWS, 14), np.int32)) == before


def test_a_copy_is_one() -> None:
    array = np.arange(14 * ROWS, dtype=np.int32).reshape(ROWS, 14)
    copy = array_pool.copy_of(array)
    assert (copy == array).all()
    copy[0, 0] = -1
    assert array[0, 0] == 0


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 7)), max_size=30))
def test_no_two_arrays_share_memory_and_the_bound_is_kept(steps: list[tuple[int, int]]) -> None:
    mb = 1 << 20
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_pool, "_unused", {})
        patch.setattr(array_pool, "KEPT_BYTES", 8 * mb)
        held: list[tuple[np.ndarray, int]] = []
        for number, (size, drop) in enumerate(steps):
            array = array_pool.empty(size * mb, np.uint8)
            array[:: mb // 2] = number
            held.append((array[mb // 2 :], number))
            del array
            if drop < len(held):
                del held[drop]
            assert sum(map(len, array_pool._unused.values())) <= 8 * mb
            assert all((view[:: mb // 2] == mark).all() for view, mark in held)


def test_threads_never_get_the_same_memory() -> None:
    def use(mark: int) -> bool:
        for _ in range(50):
            array = array_pool.empty(array_pool.FROM_BYTES, np.uint8)
            array[:: 1 << 16] = mark
            if (array[:: 1 << 16] != mark).any():
                return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(use, range(4)))
