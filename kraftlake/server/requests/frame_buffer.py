"""The bytes of one connection, cut into frames."""

from __future__ import annotations

import struct
from typing import Final

LENGTH: Final = struct.Struct(">i")
_SMALL: Final = 16 * 1024
"""The length up to which a chunk is extended by the next data: many tiny chunks would hold more memory than data."""


class FrameBuffer:
    """Splits received bytes into frames, each with a length prefix of four bytes.

    The buffer holds only received bytes, whatever length was announced, and joins a frame once.
    """

    def __init__(self, *, longest: int) -> None:
        self.longest = longest
        """The longest frame that is taken."""
        self._chunks: list[bytes] = []
        self._start = 0
        """The start of the next frame in the first chunk."""
        self.size = 0
        """The number of received bytes that were not returned as frames."""

    def add(self, data: bytes) -> None:
        """Add received bytes."""
        self.size += len(data)
        if self._chunks and len(self._chunks[-1]) <= _SMALL:
            start = self._start if len(self._chunks) == 1 else 0
            self._chunks[-1] = self._chunks[-1][start:] + data
            self._start -= start
        else:
            self._chunks.append(data)

    def next(self) -> bytes | None:
        """Return the next frame, without its length; None if it is incomplete.

        Raises ValueError for an invalid length.
        """
        if self.size < LENGTH.size:
            return None
        if len(self._chunks[0]) - self._start < LENGTH.size:
            self._chunks[:2] = [self._chunks[0][self._start :] + self._chunks[1]]
            self._start = 0
        (size,) = LENGTH.unpack_from(self._chunks[0], self._start)
        if not 0 <= size <= self.longest:
            raise ValueError(f"a message of {size} bytes")
        if self.size < LENGTH.size + size:
            return None
        self._start += LENGTH.size
        self.size -= LENGTH.size + size
        return self._taken(size)

    @property
    def held(self) -> int:
        """The number of bytes held, including those of returned frames before the next one."""
        return self.size + self._start

    def clear(self) -> None:
        """Drop all bytes."""
        self._chunks, self._start, self.size = [], 0, 0

    def _taken(self, size: int) -> bytes:
        """Return the next `size` bytes, which have been received."""
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
