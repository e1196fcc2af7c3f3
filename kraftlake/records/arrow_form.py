"""Messages of one type as typed Arrow rows, a column a field, derived from the declaration; and back.

Columns have the declaration's snake-case names. UUIDs are Kafka's 22 characters, as people look for them in tables;
uint16 is int32, as Spark and Delta Lake have no unsigned numbers; arrays are lists, structs are structs. A field that a
record's version lacks holds its default. Tagged fields that the declaration does not know are kept in
`unknown_tagged_fields`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from kraftlake.records.schema import FieldSpec, Primitive, Struct, field_specs, memoized
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import CorruptDataError, UnwritableMetadataError

S = TypeVar("S", bound=Struct)

ARROW_TYPES: dict[Primitive, pa.DataType] = {
    Primitive.BOOL: pa.bool_(),
    Primitive.INT8: pa.int8(),
    Primitive.INT16: pa.int16(),
    Primitive.UINT16: pa.int32(),
    Primitive.INT32: pa.int32(),
    Primitive.INT64: pa.int64(),
    Primitive.FLOAT64: pa.float64(),
    Primitive.STRING: pa.string(),
    Primitive.BYTES: pa.binary(),
    Primitive.UUID: pa.string(),
}
"""The Arrow type of each field type."""

UNKNOWN_TAGGED_FIELDS = pa.field(
    "unknown_tagged_fields",
    pa.list_(
        pa.field("element", pa.struct([
            pa.field("tag", pa.int64(), nullable=False),
            pa.field("value", pa.binary(), nullable=False),
        ]), nullable=False)
    ),
    nullable=False,
)  # fmt: skip


@memoized
def arrow_schema(cls: type[Struct]) -> pa.Schema:
    """The columns of a record type: its fields in declared order, then `unknown_tagged_fields`."""
    return pa.schema(_fields(cls))


def to_arrow(cls: type[S], messages: Iterable[S]) -> pa.Table:
    """One row a message, in `arrow_schema(cls)`.

    Raises UnwritableMetadataError when a value does not fit its column (which no decoded message does).
    """
    rows = [_to_row(message) for message in messages]
    try:
        return pa.Table.from_pylist(rows, schema=arrow_schema(cls))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError) as fault:
        raise UnwritableMetadataError(f"A {cls.__name__} can't be an Arrow row: {fault}.") from None


def from_arrow(cls: type[S], table: pa.Table) -> list[S]:
    """The messages that the rows are; columns may be in any order, and columns of other names are left alone.

    Raises CorruptDataError when a column is missing or a value can't be that of its field.
    """
    schema = arrow_schema(cls)
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise CorruptDataError(f"The rows of {cls.__name__} lack the column {missing[0]}.")
    try:
        rows = table.select(schema.names).cast(schema).to_pylist()
        return [_from_row(cls, row) for row in rows]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError, TypeError) as fault:
        raise CorruptDataError(f"A row is no {cls.__name__}: {fault}.") from None


def _fields(cls: type[Struct]) -> list[pa.Field]:
    fields = [pa.field(name, _type(spec), nullable=spec.nullable is not None) for name, spec in field_specs(cls)]
    return [*fields, UNKNOWN_TAGGED_FIELDS]


def _type(spec: FieldSpec) -> pa.DataType:
    one = ARROW_TYPES[spec.type] if isinstance(spec.type, Primitive) else pa.struct(_fields(spec.type))
    return pa.list_(pa.field("element", one, nullable=False)) if spec.array else one


_Convert = Callable[[Any], Any]


def _to_row(message: Struct) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, spec, convert, _ in _plan(type(message)):
        value = getattr(message, name)
        if value is not None and (convert is not None or spec.array):
            value = _map(convert, value) if spec.array else convert(value)  # type: ignore[misc]
        row[name] = value
    row["unknown_tagged_fields"] = [{"tag": tag, "value": value} for tag, value in message.unknown_tagged_fields]
    return row


def _from_row(cls: type[S], row: dict[str, Any]) -> S:
    fields: dict[str, Any] = {}
    for name, spec, _, convert in _plan(cls):
        value = row[name]
        if value is None and spec.nullable is None:
            raise ValueError(f"{name} is null")
        if value is not None and (convert is not None or spec.array):
            value = tuple(_map(convert, value)) if spec.array else convert(value)  # type: ignore[misc]
        fields[name] = value
    unknown = tuple([(field["tag"], field["value"]) for field in row["unknown_tagged_fields"]])
    return cls(**fields, unknown_tagged_fields=unknown)


def _map(convert: _Convert | None, values: Sequence[Any]) -> list[Any]:
    return list(values) if convert is None else [convert(value) for value in values]


@memoized
def _plan(cls: type[Struct]) -> tuple[tuple[str, FieldSpec, _Convert | None, _Convert | None], ...]:
    """(name, spec, message's value → row's, row's value → message's), with None where they are the same."""
    return tuple((name, spec, *_converts(spec)) for name, spec in field_specs(cls))


def _converts(spec: FieldSpec) -> tuple[_Convert | None, _Convert | None]:
    if not isinstance(spec.type, Primitive):
        struct_type = spec.type
        return _to_row, lambda row: _from_row(struct_type, row)
    if spec.type is Primitive.UUID:
        return str, Uuid.from_string
    return None, None
