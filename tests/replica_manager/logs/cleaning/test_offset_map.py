"""The latest offsets of keys, in little memory."""

from __future__ import annotations

from random import Random

import pytest

from kraftlake.records.batch_header import header_at
from kraftlake.replica_manager.errors import CorruptRecordError
from kraftlake.replica_manager.logs.cleaning.batch_content import BatchRecords, records_of
from kraftlake.replica_manager.logs.cleaning.offset_map import OffsetMap
from simulator.data_batches import keyed

SECRET = (0x0706050403020100, 0x0F0E0D0C0B0A0908)


def put(found: OffsetMap, *keys: bytes | None, base: int = 0, first: int = 0) -> bool:
    data = keyed(*[(key, b"") for key in keys])
    header = header_at(data)._replace(base_offset=base)
    return found.put(header, BatchRecords(data, 61), first)


def siphash(data: bytes) -> tuple[int, int]:
    """SipHash-2-4 of 128 bits, as its paper has it."""
    mask = (1 << 64) - 1
    v = [number ^ key for number, key in zip(
        (0x736F6D6570736575, 0x646F72616E646F6D ^ 0xEE, 0x6C7967656E657261, 0x7465646279746573), SECRET * 2, strict=True
    )]  # fmt: skip

    def rounds(count: int) -> int:
        for _ in range(count):
            for a, b, bits in ((0, 1, 13), (2, 3, 16), (2, 1, 17), (0, 3, 21)):
                v[a] = (v[a] + v[b]) & mask
                v[b] = ((v[b] << bits | v[b] >> (64 - bits)) & mask) ^ v[a]
                if bits in (13, 17):
                    v[a] = (v[a] << 32 | v[a] >> 32) & mask
        return v[0] ^ v[1] ^ v[2] ^ v[3]

    for start in range(0, len(data) + 1, 8):
        part = data[start : start + 8]
        word = int.from_bytes(part, "little") | (len(data) << 56 & mask if len(part) < 8 else 0)
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE
    first = rounds(4)
    v[1] ^= 0xDD
    return first, rounds(4)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 16, 300])
def test_keys_are_hashed_by_siphash(size: int) -> None:
    found = OffsetMap(8, 0.9, SECRET)
    key = bytes(at % 251 for at in range(size))
    put(found, key)
    assert [number for number in found.table if number] == [*siphash(key), 1]


def test_the_hash_is_that_of_the_published_vectors() -> None:
    for size, digest in ((0, "a3817f04ba25a8e66df67214c7550293"), (1, "da87c1d86b99af44347659119b22fc45")):
        assert b"".join(number.to_bytes(8, "little") for number in siphash(bytes(range(size)))).hex() == digest


def test_the_last_offset_of_each_key_counts() -> None:
    chance, found, wanted = Random(5), OffsetMap(40_000, 0.9, SECRET), dict[bytes, int]()
    for base in range(0, 30_000, 10):
        keys = [b"%d" % chance.randrange(9_000) * chance.randrange(1, 4) for _ in range(10)]
        assert put(found, *keys, base=base)
        wanted |= {key: base + at for at, key in enumerate(keys)}
    assert found.size == len(wanted)
    found.note_offset(29_999)
    for key, offset in list(wanted.items())[:3_000]:
        for at, stays in ((offset, 1), (offset - 1, 0)):
            data = keyed((key, b""))
            header = header_at(data)._replace(base_offset=max(at, 0))
            assert found.choose(header, BatchRecords(data, 61), keeps_tombstones=True).kept == (stays if at >= 0 else 1)


def test_a_full_map_knows_the_last_record_that_had_room() -> None:
    found = OffsetMap(5, 0.9, SECRET)
    assert not put(found, b"a", b"b", None, b"a", b"c", b"d", b"e", base=10)
    assert (found.size, found.latest_offset, found.utilization) == (4, 15, 0.8)


def test_records_below_the_first_offset_are_left_out() -> None:
    found = OffsetMap(5, 0.9, SECRET)
    assert put(found, b"a", b"b", b"c", base=10, first=12)
    assert (found.size, found.latest_offset) == (1, 12)


def test_records_that_can_not_be_read_are_refused() -> None:
    data = keyed((b"a", b"b"))
    header = header_at(data)
    broken = BatchRecords(data[:61] + b"\x7f" + data[62:], 61)
    found = OffsetMap(5, 0.9, SECRET)
    for use in (lambda: found.put(header, broken, 0), lambda: found.choose(header, broken, keeps_tombstones=True)):
        with pytest.raises(CorruptRecordError, match="offset 0 can't be read"):
            use()
    with pytest.raises(CorruptRecordError, match="fails its checksum"):
        records_of(data[:-1] + b"x", header)
