"""Reads a lake to which other processes append."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.reading.tail import TailCursor
from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.errors import LakeError


class LiveLake:
    """Returns the batches of a lake, committed by any process; a step tries to open one file.

    Raises LakeError where a lake on a disk was deleted, also where another one is in its place, OffsetError where the
    lake was trimmed past the last batch that was read.
    """

    trouble = None
    """A constant: no temporary error keeps a lake from being read."""

    def __init__(self, lake: LakeReader, *, poll: float) -> None:
        """Initialize at the end of a lake as it was opened; a step runs every `poll` seconds."""
        self.reader = lake
        self._folder = _Folder(lake.log.path)
        self._cursor = TailCursor(MetadataLog.open(lake.log.path), lake.end_offset, poll)

    @property
    def seen_to(self) -> int:
        """The offset after the last batch that was read."""
        return self._cursor.next_offset

    def step(self) -> Sequence[RecordBatch]:
        """The next batches; an empty list for none yet."""
        try:
            return self._cursor.step()
        finally:
            self._folder.check()

    def close(self) -> None:
        """Close the folder."""
        self._folder.close()


class _Folder:
    """The folder of a lake's log, held open, so that no other folder can be mistaken for it."""

    def __init__(self, lake: Location) -> None:
        self._path = lake / "log" if isinstance(lake, Path) else None
        self._held = None if self._path is None else os.open(self._path, os.O_RDONLY)
        self._lake = str(lake)

    def check(self) -> None:
        """Raise LakeError where the folder is no longer at its path; an object store has no folders."""
        if self._path is None or self._held is None:
            return
        try:
            if os.path.samestat(self._path.stat(), os.fstat(self._held)):
                return
        except OSError:
            pass
        raise LakeError(f"{self._lake} was deleted or replaced while it was watched.") from None

    def close(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None
