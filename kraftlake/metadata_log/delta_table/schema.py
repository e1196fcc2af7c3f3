"""The schema of a Delta table in Spark's JSON form, from an Arrow schema with the types of a lake's tables."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from kraftlake.runtime.errors import CorruptDataError

COMMENT = b"comment"
"""The key of a field's Arrow metadata that holds the column's comment."""

_NAMES = {
    pa.int64(): "long",
    pa.int32(): "integer",
    pa.int16(): "short",
    pa.int8(): "byte",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.timestamp("us", tz="UTC"): "timestamp",
}


def schema_string(schema: pa.Schema) -> str:
    """The `schemaString` of a metaData action, with the fields' comments.

    Raises KeyError for a type outside a lake's tables.
    """
    return json.dumps(_struct(schema), separators=(",", ":"))


def holds_columns(text: str, schema: pa.Schema, file: str) -> bool:
    """Whether a table whose schemaString is `text` has all columns of `schema`, by name and type."""
    return differing_column(text, schema, file) is None


def differing_column(text: str, schema: pa.Schema, file: str) -> str | None:
    """The first column of `schema` that a table whose schemaString is `text` lacks, or has with another type.

    Comments and nullability don't count. Raises CorruptDataError naming `file` if `text` is no schemaString.
    """
    try:
        types = {field["name"]: _plain(field["type"]) for field in json.loads(text)["fields"]}
    except (ValueError, KeyError, TypeError, RecursionError) as fault:
        raise CorruptDataError(f"The schema of the Delta table {file} can't be read.") from fault
    return next((field.name for field in schema if types.get(field.name) != _plain(_type(field.type))), None)


def extended_schema(text: str, schema: pa.Schema) -> str:
    """Return the schemaString `text` of a table, extended by the columns of `schema`."""
    table = json.loads(text)
    table["fields"] += _struct(schema)["fields"]
    return json.dumps(table, separators=(",", ":"))


def _struct(fields: pa.Schema | pa.StructType) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [
            {
                "name": field.name,
                "type": _type(field.type),
                "nullable": field.nullable,
                "metadata": {"comment": field.metadata[COMMENT].decode()} if COMMENT in (field.metadata or {}) else {},
            }
            for field in fields
        ],
    }


def _type(kind: pa.DataType) -> str | dict[str, Any]:
    if pa.types.is_list(kind):
        return {
            "type": "array",
            "elementType": _type(kind.value_type),
            "containsNull": kind.value_field.nullable,
        }
    if pa.types.is_map(kind):
        return {
            "type": "map",
            "keyType": _type(kind.key_type),
            "valueType": _type(kind.item_type),
            "valueContainsNull": kind.item_field.nullable,
        }
    return _struct(kind) if pa.types.is_struct(kind) else _NAMES[kind]


def _plain(kind: Any) -> Any:
    """Return a type without its comments and its nullability."""
    if not isinstance(kind, dict):
        return kind
    if kind["type"] == "struct":
        return [(field["name"], _plain(field["type"])) for field in kind["fields"]]
    return [_plain(kind[part]) for part in ("keyType", "valueType", "elementType") if part in kind]
