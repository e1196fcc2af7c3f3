"""Values that come in parts: together they are what they would be in one."""

from __future__ import annotations

import struct

import attrs
import numpy as np
import pytest
from google_crc32c import value as crc32c
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records import batch_values
from kraftlake.records.batch import BatchLimits, RecordBatch, encode_batch, read_batches
from kraftlake.records.batch_values import BatchValues, read_values
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.runtime.errors import CorruptDataError
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


NO_OPS = [ApiMessageAndVersion(NoOpRecord(), 0)] * 3


@pytest.mark.parametrize("moved", [-1, 1])
@pytest.mark.parametrize("times", [(TIME, TIME, TIME), (TIME - 7, TIME, TIME - 5)], ids=["one time", "several"])
def test_a_batch_whose_header_states_another_largest_time_than_its_records_ends_the_values(times, moved):
    sound = RecordBatch.of(0, 1, TIME, NO_OPS)
    data = bytearray(encode_batch(attrs.evolve(RecordBatch.of(3, 1, TIME, NO_OPS), timestamps=times)))
    assert len(batches_in(read(encode_batch(sound) + data, 1 << 30, 1 << 30))) == 2
    struct.pack_into(">q", data, 35, TIME + moved)
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    assert batches_in(read(encode_batch(sound) + data, 1 << 30, 1 << 30)) == [sound]
    with pytest.raises(CorruptDataError, match=f"its timestamp {TIME + moved} is not the largest of its records'"):
        list(read_batches(bytes(data), file="f"))


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_batch_may_have_exactly_the_bytes_and_records_of_the_limits_and_no_more(compression):
    batches = [RecordBatch.of(0, 1, TIME, NO_OPS[:1]), RecordBatch.of(1, 1, TIME, NO_OPS)]
    small, large = (encode_batch(batch, compression) for batch in batches)

    def values(**limits):
        data = memoryview(small + large)
        return batches_in(list(read_values(data, file="f", position=0, limits=BatchLimits(**limits))))

    assert values(batch_bytes=len(large), records=3) == batches
    assert values(batch_bytes=len(large) - 1) == batches[:1]
    assert values(records=2) == batches[:1]
