"""A writer of a table whose rows are made of metadata deltas: many at once, none of them an object."""

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
        """Begin where the table ends: `replay` has the state there, and `take_deltas` gets what it gives.

        Where the table covers nothing and the log starts above 0, that is the snapshot that covers its start, whose
        load is the first metadata delta. Without a table, the replay knows since when each partition is so. What the
        table on the disk covers by now may be of another run; `table.covered` is where this one begins.
        """
        self.begin_deltas(begin)

    def begin_deltas(self, begin: LogBegin) -> None:
        """Begin where the table ends; the rows of a load are added."""

    def take_deltas(self, chunk: DeltaChunk) -> None:
        """Add the rows of deltas, which follow those before, on any thread."""
        raise NotImplementedError
