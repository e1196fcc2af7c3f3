"""The compressed streams that archives and single files come in, read front to back with bounded memory."""

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
"""What the dictionary of an xz stream may take: four times that of its largest preset."""


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, length: int, /) -> bytes:
        """At most `length` bytes; fewer only at the end, or where a codec has no more at hand."""


def exactly(read: Callable[[int], bytes], size: int) -> bytes:
    """`size` bytes, fewer only at the end."""
    parts: list[bytes] = []
    while size > 0 and (part := read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class _Unpacked:
    """The content of streams of a codec of the standard library, one after the other."""

    def __init__(self, stream: Readable, codec: Callable[[], Any]) -> None:
        self._stream = stream
        self._codec = codec
        self._decompressor = codec()

    def read(self, length: int) -> bytes:
        """At most `length` bytes, none at the end. Raises EOFError where the stream is cut short."""
        while True:
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


class _Part(io.RawIOBase):
    """A stream of what a function reads."""

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
"""Makes the stream of what another one unpacks to, by the codec's name in `file_content.COMPRESSED`."""
_MAGIC_SIZE: Final = max(map(len, COMPRESSED))


def codec_of(head: bytes) -> str | None:
    """The codec in CODECS of what begins with these bytes, None for what is not compressed by any."""
    return next((name for magic, name in COMPRESSED.items() if head.startswith(magic)), None)


def unpacked(read: Callable[[int], bytes], what: str) -> Readable:
    """What a function reads that is compressed by a codec of CODECS. Raises CorruptDataError for anything else."""
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
    """Convert the errors of readers of archives and codecs at bad bytes into kraftlake's; `what` lies at `path`."""
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
