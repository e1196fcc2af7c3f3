"""Where the batches of a snapshot end, said of one record after the other and of many at once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.kafka_files.snapshots.batches import (
    MAX_BYTES_IN_BATCH,
    MAX_RECORDS_IN_BATCH,
    RECORD_OVERHEAD,
    BatchCutter,
    checkpoint_batches,
)
from kraftlake.records.batch import RecordBatch
from kraftlake.records.encoded_values import EncodedValues
from kraftlake.records.metadata_records import UserScramCredentialRecord
from kraftlake.records.serde import ApiMessageAndVersion, encode_value

SIZES = st.lists(
    st.tuples(
        st.sampled_from([3, 100, 1000, 2000, 400_000, MAX_BYTES_IN_BATCH - RECORD_OVERHEAD, 9_000_000]),
        st.sampled_from([1, 2, 3, 600, 1023, 1024, 1025]),
    ),
    max_size=8,
)
"""Sizes of values, and how many of each come in a row."""


@given(SIZES, st.integers(0, 7))
def test_many_values_are_cut_where_they_are_cut_one_by_one(runs: list[tuple[int, int]], first: int) -> None:
    sizes = [size for size, count in runs for _ in range(count)]
    split = sum(count for _, count in runs[:first])
    one, many = BatchCutter(), BatchCutter()
    expected = [index for index, size in enumerate(sizes) if one.begins(size)]
    found = [start + at for start, part in ((0, sizes[:split]), (split, sizes[split:])) for at in many.beginnings(part)]
    assert found == expected
    assert (many.records, many.size) == (one.records, one.size)


def test_a_batch_may_have_exactly_as_many_bytes_as_kafkas_limit() -> None:
    """8 MiB with its header (KafkaRaftClient.MAX_BATCH_SIZE_BYTES); one byte more begins another batch."""
    header, half = 61, (8 * 1024 * 1024) // 2
    for more, begun in ((0, [0]), (1, [0, 1])):
        sizes = [half - RECORD_OVERHEAD, half - header - RECORD_OVERHEAD + more]
        cutter = BatchCutter()
        assert [index for index, size in enumerate(sizes) if cutter.begins(size)] == begun
        assert BatchCutter().beginnings(sizes) == begun


def record(size: int) -> ApiMessageAndVersion:
    made = UserScramCredentialRecord(
        name="u", mechanism=1, salt=bytes(size), stored_key=b"", server_key=b"", iterations=4096
    )
    return ApiMessageAndVersion(made, 0)


def encoded(records: list[ApiMessageAndVersion]) -> EncodedValues:
    values = [encode_value(each.message, each.version) for each in records]
    return EncodedValues(
        data=np.frombuffer(b"".join(values), np.uint8), sizes=np.array(list(map(len, values)), np.int32)
    )


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([1, 3_000_000]), st.sampled_from([0, 1, 3, 700])), max_size=6))
def test_records_that_come_encoded_are_batched_with_those_that_do_not(runs: list[tuple[bool, int, int]]) -> None:
    runs = [(bulk, size, count if size == 1 else min(count, 3)) for bulk, size, count in runs]
    records = [[record(size)] * count for _, size, count in runs]
    mixed: list[ApiMessageAndVersion | EncodedValues] = []
    for (bulk, _, _), each in zip(runs, records, strict=True):
        mixed += [encoded(each)] if bulk else each
    plain = [one for each in records for one in each]
    expected = list(checkpoint_batches(plain, epoch=1, timestamp=7))
    found: list[RecordBatch] = []
    for part in checkpoint_batches(mixed, epoch=1, timestamp=7):
        found += [part] if isinstance(part, RecordBatch) else part.batches(part.base_offset)
    assert found == expected
    assert max(batch.record_count for batch in found) <= MAX_RECORDS_IN_BATCH
