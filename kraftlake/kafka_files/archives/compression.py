"""The compressed streams that archives and single files come in, read front to back with bounded memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from typing import Any, Final, Protocol

_CHUNK: Final = 64 * 1024
_XZ_MEMORY: Final = 256 * 1024 * 1024
"""What the dictionary of an xz stream may take: four times that of its largest preset."""


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, length: int, /) -> bytes:
        """At most `length` bytes; fewer only at the end, or where a codec has no more at hand."""


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
