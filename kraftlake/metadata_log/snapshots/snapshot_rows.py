"""The rows of a lake's table `snapshots`, and its files, each written by one process.

The columns are those of the log's table, preceded by the end offset and epoch of the row's snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs
import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.delta_table.commit import ZSTD_SUFFIX
from kraftlake.metadata_log.delta_table.data_files import (
    encode_parquet,
    file_statistics,
    integer_bounds,
    read_row_groups,
    write_data_file,
)
from kraftlake.metadata_log.delta_table.scan import is_ascending
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.crc32c import crc32c
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.runtime.arrow import pc, pq
from kraftlake.runtime.errors import LakeError

_ZEROS = bytes(1 << 20)

END_OFFSET = "snapshot_end_offset"
EPOCH = "snapshot_epoch"
SNAPSHOT_SCHEMA = pa.schema(
    [pa.field(END_OFFSET, pa.int64(), nullable=False), pa.field(EPOCH, pa.int32(), nullable=False), *LOG_SCHEMA]
)


def snapshot_name(end_offset: int, epoch: int) -> str:
    """The name of Kafka's file for a snapshot."""
    return f"{end_offset:020d}-{epoch:010d}.checkpoint"


STATISTICS_COLUMNS = (END_OFFSET, EPOCH, "offset", "epoch", "timestamp", "batch", "type")
"""The columns whose bounds every file of the table states."""


@attrs.frozen(kw_only=True)
class SnapshotFacts:
    """The facts that a lake stores about a snapshot beside its records: the state after all offsets below `end_offset`.

    The last of these offsets has `epoch`, and `last_contained_log_timestamp` is its append time in epoch ms.
    `size_in_bytes` is the size of Kafka's file, 0 where there never was one.
    """

    end_offset: int
    epoch: int
    last_contained_log_timestamp: int
    size_in_bytes: int = 0

    @property
    def name(self) -> str:
        """The name of Kafka's file."""
        return snapshot_name(self.end_offset, self.epoch)


def rows_in_group(
    parquet: pq.ParquetFile, path: Location, group: int, end_offset: int, schema: pa.Schema = LOG_SCHEMA
) -> pa.Table:
    """Return the rows of one snapshot in a row group of a data file, as `schema`; raises CorruptDataError."""
    rows = read_row_groups(parquet, path, [group], pa.schema([SNAPSHOT_SCHEMA.field(END_OFFSET), *schema]))
    return rows.filter(pc.equal(rows.column(END_OFFSET), end_offset)).select(schema.names)


def groups_with(parquet: pq.ParquetFile, end_offset: int) -> Iterator[tuple[int, bool]]:
    """Yield the row groups of a data file that may hold rows of a snapshot, and whether each surely holds no others."""
    for group, ends in enumerate(integer_bounds(parquet, END_OFFSET)):
        if ends is None or ends[0] <= end_offset <= ends[1]:
            yield group, ends == (end_offset, end_offset)


def log_rows(rows: pa.Table) -> pa.Table:
    """Return rows in LOG_SCHEMA, sorted by offset; raises LakeError for missing columns."""
    try:
        rows = rows.select(LOG_SCHEMA.names).cast(LOG_SCHEMA).combine_chunks()
    except (pa.ArrowException, KeyError, ValueError) as fault:
        raise LakeError("The rows of the snapshot haven't the columns of a metadata log.") from fault
    return rows if is_ascending(rows.column("offset")) else rows.sort_by("offset")


def payload_checksum(rows: pa.Table) -> tuple[int, int]:
    """Return the CRC32C of the payloads, concatenated in row order, and their total length in bytes."""
    total, size = 0, 0
    for chunk in rows.column("payload").chunks:
        # One buffer holds the values back to back: no object is made of any of them.
        _, offsets, values = chunk.buffers()
        if len(chunk) and values is not None:
            ends = memoryview(offsets).cast("b").cast("i")
            begin, end = ends[chunk.offset], ends[chunk.offset + len(chunk)]
            total, size = crc32c(values.slice(begin, end - begin), total), size + end - begin
    return total, size


def joined_checksum(parts: Iterable[tuple[int, int]]) -> int:
    """Return the CRC32C of the concatenation of byte strings, from the CRC32C and the length of each."""
    total = 0
    for checksum, length in parts:
        total = _after_zeros(total, length) ^ _after_zeros(0, length) ^ checksum
    return total


def _after_zeros(checksum: int, length: int) -> int:
    """Continue the CRC32C `checksum` over `length` zero bytes."""
    for begin in range(0, length, len(_ZEROS)):
        checksum = crc32c(_ZEROS[: length - begin], checksum)
    return checksum


@attrs.frozen(kw_only=True)
class SnapshotPart:
    """A written file that no commit has added yet; can be sent to another process.

    `checksum` is the CRC32C of its concatenated values, `payload_bytes` their length.
    """

    file: AddFile
    record_count: int
    payload_bytes: int
    checksum: int


def write_part(disk: Disk, table: Location, rows: pa.Table, end_offset: int, epoch: int) -> SnapshotPart:
    """Write rows of a snapshot, in the form of `log_rows`, to a file of `table`, durably. Raises LakeError."""
    columns = [
        pa.repeat(pa.scalar(end_offset, pa.int64()), rows.num_rows),
        pa.repeat(pa.scalar(epoch, pa.int32()), rows.num_rows),
        *rows.columns,
    ]
    identified = pa.table(columns, schema=SNAPSHOT_SCHEMA)
    add = write_data_file(
        disk,
        table,
        snapshot_name(end_offset, epoch).removesuffix(".checkpoint"),
        encode_parquet(identified),
        file_statistics(identified, STATISTICS_COLUMNS).to_json(),
        suffix=ZSTD_SUFFIX,
    )
    checksum, payload_bytes = payload_checksum(rows)
    return SnapshotPart(file=add, record_count=rows.num_rows, payload_bytes=payload_bytes, checksum=checksum)
