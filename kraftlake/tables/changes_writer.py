"""A writer of a table whose rows are made from metadata deltas, many at once, without an object for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kraftlake.replay.log.delta_chunk import DeltaChunk, LogBegin
from kraftlake.tables.table_writer import TableWriter

if TYPE_CHECKING:
    from kraftlake.replay.log.log_replay import LogReplay
    from kraftlake.tables.lake_table import LakeTable


class ChangesWriter(TableWriter):
    """Takes the metadata deltas of a replay, which it shares with the other tables of a run."""

    of_topics: ClassVar[bool] = False
    """Whether shards make rows of topics and partitions for it."""

    def open(self, replay: LogReplay, begin: LogBegin, table: LakeTable | None = None) -> None:  # noqa: ARG002 - of histories
        """Open the writer at the end of the table: `replay` has the state there, and `take_deltas` gets its deltas.

        Where the table covers nothing and the log starts above 0, the state is the snapshot that covers the log's
        start, and its load is the first metadata delta. Without a table, the replay knows since when each partition has
        its state. By now another run may have written the table on the disk; `table.covered` is where this run begins.
        """
        self.begin_deltas(begin)

    def begin_deltas(self, begin: LogBegin) -> None:
        """Initialize at the end of the table; the rows of a load are added."""

    def take_deltas(self, chunk: DeltaChunk) -> None:
        """Add the rows of deltas, which follow the earlier ones, on any thread."""
        raise NotImplementedError
