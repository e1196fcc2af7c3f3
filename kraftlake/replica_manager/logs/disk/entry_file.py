"""A file of fixed-size entries, sorted by one number: the form of a segment's indexes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from struct import Struct, pack
from typing import Any

from kraftlake.replica_manager.logs.disk.files import LogFile


class EntryFile:
    """The entries of an index; they are read from the file, and only the last one is kept in memory.

    `column` is the index of the number by which entries are sorted and searched.
    """

    __slots__ = ("_column", "_entry", "_last", "count", "file")

    def __init__(self, file: LogFile, entry: Struct, column: int = 0) -> None:
        self.file = file
        self._entry = entry
        self._column = column
        self.count = file.size // entry.size
        self._last: tuple[Any, ...] | None = None
        if self.count > 1 and not any(self[self.count - 1]):
            self._trim()

    def _trim(self) -> None:
        """Remove the trailing zeros that Kafka preallocates for an index."""
        count = bisect_left(range(self.count), True, lo=1, key=lambda index: not any(self[index]))
        self.truncate(count if count > 1 or any(self[0]) else 0)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        if not 0 <= index < self.count:
            raise IndexError(index)
        size = self._entry.size
        return self._entry.unpack(self.file.read(index * size, size))

    @property
    def is_whole(self) -> bool:
        """Whether the file ends with a whole entry."""
        return self.file.size == self.count * self._entry.size

    @property
    def last(self) -> tuple[Any, ...] | None:
        """The last entry."""
        if self._last is None and self.count:
            self._last = self[self.count - 1]
        return self._last

    def append(self, *values: int) -> None:
        """Append entries, given as a flat sequence of numbers."""
        if not values:
            return
        form = self._entry.format[1:]
        count = len(values) // len(form)
        self.file.append(pack(f">{form * count}", *values))
        self.count += count
        self._last = values[-len(form) :]

    def up_to(self, value: int) -> int:
        """The number of entries with a number of at most `value`."""
        if self.last is not None and self.last[self._column] <= value:
            return self.count
        return bisect_right(range(self.count), value, key=lambda index: int(self[index][self._column]))

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries."""
        self.file.truncate(count * self._entry.size)
        self.count = count
        self._last = None
