"""Passes rows of the log to tables that need no image: the fold itself makes no metadata delta."""

from __future__ import annotations

from functools import partial
from typing import Final

import pyarrow as pa

from kraftlake.image import MetadataImage
from kraftlake.runtime.errors import OffsetError
from kraftlake.tables.catch_up.covered import trimmed_past
from kraftlake.tables.catch_up.log_fold import LogFold, TableFeed

_ALONGSIDE_FROM: Final = 1000
"""The number of rows from which on writers share two threads."""


class RowFold(LogFold):
    """A LogFold for writers that want rows and no changes: the image stays empty.

    The writer chooses the first row of an empty table (`first_offset`): no snapshot is needed to begin.
    """

    @property
    def image(self) -> MetadataImage:
        """The empty image."""
        return MetadataImage.EMPTY

    def begin(self) -> None:
        """Go to the last offset that all tables cover.

        Raises OffsetError if the log that followed was trimmed, LakeError if a table is of another log.
        """
        starts = [self._first_offset(feed) for feed in self._feeds]
        self.last_offset = min(starts) - 1

    def _first_offset(self, feed: TableFeed) -> int:
        self._check_in_log(feed)
        if feed.covers is None:
            first = feed.writer.first_offset(self._reader)
            if first > self._reader.start_offset:
                feed.covers = first - 1
            return first
        if feed.covers + 1 < self._reader.start_offset:
            begins = f"offset {feed.writer.first_offset(self._reader)}"
            raise OffsetError(trimmed_past(feed.name, self._reader, feed.covers, begins))
        return feed.covers + 1

    def _take_part(self, rows: pa.Table) -> None:
        if self._background is None or len(self._feeds) < 2 or rows.num_rows < _ALONGSIDE_FROM:
            self.wait()
            self._pass_on(rows, self._feeds)
        else:  # the first history is that of partitions, which has the most work
            pass_on = partial(self._pass_on, rows)
            self._background.run_alongside(partial(pass_on, self._feeds[1:]), partial(pass_on, self._feeds[:1]))
        self.last_offset = rows.column("offset")[-1].as_py()
