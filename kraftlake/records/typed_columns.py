"""Many metadata records of one type as Arrow columns in bulk, for SQL: one column per field.

Columns have the declaration's snake-case names and Kafka's meaning; UUIDs are Kafka's 22 characters, uint16 is int32. A
field that a record's version lacks holds its default. Unknown tagged fields have no column, since they have no JSON
form. Compiled code decodes plain records, and the object decoder the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kraftlake.records.schema import FieldSpec, Message, Primitive, Struct, field_specs, memoized
from kraftlake.records.serde import decode_value
from kraftlake.runtime.errors import CorruptDataError

if TYPE_CHECKING:
    from kraftlake.records.column_program import Column, ColumnProgram

_BYTES_AT_ONCE = 2 * 1024 * 1024
"""The maximum bytes of values decoded at once: columns grow in proportion, and text ends are 32-bit numbers."""

ARROW_TYPES: dict[Primitive, pa.DataType] = {
    Primitive.BOOL: pa.bool_(),
    Primitive.INT8: pa.int8(),
    Primitive.INT16: pa.int16(),
    Primitive.UINT16: pa.int32(),
    Primitive.INT32: pa.int32(),
    Primitive.UINT32: pa.int64(),
    Primitive.INT64: pa.int64(),
    Primitive.FLOAT64: pa.float64(),
    Primitive.STRING: pa.string(),
    Primitive.BYTES: pa.binary(),
    Primitive.UUID: pa.string(),
}
"""The Arrow type of each field type."""

Where = Callable[[int], str]
"""Returns the name of the record at an index."""


@memoized
def typed_fields(cls: type[Struct]) -> tuple[pa.Field, ...]:
    """The columns of a record type or struct, in declared order; all of them nullable, as Spark requires."""
    return tuple(pa.field(name, _type(spec)) for name, spec in field_specs(cls))


def decode_columns(
    cls: type[Message], payloads: pa.Array, versions: Any, fields: Sequence[str], where: Where
) -> list[pa.Array]:
    """Decode `fields` of metadata records into columns; all records are of one type, known at their `versions`.

    `payloads` are their values as binary. Raises CorruptDataError for the first broken one, named by `where(index)`.
    """
    chunks = [
        _decode(cls, payloads.slice(first, count), versions[first : first + count], tuple(fields), _from(where, first))
        for first, count in _cuts(payloads)
    ]
    if len(chunks) == 1:
        return chunks[0]
    return [pa.concat_arrays([chunk[place] for chunk in chunks]) for place in range(len(fields))]


def _decode(
    cls: type[Message], payloads: pa.Array, versions: Any, fields: tuple[str, ...], where: Where
) -> list[pa.Array]:
    columns = _compiled(cls, payloads, versions, fields) if fields else None
    return _as_objects(cls, payloads, fields, where) if columns is None else columns


def _from(where: Where, first: int) -> Where:
    return lambda index: where(first + index)


def _as_objects(cls: type[Message], payloads: pa.Array, fields: tuple[str, ...], where: Where) -> list[pa.Array]:
    messages = []
    for index, payload in enumerate(payloads.to_pylist()):
        try:
            messages.append(decode_value(payload).message)
        except CorruptDataError as fault:
            raise CorruptDataError(f"{where(index)}: {fault}") from None
    return columns_of_messages(cls, messages, fields)


def columns_of_messages(cls: type[Struct], messages: Sequence[Any], fields: Sequence[str]) -> list[pa.Array]:
    """Return the same columns from decoded messages."""
    specs = dict(field_specs(cls))
    return [
        pa.array([_plain(specs[name], getattr(message, name)) for message in messages], _type(specs[name]))
        for name in fields
    ]


def _plain(spec: FieldSpec, value: Any) -> Any:
    if value is None:
        return None
    if spec.array:
        one = FieldSpec(type=spec.type, versions=spec.versions)
        return [_plain(one, item) for item in value]
    if not isinstance(spec.type, Primitive):
        return {name: _plain(inner, getattr(value, name)) for name, inner in field_specs(spec.type)}
    return str(value) if spec.type is Primitive.UUID else value


def _type(spec: FieldSpec) -> pa.DataType:
    one = ARROW_TYPES[spec.type] if isinstance(spec.type, Primitive) else pa.struct(list(typed_fields(spec.type)))
    return pa.list_(pa.field("element", one)) if spec.array else one


def _cuts(payloads: pa.Array) -> Iterator[tuple[int, int]]:
    """Yield (first, count) of runs of records whose values take at most _BYTES_AT_ONCE, or that are a single record."""
    import numpy as np

    ends = _ends(payloads)[1:]
    first = 0
    while first < len(ends) or first == 0:
        before = 0 if first == 0 else int(ends[first - 1])
        base = int(_ends(payloads)[0]) if first == 0 else before
        stop = int(np.searchsorted(ends, base + _BYTES_AT_ONCE, "right"))
        stop = min(max(stop, first + 1), len(ends))
        yield first, stop - first
        if stop >= len(ends):
            return
        first = stop


def _ends(payloads: pa.Array) -> Any:
    """Return the bounds of the values in the array's data, one more than the number of values."""
    import numpy as np

    bounds = payloads.buffers()[1]
    if bounds is None or not len(payloads):
        return np.zeros(1, np.int32)
    return np.frombuffer(bounds, np.int32)[payloads.offset : payloads.offset + len(payloads) + 1]


def _compiled(cls: type[Message], payloads: pa.Array, versions: Any, fields: tuple[str, ...]) -> list[pa.Array] | None:
    """Decode the columns by compiled code; None if a record is not plain."""
    import numpy as np

    from kraftlake.kernels import compiled  # these need numpy
    from kraftlake.kernels.columns.column_steps import DEEPEST, FRAMES
    from kraftlake.records.column_program import FRAME, column_program

    program = column_program(cls, fields)
    bounds = _ends(payloads).astype(np.int64)
    data = payloads.buffers()[2]
    content = np.frombuffer(data if data is not None else b"", np.uint8)
    starts, stops = bounds[:-1] + FRAME, bounds[1:].copy()
    if (starts > stops).any():
        return None
    count = len(payloads)
    out = _set_aside(program, count, int(bounds[-1] - bounds[0]))
    begins = program.begins[np.asarray(versions, np.int64)]
    stack = np.empty((DEEPEST, FRAMES), np.int64)
    if compiled.decode_records(content, starts, stops, begins, program.steps, compiled.Output(*out), stack) != count:
        return None
    by_name = {column.name: column for column in program.columns}
    try:
        return [_array(by_name[name], count, out) for name in fields]
    except pa.ArrowInvalid:  # bytes that are no UTF-8: objects say where
        return None


def _set_aside(program: ColumnProgram, count: int, size: int) -> Any:
    """Allocate the columns of `count` records whose values take `size` bytes; unused pages cost nothing."""
    import numpy as np

    from kraftlake.kernels.columns.column_steps import DEEPEST, PLACES, UUID_TEXT, Output  # needs numpy

    places = np.full((len(program.all_columns), PLACES), -1, np.int64)
    taken = {"bytes": 0, "ints": 0, "longs": 0}

    def place(kind: str, length: int) -> int:
        at = taken[kind]
        taken[kind] = at + (length + 15 & -16)
        return at

    ends = []
    for number, column in enumerate(program.all_columns):
        # Where bytes are broken off inside of an element, it was begun.
        elements = count if column.smallest == 0 else size // column.smallest + DEEPEST
        if column.is_list or column.spec.type in (Primitive.STRING, Primitive.BYTES, Primitive.UUID):
            places[number, 1] = place("ints", elements + 1)
            ends.append(places[number, 1])
            if column.nullable:
                places[number, 2] = place("bytes", elements)
        if column.is_list:
            continue
        if column.spec.type is Primitive.UUID:
            places[number, 0] = place("bytes", UUID_TEXT * elements)
        elif column.spec.type in (Primitive.STRING, Primitive.BYTES):
            places[number, 0] = place("bytes", size)
        elif column.spec.type in (Primitive.INT64, Primitive.FLOAT64):
            places[number, 0] = place("longs", elements)
        else:
            places[number, 0] = place("ints", elements)
    ints = np.empty(taken["ints"], np.int32)
    ints[ends] = 0
    return Output(
        bytes=np.empty(taken["bytes"], np.uint8),
        ints=ints,
        longs=np.empty(taken["longs"], np.int64),
        counts=np.zeros(len(program.all_columns), np.int64),
        places=places.reshape(-1),
    )


def _array(column: Column, count: int, out: Any) -> pa.Array:
    """Return the Arrow array of a column with `count` elements; raises ArrowInvalid for text that is not UTF-8."""
    import numpy as np

    from kraftlake.kernels.columns.column_steps import PLACES  # needs numpy

    if column.number < 0:
        children = [_array(child, count, out) for child in column.children]
        return pa.StructArray.from_arrays(children, fields=[pa.field(c.name, _type(c.spec)) for c in column.children])
    assert out.counts[column.number] == count, "each record has each of its columns once"
    values, ends, valid = out.places[PLACES * column.number : PLACES * (column.number + 1)].tolist()
    type_ = _type(column.spec)
    validity = None
    if valid >= 0:
        bits = out.bytes[valid : valid + count]
        if not bits.all():
            validity = pa.py_buffer(np.packbits(bits, bitorder="little"))
    if ends >= 0:
        bounds = out.ints[ends : ends + count + 1]
        total = int(bounds[-1])
        if column.is_list:
            child = _array(column.children[0], total, out)
            return pa.Array.from_buffers(type_, count, [validity, pa.py_buffer(bounds)], children=[child])
        content = pa.py_buffer(out.bytes[values : values + total])
        if column.spec.type is Primitive.UUID:
            return pa.Array.from_buffers(type_, count, [validity, pa.py_buffer(bounds), content])
        return pa.Array.from_buffers(pa.binary(), count, [validity, pa.py_buffer(bounds), content]).cast(type_)
    if column.spec.type is Primitive.INT64:
        return pa.Array.from_buffers(type_, count, [None, pa.py_buffer(out.longs[values : values + count])])
    if column.spec.type is Primitive.FLOAT64:
        return pa.array(out.longs[values : values + count].view(np.float64), type_, from_pandas=False)
    numbers = out.ints[values : values + count]
    if column.spec.type is Primitive.BOOL:
        return pa.array(numbers != 0, type_)
    if type_ == pa.int32():
        return pa.Array.from_buffers(type_, count, [None, pa.py_buffer(numbers)])
    return pa.array(numbers.astype(type_.to_pandas_dtype()), type_)
