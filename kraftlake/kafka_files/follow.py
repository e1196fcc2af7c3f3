"""Follows the log in the directory of a live node as it grows: whole batches, over rolls and deletions."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

from kraftlake.kafka_files.faults import BrokenFileError, unreadable
from kraftlake.kafka_files.file_names import METADATA_DIRECTORY, segment_base_offset, segment_name, snapshot_id
from kraftlake.kafka_files.segments.batch_walk import READ_CHUNK, Damage, walk
from kraftlake.kafka_files.segments.segment import ReaderPosition, decode, skip_before
from kraftlake.kafka_files.snapshots.snapshot import Snapshot, read_snapshot
from kraftlake.kafka_files.stored_file import DiskFile, Window
from kraftlake.records.batch import RecordBatch
from kraftlake.records.batch_header import HEADER_SIZE
from kraftlake.runtime.errors import KraftlakeError, NotASourceError, OffsetError


class TruncatedLogError(KraftlakeError):
    """Reports that the node truncated its log below the reader's `offset`.

    `replaced` means that other records are now there. Otherwise the same ones may return, fetched from the leader.
    """

    def __init__(self, message: str, offset: int, *, replaced: bool) -> None:
        super().__init__(message)
        self.offset = offset
        self.replaced = replaced


class DirectoryFollower:
    """A position in a live log: batches below `next_offset` were returned.

    No part of the log is kept in memory, and no batch is returned twice. Each poll compares the last returned batch
    with the file, since a node that is not the leader may truncate its log.
    """

    def __init__(self, path: str | Path, next_offset: int) -> None:
        folder = Path(path)
        self._folder = folder / METADATA_DIRECTORY if (folder / METADATA_DIRECTORY).is_dir() else folder
        self.next_offset = next_offset
        self._segment: int | None = None
        self._position = 0
        self._size = 0
        self._last: tuple[int, bytes] | None = None

    def poll(self, before: int | None = None) -> Iterator[RecordBatch]:
        """Return the whole batches from `next_offset` on that the files now hold.

        With `before`, only those that end below it. A batch that is being written is left for the next poll. Raises
        OffsetError if the log starts above `next_offset`, TruncatedLogError, BrokenFileError for damage followed by
        further data, NotASourceError for an unreadable directory.
        """
        while True:
            bases = self._bases()
            if self._segment not in bases:
                self._locate(bases)
            assert self._segment is not None
            try:
                bounded = yield from self._read_on(self._segment, before)
            except NotASourceError:
                if self._segment in self._bases():
                    raise
                continue  # deleted while it was read: its rest is in no other file, so `_locate` raises and names it
            later = [base for base in bases if base > self._segment]
            if bounded or not later or (before is not None and self.next_offset >= before):
                return
            if min(later) != self.next_offset:
                if not self._grew(self._segment):
                    self._check_hole(min(later), before)
                    return
                continue
            self._segment, self._position, self._last = min(later), 0, None

    def snapshots(self, seen: set[str]) -> Iterator[Snapshot]:
        """Return the finished snapshots that are not among the `seen` names, oldest first."""
        for name in sorted(self._names()):
            if snapshot_id(name) is None or name in seen:
                continue
            try:
                snapshot = read_snapshot(DiskFile.at(self._folder / name))
            except NotASourceError:
                continue  # deleted meanwhile
            if snapshot.finished and not snapshot.bootstrap:
                yield snapshot

    def _names(self) -> list[str]:
        try:
            return [entry.name for entry in self._folder.iterdir()]
        except OSError as error:
            raise unreadable(str(self._folder), error) from None

    def _bases(self) -> list[int]:
        bases = sorted(base for name in self._names() if (base := segment_base_offset(name)) is not None)
        if not bases:
            raise NotASourceError(f"{self._folder} holds no segments (*.log) of a metadata log any more")
        return bases

    def _file(self, base: int) -> DiskFile:
        return DiskFile.at(self._folder / segment_name(base))

    def _locate(self, bases: list[int]) -> None:
        """Find the segment and the position of `next_offset`."""
        if bases[0] > self.next_offset:
            raise OffsetError(
                f"{self._folder} starts at offset {bases[0]} now: offsets {self.next_offset} to {bases[0] - 1} were "
                f"deleted there before they were read."
            )
        base = max(base for base in bases if base <= self.next_offset)
        file = self._file(base)
        last = None
        with Window(file, READ_CHUNK) as window:
            position, offset = skip_before(self.next_offset, window, file.size, base)
            if offset != self.next_offset:
                raise self._truncated(f"ends at offset {offset - 1}")
            if position and self._last is not None:
                last = self._header_before(window, position)
                if last is not None and last[1] != self._last[1]:
                    raise self._replaced()
        self._segment, self._position, self._last = base, position, last

    def _header_before(self, window: Window, end: int) -> tuple[int, bytes] | None:
        """Return the header of the batch that ends at a position, with the length of the last returned batch."""
        assert self._last is not None
        size = int.from_bytes(self._last[1][8:12], "big") + 12
        return (end - size, bytes(window.at(end - size, HEADER_SIZE))) if end >= size else (0, b"")

    def _read_on(self, base: int, before: int | None) -> Generator[RecordBatch, None, bool]:
        """Yield the batches of one segment.

        Returns whether a batch that ends at or above `before` stopped the reading.
        """
        file = self._file(base)
        self._check_last(file)
        self._size = file.size
        at = ReaderPosition(self.next_offset)
        for step in walk(file, start=self._position):
            if isinstance(step, Damage):
                if step.end < file.size:
                    raise BrokenFileError(file.name, step.position, self.next_offset, step.reason)
                return False
            fault = at.fault(step.header.base_offset, step.header.epoch)
            if fault is not None:
                raise BrokenFileError(file.name, step.position, self.next_offset, fault)
            if before is not None and step.header.last_offset >= before:
                return True
            batch = decode(file, step)
            at.pass_by(batch.last_offset, batch.epoch)
            self._last = (step.position, bytes(step.data[:HEADER_SIZE]))
            self._position = step.end
            self.next_offset = batch.last_offset + 1
            yield batch
        return False

    def _check_last(self, file: DiskFile) -> None:
        if file.size < self._position:
            raise self._truncated(f"was cut to {file.size} bytes")
        if self._last is not None:
            position, header = self._last
            with Window(file, HEADER_SIZE) as window:
                if bytes(window.at(position, HEADER_SIZE)) != header:
                    raise self._replaced()

    def _replaced(self) -> TruncatedLogError:
        return self._truncated(f"has another batch before offset {self.next_offset}", replaced=True)

    def _truncated(self, what: str, *, replaced: bool = False) -> TruncatedLogError:
        return TruncatedLogError(
            f"{self._folder} {what}, although it was read up to offset {self.next_offset - 1}: its tail was truncated",
            self.next_offset,
            replaced=replaced,
        )

    def _grew(self, base: int) -> bool:
        """Whether the segment's content differs from the one read before, or the segment no longer exists."""
        try:
            return self._file(base).size != self._size
        except NotASourceError:
            return True

    def _check_hole(self, later: int, before: int | None) -> None:
        """Raise an error if the next segment doesn't begin at the end of this one."""
        if before is None or later < before:
            message = f"offsets {self.next_offset} to {later - 1} are missing between this segment and the next one"
            assert self._segment is not None
            raise BrokenFileError(segment_name(self._segment), self._position, self.next_offset, message)
