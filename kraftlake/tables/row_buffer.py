"""Rows of a table as tuples, and the Arrow tables made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

from kraftlake.tables.lazy_table import LazyTable

_TUPLES_HELD: Final = 10_000


class RowBuffer:
    """Rows on their way into a table: single ones as tuples in the order of the columns, many as Arrow tables."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._tuples: list[tuple[Any, ...]] = []
        self._tables: list[LazyTable] = []

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
        """Add rows that have the columns already."""
        self.add_later(LazyTable.of(rows))

    def add_later(self, rows: LazyTable) -> None:
        """Add rows that will have the columns."""
        self._convert()
        self._tables.append(rows)

    def take(self) -> pa.Table:
        """All rows in the order in which they were added; there are none afterwards."""
        return self.take_later().table()

    def take_later(self) -> LazyTable:
        """As `take`, with rows that are still to be made."""
        self._convert()
        tables, self._tables = self._tables, []
        return LazyTable(lambda: pa.concat_tables([self._schema.empty_table(), *map(self._with_columns, tables)]))

    def _with_columns(self, rows: LazyTable) -> pa.Table:
        made = rows.table()
        return made if made.schema.equals(self._schema) else made.select(self._schema.names).cast(self._schema)

    def _convert(self) -> None:
        if self._tuples:
            self._tables.append(LazyTable.of(table_of_rows(self._tuples, self._schema)))
            self._tuples = []


def table_of_rows(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Rows, each with a value for each column, as an Arrow table."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
