"""The protocol for a derived table: subclass `TableWriter` to add a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from kraftlake.image import MetadataImage
from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.rows import BATCH_COLUMNS
from kraftlake.replay.queries.change_fold import Published
from kraftlake.tables.lake_table import LakeTable, TableDescription
from kraftlake.tables.lazy_table import LazyTable
from kraftlake.tables.row_buffer import RowBuffer

if TYPE_CHECKING:
    from kraftlake.replay.reading.open_reader import LakeReader
    from kraftlake.tables.shared_deltas import RunDeltas

__all__ = ["Published", "TableWriter", "open_rows_of"]


class TableWriter:
    """Makes the rows of the table `description`; each run has a new writer.

    A writer gets each published change, and each row of the log if it `wants_rows`, above the last offset that its
    table covers, once and in order. A run makes changes only if one of its writers `wants_changes`, and images only if
    one `wants_changes` or `wants_images`. The rows depend on the log alone: not on micro-batches, nor on where a run
    began; `begin` gives the image there.

    A writer does no I/O and has no clock: the run appends the rows of `drain_later`, and commits the offset with them.
    """

    description: TableDescription
    encodes = False
    """Whether the strings of its rows are dictionaries: faster for tables of many rows."""
    wants_rows = False
    log_columns: ClassVar[tuple[str, ...]] = BATCH_COLUMNS
    """The columns of LOG_SCHEMA that it needs in rows, BATCH_COLUMNS and others."""
    wants_changes = True
    wants_images = False

    def __init__(self) -> None:
        self.rows = RowBuffer(self.description.encoded_schema if self.encodes else self.description.schema)

    @property
    def open_count(self) -> int | None:
        """The number of open rows of a history table, None for other tables."""
        return None

    def share(self, run: RunDeltas) -> None:
        """Called once, first: the deltas that the writers of one run share, for writers that use them."""

    def table(self, lake: Location) -> LakeTable:
        """The table in a lake that the run writes."""
        return LakeTable(self.description, lake)

    def open(self, reader: LakeReader, table: LakeTable) -> None:
        """Called once, before any change or row, with the log and the table: for writers that load their state.

        It is the state after `table.covered`; what the table on the disk covers by now may be of another run.
        """

    def first_offset(self, reader: LakeReader) -> int:
        """The first offset that an empty table takes in a run without changes: the log's first.

        Raises OffsetError if the table can't begin with this log.
        """
        return reader.start_offset

    def begin(self, image: MetadataImage) -> None:
        """Called once, before the first change: the image at the last offset that the table covers, or the empty image.

        If the log starts above 0, the first change after the empty image is the load of the snapshot that covers the
        log's start.
        """

    def publish(self, change: Published) -> None:
        """Take a published change."""

    def take_rows(self, rows: pa.Table) -> None:
        """Take rows of the log, sorted by offset, of whole batches; called if the writer `wants_rows`.

        They have its `log_columns`, in the order of LOG_SCHEMA, and may have other columns.
        """

    def drain(self) -> pa.Table:
        """The rows that were made since the last call of this method or of `drain_later`."""
        return self.drain_later().table()

    def drain_later(self) -> LazyTable:
        """As `drain`, but another thread may make the rows later: the method that a writer of such rows overrides."""
        return LazyTable.of(self.rows.take())


def open_rows_of(writers: Iterable[TableWriter]) -> dict[str, int]:
    """The number of open rows of each history table, by name."""
    counts = {writer.description.name: writer.open_count for writer in writers}
    return {name: count for name, count in counts.items() if count is not None}
