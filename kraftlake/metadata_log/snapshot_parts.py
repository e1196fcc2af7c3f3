"""The files that a snapshot of a lake consists of: written by whoever has the rows, in as many parts as there are."""

from __future__ import annotations

import uuid

import attrs
import pyarrow as pa

from kraftlake.metadata_log.commit import write_data_file
from kraftlake.metadata_log.data_files import encode_parquet, is_ascending
from kraftlake.metadata_log.delta_actions import AddFile
from kraftlake.metadata_log.disk import Disk
from kraftlake.metadata_log.location import Location
from kraftlake.metadata_log.statistics import file_statistics
from kraftlake.records.crc32c import crc32c
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.runtime.errors import LakeError

END_OFFSET = "snapshot_end_offset"
EPOCH = "snapshot_epoch"
SNAPSHOT_SCHEMA = pa.schema(
    [pa.field(END_OFFSET, pa.int64(), nullable=False), pa.field(EPOCH, pa.int32(), nullable=False), *LOG_SCHEMA]
)
STATISTICS_COLUMNS = (END_OFFSET, EPOCH, "offset", "epoch", "timestamp", "batch", "type")


@attrs.frozen(kw_only=True)
class SnapshotPart:
    """A file that is written, and no part of the table yet; it can be sent to another process.

    `checksum` is the CRC32C of the `payload_bytes` bytes of its values, one behind the other.
    """

    file: AddFile
    record_count: int
    payload_bytes: int
    checksum: int


def snapshot_name(end_offset: int, epoch: int) -> str:
    """The name of Kafka's file for a snapshot."""
    return f"{end_offset:020d}-{epoch:010d}.checkpoint"


def write_part(disk: Disk, table: Location, rows: pa.Table, end_offset: int, epoch: int) -> SnapshotPart:
    """Write rows of a snapshot, as `log_rows` gives them, to a file of `table`, durably. Raises LakeError."""
    columns = [
        pa.repeat(pa.scalar(end_offset, pa.int64()), rows.num_rows),
        pa.repeat(pa.scalar(epoch, pa.int32()), rows.num_rows),
        *rows.columns,
    ]
    identified = pa.table(columns, schema=SNAPSHOT_SCHEMA)
    data = encode_parquet(identified)
    began = disk.clock.milliseconds()
    path = f"{snapshot_name(end_offset, epoch).removesuffix('.checkpoint')}-{uuid.uuid4()}.zstd.parquet"
    write_data_file(disk, table, path, data)
    checksum, payload_bytes = payload_checksum(rows)
    file = AddFile(
        path=path,
        size=data.nbytes,
        modification_time=began,
        stats=file_statistics(identified, STATISTICS_COLUMNS).to_json(),
    )
    return SnapshotPart(file=file, record_count=rows.num_rows, payload_bytes=payload_bytes, checksum=checksum)


def log_rows(rows: pa.Table) -> pa.Table:
    """Rows in LOG_SCHEMA, sorted by offset; raises LakeError where they lack its columns."""
    try:
        rows = rows.select(LOG_SCHEMA.names).cast(LOG_SCHEMA).combine_chunks()
    except (pa.ArrowException, KeyError, ValueError) as fault:
        raise LakeError("The rows of the snapshot haven't the columns of a metadata log.") from fault
    return rows if is_ascending(rows.column("offset")) else rows.sort_by("offset")


def payload_checksum(rows: pa.Table) -> tuple[int, int]:
    """The CRC32C of the payloads one after the other, as the rows are, and how many bytes they have."""
    total, size = 0, 0
    for chunk in rows.column("payload").chunks:
        # One buffer holds the values back to back: no object is made of any of them.
        _, offsets, values = chunk.buffers()
        if len(chunk) and values is not None:
            ends = memoryview(offsets).cast("b").cast("i")
            part = memoryview(values)[ends[chunk.offset] : ends[chunk.offset + len(chunk)]]
            total, size = crc32c(part, total), size + len(part)
    return total, size
