"""Rows that are made when somebody asks for them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from weakref import ref

import pyarrow as pa
import pytest

from kraftlake.tables.lazy_table import LazyTable

ROWS = pa.table({"offset": [1, 2, 3]})


def test_they_are_made_once_and_not_before_somebody_asks() -> None:
    made: list[int] = []

    def make() -> pa.Table:
        made.append(1)
        return ROWS

    later = LazyTable(make, 3)
    assert later.num_rows == 3
    assert not made
    assert later.table() is later.table() is ROWS
    assert made == [1]


def test_they_are_gone_as_soon_as_nobody_has_them() -> None:
    later = LazyTable(lambda: pa.table({"offset": [1, 2, 3]}), 3)
    rows = ref(later.table())
    assert rows() is not None
    gc.disable()
    try:
        del later
        assert rows() is None, "hundreds of megabytes would wait for the collector"
    finally:
        gc.enable()


def test_how_many_there_are_may_be_known_by_making_them_alone() -> None:
    assert LazyTable(lambda: ROWS).num_rows == 3


def test_rows_that_are_there_are_they_themselves() -> None:
    later = LazyTable.of(ROWS)
    assert (later.num_rows, later.table()) == (3, ROWS)


def test_what_the_making_raises_comes_to_who_asks_each_time() -> None:
    later = LazyTable(lambda: pa.array(["x"], pa.int64()), 1)
    for _ in range(2):
        with pytest.raises(pa.ArrowInvalid):
            later.table()


def test_chunks_are_made_on_request_and_make_the_same_rows() -> None:
    made: list[int] = []

    def chunks() -> Iterator[pa.Table]:
        for start in (0, 2):
            made.append(start)
            yield ROWS.slice(start, 2)

    later = LazyTable.in_chunks(chunks, ROWS.schema, 3)
    assert (later.num_rows, made) == (3, [])
    tables = later.tables()
    assert next(tables).num_rows == 2
    assert made == [0]
    assert pa.concat_tables([ROWS.slice(0, 2), *tables]) == ROWS
    assert later.num_rows == 3
    with pytest.raises(AssertionError, match="chunk by chunk"):
        later.table()
    whole = LazyTable.in_chunks(chunks, ROWS.schema, 3)
    assert whole.table() == ROWS
    assert [*whole.tables()] == [ROWS]
    assert LazyTable.in_chunks(lambda: iter([]), ROWS.schema, 0).table() == ROWS.schema.empty_table()


def test_rows_without_chunks_are_one_table() -> None:
    assert [*LazyTable(lambda: ROWS).tables()] == [ROWS]
