"""What makes the rows of one derived table: the door for whoever adds a table to the streams over a lake's log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from kraftlake.image import MetadataImage
from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.rows import BATCH_COLUMNS
from kraftlake.replay.queries.changes import Published
from kraftlake.tables.lake_table import LakeTable, TableDescription
from kraftlake.tables.lazy_table import LazyTable
from kraftlake.tables.row_buffer import RowBuffer

if TYPE_CHECKING:
    from kraftlake.replay.reading.open_reader import LakeReader
    from kraftlake.tables.changes.log_deltas import RunDeltas

__all__ = ["Published", "TableWriter", "open_rows_of"]


class TableWriter:
    """Makes the rows of the table `description`; one that is new for each run.

    It is told of each published change, and of each log row if it `wants_rows`, with an offset above the last one that
    its table covers, once and in order; where no writer of a run `wants_changes`, none are made, and where none
    `wants_images` either, nobody but the writers replays a record. What its rows say may depend on the log alone: not
    on how the stream cuts it into micro-batches, nor on where a run began, for which
    `begin` gives it the image there.

    No I/O, no clock: whoever calls it appends what `drain` gives, and notes the offset in the same commit.
    """

    description: TableDescription
    encodes = False
    """Whether the strings of its rows are dictionaries: worth it where there are many rows."""
    wants_rows = False
    log_columns: ClassVar[tuple[str, ...]] = BATCH_COLUMNS
    """The columns of LOG_SCHEMA that it needs in rows, BATCH_COLUMNS and others."""
    wants_changes = True
    wants_images = False

    def __init__(self) -> None:
        self.rows = RowBuffer(self.description.encoded_schema if self.encodes else self.description.schema)

    @property
    def open_count(self) -> int | None:
        """How many rows of a table of states are still so, None for a table of what happened."""
        return None

    def share(self, run: RunDeltas) -> None:
        """Called once before all else: what the writers of one run share, for those that use it."""

    def table(self, lake: Location) -> LakeTable:
        """The table in a lake that is to be written."""
        return LakeTable(self.description, lake)

    def open(self, reader: LakeReader, table: LakeTable) -> None:
        """Called once before all else, with the log and the table as they are: for those who begin from these."""

    def first_offset(self, reader: LakeReader) -> int:
        """The first offset whose row an empty table takes where no changes are made: the log's first.

        Raises OffsetError where the table can't begin with the log as it is.
        """
        return reader.start_offset

    def begin(self, image: MetadataImage) -> None:
        """Called once, before the first change: the image at the last offset that the table covers, or the empty one.

        Where the log starts above 0 the first change is then the load of the snapshot that covers its start.
        """

    def publish(self, change: Published) -> None:
        """Take a published change."""

    def take_rows(self, rows: pa.Table) -> None:
        """Rows of the log, sorted by offset, of whole batches; if it `wants_rows`.

        They have its `log_columns`, in the order of LOG_SCHEMA, and may have others.
        """

    def drain(self) -> pa.Table:
        """The rows that were made since the last call."""
        return self.rows.take()

    def drain_later(self) -> LazyTable:
        """As `drain`, of rows that another thread may make while this one goes on."""
        return LazyTable.of(self.drain())


def open_rows_of(writers: Iterable[TableWriter]) -> dict[str, int]:
    """How many rows are still so, by table, of those tables that have such ones."""
    counts = {writer.description.name: writer.open_count for writer in writers}
    return {name: count for name, count in counts.items() if count is not None}
