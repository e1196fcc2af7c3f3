"""Passes rows of the log to tables that need no image: the fold itself makes no metadata delta."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.runtime.errors import OffsetError
from kraftlake.tables.catch_up.log_fold import LogFold, TableFeed, pieces


class RowFold(LogFold):
    """A LogFold for writers that want rows and no changes: the image stays empty.

    The writer chooses the first row of an empty table (`first_offset`): no snapshot is needed to begin.
    """

    _taken_to = -1

    @property
    def last_offset(self) -> int:
        """The last offset that was taken, -1 for none."""
        return self._taken_to

    def begin(self) -> None:
        """Go to the last offset that all tables cover.

        Raises OffsetError if the log that followed was trimmed, LakeError if a table is of another log.
        """
        starts = [self._first_offset(feed) for feed in self._feeds]
        self._taken_to = min(starts) - 1
        self.batches = 0
        self.deltas = 0

    def _first_offset(self, feed: TableFeed) -> int:
        self._check_in_log(feed)
        if feed.covers is None:
            first = feed.writer.first_offset(self._reader)
            if first > self._reader.start_offset:
                feed.covers = first - 1
            return first
        if feed.covers + 1 < self._reader.start_offset:
            raise OffsetError(
                f"{feed.name}/ of {self._reader.name} ends at offset {feed.covers}, and the log that followed was "
                f"trimmed: delete the folder {feed.name}/ and run again, it then begins with offset "
                f"{feed.writer.first_offset(self._reader)}"
            )
        return feed.covers + 1

    def take(self, rows: pa.Table) -> Iterator[int]:
        """Take whole batches, sorted by offset, that follow `last_offset`; yields the bytes of each piece of them."""
        for piece in pieces(rows):
            if self._background is None or len(self._feeds) < 2 or piece.num_rows < self._at_once_from:
                self.wait()
                self._pass_on(piece, self._feeds)
            else:  # the first history is that of partitions, which has the most work
                pass_on = partial(self._pass_on, piece)
                self._background.run_alongside(partial(pass_on, self._feeds[1:]), partial(pass_on, self._feeds[:1]))
            self._taken_to = piece.column("offset")[-1].as_py()
            self.batches += pc.count_distinct(piece.column("batch")).as_py()
            yield pc.sum(pc.binary_length(piece.column("payload"))).as_py()

    def finish(self) -> None:
        """Do nothing: no snapshot is due."""
