"""Removes the beginning of derived tables, as `Upkeep.trim` does for the log.

A history loses the states that ended at or below an offset, `cluster_metrics/` the counts that other counts had
replaced by then, and any other table the rows below the offset. The tables still have all states, counts and events at
the offset and later. The table property `kraftlake.first_offset` has the first offset that the table covers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.delta_table.commit import commit_beside_writers, commit_info, now_ms
from kraftlake.metadata_log.delta_table.data_files import open_parquet_file
from kraftlake.metadata_log.delta_table.delta_log import NotADeltaTableError, read_table
from kraftlake.metadata_log.delta_table.row_files import rewrite_row_file
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.derived_tables import APPEND_ONLY, app_id_of
from kraftlake.metadata_log.maintenance.trimming import set_properties
from kraftlake.metadata_log.storage.disk import Disk, disk_for
from kraftlake.metadata_log.storage.location import Location, fixed_location
from kraftlake.runtime.arguments import whole
from kraftlake.runtime.errors import CorruptDataError, LakeError, OffsetError
from kraftlake.tables.derived_tables import FIRST_OFFSET, checked_tables, first_offset_of
from kraftlake.tables.history.rows_at import FROM, TO
from kraftlake.tables.jobs import METRICS, TABLES
from kraftlake.tables.table_locks import hold_tables


def trim_tables(lake: str | Location, before: int, tables: Sequence[str] | None = None) -> dict[str, int]:
    """Remove the rows of a lake's derived tables that concern only offsets below `before`; returns counts by table.

    `tables` None means all tables that the lake has. Each table is trimmed by one commit: a killed run leaves it either
    trimmed or unchanged. Files stay on the disk until a vacuum. A trim can't be undone once the log is trimmed too.

    Raises UsageError for a name that no table has; OffsetError if a table ends before `before`; LakeError if there is
    no lake or no such table, or another run writes one of the tables; CorruptDataError for a damaged file.
    """
    location = fixed_location(lake)
    whole(before, least=0)
    MetadataLog.open(location)
    states = _states(location, tables)
    for name, state in states.items():
        covers = state.transactions.get(app_id_of(name), -1)
        if before > covers + 1:
            raise OffsetError(
                f"{name}/ of {location} covers offsets up to {covers}, so it can be trimmed before {covers + 1} at "
                f"most: run `kraftlake tables {location}` first"
            )
    with hold_tables(location, [*states]):
        return {name: _trim(disk_for(location), state, name, before) for name, state in states.items()}


def known_offset_since(lake: str | Location, time: datetime) -> int:
    """The offset after the last one before `time` in a lake's derived tables, 0 if no row is earlier.

    For times before the first offset of a trimmed log; `time` has a time zone. Raises CorruptDataError for a damaged
    file.
    """
    found = -1
    for state in _states(fixed_location(lake), None).values():
        times = {FROM: "valid_from", TO: "valid_to"} if _is_history(state) else {"offset": "timestamp"}
        for file in state.files.values():
            rows = _read(state, file, [*times, *times.values()])
            for column, of_time in times.items():
                earlier = rows.column(column).filter(pc.less(rows.column(of_time), time))
                found = max(found, pc.max(earlier).as_py() if len(earlier) else -1)
    return found + 1


def first_offsets(lake: str | Location) -> dict[str, int]:
    """The first offset of each derived table of a lake that has rows: that of its first row, or of its last trim."""
    found = {}
    for name, state in _states(fixed_location(lake), None).items():
        column = FROM if _is_history(state) else "offset"
        known = [file.statistics.min_values.get(column) for file in state.files.values() if file.statistics is not None]
        firsts = [first for first in known if isinstance(first, int)]
        if firsts:
            found[name] = max(min(firsts), first_offset_of(state))
    return found


def _states(lake: Location, tables: Sequence[str] | None) -> dict[str, TableState]:
    states = {}
    for name in TABLES if tables is None else checked_tables(tables):
        try:
            states[name] = read_table(lake / name)
        except NotADeltaTableError as fault:
            if tables is not None:
                raise LakeError(f"{lake} has no {name}/") from fault
    return states


def _is_history(state: TableState) -> bool:
    return f'"{TO}"' in state.metadata.schema_string


def _trim(disk: Disk, state: TableState, name: str, before: int) -> int:
    if before <= first_offset_of(state):
        return 0
    append_only = state.metadata.configuration.get(APPEND_ONLY, "false")
    # Delta's protocol forbids to remove rows from a table that is append-only. If this run is killed before it puts the
    # property back, the next run that writes the table does.
    state = set_properties(disk, state, {APPEND_ONLY: "false"})
    removed = 0

    def trimmed(now: TableState) -> Sequence[dict[str, Any]]:
        nonlocal removed
        keeps = _kept_by_end(before) if _is_history(now) else _kept_by_offset(_cut(now, name, before))
        removes, adds, removed = _replacements(disk, now, keeps, before)
        metadata = attrs.evolve(now.metadata, configuration={**now.metadata.configuration, FIRST_OFFSET: str(before)})
        info = commit_info("DELETE", {"predicate": f'["offset < {before}"]'})
        return [info, metadata.to_action(), *removes, *adds]

    try:
        done = commit_beside_writers(disk, state, trimmed)
    except Exception:
        set_properties(disk, state, {APPEND_ONLY: append_only})
        raise
    assert done is not None
    set_properties(disk, done, {APPEND_ONLY: append_only})
    return removed


@attrs.frozen
class _Keeps:
    """A condition for rows that stay; a whole file stays if the smallest value of its `column` is at least `least`."""

    column: str
    least: int
    rows: Callable[[pa.Table], pa.ChunkedArray]


def _kept_by_offset(first: int) -> _Keeps:
    return _Keeps("offset", first, lambda rows: pc.greater_equal(rows.column("offset"), first))


def _kept_by_end(before: int) -> _Keeps:
    def goes_on(rows: pa.Table) -> pa.ChunkedArray:
        return pc.or_kleene(pc.is_null(rows.column(TO)), pc.greater(rows.column(TO), before))

    return _Keeps(TO, before + 1, goes_on)


def _cut(state: TableState, name: str, before: int) -> int:
    """The first offset whose rows stay. Counts are valid until the next ones: those that are valid at `before` stay."""
    if name not in METRICS.tables:
        return before
    newest = 0
    for file in state.files.values():
        statistics = file.statistics
        if statistics is not None and statistics.min_values.get("offset", 0) <= before:
            offsets = _read(state, file, ["offset"]).column("offset")
            newest = max(newest, pc.max(offsets.filter(pc.less_equal(offsets, before))).as_py() or 0)
    return newest


def _replacements(
    disk: Disk, state: TableState, keeps: _Keeps, before: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    """The removes and adds of a trim, and the number of rows removed; the rows of the adds are in the table already."""
    removes, adds, removed, time = [], [], 0, now_ms()
    for file in state.files.values():
        if _keeps_all(file, keeps):
            continue
        rows = _read(state, file, None)
        kept = rows.filter(keeps.rows(rows))
        if kept.num_rows == rows.num_rows:
            continue
        removed += rows.num_rows - kept.num_rows
        removes.append(file.to_remove(time, data_change=True))
        if kept.num_rows:
            covers = state.transactions.get(app_id_of(state.path.name), before)
            add = rewrite_row_file(disk, state, kept, last_offset=covers, modification_time=file.modification_time)
            adds.append(add.to_action())
    return removes, adds, removed


def _keeps_all(file: AddFile, keeps: _Keeps) -> bool:
    """Whether a file's statistics show that all its rows stay."""
    statistics = file.statistics
    if statistics is None:
        return False
    if statistics.null_counts.get(keeps.column, 0) == statistics.record_count:
        return True
    least = statistics.min_values.get(keeps.column)
    return isinstance(least, int) and least >= keeps.least


def _read(state: TableState, file: AddFile, columns: list[str] | None) -> pa.Table:
    path = state.path / file.path
    try:
        return open_parquet_file(path).read(columns=columns)
    except (pa.ArrowException, OSError, ValueError) as fault:
        raise CorruptDataError(f"{path} is missing or damaged, so {state.path} was not trimmed") from fault
