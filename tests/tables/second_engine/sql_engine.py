"""The second engine: derived tables made by DuckDB in SQL, from `records/` and the snapshot that a log begins with.

Each file of SQL beside this one makes a table of the same name; they know nothing of kraftlake's fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
from deltalake import DeltaTable

from kraftlake.records.rows import to_rows
from kraftlake.records.typed_rows import typed_rows, typed_schema
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.replay_base import has_beginning, oldest_snapshot, snapshot_provenance
from kraftlake.tables.catch_up.updating import update_tables

STEPS: Final = (
    "effective_records", "topic_history", "broker_history", "partition_history", "config_history", "feature_history",
    "acl_history", "cluster_counts",
)  # fmt: skip
"""The files, in the order in which they build on each other."""
HISTORIES: Final = STEPS[1:-1]
COUNTS: Final = (
    "active_broker_count", "fenced_broker_count", "controlled_shutdown_broker_count", "global_topic_count",
    "global_partition_count", "offline_partitions_count", "preferred_replica_imbalance_count",
    "under_replicated_partitions", "reassigning_partitions", "recovering_partitions",
)  # fmt: skip
_UNORDERED: Final = ("listeners", "features", "directories", "cordoned_directories")
"""Lists of broker_history whose order means nothing."""


def tables_of(lake: Path) -> dict[str, pa.Table]:
    """The tables that kraftlake makes of a lake, and its records in SQL's form."""
    names = (*HISTORIES, "cluster_metrics", "records")
    update_tables(lake, names)
    return {name: DeltaTable(str(lake / name)).to_pyarrow_table() for name in names}


def snapshot_rows(source: LogSource) -> pa.Table:
    """The records of the snapshot that a log begins with, all at its last offset; none where the log has its begin."""
    if has_beginning(source.reader):
        return typed_schema().empty_table()
    snapshot = oldest_snapshot(source.reader)
    at = snapshot_provenance(snapshot)
    rows = typed_rows(to_rows(list(snapshot.batches())), typed_schema())
    for name, value in {"offset": at.offset, "batch": at.offset, "timestamp": at.timestamp * 1000}.items():
        field = rows.schema.field(name)
        values = pa.array([None if value < 0 else value] * len(rows), pa.int64()).cast(field.type)
        rows = rows.set_column(rows.schema.get_field_index(name), field, values)
    return rows


class SqlEngine:
    """Runs the files over the rows of `records/`."""

    def __init__(self, records: pa.Table, snapshot: pa.Table) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'")
        rows = pa.concat_tables(
            [snapshot, records.sort_by("offset").select(snapshot.schema.names).cast(snapshot.schema)]
        )
        self._connection.register("rows", rows.append_column("seq", pa.array(range(len(rows)), pa.int64())))
        for step in STEPS:
            self._connection.execute(Path(__file__).with_name(f"{step}.sql").read_text("utf-8"))

    def rows(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """The rows of a table, in order."""
        return rows_of(self._connection.table(table).to_arrow_table(), columns)


def rows_of(table: pa.Table, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Rows in an order of their own, with lists whose order means nothing sorted."""
    rows = table.select(list(columns)).to_pylist()
    return sorted((tuple(_plain(name, value, row) for name, value in row.items()) for row in rows), key=repr)


def _plain(name: str, value: Any, row: dict[str, Any]) -> Any:
    return sorted(value) if "broker" in row and name in _UNORDERED and value is not None else value


def counts_of(metrics: pa.Table) -> list[tuple[int, ...]]:
    """The rows of `cluster_metrics` at which one of COUNTS changes."""
    return changed_counts(rows_of(metrics, ("offset", *COUNTS)))


def changed_counts(rows: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Rows (an offset, then counts) without those that repeat the counts of the row before; the first ones of 0 too."""
    found: list[tuple[int, ...]] = []
    last: tuple[int, ...] = (0,) * len(COUNTS)
    for offset, *counts in sorted(rows):
        if tuple(counts) != last:
            last = tuple(map(int, counts))
            found.append((offset, *last))
    return found
