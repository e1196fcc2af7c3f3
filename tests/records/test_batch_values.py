"""Values that come in parts: together they are what they would be in one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records import batch_values
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.batch_values import BatchValues, read_values
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.serde import ApiMessageAndVersion
from tests.histories import histories

TIME = 1_700_000_000_000


def read(data: bytes, first: int, largest: int, whole_below: int = 0) -> list[BatchValues | RecordBatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_values, "_FIRST_PART", first)
        patch.setattr(batch_values, "LARGEST_PART", largest)
        patch.setattr(batch_values, "_WHOLE_BELOW", whole_below)
        return list(read_values(memoryview(data), file="f", position=0))


def batches_in(parts: list[BatchValues | RecordBatch]) -> list[RecordBatch]:
    singles = [[part] if isinstance(part, RecordBatch) else [*part.batches(part.base_offset)] for part in parts]
    return [batch for some in singles for batch in some]


@given(histories(), st.lists(st.integers(1, 9), min_size=1), st.integers(1, 500), st.integers(1, 2000), st.data())
def test_parts_of_any_size_hold_the_same_batches_up_to_the_first_damage(records, sizes, first, largest, data):
    batches, offset = [], 0
    while offset < len(records):
        part = records[offset : offset + sizes[len(batches) % len(sizes)]]
        batches.append(RecordBatch.of(offset, 1, TIME + offset, part))
        offset += len(part)
    raw = bytearray(b"".join(map(encode_batch, batches)))
    if raw and data.draw(st.booleans(), "damaged"):
        raw[data.draw(st.integers(0, len(raw) - 1), "at")] ^= 0x55
    whole = batches_in(read(bytes(raw), 1 << 30, 1 << 30))
    parts = read(bytes(raw), first, largest)
    assert batches_in(parts) == whole
    assert len(parts) >= bool(whole)


def test_each_part_says_how_many_records_follow():
    history = [ApiMessageAndVersion(NoOpRecord(), 0)] * 100
    batches = [RecordBatch.of(at, 1, TIME, history[at : at + 10]) for at in range(0, 100, 10)]
    parts = read(b"".join(map(encode_batch, batches)), 1, 300)
    assert len(parts) > 3
    assert [part.following for part in parts] == [99 - part.last_offset for part in parts]
    assert np.concatenate([part.times for part in parts]).tolist() == [TIME] * 100


def test_a_short_stretch_is_one_part():
    history = [ApiMessageAndVersion(NoOpRecord(), 0)] * 100
    batches = [RecordBatch.of(at, 1, TIME, history[at : at + 10]) for at in range(0, 100, 10)]
    assert len(read(b"".join(map(encode_batch, batches)), 1, 1, whole_below=1 << 20)) == 1
