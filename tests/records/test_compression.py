from __future__ import annotations

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records.batch_header import COMPRESSIONS
from kraftlake.records.compression import compress, decompress
from kraftlake.runtime.errors import CorruptDataError

KINDS = COMPRESSIONS[1:]
MEGABYTE = 1 << 20


LEVELS = {"gzip": (-1, 1, 9), "snappy": (1,), "lz4": (1, 3, 9, 12, 17), "zstd": (-131072, -1, 0, 1, 3, 22)}
"""Levels of Kafka's; snappy has none."""
WORDS = b"".join(b"%d words, %d of them\n" % (number, number * 7919 % 1000) for number in range(20_000))


@given(st.binary(max_size=1000), st.integers(0, 300), st.sampled_from(KINDS), st.data())
def test_what_is_compressed_comes_back(data: bytes, times: int, kind: str, drawn: st.DataObject) -> None:
    data *= times
    level = drawn.draw(st.sampled_from((None, *LEVELS[kind])))
    assert decompress(kind, compress(kind, data, level), max(len(data), 1)) == data


@pytest.mark.parametrize(
    ("kind", "level", "higher"), [("gzip", 1, 9), ("lz4", 9, 12), ("lz4", 3, 17), ("zstd", -5, 1), ("zstd", 3, 22)]
)
def test_a_higher_level_takes_less_room(kind: str, level: int, higher: int) -> None:
    assert len(compress(kind, WORDS, higher)) < len(compress(kind, WORDS, level))


@pytest.mark.parametrize(("kind", "level"), [("gzip", -1), ("lz4", 9), ("zstd", 3)])
def test_kafkas_default_level_is_that_without_one(kind: str, level: int) -> None:
    assert compress(kind, WORDS) == compress(kind, WORDS, level)


@pytest.mark.parametrize("level", LEVELS["lz4"])
def test_lz4_frames_of_each_level_have_independent_blocks_of_64_kib(level: int) -> None:
    flags, descriptor = compress("lz4", WORDS, level)[4:6]
    assert flags & 0b1110_1001 == 0b0110_0000  # version 1, independent blocks, no content size, no dictionary
    assert descriptor == 0x40


@pytest.mark.parametrize("kind", KINDS)
def test_the_limit_is_exact(kind: str) -> None:
    data = bytes(range(256)) * 1000
    packed = compress(kind, data)
    assert decompress(kind, packed, len(data)) == data
    with pytest.raises(CorruptDataError, match="more than the limit of 255,999 bytes"):
        decompress(kind, packed, len(data) - 1)


def test_snappy_is_read_raw_and_in_joined_streams() -> None:
    data = b"abc" * 50_000
    assert decompress("snappy", bytes(cramjam.snappy.compress_raw(data)), MEGABYTE) == data
    assert decompress("snappy", compress("snappy", data) * 2, MEGABYTE) == data * 2


def test_lz4_frames_have_independent_blocks_which_kafka_asks_for() -> None:
    packed = compress("lz4", b"abc" * 50_000)
    assert packed[:7].hex() == "04224d18604082"
    assert bytes(cramjam.lz4.decompress(packed)) == b"abc" * 50_000


def test_lz4_frames_with_linked_blocks_are_read() -> None:
    assert decompress("lz4", bytes(cramjam.lz4.compress(b"abc" * 50_000)), MEGABYTE) == b"abc" * 50_000


def test_gzip_members_may_be_joined() -> None:
    assert decompress("gzip", compress("gzip", b"abc") + compress("gzip", b"def"), MEGABYTE) == b"abcdef"


@given(st.sampled_from(KINDS), st.binary(max_size=200), st.data())
def test_broken_bytes_give_bytes_within_the_limit_or_our_error(kind: str, noise: bytes, data: st.DataObject) -> None:
    packed = bytearray(compress(kind, noise * 20))
    limit = data.draw(st.integers(0, 30 * len(noise)))
    for _ in range(data.draw(st.integers(0, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    for broken in (noise, bytes(packed), bytes(packed[: data.draw(st.integers(0, len(packed)))])):
        try:  # may assert nothing: any other error fails
            assert len(decompress(kind, broken, limit)) <= limit
        except CorruptDataError:
            continue


def test_an_unknown_compression_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="brotli"):
        compress("brotli", b"")
