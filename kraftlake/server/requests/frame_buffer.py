"""The bytes of one connection, cut into frames."""

from __future__ import annotations

import struct
from typing import Final

LENGTH: Final = struct.Struct(">i")
_SMALL: Final = 16 * 1024
"""A chunk up to this length gets what comes next: many tiny ones would hold more memory than they have bytes."""


class FrameBuffer:
    """Takes bytes as they arrive and gives frames, each of which comes behind its length in four bytes.

    It holds what has arrived, whatever length was announced, and joins a frame once.
    """

    def __init__(self, *, longest: int) -> None:
        self._longest = longest
        self._chunks: list[bytes] = []
        self._start = 0
        """Where the next frame begins in the first chunk."""
        self.size = 0
        """The number of bytes that were taken and not given."""

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self.size += len(data)
        if self._chunks and len(self._chunks[-1]) <= _SMALL:
            start = self._start if len(self._chunks) == 1 else 0
            self._chunks[-1] = self._chunks[-1][start:] + data
            self._start -= start
        else:
            self._chunks.append(data)

    def next(self) -> bytes | None:
        """The next frame, without its length; None while it is not whole.

        Raises ValueError for a length that no frame can have.
        """
        if self.size < LENGTH.size:
            return None
        if len(self._chunks[0]) - self._start < LENGTH.size:
            self._chunks[:2] = [self._chunks[0][self._start :] + self._chunks[1]]
            self._start = 0
        (size,) = LENGTH.unpack_from(self._chunks[0], self._start)
        if not 0 <= size <= self._longest:
            raise ValueError(f"a message of {size} bytes")
        if self.size < LENGTH.size + size:
            return None
        self._start += LENGTH.size
        self.size -= LENGTH.size + size
        return self._taken(size)

    @property
    def held(self) -> int:
        """The number of bytes that are held: also those of frames that were given, in front of the next one."""
        return self.size + self._start

    def clear(self) -> None:
        """Forget all bytes."""
        self._chunks, self._start, self.size = [], 0, 0

    def _taken(self, size: int) -> bytes:
        """The next bytes, which have arrived."""
        first, end = self._chunks[0], self._start + size
        if end <= len(first):
            taken = first[self._start : end]
        else:
            parts: list[memoryview] = [memoryview(first)[self._start :]]
            missing = size - len(parts[0])
            used = 1
            while missing > len(self._chunks[used]):
                parts.append(memoryview(self._chunks[used]))
                missing -= len(self._chunks[used])
                used += 1
            parts.append(memoryview(self._chunks[used])[:missing])
            taken, end = b"".join(parts), missing
            del self._chunks[:used]
        left = len(self._chunks[0]) - end
        if left < end:  # by that, it costs less than what was taken, and at most half of a chunk is held in vain
            self._chunks[:1] = [self._chunks[0][end:]] if left else []
            end = 0
        self._start = end
        return taken
