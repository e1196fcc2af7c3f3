"""A data file of a history table that grows by tables of rows; a thread encodes and compresses them.

The caller makes the next rows meanwhile, so that two cores work on a file.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.delta_table.row_files import (
    GrowingStatistics,
    bounded_columns,
    dictionary_paths,
    write_encoded,
)
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.metadata_log.storage.location import Location
from kraftlake.tables.history.history_columns import ROW_GROUP_ROWS, VALIDITY
from kraftlake.tables.lazy_table import LazyTable
from kraftlake.tables.partition_columns import INTS

_AHEAD: Final = 2
"""The number of tables that may wait for the thread."""

_VALIDITY: Final = [field.name for field, _ in VALIDITY]


@attrs.frozen(eq=False)
class EncodedFile:
    """An encoded file in memory: on the disk, a vacuum deletes files that wait too long for their commit."""

    data: memoryview = attrs.field(repr=False)
    stats: str

    def write(self, disk: Disk, table: Location, last_offset: int) -> AddFile:
        """Write the file durably; a commit has to add it to the table at once. Raises LakeError if the disk refuses."""
        return write_encoded(disk, table, self.data, self.stats, last_offset=last_offset)


class ParquetStream:
    """A file of rows in `schema`, which has strings as dictionaries. Each table begins a new row group.

    In the file, strings are dictionaries, and the ends of intervals are delta encoded; other numbers are plain, which
    takes a third less time than a dictionary and is as small after zstd. The statistics of a row group show which of
    its list columns hold only empty lists, as most do: readers skip these.
    """

    def __init__(self, schema: pa.Schema, statistics_columns: tuple[str, ...]) -> None:
        self._schema = schema
        self._statistics = GrowingStatistics(statistics_columns)
        self._sink = pa.BufferOutputStream()
        lists = [f"{field.name}.list.element" for field in schema if field.type == INTS]
        self._writer = pq.ParquetWriter(
            self._sink,
            schema,
            compression="zstd",
            use_dictionary=dictionary_paths(schema),
            column_encoding=dict.fromkeys(_VALIDITY, "DELTA_BINARY_PACKED"),
            write_statistics=[*bounded_columns(schema), *lists],
            write_batch_size=ROW_GROUP_ROWS,  # for each write batch pyarrow finds the distinct strings anew
            store_schema=False,
            write_page_checksum=True,
        )
        self._thread = ThreadPoolExecutor(1, "kraftlake-history-file")
        self._waiting: deque[Future[None]] = deque()
        self.rows = 0

    def add(self, rows: LazyTable) -> None:
        """Add rows, in the file's schema or with plain strings; the thread makes them."""
        if not rows.num_rows:
            return
        while len(self._waiting) >= _AHEAD:
            self._waiting.popleft().result()
        self._waiting.append(self._thread.submit(self._write, rows))
        self.rows += rows.num_rows

    def _write(self, rows: LazyTable) -> None:
        for made in rows.tables():
            table = made if made.schema.equals(self._schema) else made.cast(self._schema)
            self._writer.write_table(table, ROW_GROUP_ROWS)
            self._statistics.add(table)

    def done(self) -> Future[EncodedFile]:
        """The file of all rows, once the thread has encoded them. At least one row was added."""
        assert self.rows, "a file has rows"
        file = self._thread.submit(self._finished)
        self._thread.shutdown(wait=False)
        return file

    def _finished(self) -> EncodedFile:
        while self._waiting:
            self._waiting.popleft().result()  # raises what writing the rows raised
        self._writer.close()
        return EncodedFile(memoryview(self._sink.getvalue()), self._statistics.of_all().to_json())
