from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from google_crc32c import value as crc32c
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records import batch_header, torn
from kraftlake.records.batch import BatchLimits, RecordBatch, TornBatchError, encode_batch, read_batches
from kraftlake.records.batch_header import COMPRESSIONS, HEADER
from kraftlake.records.control_records import LeaderChangeMessage, SnapshotFooterRecord
from kraftlake.records.metadata_records import NoOpRecord, TopicRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.varint import varint
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError, UnwritableMetadataError
from tests.at_least_one import at_least_one
from tests.memory import peak_memory
from tests.records.sample_logs import TORN
from tests.strategies import batches

KAFKAS = Path(__file__).with_name("kafka_batches")
TOPIC = ApiMessageAndVersion(TopicRecord(name="a topic"), 0)
NO_OP = ApiMessageAndVersion(NoOpRecord(), 0)
BATCH = RecordBatch.of(10, 3, 1_700_000_000_000, [TOPIC, NO_OP])
NEXT = RecordBatch.of(12, 3, 1_700_000_000_500, [NO_OP])


def read(data: bytes) -> list[RecordBatch]:
    return list(read_batches(data, file="a.log"))


def signed(data: bytes) -> bytes:
    """A batch whose CRC is right again."""
    return data[:17] + crc32c(data[21:]).to_bytes(4, "big") + data[21:]


def with_field(layout: str, position: int, *values: int) -> bytes:
    """`BATCH` with a field of its header replaced, and a right CRC."""
    data = bytearray(encode_batch(BATCH))
    struct.pack_into(layout, data, position, *values)
    return signed(bytes(data))


def with_records(records: bytes, count: int, attributes: int = 0) -> bytes:
    """A batch with a right CRC and this records section."""
    head = bytearray(encode_batch(BATCH)[:61])
    struct.pack_into(">i", head, 8, 49 + len(records))
    struct.pack_into(">hi", head, 21, attributes, count - 1)
    struct.pack_into(">i", head, 57, count)
    return signed(bytes(head) + records)


def record(value: bytes, *, delta: int = 0, key: bytes | None = None, attributes: int = 0, headers: int = 0) -> bytes:
    keyed = b"\x01" if key is None else varint(len(key)) + key
    body = bytes((attributes,)) + b"\0" + varint(delta) + keyed + varint(len(value)) + value + varint(headers)
    return varint(len(body)) + body


@given(st.lists(batches(), max_size=3), st.sampled_from(COMPRESSIONS))
def test_batches_are_read_as_they_were_written(written: list[RecordBatch], compression: str) -> None:
    data = b"".join(encode_batch(batch, compression) for batch in written)
    again = list(read_batches(data, file="a.log", position=1000))
    assert again == written
    assert [batch.position - 1000 for batch in again] == [
        sum(batch.size_in_bytes for batch in again[:n]) for n in range(len(again))
    ]
    assert b"".join(encode_batch(batch, compression) for batch in again) == data


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_kafka_compressed_is_read(compression: str) -> None:
    (batch,) = read((KAFKAS / f"{compression}.bin").read_bytes())
    assert (batch.base_offset, batch.epoch, batch.record_count) == (7, 5, 400)
    assert batch.timestamps == (1_700_000_000_000,) * 201 + (1_700_000_000_001,) * 199
    assert batch.timestamp == 1_700_000_000_001
    assert batch == read((KAFKAS / "none.bin").read_bytes())[0]


def test_an_uncompressed_batch_is_written_as_kafka_does() -> None:
    data = (KAFKAS / "none.bin").read_bytes()
    assert encode_batch(read(data)[0]) == data


def test_a_batch_says_what_it_holds() -> None:
    assert (BATCH.last_offset, BATCH.record_count, BATCH.size_in_bytes, BATCH.position) == (11, 2, 0, -1)
    assert BATCH.messages() == (TOPIC, NO_OP)
    assert not BATCH.control
    leader = LeaderChangeMessage(leader_id=4)
    control = RecordBatch.control_of(0, 1, -1, [leader, SnapshotFooterRecord()])
    assert control.control_types == (2, 4)
    assert control.messages() == (ApiMessageAndVersion(leader, 0), ApiMessageAndVersion(SnapshotFooterRecord(), 0))


def test_a_broken_record_is_named_by_its_offset() -> None:
    broken = attrs.evolve(BATCH, values=(BATCH.values[0], b"\x01\x14"))
    with pytest.raises(CorruptDataError, match=r"^Offset 11: "):
        broken.messages()


def test_a_batch_is_frozen_and_equal_to_itself_wherever_it_lies() -> None:
    (again,) = read(encode_batch(BATCH))
    assert type(again) is RecordBatch
    assert again == BATCH
    assert again.size_in_bytes == len(encode_batch(BATCH))
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        again.epoch = 4


def test_a_batch_that_does_not_fit_its_header_is_refused() -> None:
    with pytest.raises(UnwritableMetadataError, match="offset 10 "):
        encode_batch(attrs.evolve(BATCH, epoch=1 << 31))
    with pytest.raises(ValueError, match="brotli"):
        encode_batch(BATCH, "brotli")


def test_a_torn_tail_is_named_with_file_and_position() -> None:
    seen: list[RecordBatch] = []
    with pytest.raises(TornBatchError) as fault:
        seen.extend(read_batches(TORN.read_bytes(), file=TORN.name))
    assert (fault.value.file, fault.value.position, fault.value.base_offset) == (TORN.name, 61042, 3467)
    assert "35 of its 72 bytes" in fault.value.reason
    assert str(fault.value).startswith("00000000000000002265.log: the batch at position 61042 (offset 3467) is torn")
    assert seen[-1].last_offset == 3466


@pytest.mark.parametrize("kept", range(1, len(encode_batch(NEXT))))
def test_a_batch_cut_anywhere_is_torn_and_those_before_it_are_read(kept: int) -> None:
    whole = encode_batch(BATCH)
    for tail in (b"", bytes(1000)):
        if (encode_batch(NEXT)[:kept] + tail).startswith(encode_batch(NEXT)):  # may assert nothing: zeros were cut off
            continue
        seen: list[RecordBatch] = []
        with pytest.raises(TornBatchError) as fault:
            seen.extend(read_batches(whole + encode_batch(NEXT)[:kept] + tail, file="a.log"))
        assert seen == [BATCH]
        assert fault.value.position == len(whole)
        assert fault.value.base_offset in {None, 12, 0}


@pytest.mark.parametrize("size", [1, 11, 12, 61, 100_000])
def test_zeros_are_torn(size: int) -> None:
    with pytest.raises(TornBatchError) as fault:
        read(encode_batch(BATCH) + bytes(size))
    assert fault.value.base_offset is None


def test_zeros_with_a_batch_behind_are_corrupt() -> None:
    with pytest.raises(CorruptDataError) as fault:
        read(encode_batch(BATCH) + bytes(4096) + encode_batch(NEXT))
    assert not isinstance(fault.value, TornBatchError)


@pytest.mark.parametrize("flipped", range(8, 72))
def test_a_flipped_bit_in_the_middle_is_corrupt_not_torn(flipped: int) -> None:
    data = bytearray(encode_batch(BATCH) + encode_batch(NEXT))
    data[flipped] ^= 0x40
    if 12 <= flipped < 16:  # the epoch is not covered by the CRC
        assert read(bytes(data)) == [attrs.evolve(BATCH, epoch=read(bytes(data))[0].epoch), NEXT]
        return
    with pytest.raises(CorruptDataError, match=r"^a.log: the batch at position 0 \(offset 10\) is corrupt") as fault:
        read(bytes(data))
    assert not isinstance(fault.value, TornBatchError)


def test_a_length_that_swallows_the_next_batch_is_corrupt() -> None:
    with pytest.raises(CorruptDataError, match="a whole batch begins at") as fault:
        read(with_field(">i", 8, 100_000) + encode_batch(NEXT))
    assert not isinstance(fault.value, TornBatchError)


def test_the_search_for_a_batch_behind_a_torn_one_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    summed = []

    def counting(data: bytes | memoryview, crc: int = 0) -> int:
        summed.append(len(data))
        return crc

    monkeypatch.setattr(batch_header, "crc32c", counting)
    candidate = HEADER.pack(0, 1_000_000, 0, 2, 1, 0, 0, 0, 0, -1, -1, -1, 1)
    with pytest.raises(TornBatchError):
        read(with_field(">i", 8, 20_000_000) + candidate * 20_000)
    assert 0 < sum(summed) <= torn._SUMMED_BYTES


_LENGTH, _ATTRIBUTES, _LAST, _MAX_TIME, _PRODUCER, _COUNT = 8, 21, 23, 35, 43, 57


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (with_field(">b", 16, 1), "magic is 1"),
        (with_field(">i", _LENGTH, -1), "length"),
        (with_field(">i", _LENGTH, 48), "length"),
        (with_field(">i", _LENGTH, 0x7FFFFFFF), "above the limit"),
        (with_field(">q", 0, -5), "offset"),
        (with_field(">q", 0, (1 << 63) - 2), "offset"),
        (with_field(">i", 12, -2), "epoch -2"),
        (with_field(">h", _ATTRIBUTES, 0x10), "attributes 0x10"),
        (with_field(">h", _ATTRIBUTES, 0x08), "attributes 0x8"),
        (with_field(">h", _ATTRIBUTES, 0x05), "attributes 0x5"),
        (with_field(">h", _ATTRIBUTES, 0x20), "key is missing"),
        (with_field(">h", _ATTRIBUTES, 0x01), "gzip"),
        (with_field(">h", _ATTRIBUTES, 0x02), "snappy"),
        (with_field(">h", _ATTRIBUTES, 0x03), "lz4"),
        (with_field(">h", _ATTRIBUTES, 0x04), "zstd"),
        (with_field(">i", _LAST, 2), "2 records"),
        (with_field(">i", _COUNT, 0), "0 records"),
        (with_field(">i", _COUNT, -1), "-1 records"),
        (with_field(">i", _COUNT, 0x7FFFFFFF), "2147483647 records"),
        (with_field(">q", _MAX_TIME, 1), "timestamp 1 "),
        (with_field(">q", _MAX_TIME, BATCH.timestamp - 1), "timestamp 1699999999999 is not the largest"),
        (with_field(">q", _MAX_TIME, BATCH.timestamp + 1), "timestamp 1700000000001 is not the largest"),
        (with_field(">qq", 27, -2, -2), "timestamp -2"),
        (with_field(">qq", 27, 1 << 60, 1 << 60), "timestamp"),
        (with_field(">q", _PRODUCER, 7), "producer"),
        (with_records(b"", 1), "don't fit"),
        (with_records(record(b"abc")[:-1], 1), "longer than its batch"),
        (with_records(record(b"abc") + b"\0", 1), "left behind"),
        (with_records(record(b"abc"), 2), "don't fit"),
        (with_records(record(b"abcdefghijk"), 2), "cut off"),
        (with_records(record(b"abc", key=b"k"), 1), "has a key"),
        (with_records(record(b"abc", headers=1), 1), "headers"),
        (with_records(record(b"abc", attributes=1), 1), "attributes 1"),
        (with_records(record(b"abc", delta=1), 1), "holes"),
        (with_records(record(b"abc") + record(b"abc"), 2), "holes"),
        (with_records(record(b"abc", key=b"abc"), 1, 0x20), "key of a control record has 3 bytes"),
        (with_records(record(b"abc", key=b"\0\0\xff\xff"), 1, 0x20), "type -1"),
        (with_records(b"\x0e\0\0\0\x01\x01\0\0", 1), "no value"),
        (with_records(b"\x10\0\0\0\x01\xff\xff\xff\xff", 1), "cut off"),
        (with_records(b"\xff\xff\xff\xff\xff\xff\xff", 1), "32 bits"),
        (with_records(b"\x01" + bytes(7), 1), "longer than its batch"),
    ],
)
def test_what_is_no_batch_of_a_metadata_log_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptDataError, match=reason) as fault:
        read(data)
    assert not isinstance(fault.value, TornBatchError)
    assert str(fault.value).startswith("a.log: the batch at position 0 (offset ")


def test_the_limits_hold() -> None:
    data = encode_batch(BATCH)
    assert list(read_batches(data, file="a", limits=BatchLimits(batch_bytes=len(data), records=2))) == [BATCH]
    for limits in (BatchLimits(batch_bytes=len(data) - 1), BatchLimits(records=1)):
        with pytest.raises(CorruptDataError):
            list(read_batches(data, file="a", limits=limits))


@pytest.mark.parametrize("compression", COMPRESSIONS[1:])
@pytest.mark.parametrize("records", [1, 10_000])
def test_decompressed_records_may_have_exactly_the_bytes_of_the_limit(compression: str, records: int) -> None:
    batch = RecordBatch.of(0, 3, 1_700_000_000_000, [TOPIC] * records)
    size = len(encode_batch(batch)) - HEADER.size
    data = encode_batch(batch, compression)
    assert list(read_batches(data, file="a", limits=BatchLimits(decompressed_bytes=size))) == [batch]
    with pytest.raises(CorruptDataError, match=f"limit of {size - 1:,} bytes"):
        list(read_batches(data, file="a", limits=BatchLimits(decompressed_bytes=size - 1)))


def test_a_view_of_the_middle_of_a_file_is_read() -> None:
    data = encode_batch(BATCH)
    view = memoryview(b"head" + data + encode_batch(NEXT))[4:]
    assert [batch.position for batch in read_batches(view, file="a.log", position=4)] == [4, 4 + len(data)]


def check_read(data: bytes) -> None:
    """What is read of any bytes is written as bytes that are read as the same; our error ends the rest."""
    found: list[RecordBatch] = []
    try:
        for batch in read_batches(data, file="a.log"):
            found.append(batch)
            batch.messages()
    except KraftlakeError:
        pass
    assert read(b"".join(map(encode_batch, found))) == found


@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_batches_or_our_error(data: bytes) -> None:
    check_read(data)
    check_read(with_records(data, 3))
    for attributes in (0x01, 0x02, 0x03, 0x04, 0x20, 0x22):
        check_read(with_records(data, 1, attributes))


@given(st.lists(batches(), min_size=1, max_size=3), st.sampled_from(COMPRESSIONS), st.booleans(), st.data())
def test_mutated_batches_are_batches_or_our_error(
    written: list[RecordBatch], compression: str, sign: bool, data: st.DataObject
) -> None:
    parts = [bytearray(encode_batch(batch, compression)) for batch in written]
    victim = parts[data.draw(st.integers(0, len(parts) - 1))]
    for _ in range(data.draw(st.integers(1, 3))):
        victim[data.draw(st.integers(8 if sign else 0, len(victim) - 1))] = data.draw(st.integers(0, 255))
    whole = b"".join(signed(bytes(part)) if sign else bytes(part) for part in parts)
    check_read(whole[: data.draw(st.integers(0, len(whole)))])
    check_read(whole)


def _bombs() -> list[bytes]:
    zeros = bytes(30_000_000)
    records = record(zeros)
    from kraftlake.records.compression import compress

    bombs = [
        with_records(compress(kind, records * 2), 1, code) for code, kind in enumerate(COMPRESSIONS) if kind != "none"
    ]
    return [
        *bombs,
        with_field(">i", _COUNT, 0x7FFFFFFF),
        with_records(record(b"a" * 100), 1_000_000),
        with_records(b"\xff\xff\xff\xff\x7f" + bytes(100), 1, 0x02),  # raw snappy that says 34 GB
        with_records(b"\xfe\xff\xff\xff\x0f" + bytes(100), 1),
    ]


def test_a_batch_that_claims_much_does_not_get_it() -> None:
    bombs = _bombs()
    limits = BatchLimits(decompressed_bytes=1_000_000)

    def refuse(bomb: bytes) -> Callable[[], None]:
        def call() -> None:
            with pytest.raises(CorruptDataError):
                list(read_batches(bomb, file="a.log", limits=limits))

        return call

    refuse(bombs[0])()
    for bomb in at_least_one(bombs):
        assert peak_memory(refuse(bomb)) < 4 * len(bomb) + 3_000_000
