from __future__ import annotations

import attrs
import pyarrow as pa
from hypothesis import given

from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.batch_values import BatchValues, read_values
from kraftlake.records.row_values import values_of_rows
from kraftlake.records.rows import to_rows
from kraftlake.records.value_columns import has_plain_frames
from tests.metadata_log.log_batches import data_batch
from tests.metadata_log.strategies import logs


def parts_of(batches: list[RecordBatch]) -> list[BatchValues | RecordBatch]:
    return list(read_values(memoryview(b"".join(map(encode_batch, batches))), file="f", position=0))


@given(logs())
def test_the_rows_of_many_batches_are_those_of_each_of_them(batches: list[RecordBatch]) -> None:
    parts = parts_of(batches)
    rows = [to_rows([part]) for part in parts]
    assert pa.concat_tables(rows).combine_chunks().equals(to_rows(batches).combine_chunks())
    many = [part for part in parts if isinstance(part, BatchValues)]
    assert bool(many) == any(not batch.control for batch in batches)
    assert all(map(has_plain_frames, many))


@given(logs())
def test_rows_become_the_batches_that_they_were_made_of(batches: list[RecordBatch]) -> None:
    found: list[RecordBatch] = []
    for part in values_of_rows(to_rows(batches)):
        found += part.batches(part.base_offset) if isinstance(part, BatchValues) else [part]
    assert found == batches


def test_records_of_a_batch_keep_a_time_each() -> None:
    batch = attrs.evolve(data_batch(0, 3), timestamps=(5, -1, 9), timestamp=9)
    (part,) = parts_of([batch])
    assert isinstance(part, BatchValues)
    assert list(part.batches(0)) == [batch]
    assert to_rows([part]).equals(to_rows([batch]))


def test_a_frame_of_large_numbers_is_left_to_the_slow_way() -> None:
    wide = b"\x01\x80\x01\x00" + bytes(4)  # api key 128 takes two bytes
    batch = attrs.evolve(data_batch(0, 2), values=(data_batch(0).values[0], wide))
    (part,) = parts_of([batch])
    assert isinstance(part, BatchValues)
    assert not has_plain_frames(part)
    assert to_rows([part]).equals(to_rows([batch]))
    assert to_rows([part]).column("api_key").to_pylist()[1] == 128
