"""An Arrow schema as a Delta table states it: Spark's JSON form, for the types that a lake's tables have."""

from __future__ import annotations

import json

import pyarrow as pa

from kraftlake.runtime.errors import CorruptDataError

_NAMES = {
    pa.int64(): "long",
    pa.int32(): "integer",
    pa.int16(): "short",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.timestamp("us", tz="UTC"): "timestamp",
}


def schema_string(schema: pa.Schema) -> str:
    """The `schemaString` of a metaData action; raises KeyError for a type that no table of a lake has."""
    fields = [
        {"name": field.name, "type": _NAMES[field.type], "nullable": field.nullable, "metadata": {}} for field in schema
    ]
    return json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))


def holds_columns(text: str, schema: pa.Schema, file: str) -> bool:
    """Whether a table whose schemaString is `text` has all columns of `schema`, by name and type."""
    try:
        types = {field["name"]: field["type"] for field in json.loads(text)["fields"]}
    except (ValueError, KeyError, TypeError) as fault:
        raise CorruptDataError(f"The schema of the Delta table {file} can't be read.") from fault
    return all(types.get(field.name) == _NAMES[field.type] for field in schema)
