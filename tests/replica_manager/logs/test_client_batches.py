"""What a leader refuses of clients' batches, and how it changes what it takes."""

from __future__ import annotations

import os
import re
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records.batch_header import COMPRESSION_BITS, COMPRESSIONS, CRC_FROM, HEADER, LENGTH_FROM
from kraftlake.records.compression import compress, decompress
from kraftlake.records.crc32c import crc32c
from kraftlake.replica_manager.errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
)
from kraftlake.replica_manager.logs import log_batch
from kraftlake.replica_manager.logs.batch_run import find_batches
from kraftlake.replica_manager.logs.client_batches import prepared_batches
from kraftlake.replica_manager.logs.client_records import MOST_ERRORS
from kraftlake.replica_manager.logs.log_config import LogConfig
from simulator.data_batches import batch, marker
from tests.interop.kafka_tools import run_tool
from tests.memory import peak_memory

NOW = 1_700_000_000_000
LARGEST = log_batch.LARGEST_RECORDS if os.environ.get("KRAFTLAKE_TESTS") == "long" else 1 << 24
"""The limit of decompressed records where memory is measured."""
HOUR = 3_600_000


def changed(data: bytes, **fields: int) -> bytes:
    """A batch with other fields in its header, and the right checksum."""
    names = (
        "base", "length", "epoch", "magic", "crc", "attributes", "last_delta", "first_time", "max_time", "producer",
        "producer_epoch", "sequence", "count",
    )  # fmt: skip
    header = dict(zip(names, HEADER.unpack_from(data), strict=True)) | fields
    body = data[HEADER.size :]
    whole = HEADER.pack(*header.values()) + body
    return HEADER.pack(*(header | {"crc": crc32c(whole[CRC_FROM:])}).values()) + body


def packed(data: bytes, codec: str) -> bytes:
    """A batch whose records are compressed."""
    if codec == "none":
        return data
    body = compress(codec, data[HEADER.size :])
    length = HEADER.size - LENGTH_FROM + len(body)
    return changed(data[: HEADER.size] + body, length=length, attributes=COMPRESSIONS.index(codec))


def records_of(data: bytes) -> bytes:
    codec = COMPRESSIONS[HEADER.unpack_from(data)[5] & COMPRESSION_BITS]
    body = data[HEADER.size :]
    return body if codec == "none" else decompress(codec, body, 1 << 20)


def keyed() -> bytes:
    """A batch whose record has a key, made of a marker."""
    return changed(marker(7, commit=True), attributes=0, producer=-1, producer_epoch=-1, sequence=-1)


def test_a_batch_that_keeps_all_rules_is_appended_as_it_is() -> None:
    data = batch(b"a", b"b", times=(NOW, NOW - 5))
    assert prepared_batches(data, LogConfig(), NOW) == (data, None)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (changed(batch(b"a", b"b"), count=1), InvalidRecordError),
        (changed(batch(b"a", b"b"), last_delta=5), InvalidRecordError),
        (changed(batch(b"a"), count=0, last_delta=0), InvalidRecordError),
        (marker(7, commit=True), InvalidRecordError),
        (changed(batch(b"a", producer=7), sequence=-1), InvalidRecordError),
        (changed(batch(b"a"), attributes=5), InvalidRecordError),
        (batch(b"a", times=(NOW + HOUR + 1,)), InvalidTimestampError),
        (batch(b"a", b"b", times=(NOW, NOW + HOUR + 1)), InvalidTimestampError),
        (b"\0" * 100, CorruptRecordError),
    ],
)
def test_what_breaks_a_rule_is_refused(data: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        prepared_batches(data, LogConfig(), NOW)


def test_old_records_are_refused_where_the_topic_says_so() -> None:
    data = batch(b"a", times=(NOW - 1_001,))
    assert prepared_batches(data, LogConfig(), NOW)[0] == data
    with pytest.raises(InvalidTimestampError):
        prepared_batches(data, LogConfig(message_timestamp_before_max_ms=1_000), NOW)


@pytest.mark.parametrize("codec", COMPRESSIONS)
def test_a_compacted_topic_takes_records_with_keys_alone(codec: str) -> None:
    config = LogConfig(cleanup_policy=("compact",))
    data = packed(keyed(), codec)
    assert prepared_batches(data, config, NOW) == (data, None)
    with pytest.raises(InvalidRecordError, match="key"):
        prepared_batches(packed(batch(b"a"), codec), config, NOW)


def test_records_that_can_not_be_read_are_refused_where_they_have_to_be() -> None:
    data = keyed()
    torn = changed(data[:-1], length=len(data) - 1 - LENGTH_FROM)
    no_gzip = changed(batch(b"a"), attributes=1)
    compacted = LogConfig(cleanup_policy=("compact",))
    for bad in (changed(torn[: HEADER.size] + b"\x7f" * 9, length=HEADER.size + 9 - LENGTH_FROM), no_gzip):
        with pytest.raises(InvalidRecordError):
            prepared_batches(bad, compacted, NOW)


@pytest.mark.parametrize("codec", ["snappy", "zstd"])
def test_the_records_of_a_small_batch_are_held_once_and_up_to_a_limit(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert log_batch.LARGEST_RECORDS == 134_217_728
    monkeypatch.setattr(log_batch, "LARGEST_RECORDS", LARGEST)
    bomb, sound = (packed(batch(bytes(size)), codec) for size in (LARGEST, LARGEST - 100))
    config = LogConfig(max_message_bytes=1 << 24)
    a_little = len(sound) * 4 + (1 << 20)

    def refused() -> None:
        with pytest.raises(InvalidRecordError, match=f"more than the limit of {LARGEST:,} bytes"):
            prepared_batches(bomb, config, NOW)

    assert peak_memory(lambda: prepared_batches(sound, config, NOW)) < LARGEST * 9 // 8 + a_little
    assert peak_memory(refused) < LARGEST * 9 // 8 + a_little


@pytest.mark.parametrize("codec", COMPRESSIONS)
def test_a_record_that_is_too_large_when_it_is_decompressed_is_refused(codec: str) -> None:
    data, largest = packed(batch(b"x" * 700, b"y" * 500, times=(NOW, NOW)), codec), LogConfig()
    assert prepared_batches(data, attrs.evolve(largest, max_decompressed_message_bytes=720), NOW)[0] == data
    small = attrs.evolve(largest, max_decompressed_message_bytes=700)
    if codec == "none":
        assert prepared_batches(data, small, NOW)[0] == data
    else:
        with pytest.raises(InvalidRecordError, match=r"when it is decompressed: max\.decompressed\.message\.bytes"):
            prepared_batches(data, small, NOW)


def test_records_that_would_be_too_large_uncompressed_are_not_written_out() -> None:
    data = packed(batch(bytes((1 << 24) - 100)), "zstd")
    config = LogConfig(compression_type="uncompressed")

    def refused() -> None:
        with pytest.raises(RecordTooLargeError):
            prepared_batches(data, config, NOW)

    assert peak_memory(refused) < 20 << 20


def test_a_refusal_names_some_of_very_many_records() -> None:
    count = MOST_ERRORS + 5
    data = packed(batch(*(b"",) * count, times=(NOW + 2 * HOUR,) * count), "zstd")
    for bad in (data, changed(data, attributes=0x08 | COMPRESSIONS.index("zstd"))):
        with pytest.raises(InvalidTimestampError) as raised:
            prepared_batches(bad, LogConfig(), NOW)
        assert [error.place for error in raised.value.records] == list(range(MOST_ERRORS))


@given(
    before=st.sampled_from(COMPRESSIONS),
    after=st.sampled_from(["producer", "uncompressed", *COMPRESSIONS[1:]]),
    sets_time=st.booleans(),
    values=st.lists(st.binary(max_size=50), min_size=1, max_size=5),
)
def test_batches_get_the_compression_and_the_time_of_their_topic(
    before: str, after: str, sets_time: bool, values: list[bytes]
) -> None:
    data = packed(batch(*values, times=(NOW,) * len(values)), before)
    config = attrs.evolve(
        LogConfig(), compression_type=after, message_timestamp_type="LogAppendTime" if sets_time else "CreateTime"
    )
    made, time = prepared_batches(data, config, NOW + 7)
    run, problem = find_batches(made)  # which checks the checksum
    assert problem is None
    (one,) = run.batches
    codec = COMPRESSIONS[HEADER.unpack_from(made)[5] & COMPRESSION_BITS]
    assert codec == (before if after == "producer" else "none" if after == "uncompressed" else after)
    assert records_of(made) == records_of(data)
    assert (one.max_timestamp, time) == ((NOW + 7, NOW + 7) if sets_time else (NOW, None))
    assert bool(HEADER.unpack_from(made)[5] & 0x08) is sets_time


@pytest.mark.parametrize(
    ("codec", "low", "high"),
    [("gzip", {"compression_gzip_level": 1}, {}),
     ("gzip", {"compression_gzip_level": 1}, {"compression_gzip_level": 9}),
     ("lz4", {}, {"compression_lz4_level": 12}), ("zstd", {"compression_zstd_level": -50}, {}),
     ("zstd", {}, {"compression_zstd_level": 22})],
)  # fmt: skip
def test_a_leader_compresses_at_the_level_of_the_topic(codec: str, low: dict[str, int], high: dict[str, int]) -> None:
    data = batch(*(b"%d words, %d of them" % (number, number * 7919 % 1000) for number in range(5_000)))
    configs = [attrs.evolve(LogConfig(), compression_type=codec, **levels) for levels in (low, high)]
    more, less = (prepared_batches(data, config, NOW)[0] for config in configs)
    assert len(less) < len(more)
    assert records_of(more) == records_of(less)


@pytest.mark.spark
def test_kafka_reads_batches_of_each_codec_and_level(tmp_path: Path) -> None:
    values = [b"%d-words" % number * 40 for number in range(500)]
    levels = [{"compression_type": "snappy"}]
    levels += [{"compression_type": "gzip", "compression_gzip_level": level} for level in (-1, 1, 9)]
    levels += [{"compression_type": "lz4", "compression_lz4_level": level} for level in (1, 3, 9, 12, 17)]
    levels += [{"compression_type": "zstd", "compression_zstd_level": level} for level in (-131072, 1, 22)]
    segment = tmp_path / f"{0:020d}.log"
    with segment.open("wb") as log:
        for place, configs in enumerate(levels):
            made, _ = prepared_batches(batch(*values), attrs.evolve(LogConfig(), **configs), NOW)
            log.write((place * len(values)).to_bytes(8, "big") + made[8:])
    said = run_tool("org.apache.kafka.tools.DumpLogSegments", "--files", segment, "--print-data-log")
    assert re.findall(r"isvalid: (\w+)", said.out) == ["true"] * len(levels)
    assert re.findall(r"payload: (\S+)", said.out) == [value.decode() for value in values] * len(levels)


def test_a_wrong_checksum_is_not_hidden_by_a_new_one() -> None:
    data = bytearray(batch(b"abc"))
    data[-2] ^= 1
    with pytest.raises(CorruptRecordError):
        prepared_batches(bytes(data), LogConfig(message_timestamp_type="LogAppendTime"), NOW)


def test_a_batch_is_checked_for_its_size_before_anything_else_that_a_topic_wants() -> None:
    data = batch(b"a" * 100, times=(NOW,))
    with pytest.raises(RecordTooLargeError):
        prepared_batches(data, LogConfig(max_message_bytes=100, cleanup_policy=("compact",)), NOW)
    with pytest.raises(RecordBatchTooLargeError):
        prepared_batches(data, LogConfig(segment_bytes=100), NOW)
    with pytest.raises(RecordTooLargeError):  # of the batch as it was sent, not as it would be compressed
        prepared_batches(data, LogConfig(max_message_bytes=150, compression_type="gzip"), NOW)


@pytest.mark.parametrize("fields", [{"base": 5}, {"last_delta": -1}])
def test_a_batch_begins_at_0_and_ends_later(fields: dict[str, int]) -> None:
    with pytest.raises(InvalidRecordError):
        prepared_batches(changed(batch(b"a"), **fields), LogConfig(), NOW)


def test_the_largest_time_is_that_of_the_records() -> None:
    data = batch(b"a", b"b", times=(NOW - 9, NOW - 5))
    for lie in (NOW - 100, NOW + 9 * HOUR):
        assert prepared_batches(changed(data, max_time=lie), LogConfig(), NOW)[0] == data


def test_the_time_of_the_append_is_the_leaders_to_say() -> None:
    data = changed(batch(b"a", times=(NOW - 5,)), attributes=0x08)
    assert prepared_batches(data, LogConfig(), NOW)[0] == batch(b"a", times=(NOW - 5,))
    with pytest.raises(InvalidTimestampError) as raised:
        prepared_batches(data, LogConfig(message_timestamp_type="LogAppendTime"), NOW)
    assert [error.place for error in raised.value.records] == [0]


def test_what_can_not_be_written_anew_is_refused_where_it_has_to_be() -> None:
    gzipped = LogConfig(compression_type="gzip")
    for data in (
        batch(b"a", times=(-5,)), changed(batch(b"a", producer=7), producer_epoch=-1),
        changed(batch(b"a"), producer=-5),
    ):  # fmt: skip
        assert prepared_batches(data, LogConfig(), NOW)
        with pytest.raises(InvalidRecordError):
            prepared_batches(data, gzipped, NOW)
