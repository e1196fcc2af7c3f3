"""What several make of the same tables is made once, and let go with them."""

from __future__ import annotations

import gc
import threading
from weakref import ref

import pyarrow as pa
import pytest

from kraftlake.tables.catch_up.background import CHUNKS_AHEAD
from kraftlake.tables.catch_up.chunk_cache import ChunkCache


class Made:
    """Something that can be held weakly."""

    def __init__(self, table: pa.Table) -> None:
        self.rows = table.num_rows


def tables(count: int) -> list[pa.Table]:
    return [pa.table({"offset": [number]}) for number in range(count)]


def test_it_is_made_once_for_each_table_that_is_one_object() -> None:
    newest = ChunkCache(Made)
    one, other = tables(2)
    made = newest.of(one)
    assert newest.of(other) is not made
    assert newest.of(one) is made
    assert newest.of(one.slice(0)) is not made


def test_as_many_are_kept_as_one_may_be_ahead_of_another() -> None:
    newest = ChunkCache(Made)
    first, *others = tables(CHUNKS_AHEAD + 2)
    made = newest.of(first)
    for other in others[:-1]:
        newest.of(other)
    assert newest.of(first) is made
    newest.of(others[-1])
    assert newest.of(first) is not made


def test_who_asks_meanwhile_is_given_the_same() -> None:
    asked, go = threading.Event(), threading.Event()
    calls: list[pa.Table] = []

    def make(table: pa.Table) -> Made:
        calls.append(table)
        asked.set()
        assert go.wait(30)
        return Made(table)

    newest, got = ChunkCache(make), list[Made]()
    (table,) = tables(1)
    threads = [threading.Thread(target=lambda: got.append(newest.of(table))) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert asked.wait(30)
    go.set()
    for thread in threads:
        thread.join(30)
    assert len(got) == 2
    assert got[0] is got[1]
    assert len(calls) == 1


def test_nothing_is_kept_of_a_fault() -> None:
    faults = [ValueError("torn")]

    def make(table: pa.Table) -> Made:
        if faults:
            raise faults.pop()
        return Made(table)

    newest = ChunkCache(make)
    (table,) = tables(1)
    with pytest.raises(ValueError, match="torn"):
        newest.of(table)
    assert newest.of(table).rows == 1


def test_what_is_made_is_let_go_when_the_table_is_gone() -> None:
    newest = ChunkCache(Made)
    held, gone = tables(2)
    stays, goes = ref(newest.of(held)), ref(newest.of(gone))
    del gone
    gc.collect()
    assert goes() is None
    assert stays() is not None
