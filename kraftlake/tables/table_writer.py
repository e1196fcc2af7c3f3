"""The protocol for a derived table: subclass `TableWriter` to add a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import pyarrow as pa

from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.rows import BATCH_COLUMNS
from kraftlake.tables.lake_table import LakeTable, TableDescription
from kraftlake.tables.lazy_table import LazyTable
from kraftlake.tables.row_buffer import RowBuffer


class TableWriter:
    """Makes the rows of the table `description`; each run has a new writer.

    A writer gets everything above the last offset that its table covers, once and in order: a ChangesWriter gets
    metadata deltas, any other writer the rows of the log. Its rows depend on the log alone: not on micro-batches, nor
    on where a run began.

    A writer does no I/O and has no clock: the run appends the rows of `drain_later`, and commits the offset with them.
    """

    description: TableDescription
    encodes = False
    """Whether the strings of its rows are dictionaries: faster for tables of many rows."""
    log_columns: ClassVar[tuple[str, ...]] = BATCH_COLUMNS
    """The columns of LOG_SCHEMA that the writer needs in rows, BATCH_COLUMNS and others."""

    def __init__(self) -> None:
        self.rows = RowBuffer(self.description.encoded_schema if self.encodes else self.description.schema)

    @property
    def open_count(self) -> int | None:
        """The number of open rows of a history table, None for other tables."""
        return None

    def table(self, lake: Location) -> LakeTable:
        """The table in a lake that the run writes."""
        return LakeTable(self.description, lake)

    def take_rows(self, rows: pa.Table) -> None:
        """Add rows of the log, sorted by offset, of whole batches.

        The rows have the writer's `log_columns`, in the order of LOG_SCHEMA, and may have other columns.
        """
        raise NotImplementedError

    def drain(self) -> pa.Table:
        """The rows that were made since the last call of this method or of `drain_later`."""
        return self.drain_later().table()

    def drain_later(self) -> LazyTable:
        """The same as `drain`, but another thread may make the rows later: writers of such rows override it."""
        return LazyTable.of(self.rows.take())


def open_rows_of(writers: Iterable[TableWriter]) -> dict[str, int]:
    """The number of open rows of each history table, by name."""
    counts = {writer.description.name: writer.open_count for writer in writers}
    return {name: count for name, count in counts.items() if count is not None}
