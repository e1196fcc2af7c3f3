"""Rows of a log, one per record, with the records' fields in typed columns: the form for SQL.

In rows of all types, each type with fields is a struct column, null in the rows of other types; in rows of one type,
its fields are columns beside the record's place. Secrets are redacted: texts are "(redacted)", other values are null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pyarrow as pa

from kraftlake.records.control_records import CONTROL_NAMES, CONTROL_RECORDS
from kraftlake.records.metadata_records import METADATA_RECORDS, ConfigRecord
from kraftlake.records.redaction import REDACTED, is_sensitive_config
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.records.schema import Message, memoized, secret_fields, type_name
from kraftlake.records.serde import UNKNOWN, decode_control
from kraftlake.records.typed_columns import columns_of_messages, decode_columns, typed_fields
from kraftlake.runtime.arrow import pc
from kraftlake.runtime.errors import CorruptDataError, UsageError
from kraftlake.settings.tables import CONFIGS

PAYLOAD = "payload"
PLACE = tuple(field.with_nullable(True) for field in LOG_SCHEMA if field.name != PAYLOAD)
"""The first columns of each row: the columns of a lake's log without the payload, see `LOG_SCHEMA`."""

_PLACE_NAMES = tuple(field.name for field in PLACE)


@attrs.frozen
class RecordType:
    """A record type with columns: its name in a log, its declaration, whether it is a control record."""

    name: str
    cls: type[Message]
    control: bool

    @property
    def column(self) -> str:
        """The name of the type's struct column."""
        return self.name.lower()

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The fields of the type's struct; a control record's `version` is the row's."""
        return tuple(field for field in typed_fields(self.cls) if not (self.control and field.name == "version"))

    @property
    def plain_fields(self) -> dict[str, pa.Field]:
        """The fields by their column names beside the record's place.

        A name already taken there gets the prefix `record_`.
        """
        names = {field.name: f"record_{field.name}" for field in self.fields if field.name in _PLACE_NAMES}
        return {names.get(field.name, field.name): field for field in self.fields}


@memoized
def record_types() -> dict[str, RecordType]:
    """All types by name in a log, metadata records first, in the order of their api keys."""
    metadata = [RecordType(type_name(cls), cls, False) for _, cls in sorted(METADATA_RECORDS.items())]
    control = [RecordType(CONTROL_NAMES[key], cls, True) for key, cls in sorted(CONTROL_RECORDS.items())]
    return {kind.name: kind for kind in (*metadata, *control)}


@memoized
def typed_schema(only: str | None = None) -> pa.Schema:
    """The columns of rows of all types, or of the type `only` (TOPIC_RECORD, LEADER_CHANGE, UNKNOWN, …).

    `payload` is the value of a record whose type is unknown to this release, exactly as Kafka wrote it.
    """
    payload = pa.field(PAYLOAD, pa.binary())
    if only is None:
        structs = [pa.field(kind.column, pa.struct(kind.fields)) for kind in record_types().values() if kind.fields]
        return pa.schema([*PLACE, *structs, payload])
    if only == UNKNOWN:
        return pa.schema([*PLACE, payload])
    return pa.schema([*PLACE, *(field.with_name(name) for name, field in record_types()[only].plain_fields.items())])


def checked_schema(wanted: pa.Schema, only: str | None = None) -> pa.Schema:
    """Return `wanted` if it is a part of `typed_schema(only)`: some columns, some of their fields, in any order.

    Raises UsageError naming the first unknown column.
    """
    full = typed_schema(only)
    for field in wanted:
        index = full.get_field_index(field.name)
        if index < 0:
            raise UsageError(f"Records have no column {field.name}; there are {', '.join(full.names)}.")
        _check_part(field, full.field(index), record=field.name in _struct_columns() and only is None)
    return wanted


def _check_part(field: pa.Field, whole: pa.Field, *, record: bool) -> None:
    if not record:
        if not _same_type(field.type, whole.type):
            raise UsageError(f"The column {field.name} is {whole.type}, not {field.type}.")
        return
    known = {inner.name: inner for inner in whole.type}
    if not pa.types.is_struct(field.type) or not field.type.num_fields:
        raise UsageError(f"The column {field.name} is a struct of {', '.join(known)}, not {field.type}.")
    for inner in field.type:
        if inner.name not in known or not _same_type(inner.type, known[inner.name].type):
            raise UsageError(f"The column {field.name} has no field {inner.name} of type {inner.type}.")


def _same_type(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether types are equal except for nullability."""
    if pa.types.is_list(one) and pa.types.is_list(other):
        return _same_type(one.value_type, other.value_type)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return [field.name for field in one] == [field.name for field in other] and all(
            _same_type(mine.type, its.type) for mine, its in zip(one, other, strict=True)
        )
    return bool(one.equals(other))


@memoized
def _struct_columns() -> dict[str, RecordType]:
    return {kind.column: kind for kind in record_types().values() if kind.fields}


def needed_columns(wanted: pa.Schema) -> list[str]:
    """The columns of `LOG_SCHEMA` that `typed_rows` needs for `wanted`: the payload only if a column is decoded."""
    names = {"offset", "type", "version", *(name for name in wanted.names if name in _PLACE_NAMES)}
    if set(wanted.names) - set(_PLACE_NAMES):
        names |= {PAYLOAD, "api_key"}
    return [name for name in LOG_SCHEMA.names if name in names]


def typed_rows(rows: pa.Table, wanted: pa.Schema, only: str | None = None, *, show_secrets: bool = False) -> pa.Table:
    """Convert rows to the same rows, in the same order, with the columns `wanted` (see `checked_schema`).

    `rows` have the columns `needed_columns(wanted)`; with `only`, rows of other types are dropped. Raises
    CorruptDataError with the offset of a broken record.
    """
    if only is not None:
        rows = rows.filter(pc.equal(rows.column("type"), only))
    rows = rows.combine_chunks()
    decoder = _Decoder(rows, show_secrets)
    fields = {} if only is None or only == UNKNOWN else decoder.plain_columns(record_types()[only], wanted.names)
    columns = []
    for field in wanted:
        if field.name in fields:
            columns.append(fields[field.name])
        elif field.name in _PLACE_NAMES:
            columns.append(_flat(rows.column(field.name)))
        elif field.name == PAYLOAD:
            columns.append(decoder.unknown_payloads())
        else:
            columns.append(decoder.struct_column(_struct_columns()[field.name], [inner.name for inner in field.type]))
    if not columns:
        return rows.select([])
    made = pa.table(columns, names=wanted.names)
    return made if made.schema.equals(wanted) else made.cast(wanted)


class _Decoder:
    """The payloads of some rows, decoded type by type on demand."""

    def __init__(self, rows: pa.Table, show_secrets: bool) -> None:
        self._rows = rows
        self._show_secrets = show_secrets
        self._places: dict[str, Any] | None = None

    def plain_columns(self, kind: RecordType, wanted: Sequence[str]) -> dict[str, pa.Array]:
        """The wanted columns that are fields of a type; all rows are of this type."""
        fields = {name: field.name for name, field in kind.plain_fields.items() if name in wanted}
        if not fields:  # there may be no payloads
            return {}
        return dict(zip(fields, self._decode(kind, list(fields.values()), None), strict=True))

    def struct_column(self, kind: RecordType, names: Sequence[str]) -> pa.Array:
        """Return a struct for each row, null for those of other types."""
        import numpy as np

        count = self._rows.num_rows
        places = self._places_of(kind.name)
        fields = {field.name: field for field in kind.fields}
        type_ = pa.struct([fields[name] for name in names])
        if not len(places):
            return pa.nulls(count, type_)
        columns = self._decode(kind, names, None if len(places) == count else places)
        structs = pa.StructArray.from_arrays(columns, fields=list(type_))
        if len(places) == count:
            return structs
        index = np.full(count, -1, np.int64)
        index[places] = np.arange(len(places))
        return structs.take(pa.array(index, mask=index < 0))

    def unknown_payloads(self) -> pa.Array:
        """Return the payloads of records of unknown types, null for other rows."""
        if not self._show_secrets:
            return pa.nulls(self._rows.num_rows, pa.binary())
        unknown = pc.equal(_flat(self._rows.column("type")), UNKNOWN)
        return pc.if_else(unknown, _flat(self._rows.column(PAYLOAD)), pa.scalar(None, pa.binary()))

    def _places_of(self, type_: str) -> Any:
        """Return the indices of a type's rows, in order."""
        import numpy as np

        if self._places is None:
            self._places = {}
            encoded = _flat(self._rows.column("type")).dictionary_encode()
            codes = encoded.indices.to_numpy(zero_copy_only=False)
            for code, name in enumerate(encoded.dictionary.to_pylist()):
                self._places[name] = np.flatnonzero(codes == code)
        return self._places.get(type_, ())

    def _decode(self, kind: RecordType, names: Sequence[str], places: Any) -> list[pa.Array]:
        rows = self._rows if places is None else self._rows.take(pa.array(places))
        asked = list(names)
        if kind.cls is ConfigRecord and "value" in names and not self._show_secrets:
            asked += [name for name in ("resource_type", "name") if name not in names]
        offsets = rows.column("offset")

        def where(index: int) -> str:
            return f"Offset {offsets[index].as_py()}"

        payloads = _flat(rows.column(PAYLOAD))
        if kind.control:
            columns = _control_columns(kind, payloads, asked, where)
        else:
            versions = rows.column("version").to_numpy()
            columns = decode_columns(kind.cls, payloads, versions, asked, where)
        found = dict(zip(asked, columns, strict=True))
        if not self._show_secrets:
            _redact(kind.cls, found)
        return [found[name] for name in names]


def _control_columns(kind: RecordType, payloads: pa.Array, names: Sequence[str], where: Any) -> list[pa.Array]:
    """Decode control records one by one, since they are few."""
    messages = []
    for index, payload in enumerate(payloads.to_pylist()):
        try:
            messages.append(decode_control(kind.cls.API_KEY, payload).message)
        except CorruptDataError as fault:
            raise CorruptDataError(f"{where(index)}: {fault}") from None
    return columns_of_messages(kind.cls, messages, names)


def _redact(cls: type[Message], columns: dict[str, pa.Array]) -> None:
    """Hide the secret fields of a record type."""
    for name in secret_fields(cls):
        if name in columns:
            columns[name] = (
                _shown_configs(columns) if (cls, name) == (ConfigRecord, "value") else _hidden(columns[name])
            )


def _shown_configs(columns: dict[str, pa.Array]) -> pa.Array:
    """Return the values of configs, with possible secrets hidden."""
    public = pa.nulls(len(columns["value"]), pa.bool_()).fill_null(False)
    names = columns["name"].unique().to_pylist()
    for resource_type in CONFIGS:
        shown_names = [name for name in names if not is_sensitive_config(resource_type, name)]
        known = pc.is_in(columns["name"], value_set=pa.array(shown_names, pa.string()))
        public = pc.or_(public, pc.and_(known, pc.equal(columns["resource_type"], resource_type)))
    shown = pc.or_(public, pc.is_null(columns["value"]))
    return pc.if_else(shown, columns["value"], pa.scalar(REDACTED))


def _hidden(column: pa.Array) -> pa.Array:
    if pa.types.is_string(column.type):
        return pc.if_else(pc.is_valid(column), pa.scalar(REDACTED), column)
    return pa.nulls(len(column), column.type)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else combined.chunk(0)
