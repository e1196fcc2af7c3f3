"""Iteration over the batches of a file by their headers, past damage to the next whole batch."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kraftlake.kafka_files.stored_file import StoredFile, Window
from kraftlake.records.batch_header import HEADER_SIZE, BatchHeader, batch_starts, parse_header, size_said

READ_CHUNK = 1024 * 1024
HEADER_CHUNK = 64 * 1024
_CANDIDATE_CRC_BYTES = 256 * 1024 * 1024
"""The limit of bytes checksummed, besides four times the file's size, in the search for a batch after damage."""


@attrs.frozen
class Whole:
    """A complete batch. `data` is empty if only headers were read."""

    position: int
    header: BatchHeader
    data: memoryview = attrs.field(repr=False, eq=False)

    @property
    def end(self) -> int:
        """The position of the first byte after the batch."""
        return self.position + self.header.size


@attrs.frozen
class Damage:
    """Bytes [position, end) without a whole batch.

    `end` is the start of the next whole batch, or the end of the file.
    """

    position: int
    end: int
    reason: str


def walk(
    file: StoredFile, *, start: int = 0, limit: int | None = None, headers_only: bool = False
) -> Iterator[Whole | Damage]:
    """Yield the batches of `file` from byte `start` up to byte `limit` (its size if None).

    With `headers_only` neither the batches' bytes nor their CRCs are read, except after damage. Memory is
    bounded by the largest batch allowed, time by the file's size.
    """
    end = file.size if limit is None else limit
    search = _Search(file, end)
    with Window(file, HEADER_CHUNK if headers_only else READ_CHUNK) as window:
        position = start
        while position < end:
            step: Whole | Damage | str = _step(window, position, end, headers_only)
            if isinstance(step, str):
                step = search.past(position, step)
            yield step
            position = step.end


def _step(window: Window, position: int, end: int, headers_only: bool) -> Whole | str:
    """Return the whole batch at `position`, or the reason why none is there."""
    head = window.at(position, min(HEADER_SIZE, end - position))
    header = parse_header(head)
    if header is None:
        size = size_said(head)
        whole = f"a batch header of {HEADER_SIZE} bytes" if size is None else f"a batch of {size} bytes"
        return f"{whole}, only {len(head)} of which are there"
    fault = header.fault()
    if fault is not None:
        return fault
    if header.size > end - position:
        return f"a batch of {header.size} bytes, only {end - position} of which are there"
    if headers_only:
        return Whole(position, header, memoryview(b""))
    data = window.at(position, header.size)
    if len(data) < header.size:
        return f"the file was cut to {position + len(data)} bytes while it was read"
    if not header.crc_is_good(data):
        return "a batch whose CRC does not match its bytes"
    return Whole(position, header, data)


class _Search:
    """The search for the next whole batch after damage, with a limited effort per iteration."""

    def __init__(self, file: StoredFile, end: int) -> None:
        self._file = file
        self._end = end
        self._budget = 4 * end + _CANDIDATE_CRC_BYTES

    def past(self, position: int, reason: str) -> Damage:
        """Return the damage at `position`, up to the next whole batch or the end."""
        with Window(self._file, READ_CHUNK) as window:
            if self._only_zeros(window, position):
                return Damage(position, self._end, f"only zeros up to the file's end, {self._end - position} bytes")
            with Window(self._file, HEADER_SIZE) as probe:
                return Damage(position, self._next_whole(window, probe, position), reason)

    def _next_whole(self, window: Window, probe: Window, position: int) -> int:
        begin = position + 1
        while self._end - begin >= HEADER_SIZE:
            chunk = bytes(window.at(begin, min(READ_CHUNK, self._end - begin)))
            if len(chunk) < HEADER_SIZE:
                break
            for place in batch_starts(chunk):
                if self._is_whole(probe, begin + place):
                    return begin + place
            begin += len(chunk) - HEADER_SIZE + 1
        return self._end

    def _is_whole(self, probe: Window, position: int) -> bool:
        header = parse_header(probe.at(position, HEADER_SIZE))
        if header is None or header.fault() is not None or header.size > min(self._end - position, self._budget):
            return False
        self._budget -= header.size
        return header.crc_is_good(probe.at(position, header.size))

    def _only_zeros(self, window: Window, position: int) -> bool:
        while position < self._end:
            chunk = bytes(window.at(position, min(READ_CHUNK, self._end - position)))
            if not chunk or chunk.strip(b"\0"):
                return False
            position += len(chunk)
        return True
