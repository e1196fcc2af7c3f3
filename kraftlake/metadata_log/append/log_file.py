"""A data file of the log before it is written: its rows encoded, and what its commit says about them."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import pyarrow as pa

from kraftlake.metadata_log.append.one_block_file import encode_one_block, fits_one_block
from kraftlake.metadata_log.chain import FIRST_HASH, hash_of_columns, hash_of_rows
from kraftlake.metadata_log.delta_table.data_files import encode_parquet
from kraftlake.metadata_log.delta_table.statistics import column_statistics, file_statistics
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import columns_to_rows, to_columns

STATISTICS_COLUMNS = ("offset", "epoch", "timestamp", "batch", "type")
"""The columns whose bounds every file of the log states."""


@attrs.frozen(kw_only=True)
class LogFile:
    """Rows of the log as a Parquet file, at least one: the first one's offset, the last one's epoch, how many.

    `chain` is the hash of the log's chain after them, which goes on from the one before them. `statistics` is the
    `stats` string of the file's add.
    """

    first_offset: int
    last_epoch: int
    record_count: int
    chain: int
    data: bytes | memoryview = attrs.field(repr=False)
    statistics: str = attrs.field(repr=False)

    @classmethod
    def of_rows(cls, rows: pa.Table, chain_before: int = FIRST_HASH) -> LogFile:
        """A file of rows in LOG_SCHEMA, sorted by offset."""
        return cls(
            first_offset=rows.column("offset")[0].as_py(),
            last_epoch=rows.column("epoch")[-1].as_py(),
            record_count=rows.num_rows,
            chain=hash_of_rows(rows, chain_before),
            data=encode_parquet(rows),
            statistics=file_statistics(rows, STATISTICS_COLUMNS).to_json(),
        )

    @classmethod
    def of_batches(cls, batches: Iterable[RecordBatch], chain_before: int = FIRST_HASH) -> LogFile:
        """A file of the rows of batches in the order of their offsets."""
        columns = to_columns(batches)
        if not fits_one_block(columns):
            return cls.of_rows(columns_to_rows(columns), chain_before)
        return cls(
            first_offset=columns["offset"][0],
            last_epoch=columns["epoch"][-1],
            record_count=len(columns["offset"]),
            chain=hash_of_columns(columns, chain_before),
            data=encode_one_block(columns),
            statistics=column_statistics(columns, STATISTICS_COLUMNS).to_json(),
        )
