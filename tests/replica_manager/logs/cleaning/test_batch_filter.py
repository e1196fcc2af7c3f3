"""What is left of batches of all codecs; test_kafka_cleaner compares uncompressed ones with Kafka's, byte for byte."""

from __future__ import annotations

import attrs
import pytest

from kraftlake.records.batch_header import COMPRESSIONS, HEADER_SIZE, header_at
from kraftlake.replica_manager.errors import CorruptRecordError
from kraftlake.replica_manager.logs.cleaning.batch_content import delete_horizon, records_of
from kraftlake.replica_manager.logs.cleaning.batch_filter import BatchFilter, LastRecord
from kraftlake.replica_manager.logs.cleaning.cleaned_transactions import CleanedTransactions
from kraftlake.replica_manager.logs.cleaning.offset_map import OffsetMap
from kraftlake.replica_manager.logs.log_batch import LogBatch, log_batches
from simulator.data_batches import keyed, marker, records_in

RECORDS = [(b"a", b"1"), (b"b", None), (b"a", b"2"), (None, b"x"), (b"c", b"3"), (b"a", b"4")]
TIMES = (5_000, 1_000, 7_000, 2_000, 9_000, 3_000)


def filtering(batch: LogBatch, now_ms: int = 50_000, **last: LastRecord) -> BatchFilter:
    found = OffsetMap(100, 0.9, (3, 4))
    header = header_at(batch.data)
    assert found.put(header, records_of(batch.data, header), 0)
    found.note_offset(batch.last_offset)
    return BatchFilter(
        offset_map=found, transactions=CleanedTransactions(), now_ms=now_ms, delete_retention_ms=1_000,
        last_records={int(name[1:]): record for name, record in last.items()},
    )  # fmt: skip


def of(data: bytes) -> LogBatch:
    (batch,) = log_batches(data)
    return batch


@pytest.mark.parametrize("append_time", [False, True])
@pytest.mark.parametrize("codec", COMPRESSIONS)
def test_the_last_record_of_each_key_keeps_its_offset_and_time(codec: str, append_time: bool) -> None:
    batch = of(keyed(*RECORDS, times=TIMES, codec=codec, append_time=append_time, producer=9, sequence=3))
    left = filtering(batch).filtered(batch)
    assert left is not None
    made = of(bytes(left))
    header = header_at(left)
    times = [9_000] * 3 if append_time else [1_000, 9_000, 3_000]
    assert header.crc_is_good(left)
    assert records_in(made) == [(at, time, *RECORDS[at]) for at, time in zip((1, 4, 5), times, strict=True)]
    assert (made.base_offset, made.last_offset, made.producer_id, made.base_sequence) == (0, 5, 9, 3)
    assert header.max_timestamp == 9_000
    assert delete_horizon(header) == 51_000
    assert COMPRESSIONS[header.attributes & 7] == codec


def test_tombstones_go_when_their_time_has_come() -> None:
    batch = of(keyed(*RECORDS, times=TIMES))
    first = filtering(batch).filtered(batch)
    assert first is not None
    again = of(bytes(first))
    for now, keys in ((50_999, [b"b", b"c", b"a"]), (51_000, [b"c", b"a"])):
        left = filtering(again, now).filtered(again)
        assert left is not None
        assert [key for _, _, key, _ in records_in(of(bytes(left)))] == keys
        assert delete_horizon(header_at(left)) == 51_000


def test_a_batch_that_stays_whole_is_itself() -> None:
    batch = of(keyed((b"a", b"1"), (b"b", b"2"), codec="zstd"))
    assert filtering(batch).filtered(batch) is batch.data


@pytest.mark.parametrize(("last", "stays"), [(0, True), (7, False), (None, False)])
def test_the_last_batch_of_a_producer_stays_without_records(last: int | None, stays: bool) -> None:
    batch = of(keyed((None, b"x"), producer=9, sequence=3, codec="lz4"))
    left = filtering(batch, _9=LastRecord(last, 0)).filtered(batch)
    assert (left is not None) == stays
    if left is not None:
        made = of(bytes(left))
        assert (made.count, made.last_offset, made.last_sequence, made.size) == (0, 0, 3, 61)
        assert header_at(left).crc_is_good(left)


def test_a_damaged_batch_is_not_given_a_right_checksum() -> None:
    batch = of(keyed(*RECORDS))
    keeper = filtering(batch)
    damaged = attrs.evolve(batch, data=batch.data[:-1] + b"\x01")
    with pytest.raises(CorruptRecordError, match="fails its checksum"):
        keeper.filtered(damaged)


@pytest.mark.parametrize(
    "wrong", [{"attributes": 5}, {"attributes": 7}, {"record_count": -1}, {"record_count": 2**31 - 1}], ids=str
)
def test_a_header_that_no_writer_makes_is_damage_and_takes_no_memory(wrong: dict[str, int]) -> None:
    """A kind of compression that does not exist; more records than bytes."""
    data = keyed(*RECORDS)
    batch = of(header_at(data)._replace(**wrong).framed(data[HEADER_SIZE:]))
    keeper = filtering(of(data))
    with pytest.raises(CorruptRecordError, match="The records of the batch at offset 0 can't be"):
        keeper.filtered(batch)


def test_times_that_no_batch_can_have_are_damage() -> None:
    data = keyed((b"a", b"1"), (b"b", None), (b"a", b"2"))
    batch = of(header_at(data)._replace(base_timestamp=-(2**63)).framed(data[HEADER_SIZE:]))
    keeper = filtering(batch)
    with pytest.raises(CorruptRecordError, match="The records of the batch at offset 0 can't be read"):
        keeper.filtered(batch)


@pytest.mark.parametrize("record", [b"", b"\0" * 3, b"\0\0" + b"\xff" * 12], ids=bytes.hex)
def test_a_marker_that_can_not_be_read_is_no_abort(record: bytes) -> None:
    header = header_at(marker(9, commit=True))
    batch = of(header.framed(record))
    for read in (batch.control_type, batch.coordinator_epoch, lambda: filtering(of(keyed(*RECORDS))).filtered(batch)):
        with pytest.raises(CorruptRecordError, match="The control record at offset 0 can't be read"):
            read()
