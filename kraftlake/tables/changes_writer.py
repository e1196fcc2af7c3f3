"""A writer of a table whose rows are made of metadata deltas: many at once, none of them an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from kraftlake.replay.log.delta_chunk import DeltaChunk, LogBegin
from kraftlake.tables.shared_deltas import RunDeltas, SharedDeltas
from kraftlake.tables.table_writer import TableWriter

if TYPE_CHECKING:
    from kraftlake.replay.reading.open_reader import LakeReader
    from kraftlake.tables.lake_table import LakeTable


class ChangesWriter(TableWriter):
    """Takes the log's rows as chunks of metadata deltas, which it shares with the other tables of a run."""

    wants_rows = True
    wants_changes = False
    wants_images = True
    of_topics: ClassVar[bool] = False
    """Whether shards make rows of topics and partitions for it."""

    def __init__(self, *, bulk: bool = True) -> None:
        """`bulk` is that of PartitionStore, for a writer that shares its deltas with no other."""
        super().__init__()
        self._deltas: SharedDeltas
        self.share(RunDeltas(bulk=bulk))
        self.begin_deltas(LogBegin())

    def share(self, run: RunDeltas) -> None:
        """Take the deltas of the log from those of a run."""
        self._run = run
        self._deltas = run.after(None)

    def open(self, reader: LakeReader, table: LakeTable) -> None:
        """Begin after the offset that the table covers.

        Where it covers nothing and the log starts above 0, that is the snapshot that covers its start, whose load is
        the first metadata delta.
        """
        covers = table.covered
        self._deltas = self._run.after(covers)
        self.begin_deltas(self._deltas.open(reader, covers))

    def take_rows(self, rows: pa.Table) -> None:
        """Make the rows of the deltas that end in rows of the log.

        Raises ReplayError, UnknownRecordError or CorruptDataError, naming the offset, for a record that contradicts
        what is there, or can't be replayed.
        """
        for chunk in self._deltas.take(rows):
            self.take_deltas(chunk)

    def begin_deltas(self, begin: LogBegin) -> None:
        """Begin where the table ends; the rows of a load are added. Called for an empty log first."""

    def take_deltas(self, chunk: DeltaChunk) -> None:
        """Add the rows of deltas."""
        raise NotImplementedError
