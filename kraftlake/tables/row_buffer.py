"""Rows of a table as tuples, and the Arrow tables made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

_TUPLES_HELD: Final = 10_000


class RowBuffer:
    """Rows that are collected for a table: single ones as tuples in the order of the columns, many as Arrow tables."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._tuples: list[tuple[Any, ...]] = []
        self._tables: list[pa.Table] = []

    def add(self, row: tuple[Any, ...]) -> None:
        """Add one row: a value for each column, in their order."""
        self._tuples.append(row)
        if len(self._tuples) >= _TUPLES_HELD:
            self._convert()

    def extend(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows."""
        for row in rows:
            self.add(row)

    def add_table(self, rows: pa.Table) -> None:
        """Add rows that have the columns, in any order."""
        self._convert()
        is_ready = rows.schema.equals(self._schema)
        self._tables.append(rows if is_ready else rows.select(self._schema.names).cast(self._schema))

    def take(self) -> pa.Table:
        """Take all rows in the order in which they were added; none are left afterwards."""
        self._convert()
        tables, self._tables = self._tables, []
        return pa.concat_tables([self._schema.empty_table(), *tables])

    def _convert(self) -> None:
        if self._tuples:
            self._tables.append(table_of_rows(self._tuples, self._schema))
            self._tuples = []


def table_of_rows(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Rows, each with a value for each column, as an Arrow table."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
