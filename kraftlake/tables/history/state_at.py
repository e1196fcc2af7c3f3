"""The rows of a history table that were valid at an offset: without a replay, from files that may have them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.delta_table.schema import differing_column
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.maintenance.derived_tables import app_id_of, made_anew
from kraftlake.metadata_log.storage.location import Location, lake_location
from kraftlake.runtime.arguments import text
from kraftlake.runtime.errors import LakeError, OffsetError, UsageError
from kraftlake.runtime.moments import LogTime, Moment, moment_of
from kraftlake.tables.cluster_id import CLUSTER_ID_FIELD, cluster_id_of, cluster_ids, has_cluster_id
from kraftlake.tables.derived_tables import columns_of, derived_table, first_offset_of
from kraftlake.tables.encoded_schema import encoded
from kraftlake.tables.history.history_columns import PARTITION_HISTORY_SCHEMA
from kraftlake.tables.history.rows_at import FROM, TO, last_change, rows_at

PARTITIONS: Final = "partition_history"


def history_schemas() -> dict[str, pa.Schema]:
    """The columns of each history table, by its name."""
    from kraftlake.tables.history.entity_tables import SMALL_TABLES  # imports images, which partitions don't need

    schemas = {PARTITIONS: PARTITION_HISTORY_SCHEMA, **{table.name: table.schema for table in SMALL_TABLES}}
    return {name: schema.append(CLUSTER_ID_FIELD) for name, schema in schemas.items()}


def state_at(
    lake: str | Location,
    when: Moment | None = None,
    table: str = PARTITIONS,
    *,
    at_time: Moment | None = None,
    columns: Sequence[str] | None = None,
    dictionaries: bool = False,
) -> pa.Table:
    """The state of a lake's cluster at a moment: the rows of a history table that were valid then, in no order.

    `when` is an offset (an int) or a time (text or a datetime, in UTC unless it names a zone; `now-15m` counts from the
    end of the log): the state after the last offset whose batch time is at or before it. `at_time` is a time, too, and
    an int there is milliseconds since 1970. `table` is `partition_history`, `topic_history`, `broker_history` or
    another one of the lake (docs/reference/tables.md lists their columns); `columns` chooses some of its columns. With
    `dictionaries` strings are int32 indices of dictionaries, also in lists: less time and memory, and categories in
    pandas.

    Needs no replay and no Spark, and does not read files and row groups without a row of that moment. Raises UsageError
    for an unknown column, LakeError if there is no such table, OffsetError for a moment that the table doesn't cover
    yet, or that is before its beginning, CorruptDataError for a file that can't be read.
    """
    schema = columns_of(table, schema_of(table), columns)
    state, offset = covering(lake, table, moment_of(when, at_time))
    _check_shape(state, schema)
    schema = encoded(schema) if dictionaries else schema
    found = [table for path in holding(state, offset) for table in rows_at(path, offset=offset, schema=schema)]
    rows = pa.concat_tables(found) if found else schema.empty_table()
    at = schema.get_field_index(CLUSTER_ID_FIELD.name)
    if at < 0 or has_cluster_id(state):
        return rows
    field = schema.field(at)
    return rows.set_column(at, field, cluster_ids(cluster_id_of(state.path.parent), rows.num_rows, field.type))


def _check_shape(state: TableState, schema: pa.Schema) -> None:
    """Raises LakeError, with the command that makes the table anew, where it lacks a wanted column."""
    wanted = pa.schema([field for field in schema if field.name != CLUSTER_ID_FIELD.name])
    lacks = differing_column(state.metadata.schema_string, wanted, str(state.path))
    if lacks is not None:
        raise LakeError(f"{state.path} has no column {lacks}: {made_anew(state.path)}")


def schema_of(table: str) -> pa.Schema:
    """The columns of a history table; raises UsageError for another name."""
    if text(table, "the name of a table") == PARTITIONS:
        return PARTITION_HISTORY_SCHEMA.append(CLUSTER_ID_FIELD)
    schemas = history_schemas()
    if table not in schemas:
        raise UsageError(f"{table!r} is no history table: it is one of {', '.join(schemas)}")
    return schemas[table]


def covering(lake: str | Location, table: str, moment: int | datetime | LogTime | None) -> tuple[TableState, int]:
    """The state of a history table that covers a moment, and the moment's offset. Raises as `state_at`."""
    if moment is None:
        raise UsageError("A state is that of an offset or a time: give either.")
    place = lake_location(lake)
    state = derived_table(place, table)
    offset = moment if isinstance(moment, int) else _offset_at(place, state, moment)
    covers = state.transactions.get(app_id_of(table))
    if covers is None or not 0 <= offset <= covers:
        known = "nothing yet" if covers is None else f"offsets up to {covers}"
        raise OffsetError(f"{table}/ of {place} covers {known}, not {offset}: run `kraftlake tables {place}`.")
    if offset < (first := first_offset_of(state)):
        raise OffsetError(f"{table}/ of {place} begins at offset {first}: what was before was trimmed.")
    if not any(_begins(file, offset) for file in state.files.values()):  # no row was valid, or the table begins later
        begin = _begin(place)
        if offset < begin:
            raise OffsetError(f"{table}/ of {place} begins at offset {begin}: it doesn't know what was so at {offset}.")
    return state, offset


def _offset_at(place: Location, state: TableState, moment: datetime | LogTime) -> int:
    """The offset of a time in the log; if the log begins later, that of the table's last change up to that time."""
    from kraftlake.replay.queries.source import LogSource  # an offset does without

    log = LogSource.open(str(place))
    time = log.time_of(moment) if isinstance(moment, LogTime) else moment
    try:
        return log.offset_at(time)
    except OffsetError:
        last = max((last_change(state.path / file.path, time) for file in state.files.values()), default=-1)
        if last < 0:
            raise
        return last


def _begin(place: Location) -> int:
    """The first offset that the histories of a lake cover.

    It is 0 if the log has its beginning. Else it is the offset of the first state of any table: some feature has a
    level from the first metadata record, or the first snapshot, on.
    """
    from kraftlake.metadata_log.log import MetadataLog  # states that are found do without
    from kraftlake.replay.reading.open_reader import LakeReader
    from kraftlake.replay.reading.replay_base import has_beginning

    log = LakeReader(MetadataLog.open(place))
    if has_beginning(log):
        return 0
    start = log.start_offset
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
    """The files that may have rows that were valid at the offset."""
    return [state.path / file.path for file in state.files.values() if _may_hold(file, offset)]


def _may_hold(file: AddFile, offset: int) -> bool:
    statistics = file.statistics
    if statistics is None:
        return True
    ends = statistics.max_values.get(TO, offset + 1)
    return _begins(file, offset) and (ends > offset or statistics.null_counts.get(TO) != 0)
