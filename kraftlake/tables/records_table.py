"""The Delta table `records/`: every record of the log in typed columns, for SQL, secrets redacted."""

from __future__ import annotations

import inspect
from typing import Final

import pyarrow as pa

from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.records.typed_rows import PAYLOAD, record_types, typed_rows, typed_schema
from kraftlake.tables.lake_table import TableDescription
from kraftlake.tables.table_writer import TableWriter

_PLACE = {
    "offset": "the record's offset",
    "epoch": "the leader epoch of its batch",
    "timestamp": "its time by its controller's clock; null where it has none",
    "batch": "the base offset of its batch",
    "type": "its type as `kraftlake log` names it, `UNKNOWN` for one that this release does not know",
    "api_key": "the number of its type; of a control record the control type",
    "version": "the version at which it is written",
    "control": "whether it is a control record",
    PAYLOAD: "null: what a record of an unknown type holds may be a secret",
}


def columns() -> tuple[tuple[pa.Field, str], ...]:
    """The columns of `records/` with their meanings; a struct has the fields of its record type."""
    kinds = {kind.column: kind for kind in record_types().values()}
    made = []
    for field in typed_schema():
        meaning = _PLACE.get(field.name)
        if meaning is None:
            kind = kinds[field.name]
            sentence = inspect.cleandoc(kind.cls.__doc__ or "").partition("\n")[0].rstrip(".")
            meaning = f"{kind.name}: {sentence[0].lower()}{sentence[1:]}; null in rows of other types"
        made.append((field.with_nullable(field.name != "offset"), meaning))
    return tuple(made)


RECORDS: Final = TableDescription("records", "Every record of the log in typed columns, without secrets.", columns())


class RecordsWriter(TableWriter):
    """Makes the rows of `records/`."""

    description = RECORDS
    log_columns = tuple(LOG_SCHEMA.names)

    def take_rows(self, rows: pa.Table) -> None:
        """Add the rows with their records decoded."""
        self.rows.add_table(typed_rows(rows, typed_schema()))
