"""Rows of the log that several take apart at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from weakref import ref

import pyarrow as pa
import pytest

pytest.importorskip("numba")

from kraftlake.records.batch import RecordBatch
from kraftlake.records.row_values import values_of_rows
from kraftlake.records.rows import to_rows
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.tables.catch_up import decoded_chunks as row_parts
from kraftlake.tables.catch_up.decoded_chunks import decoded_chunks
from tests.tables.telling import real_log


def rows() -> pa.Table:
    return to_rows(real_log("kafka-4.4"))


def test_all_who_ask_get_the_same_parts_which_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table, asked = rows(), list[pa.Table]()

    def noted(of: pa.Table) -> Iterator[object]:
        asked.append(of)
        return values_of_rows(of)

    monkeypatch.setattr(row_parts, "values_of_rows", noted)
    together = Barrier(3)

    def take(_: int) -> list[object]:
        together.wait()
        return [*decoded_chunks(table)]

    with ThreadPoolExecutor(3) as pool:
        first, *others = pool.map(take, range(3))
    assert len(asked) == 1
    assert len(first) == len([*values_of_rows(table)]) > 1
    for other in others:
        assert len(other) == len(first)
        assert all(one is another for one, another in zip(first, other, strict=True))


def test_equal_rows_of_another_table_are_taken_apart_again() -> None:
    tables = rows(), rows()
    first, second = (next(decoded_chunks(table)) for table in tables)
    assert first is not second


def test_a_fault_is_told_to_everybody_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    table = rows()
    part = next(values_of_rows(table))

    def broken(_: pa.Table) -> Iterator[object]:
        yield part
        raise CorruptDataError("offset 7 is broken")

    monkeypatch.setattr(row_parts, "values_of_rows", broken)
    for taken in (decoded_chunks(table), decoded_chunks(table)):
        assert next(taken) is part
        with pytest.raises(CorruptDataError, match="offset 7"):
            next(taken)


def test_nothing_is_held_when_the_table_is_gone() -> None:
    table = rows()
    assert [part for part in decoded_chunks(table) if isinstance(part, RecordBatch)]
    held = ref(row_parts._shared._newest[-1][1])  # tables of others may be there as well
    assert held() is not None
    del table
    gc.collect()
    assert held() is None
