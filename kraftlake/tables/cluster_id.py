"""The column `cluster_id`, the last one of every derived table; writers of rows leave it out.

Tables of releases before the column get it from the next run that writes them.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from kraftlake.metadata_log.delta_table.delta_log import NotADeltaTableError, read_table
from kraftlake.metadata_log.delta_table.schema import holds_columns
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.log_facts import CLUSTER_ID, LOG_TABLE
from kraftlake.metadata_log.storage.location import Location
from kraftlake.tables.encoded_schema import encoded

CLUSTER_ID_FIELD: Final = pa.field("cluster_id", pa.string())
CLUSTER_ID_COLUMN: Final = (
    CLUSTER_ID_FIELD,
    "the id of the cluster, the same in all rows; null where the lake does not know it",
)


def cluster_id_of(lake: Location) -> str | None:
    """The id of the cluster whose log a lake holds; None if the lake does not know it."""
    try:
        return read_table(lake / LOG_TABLE).metadata.configuration.get(CLUSTER_ID)
    except NotADeltaTableError:
        return None


def has_cluster_id(state: TableState) -> bool:
    """Whether a table has the column."""
    return holds_columns(state.metadata.schema_string, pa.schema([CLUSTER_ID_FIELD]), str(state.path))


def with_cluster_id(rows: pa.Table, cluster_id: str | None) -> pa.Table:
    """Rows with the column added as the last: a dictionary (int32 indices) if other strings are dictionaries."""
    field = CLUSTER_ID_FIELD
    if any(pa.types.is_dictionary(column.type) for column in rows.schema):
        field = encoded(pa.schema([field])).field(0)
    return rows.append_column(field, cluster_ids(cluster_id, rows.num_rows, field.type))


def cluster_ids(cluster_id: str | None, count: int, kind: pa.DataType) -> pa.Array:
    """`count` values of the column: strings, or a dictionary of them."""
    if cluster_id is None:
        return pa.nulls(count, kind)
    if not pa.types.is_dictionary(kind):
        return pa.repeat(cluster_id, count)
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count), pa.repeat(cluster_id, 1))
