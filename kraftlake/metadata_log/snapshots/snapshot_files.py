"""Writing the data files of a snapshot of a lake, in one part or in several by several processes."""

from __future__ import annotations

import attrs
import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.delta_table.commit import ZSTD_SUFFIX, write_data_file
from kraftlake.metadata_log.delta_table.data_files import encode_parquet
from kraftlake.metadata_log.delta_table.statistics import file_statistics
from kraftlake.metadata_log.snapshots.snapshot_rows import (
    END_OFFSET,
    EPOCH,
    SNAPSHOT_SCHEMA,
    payload_checksum,
    snapshot_name,
)
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.metadata_log.storage.location import Location

STATISTICS_COLUMNS = (END_OFFSET, EPOCH, "offset", "epoch", "timestamp", "batch", "type")


@attrs.frozen(kw_only=True)
class SnapshotPart:
    """A written file that no commit has added yet; it can be sent to another process.

    `checksum` is the CRC32C of its concatenated values, `payload_bytes` their length.
    """

    file: AddFile
    record_count: int
    payload_bytes: int
    checksum: int


def write_part(disk: Disk, table: Location, rows: pa.Table, end_offset: int, epoch: int) -> SnapshotPart:
    """Write rows of a snapshot, as `log_rows` gives them, to a file of `table`, durably. Raises LakeError."""
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
