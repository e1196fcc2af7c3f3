"""Readable files on disk, within a larger file, or in memory.

Plain reads without mmap: if another process truncated a mapped file, this process would be killed.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import TypeAlias

import attrs

from kraftlake.kafka_files.faults import unreadable

BLOCK_SIZE = 1024 * 1024


class DiskStream:
    """An open file on disk."""

    def __init__(self, file: DiskFile) -> None:
        self._file = file
        try:
            self._descriptor = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise unreadable(file.path, error) from None

    def read_at(self, position: int, length: int) -> bytes:
        """Read at most `length` bytes from `position`; fewer only at the file's end."""
        wanted = min(length, self._file.size - position)
        parts: list[bytes] = []
        try:
            while wanted > 0:
                part = os.pread(self._descriptor, wanted, self._file.start + position)
                if not part:
                    break
                parts.append(part)
                position += len(part)
                wanted -= len(part)
        except OSError as error:
            raise unreadable(self._file.path, error) from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


@attrs.frozen(kw_only=True)
class DiskFile:
    """A file on disk, or `size` bytes of it from `start` on."""

    path: str
    name: str
    size: int
    start: int = 0

    @classmethod
    def at(cls, path: str | Path) -> DiskFile:
        """Return the whole file at `path`. Raises NotASourceError if it can't be read."""
        try:
            size = Path(path).stat().st_size
        except OSError as error:
            raise unreadable(str(path), error) from None
        return cls(path=str(path), name=Path(path).name, size=size)

    def open(self) -> DiskStream:
        """Start reading."""
        return DiskStream(self)


@attrs.frozen(kw_only=True)
class BlockFile:
    """A file held in memory as compressed blocks of `BLOCK_SIZE` bytes, for content of a compressed archive.

    A metadata log is mostly no-op records and shrinks to a tenth or less; access to any position decompresses one
    block.
    """

    name: str
    size: int
    blocks: tuple[bytes, ...] = attrs.field(repr=False)

    def open(self) -> BlockStream:
        """Start reading."""
        return BlockStream(self.blocks, self.size)


StoredFile: TypeAlias = DiskFile | BlockFile
"""A file that can be read repeatedly."""


class BlockStream:
    """An open file in memory."""

    def __init__(self, blocks: tuple[bytes, ...], size: int) -> None:
        self._blocks = blocks
        self._size = size
        self._number = -1
        self._block = b""

    def read_at(self, position: int, length: int) -> bytes:
        """Read at most `length` bytes from `position`; fewer only at the file's end."""
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
        """Release the block read last."""
        self._block = b""


class Window:
    """A buffered view of a file for mostly sequential reads, which reads at least `chunk` bytes at a time."""

    def __init__(self, file: StoredFile, chunk: int) -> None:
        self._stream = file.open()
        self._chunk = chunk
        self._start = 0
        self._buffer = b""

    def at(self, position: int, length: int) -> memoryview:
        """Return the bytes [position, position + length), or those up to the file's end."""
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
