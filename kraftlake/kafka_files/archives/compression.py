"""Decompressed streams of archives and single files, read sequentially with bounded memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

from kraftlake.kafka_files.faults import unreadable
from kraftlake.kafka_files.sniffing.file_content import COMPRESSED
from kraftlake.runtime.errors import CorruptDataError

_CHUNK: Final = 64 * 1024
_XZ_MEMORY: Final = 256 * 1024 * 1024
"""The maximum memory of an xz stream's dictionary: four times the size in the largest preset."""


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, length: int, /) -> bytes:
        """Read at most `length` bytes; fewer only at the end, or if the codec has no more available."""


def exactly(read: Callable[[int], bytes], size: int) -> bytes:
    """Read `size` bytes, fewer only at the end."""
    parts: list[bytes] = []
    while size > 0 and (part := read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class _Unpacked:
    """The content of concatenated streams of a standard library codec."""

    def __init__(self, stream: Readable, codec: Callable[[], Any]) -> None:
        self._stream = stream
        self._codec = codec
        self._decompressor = codec()

    def read(self, length: int) -> bytes:
        """Read at most `length` bytes, none at the end. Raises EOFError for a truncated stream."""
        while length:
            one = self._decompressor
            if one.eof:
                rest = one.unused_data.lstrip(b"\0") or self._stream.read(_CHUNK).lstrip(b"\0")  # the padding of xz
                if not rest:
                    return b""
                self._decompressor = one = self._codec()
            else:
                rest = self._stream.read(_CHUNK) if one.needs_input else b""
                if one.needs_input and not rest:
                    raise EOFError
            data: bytes = one.decompress(rest, length)
            if data:
                return data
        return b""


class _Part(io.RawIOBase):
    """A stream over a read function."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _zstd(stream: Any) -> Readable:
    import pyarrow as pa  # 0.1 s, which only zstd costs; its windows are of 128 MiB at most

    unpacked: Readable = pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd")
    return unpacked


def _gzip(stream: Any) -> Readable:
    return gzip.GzipFile(fileobj=stream, mode="rb")


def _bzip2(stream: Any) -> Readable:
    return _Unpacked(stream, bz2.BZ2Decompressor)


def _xz(stream: Any) -> Readable:
    return _Unpacked(stream, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY))


CODECS: Final[dict[str, Callable[[Any], Readable]]] = {"gzip": _gzip, "bzip2": _bzip2, "xz": _xz, "zstd": _zstd}
"""The function that wraps a stream in its decompressed stream, by the codec's name in `file_content.COMPRESSED`."""
_MAGIC_SIZE: Final = max(map(len, COMPRESSED))


def codec_of(head: bytes) -> str | None:
    """The codec in CODECS of data that begins with these bytes; None for uncompressed data."""
    return next((name for magic, name in COMPRESSED.items() if head.startswith(magic)), None)


def unpacked(read: Callable[[int], bytes], what: str) -> Readable:
    """Decompress the data that `read` returns, by the codec of CODECS that its magic names.

    Raises CorruptDataError for an unknown magic.
    """
    head = exactly(read, _MAGIC_SIZE)
    codec = codec_of(head)
    if codec is None:
        raise CorruptDataError(f"{what} is not compressed, though its name says so: give it its own name back")

    def from_start(length: int) -> bytes:
        nonlocal head
        if not head:
            return read(length)
        data, head = head[:length], head[length:]
        return data

    return CODECS[codec](_Part(from_start))


@contextmanager
def codec_faults(what: str, path: str) -> Iterator[None]:
    """Convert errors that readers of archives and codecs raise at bad bytes to kraftlake's; `what` lies at `path`."""
    try:
        yield
    except EOFError:
        raise CorruptDataError(f"{what} is cut short") from None
    except (
        zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, ValueError, NotImplementedError, RuntimeError,
    ) as error:  # fmt: skip
        raise CorruptDataError(f"{what} is broken: {error}") from None
    except OSError as error:
        if error.errno is None:  # gzip and bzip2 report bad bytes this way
            raise CorruptDataError(f"{what} is broken: {error}") from None
        raise unreadable(path, error) from None
