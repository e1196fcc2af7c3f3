"""The rows of a lake's table `snapshots`: those of the log's table, with the snapshot's end offset and epoch before."""

from __future__ import annotations

import pyarrow as pa

from kraftlake.metadata_log.delta_table.data_files import is_ascending
from kraftlake.records.crc32c import crc32c
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.runtime.errors import LakeError

END_OFFSET = "snapshot_end_offset"
EPOCH = "snapshot_epoch"
SNAPSHOT_SCHEMA = pa.schema(
    [pa.field(END_OFFSET, pa.int64(), nullable=False), pa.field(EPOCH, pa.int32(), nullable=False), *LOG_SCHEMA]
)


def snapshot_name(end_offset: int, epoch: int) -> str:
    """The name of Kafka's file for a snapshot."""
    return f"{end_offset:020d}-{epoch:010d}.checkpoint"


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
