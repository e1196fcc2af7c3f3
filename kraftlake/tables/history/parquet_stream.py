"""A data file of a history table that grows by tables of rows, which a thread of its own encodes and compresses.

Whoever makes the rows goes on meanwhile: on two cores a file takes as long as the longer of the two.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.delta_table.row_files import bounded_columns, dictionary_paths, write_encoded
from kraftlake.metadata_log.delta_table.statistics import GrowingStatistics
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.metadata_log.storage.location import Location
from kraftlake.tables.history.columns import ROW_GROUP_ROWS, VALIDITY
from kraftlake.tables.lazy_table import LazyTable
from kraftlake.tables.partition_columns import INTS

_AHEAD: Final = 2
"""So many tables may wait for the thread; more would be memory for nothing."""

_VALIDITY: Final = [field.name for field, _ in VALIDITY]


@attrs.frozen(eq=False)
class EncodedFile:
    """A file that is ready but nowhere yet: a vacuum takes files that wait for their commit for too long."""

    data: memoryview = attrs.field(repr=False)
    stats: str

    def write(self, disk: Disk, table: Location, last_offset: int) -> AddFile:
        """Write it, durably; it is no part of the table before a commit adds it, which is to follow at once.

        Raises LakeError when the disk refuses.
        """
        return write_encoded(disk, table, self.data, self.stats, last_offset=last_offset)


class ParquetStream:
    """A file of rows in `schema`, which has strings as dictionaries. Each table begins with a row group of its own.

    Strings are dictionaries in the file, the ends of intervals differences of their neighbours; other numbers are
    plain, which takes a third less time than looking them up and zstd makes as small. The statistics of a row group say
    which of its lists are all empty, as most are: nobody needs to read them.
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
            write_batch_size=ROW_GROUP_ROWS,  # pyarrow looks up which strings occur once for each of them
            store_schema=False,
            write_page_checksum=True,
        )
        self._thread = ThreadPoolExecutor(1, "kraftlake-history-file")
        self._waiting: deque[Future[None]] = deque()
        self.rows = 0

    def add(self, rows: LazyTable) -> None:
        """Add rows, of the file's schema or with plain strings; the thread has them made."""
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
        """The file of all rows, at least one, when the thread is through with them; nothing may be added any more."""
        assert self.rows, "an empty file is no file"
        file = self._thread.submit(self._finished)
        self._thread.shutdown(wait=False)
        return file

    def _finished(self) -> EncodedFile:
        while self._waiting:
            self._waiting.popleft().result()  # raises what the writing of rows has raised
        self._writer.close()
        return EncodedFile(memoryview(self._sink.getvalue()), self._statistics.of_all().to_json())
