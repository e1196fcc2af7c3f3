"""Readable files on disk, within a larger file, or in memory.

Plain reads, no mmap: a mapped file that another process truncates would kill this process.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Protocol

import attrs

from kraftlake.kafka_files.faults import unreadable

BLOCK_SIZE = 1024 * 1024


class ByteStream(Protocol):
    """An open file."""

    def read_at(self, position: int, length: int) -> bytes:
        """At most `length` bytes from `position` on; fewer only where the file ends."""

    def close(self) -> None:
        """Release the stream's resources."""


class StoredFile(Protocol):
    """A file that can be read again and again."""

    @property
    def name(self) -> str:
        """The last part of its path."""

    @property
    def size(self) -> int:
        """Its size in bytes when it was found."""

    def open(self) -> ByteStream:
        """Start reading."""


class DiskStream:
    """A stream over a part of a file on disk, from byte `start` on, `size` bytes long."""

    def __init__(self, path: str, start: int, size: int | None) -> None:
        self._path = path
        self._start = start
        self._size = size
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise unreadable(path, error) from None

    def read_at(self, position: int, length: int) -> bytes:
        """As `ByteStream.read_at`."""
        wanted = length if self._size is None else min(length, self._size - position)
        parts: list[bytes] = []
        try:
            while wanted > 0:
                part = os.pread(self._descriptor, wanted, self._start + position)
                if not part:
                    break
                parts.append(part)
                position += len(part)
                wanted -= len(part)
        except OSError as error:
            raise unreadable(self._path, error) from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


@attrs.frozen(kw_only=True)
class DiskFile:
    """A file on disk, or the `size` bytes of it that begin at `start`."""

    path: str
    name: str
    size: int
    start: int = 0

    @classmethod
    def at(cls, path: str | Path) -> DiskFile:
        """The whole file at `path`. Raises NotASourceError where it can't be read."""
        try:
            size = Path(path).stat().st_size
        except OSError as error:
            raise unreadable(str(path), error) from None
        return cls(path=str(path), name=Path(path).name, size=size)

    def open(self) -> ByteStream:
        """Start reading."""
        return DiskStream(self.path, self.start, self.size)


@attrs.frozen(kw_only=True)
class BlockFile:
    """A file held in memory as compressed blocks of `BLOCK_SIZE` bytes, for what came out of a compressed archive.

    A metadata log is mostly no-op records and shrinks to a tenth or less; any position is reached by one block.
    """

    name: str
    size: int
    blocks: tuple[bytes, ...] = attrs.field(repr=False)

    def open(self) -> ByteStream:
        """Start reading."""
        return _BlockStream(self.blocks, self.size)


class _BlockStream:
    def __init__(self, blocks: tuple[bytes, ...], size: int) -> None:
        self._blocks = blocks
        self._size = size
        self._number = -1
        self._block = b""

    def read_at(self, position: int, length: int) -> bytes:
        end = min(position + length, self._size)
        parts: list[bytes] = []
        while position < end:
            number, begin = divmod(position, BLOCK_SIZE)
            if number != self._number:
                self._number, self._block = number, zlib.decompress(self._blocks[number])
            part = self._block[begin : begin + end - position]
            parts.append(part)
            position += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        self._block = b""


class Window:
    """A buffered view of a file for mostly sequential reads, which reads at least `chunk` bytes at a time."""

    def __init__(self, file: StoredFile, chunk: int) -> None:
        self._stream = file.open()
        self._chunk = chunk
        self._start = 0
        self._buffer = b""

    def at(self, position: int, length: int) -> memoryview:
        """The bytes [position, position + length), or those up to the file's end."""
        end = self._start + len(self._buffer)
        if position < self._start or position + length > end:
            self._buffer = self._stream.read_at(position, max(length, self._chunk))
            self._start = position
        begin = position - self._start
        return memoryview(self._buffer)[begin : begin + length]

    def __enter__(self) -> Window:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
