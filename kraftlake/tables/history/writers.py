"""The writers of the history tables, as the streams over a lake's log take them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kraftlake.image import MetadataImage
from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.metadata_records import METADATA_RECORDS
from kraftlake.replay.loader.fold import loader_at, snapshot_image
from kraftlake.runtime.errors import LakeError
from kraftlake.tables.catch_up.chunk_cache import ChunkCache
from kraftlake.tables.catch_up.log_fold import oldest_snapshot
from kraftlake.tables.changes.effective_records import (
    EffectiveRecords,
    TransactionReader,
    parts_of_rows,
    refuse,
    refuse_newer,
    standing_alone,
)
from kraftlake.tables.history.columns import PARTITION_COLUMNS
from kraftlake.tables.history.entity_history import EntityHistory, Since
from kraftlake.tables.history.entity_tables import SMALL_TABLES, SmallTable
from kraftlake.tables.history.history_table import HistoryTable
from kraftlake.tables.history.open_intervals import partitions_since, things_since
from kraftlake.tables.history.partition_states import PartitionStates
from kraftlake.tables.lake_table import LakeTable, TableDescription
from kraftlake.tables.lazy_table import LazyTable
from kraftlake.tables.table_writer import TableWriter

if TYPE_CHECKING:
    from kraftlake.replay.reading.open_reader import LakeReader


RecordSource = ChunkCache[list[EffectiveRecords]]
"""Makes records of the log's rows, once for all writers that share it."""


def _records_of(rows: pa.Table) -> list[EffectiveRecords]:
    """The records in some rows, as if each took effect where it stands."""
    return [standing_alone(part) for part in parts_of_rows(rows)]


class HistoryWriter(TableWriter):
    """Takes the log's rows, and leaves the states that have ended to be appended; what is still so stays here."""

    wants_rows = True
    wants_changes = False

    def table(self, lake: Location) -> HistoryTable:
        """The table in a lake; it asks this writer for the rows that are still so."""
        return HistoryTable(self.description, lake, self)

    def first_offset(self, reader: LakeReader) -> int:
        """That after the snapshot with which a log begins that starts above 0. Raises OffsetError where none does."""
        return oldest_snapshot(reader).end_offset if reader.start_offset > 0 else 0

    @property
    def open_count(self) -> int:
        """How many states go on."""
        raise NotImplementedError

    def open_tables(self) -> Iterator[pa.Table]:
        """The states that go on, as rows of the table, a bounded number of them in each."""
        raise NotImplementedError

    def open(self, reader: LakeReader, table: LakeTable) -> None:
        """Become the state at the offset that the table covers: the image there, each thing since what the table says.

        Where it covers nothing that is the snapshot that covers the start of a log which starts above 0, each thing
        since the snapshot's own offset. Raises LakeError where table and log contradict each other.
        """
        assert isinstance(table, HistoryTable), "the table is the one of `table`"
        self._open(reader, table, table.last_offset())

    def _open(self, reader: LakeReader, table: HistoryTable, covers: int | None) -> None:
        raise NotImplementedError


class PartitionHistoryWriter(HistoryWriter):
    """Writes `partition_history/`. Raises UnknownRecordError for a record of a type that this release doesn't know."""

    description = TableDescription("partition_history", "What each partition was, from when to when", PARTITION_COLUMNS)

    def __init__(self, source: RecordSource) -> None:
        super().__init__()
        self._source = source
        self._transactions = TransactionReader()
        self._states = PartitionStates()

    @property
    def open_count(self) -> int:
        """How many partitions there are."""
        return self._states.open_count

    def open_tables(self) -> Iterator[pa.Table]:
        """What the partitions are."""
        return self._states.open_tables()

    def drain(self) -> pa.Table:
        """The states that ended since the last call."""
        return self.drain_later().table()

    def drain_later(self) -> LazyTable:
        """The same, still to be made."""
        return self._states.ended()

    def take_rows(self, rows: pa.Table) -> None:
        """Fold rows of the log."""
        for part in self._source.of(rows):
            for records in self._transactions.take(part):
                _refuse_unknown(records)
                self._states.take(records)

    def _open(self, reader: LakeReader, table: HistoryTable, covers: int | None) -> None:
        image = _image_at(reader, covers, self._transactions)
        since: tuple[Any, Any] = (image.provenance.offset, image.provenance.timestamp)
        if covers is not None:
            since = partitions_since(image.topics, table)
        self._states.begin(image.topics, *since)


def _image_at(reader: LakeReader, covers: int | None, transactions: TransactionReader) -> MetadataImage:
    """The image with which a table goes on that covers a log up to an offset; the transaction that is open is held."""
    if covers is None:
        return snapshot_image(oldest_snapshot(reader)).image if reader.start_offset > 0 else MetadataImage.EMPTY
    loader = loader_at(reader, covers)
    begins = loader.transaction_begin_offset
    image = loader.take_image()
    if begins is not None:
        transactions.go_on(reader.batches(begins, covers), begins)
    return image


def _refuse_unknown(records: EffectiveRecords) -> None:
    import numpy as np

    refuse_newer(records)
    refuse(records, np.flatnonzero(~records.are_of(METADATA_RECORDS)))


class SmallHistories:
    """The states of those small tables of a run that end at one offset: they are replayed once for all of them."""

    def __init__(self, source: RecordSource, reader: LakeReader, covers: int | None) -> None:
        self._source = source
        self._transactions = TransactionReader()
        self._writers: dict[str, SmallHistoryWriter] = {}
        self._taken_to = -1 if covers is None else covers
        self.states = EntityHistory((), _image_at(reader, covers, self._transactions))

    def add(self, writer: SmallHistoryWriter, since: Since) -> None:
        """Add a table by its writer: what there is of it is so since an offset and time."""
        self._writers[writer.of.name] = writer
        self.states.add(writer.of, since)

    def take_rows(self, rows: pa.Table) -> None:
        """Fold rows of the log for all tables, unless another's writer was given them before."""
        last = rows.column("offset")[-1].as_py()
        if last <= self._taken_to:
            return
        self._taken_to = last
        for part in self._source.of(rows):
            for records in self._transactions.take(part):
                for name, ended in self.states.take(records).items():
                    self._writers[name].rows.add_table(ended)


class SmallHistoryWriter(HistoryWriter):
    """Writes one of the other history tables, `of`."""

    def __init__(self, source: RecordSource, of: SmallTable, together: dict[int | None, SmallHistories]) -> None:
        """`together` has what the tables that end at an offset share; a writer adds what it is the first to need."""
        self.description = TableDescription(of.name, of.comment, of.columns)
        super().__init__()
        self._source = source
        self.of = of
        self._all_together = together
        self._together: SmallHistories | None = None

    @property
    def open_count(self) -> int:
        """How many there are."""
        return 0 if self._together is None else self._together.states.open_count(self.of)

    def open_tables(self) -> Iterator[pa.Table]:
        """What they are."""
        return iter([] if self._together is None else [self._together.states.open_table(self.of)])

    def _open(self, reader: LakeReader, table: HistoryTable, covers: int | None) -> None:
        if covers not in self._all_together:
            self._all_together[covers] = SmallHistories(self._source, reader, covers)
        self._together = self._all_together[covers]
        known = None if covers is None else things_since(table, self.of.key)

        def since(_: SmallTable, key: tuple[Any, ...]) -> tuple[int, int] | None:
            if known is None:
                return None
            if key not in known:
                raise LakeError(f"{table.path} lacks {key}, which its log has: delete {table.name}/ and run again")
            return known[key]

        self._together.add(self, since)

    def take_rows(self, rows: pa.Table) -> None:
        """Fold rows of the log."""
        assert self._together is not None, "the writer was opened"
        self._together.take_rows(rows)


def history_writers() -> list[TableWriter]:
    """A writer of each history table, for one run."""
    source, together = RecordSource(_records_of), dict[int | None, SmallHistories]()
    small = (SmallHistoryWriter(source, table, together) for table in SMALL_TABLES)
    return [PartitionHistoryWriter(source), *small]
