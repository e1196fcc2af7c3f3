"""What was so at an offset, from a history table: no replay, and only the parts of its files that can hold it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.maintenance.derived_tables import app_id_of
from kraftlake.metadata_log.storage.location import Location, lake_location
from kraftlake.runtime.arguments import text, whole
from kraftlake.runtime.errors import LakeError, OffsetError, UsageError
from kraftlake.tables.derived_tables import columns_of, derived_table
from kraftlake.tables.encoded_schema import encoded
from kraftlake.tables.history.columns import PARTITION_SCHEMA
from kraftlake.tables.history.rows_at import FROM, TO, rows_at

PARTITIONS: Final = "partition_history"


def history_schemas() -> dict[str, pa.Schema]:
    """The columns of each history table, by its name."""
    from kraftlake.tables.history.entity_tables import SMALL_TABLES  # imports images, which partitions do without

    return {PARTITIONS: PARTITION_SCHEMA, **{table.name: table.schema for table in SMALL_TABLES}}


def state_at(
    lake: str | Location,
    offset: int,
    table: str = PARTITIONS,
    *,
    columns: Sequence[str] | None = None,
    dictionaries: bool = False,
) -> pa.Table:
    """The rows of a history table that were so at an offset, without Spark; some of its columns or all, in no order.

    Files and row groups that can't hold one are passed over. With `dictionaries` strings are what the files have, int32
    indices of dictionaries, also in lists: less time and memory, and categories in pandas.

    Raises UsageError for what is no column, LakeError where there is no such table, OffsetError for an offset that it
    doesn't cover yet, or that lies before its beginning, CorruptDataError for a file that can't be read.
    """
    schema = columns_of(table, schema_of(table), columns)
    state = covering(lake, table, offset)
    schema = encoded(schema) if dictionaries else schema
    parts = [part for path in holding(state, offset) for part in rows_at(path, offset=offset, schema=schema)]
    return pa.concat_tables(parts) if parts else schema.empty_table()


def schema_of(table: str) -> pa.Schema:
    """The columns of a history table; raises UsageError for what is none."""
    if text(table, "the name of a table") == PARTITIONS:
        return PARTITION_SCHEMA
    schemas = history_schemas()
    if table not in schemas:
        raise UsageError(f"{table!r} is no history table: it is one of {', '.join(schemas)}")
    return schemas[table]


def covering(lake: str | Location, table: str, offset: int) -> TableState:
    """The state of a history table that covers an offset. Raises as `state_at`."""
    offset = whole(offset, "an offset (of a time, `kraftlake.open(lake).offset_at(time)` gives one)")
    place = lake_location(lake)
    state = derived_table(place, table)
    covers = state.transactions.get(app_id_of(table))
    if covers is None or not 0 <= offset <= covers:
        known = "nothing yet" if covers is None else f"offsets up to {covers}"
        raise OffsetError(f"{table}/ of {place} covers {known}, not {offset}: run `kraftlake tables {place}`.")
    if not any(_begins(file, offset) for file in state.files.values()):  # nothing was so, or nothing is known of then
        begin = _begin(place)
        if offset < begin:
            raise OffsetError(f"{table}/ of {place} begins at offset {begin}: it doesn't know what was so at {offset}.")
    return state


def _begin(place: Location) -> int:
    """The first offset that the histories of a lake cover.

    That is 0 where the log starts there. Else it is that of the first state which any of the tables has: some feature
    has a level from the first metadata record, or the first snapshot, on.
    """
    from kraftlake.metadata_log import MetadataLog  # not needed where states are found

    start = MetadataLog.open(place).start_offset
    if start == 0:
        return 0
    firsts: list[int] = []
    for table in history_schemas():
        with suppress(LakeError):
            statistics = (file.statistics for file in derived_table(place, table).files.values())
            firsts += [known.min_values[FROM] for known in statistics if known is not None and FROM in known.min_values]
    return min(firsts, default=start)


def _begins(file: AddFile, offset: int) -> bool:
    """Whether states in a file may begin at the offset or before it."""
    statistics = file.statistics
    return statistics is None or statistics.min_values.get(FROM, offset) <= offset


def holding(state: TableState, offset: int) -> list[Location]:
    """The files of which rows may have been so at the offset."""
    return [state.path / file.path for file in state.files.values() if _may_hold(file, offset)]


def _may_hold(file: AddFile, offset: int) -> bool:
    statistics = file.statistics
    if statistics is None:
        return True
    ends = statistics.max_values.get(TO, offset + 1)
    return _begins(file, offset) and (ends > offset or statistics.null_counts.get(TO) != 0)
