"""The compressions of a record batch's records section, in Kafka's framing; decompression is bounded.

Imports cramjam, so this module is imported only for a compressed batch. Sources: org.apache.kafka.common.compress;
snappy-java's stream format ("xerial") for snappy; the LZ4 frame format with independent blocks of 64 KiB.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import cramjam

from kraftlake.runtime.errors import CorruptDataError

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)  # version, lowest compatible version
_XERIAL_BLOCK = 32 * 1024
_SNAPPY_LARGEST_RATIO = 64  # a copy of 64 bytes takes three, so that more than this is a lie
_LZ4_HEADER = bytes.fromhex("04224d18604082")  # independent blocks, 64 KiB, no checksums but the header's own
_LZ4_BLOCK = 64 * 1024
_LZ4_STORED = 0x80000000
_FIRST_BUFFER = 64 * 1024
_GZIP_DEFAULT = 6  # of zlib, which Java names -1
_ZSTD_DEFAULT = 3
_LZ4_FAST = 9  # at its default level Kafka takes the fast compressor
_LZ4_LEVELS = range(3, 13)  # those below are fast ones in the library, where Kafka's are high compression


def compress(kind: str, data: bytes | memoryview, level: int | None = None) -> bytes:
    """Compress `data` with gzip, snappy, lz4 or zstd in the framing that Kafka's readers accept.

    `level` is one of Kafka's levels; snappy has none. None is Kafka's default: −1, 9 and 3. lz4 has levels from 3 to
    12; others are replaced by the nearest one.
    """
    if kind == "gzip":
        return bytes(cramjam.gzip.compress(data, level=_GZIP_DEFAULT if level in (None, -1) else level))
    if kind == "zstd":
        return bytes(cramjam.zstd.compress(data, level=_ZSTD_DEFAULT if level is None else level))
    if kind == "lz4":
        return _lz4_frame(data) if level in (None, _LZ4_FAST) else _lz4_high(data, level)
    if kind == "snappy":
        return _xerial_frame(data)
    raise ValueError(f"{kind!r} is not a compression of Kafka's")


def decompress(kind: str, data: bytes, limit: int) -> bytes:
    """The same as `decompressed`, as bytes of its own."""
    return bytes(decompressed(kind, data, limit))


def decompressed(kind: str, data: bytes, limit: int) -> memoryview:
    """Decompress `data` that `compress` or any Kafka client made; snappy also without its framing.

    Raises CorruptDataError if the bytes are not of that kind or decompress to more than `limit` bytes. Never allocates
    more than about `limit`, and starts small.
    """
    if kind == "snappy":
        return memoryview(_snappy(data, limit)).toreadonly()
    decompressors: dict[str, Callable[..., int]] = {
        "gzip": cramjam.gzip.decompress_into,
        "lz4": cramjam.lz4.decompress_into,
        "zstd": cramjam.zstd.decompress_into,
    }
    into = decompressors[kind]
    size = min(max(_FIRST_BUFFER, 4 * len(data)), limit)
    while True:
        buffer = bytearray(size)
        try:
            del buffer[into(data, buffer) :]
            return memoryview(buffer).toreadonly()
        except cramjam.DecompressionError as fault:
            if "failed to write whole buffer" not in str(fault):
                raise _not_of(kind, str(fault)) from None
        del buffer  # not held beside the larger one
        if size >= limit:
            raise _too_much(kind, limit)
        size = min(4 * size, limit)


def _lz4_frame(data: bytes | memoryview) -> bytes:
    # cramjam's own frames have linked blocks, which Kafka's reader refuses
    parts: list[bytes | memoryview] = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK):
        block = data[start : start + _LZ4_BLOCK]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        stored = len(packed) >= len(block)
        parts.append(struct.pack("<I", len(block) | _LZ4_STORED if stored else len(packed)))
        parts.append(block if stored else packed)
    return b"".join([*parts, bytes(4)])


def _lz4_high(data: bytes | memoryview, level: int) -> bytes:
    compressor = cramjam.lz4.Compressor(
        level=min(max(level, _LZ4_LEVELS[0]), _LZ4_LEVELS[-1]), block_linked=False, content_checksum=False
    )
    compressor.compress(data)
    return bytes(compressor.finish())


def _xerial_frame(data: bytes | memoryview) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK):
        packed = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK]))
        parts += (struct.pack(">i", len(packed)), packed)
    return b"".join(parts)


def _snappy(data: bytes, limit: int) -> Any:
    if not data.startswith(_XERIAL_MAGIC):
        return _snappy_block(data, limit, limit)
    found = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(data):
        if data.startswith(_XERIAL_MAGIC, position):  # streams may be joined
            position += len(_XERIAL_HEADER)
            continue
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if position + size > len(data):
            raise _not_of("snappy", "a block is longer than the bytes that are there")
        found += _snappy_block(data[position : position + size], limit - len(found), limit)
        position += size
    return found


def _snappy_block(block: bytes, left: int, limit: int) -> Any:
    """Decompress one block into a buffer; `left` is the rest of `limit`."""
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > left:
            raise _too_much("snappy", limit)
        if size > _SNAPPY_LARGEST_RATIO * len(block):
            raise _not_of("snappy", "a block says that it holds more than it can")
        return cramjam.snappy.decompress_raw(block)
    except cramjam.DecompressionError as fault:
        raise _not_of("snappy", str(fault)) from None


def _not_of(kind: str, reason: str) -> CorruptDataError:
    return CorruptDataError(f"compressed records can't be decompressed as {kind} ({reason.strip()})")


def _too_much(kind: str, limit: int) -> CorruptDataError:
    return CorruptDataError(f"records compressed with {kind} take more than the limit of {limit:,} bytes")
