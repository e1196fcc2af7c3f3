"""Small files of a table that grows by offset made into large ones, beside its writer: rows keep their order.

As `compaction` does it of the log itself, whose files hold every offset once: here one offset may have many rows, or
none. The commit says that no data changed and has no word on offsets, so that neither readers nor streams nor the
table's writer see it.
"""

from __future__ import annotations

import attrs
import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.delta_table.data_files import OffsetSpan
from kraftlake.metadata_log.delta_table.row_files import write_row_file
from kraftlake.metadata_log.delta_table.table_state import TableState, read_table
from kraftlake.metadata_log.maintenance.compaction import (
    Compaction,
    compact_groups,
    groups_to_compact,
    rows_of,
    youngest,
)
from kraftlake.metadata_log.maintenance.policy import UpkeepPolicy
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.metadata_log.storage.location import Location, open_parquet_file
from kraftlake.runtime.errors import CorruptDataError

_STATISTICS_COLUMNS = "delta.dataSkippingStatsColumns"


def compact_rows(table: Location, disk: Disk, policy: UpkeepPolicy) -> Compaction:
    """Compact what the policy calls small in a derived table, a group of files a commit.

    Raises CorruptDataError for a file that doesn't hold what the table says of it, LakeError when the disk refuses. A
    crash leaves an orphan file at most.
    """
    state = read_table(table)
    groups = groups_to_compact(state.files.overlapping(0, 2**63 - 1), policy, dense=False)
    return compact_groups(disk, state, groups, _compacted)


def _compacted(disk: Disk, state: TableState, group: list[OffsetSpan]) -> AddFile | None:
    """One file of a group; None when some of the files are gone."""
    tables = []
    for span in group:
        path = state.path / span.file.path
        try:
            tables.append(open_parquet_file(path).read())
        except FileNotFoundError:
            return None
        except (pa.ArrowException, OSError, ValueError) as fault:
            raise CorruptDataError(_damaged(path)) from fault
    try:
        # A job may have added columns meanwhile: files from before that lack them.
        rows = pa.concat_tables(tables, promote_options="default").combine_chunks()
    except pa.ArrowException as fault:
        raise CorruptDataError(_damaged(state.path)) from fault
    high = group[-1].high
    if rows.num_rows != sum(map(rows_of, group)) or high is None:
        raise CorruptDataError(_damaged(state.path))
    wanted = state.metadata.configuration.get(_STATISTICS_COLUMNS, "offset").split(",")
    add = write_row_file(
        disk,
        state.path,
        rows,
        last_offset=high,
        statistics_columns=[name for name in wanted if name in rows.schema.names],
        modification_time=youngest(group),
        check=True,
    )
    return attrs.evolve(add, data_change=False)


def _damaged(path: Location) -> str:
    return f"{path} is damaged, or doesn't hold the rows that the table says: delete the table, its job makes it anew."
