"""The second engine: derived tables made by DuckDB in SQL, from `records/` and the snapshot that a log begins with.

Each file of SQL beside this one makes the table of its name; they know nothing of kraftlake's fold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from kraftlake.records.rows import to_rows
from kraftlake.records.typed_rows import typed_rows, typed_schema
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.replay_base import has_beginning, oldest_snapshot, snapshot_provenance
from kraftlake.settings.tables import CONFIGS
from kraftlake.tables.catch_up.updating import update_tables
from kraftlake.tables.jobs import ALL

COMMON: Final = ("effective_records", "states")
"""The files with what all tables have in common."""
STEPS: Final = (
    "topic_history", "broker_history", "partition_history", "config_history", "feature_history", "acl_history",
    "quota_history", "scram_history", "token_history", "controller_history", "quorum_history", "voter_history",
    "directory_history", "cluster_metrics", "local_changes", "events_of_partitions", "events_of_topics",
    "events_of_nodes", "events_of_others", "events",
)  # fmt: skip
"""The files of the tables, in the order in which they build on each other."""

Row = tuple[Any, ...]

_WITH_SECRETS: Final = ("config_history", "scram_history", "token_history")
_SHOWN: Final = 3


def tables_of(lake: Path) -> dict[str, pa.Table]:
    """The tables that kraftlake makes of a lake, and its records in SQL's form."""
    names = (*ALL.tables, "records")
    update_tables(lake, names)
    return {name: DeltaTable(str(lake / name)).to_pyarrow_table() for name in names}


def snapshot_rows(source: LogSource) -> pa.Table:
    """The records of the snapshot that a log begins with, all at its last offset; none where the log has its begin."""
    if has_beginning(source.reader):
        return typed_schema().empty_table()
    snapshot = oldest_snapshot(source.reader)
    at = snapshot_provenance(snapshot)
    rows = typed_rows(to_rows(list(snapshot.batches())), typed_schema())
    for name, value in {
        "offset": at.offset,
        "epoch": at.epoch,
        "batch": at.offset,
        "timestamp": at.timestamp * 1000,
    }.items():
        field = rows.schema.field(name)
        values = pa.array([None if value < 0 else value] * len(rows), pa.int64()).cast(field.type)
        rows = rows.set_column(rows.schema.get_field_index(name), field, values)
    return rows


class SqlEngine:
    """Runs the files over the rows of `records/`."""

    def __init__(self, records: pa.Table, snapshot: pa.Table) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'")
        records = records.sort_by("offset").select(snapshot.schema.names).cast(snapshot.schema)
        if len(snapshot):
            records = records.filter(pc.greater(records.column("offset"), snapshot.column("offset")[0]))
        rows = pa.concat_tables([snapshot, records])
        self._connection.register("rows", rows.append_column("seq", pa.array(range(len(rows)), pa.int64())))
        known = [(kind, name) for kind, keys in CONFIGS.items() for name in keys]
        self._connection.register("configs", pa.table([*zip(*known, strict=True)], ["resource_type", "name"]))
        for step in (*COMMON, *STEPS):
            self._connection.execute(Path(__file__).with_name(f"{step}.sql").read_text("utf-8"))

    def rows(self, table: str, columns: Sequence[str]) -> list[Row]:
        """The rows of a table, in order."""
        return rows_of(self._connection.table(table).to_arrow_table(), columns)


def rows_of(table: pa.Table, columns: Sequence[str]) -> list[Row]:
    """Rows in an order of their own."""
    return sorted((tuple(row.values()) for row in table.select(list(columns)).to_pylist()), key=repr)


def difference(some: Sequence[Row], others: Sequence[Row]) -> tuple[list[str], list[str]]:
    """The first rows that are among some alone, and among the others alone."""
    here, there = Counter(map(repr, some)), Counter(map(repr, others))
    return sorted(here - there)[:_SHOWN], sorted(there - here)[:_SHOWN]


def without_repeated_secrets(name: str, columns: Sequence[str], rows: Sequence[Row]) -> list[Row]:
    """Rows that are the same whether a secret that is set again is another one, which `records/` does not say.

    Of a history, those that follow each other and show the same are one.
    """
    if name == "events":
        sentence, before, after = (columns.index(column) for column in ("sentence", "before", "after"))
        return [row for row in rows if not row[sentence].endswith("changed") or row[before] != row[after]]
    if name not in _WITH_SECRETS:
        return [*rows]
    shown = columns.index("valid_from_offset")
    made: list[Row] = []
    for row in sorted(rows, key=lambda row: (repr(row[:shown]), row[shown])):
        if made and made[-1][:shown] == row[:shown] and made[-1][shown + 1] == row[shown]:
            begin, time = made.pop()[shown::2]
            made.append((*row[:shown], begin, row[shown + 1], time, row[shown + 3]))
        else:
            made.append(row)
    return made
