"""Many batches encoded at once are, byte for byte, what each of them is encoded as."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given

from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.batch_header import COMPRESSIONS
from kraftlake.records.batch_values import BatchValues, read_values
from kraftlake.records.encoded_batches import encode_batches
from tests.metadata_log.log_batches import data_batch
from tests.metadata_log.strategies import logs


def stretches_of(batches: list[RecordBatch]) -> list[BatchValues]:
    data = memoryview(b"".join(map(encode_batch, batches)))
    return [part for part in read_values(data, file="f", position=0) if isinstance(part, BatchValues)]


def check(batches: list[RecordBatch], compression: str = "none") -> int:
    checked = 0
    for part in stretches_of(batches):
        own = [batch for batch in batches if part.base_offset <= batch.base_offset <= part.last_offset]
        assert list(encode_batches(part, compression)) == [encode_batch(batch, compression) for batch in own]
        checked += len(own)
    return checked


@given(logs())
def test_any_batches_are_encoded_as_each_of_them_is(batches: list[RecordBatch]) -> None:
    check(batches)  # may assert nothing: few examples have no batches of one kind


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_they_are_compressed_alike(compression: str) -> None:
    assert check([data_batch(0, 3), data_batch(3, 1)], compression) == 2


def test_records_that_differ_in_time_and_size_and_large_batches() -> None:
    times = attrs.evolve(data_batch(5, 3), timestamps=(7, -1, 1 << 41), timestamp=1 << 41)
    values = tuple(b"\x01\x03\x00" + bytes(size) for size in (0, 60, 61, 124, 8_000, 70_000, 2_100_000))
    sizes = RecordBatch(base_offset=8, epoch=4, timestamp=9, values=values, timestamps=(9,) * len(values))
    many = RecordBatch(base_offset=15, epoch=4, timestamp=9, values=values[:1] * 9_000, timestamps=(9,) * 9_000)
    assert check([times, sizes, many]) == 3
