"""The current state of a lake's derived table: its files, columns and first offset. Needs no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from kraftlake.metadata_log.delta_table.delta_log import NotADeltaTableError, read_table
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.location import Location
from kraftlake.runtime.arguments import text, texts
from kraftlake.runtime.errors import LakeError, UsageError
from kraftlake.tables.jobs import TABLES

FIRST_OFFSET: Final = "kraftlake.first_offset"
"""The table property for the first offset that a trimmed table covers in full."""


def first_offset_of(state: TableState) -> int:
    """The first offset that a derived table covers in full: 0 unless it was trimmed."""
    return int(state.metadata.configuration.get(FIRST_OFFSET, 0))


def checked_tables(names: Sequence[str]) -> list[str]:
    """Names of derived tables, each once, in their order; raises UsageError for a name that no table has."""
    named = list(dict.fromkeys(texts(names, "the name of a table")))
    unknown = next((name for name in named if name not in TABLES), None)
    if unknown is not None:
        raise UsageError(f"{unknown!r} is no derived table: it is one of {', '.join(TABLES)}")
    return named


def derived_table(lake: Location, table: str) -> TableState:
    """The state of a derived table.

    Raises LakeError if it is missing, with the command that makes it, or if `lake` is not a lake.
    """
    text(table, "the name of a table")
    try:
        return read_table(lake / table)
    except NotADeltaTableError as fault:
        MetadataLog.open(lake)  # raises where it is no lake, for which no table can be made
        first = f" yet: run `kraftlake tables {lake} {table}` first" if table in TABLES else ""
        raise LakeError(f"{lake} has no {table}/{first}.") from fault


def columns_of(table: str, schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    """The chosen columns of a table's schema, in the given order; None chooses all.

    Raises UsageError for an unknown column.
    """
    names = schema.names if columns is None else texts(columns, "the name of a column")
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        raise UsageError(f"{table}/ has no column {unknown[0]!r}: it is one of {', '.join(schema.names)}")
    return pa.schema([schema.field(name) for name in names])
