"""Record batches as Arrow rows, one per record, in the columns of a lake's log table; and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from kraftlake.records.batch import NO_TIMESTAMP, RecordBatch
from kraftlake.records.serde import control_version, read_frame, record_type
from kraftlake.runtime.errors import CorruptDataError

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues

LOG_SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("epoch", pa.int32(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("batch", pa.int64(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("api_key", pa.int16(), nullable=False),
        pa.field("version", pa.int16(), nullable=False),
        pa.field("control", pa.bool_(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
    ]
)
"""The columns: offset; leader epoch; the record's time, null for Kafka's -1; base offset of the record's batch; name of
the type as in `kraftlake log`; api key (control type for control records); version; whether the record is a control
record; the value exactly as Kafka writes it."""


_NEEDED = ("offset", "batch", "epoch", "control", "api_key", "payload")

BATCH_COLUMNS = tuple(name for name in LOG_SCHEMA.names if name in (*_NEEDED, "timestamp"))
"""The columns needed to rebuild batches: a record's type and version are also part of its value."""

_SORTED = (*_NEEDED, "timestamp")
_SORTED_SCHEMA = pa.schema([LOG_SCHEMA.field(name) for name in _SORTED])

_Kind = tuple[str, int, int]  # type name, api key, version


def to_rows(batches: Iterable[RecordBatch | BatchValues]) -> pa.Table:
    """Convert batches to rows, one per record, in `LOG_SCHEMA` and the order of the batches.

    Raises CorruptDataError with the offset of a value without a frame.
    """
    tables: list[pa.Table] = []
    for alone, group in groupby(batches, lambda part: isinstance(part, RecordBatch)):
        if alone:
            tables.append(columns_to_rows(to_columns(cast("Iterator[RecordBatch]", group))))
            continue
        from kraftlake.records.value_columns import columns_of_values

        for values in cast("Iterator[BatchValues]", group):
            columns = columns_of_values(values) or to_columns(values.batches(values.base_offset))
            tables.append(columns_to_rows(columns))
    return pa.concat_tables(tables) if tables else LOG_SCHEMA.empty_table()


def to_columns(batches: Iterable[RecordBatch]) -> dict[str, list[Any]]:
    """Convert a few batches to the columns of `to_rows` as lists; times are in microseconds. Raises as `to_rows`."""
    columns: dict[str, list[Any]] = {name: [] for name in LOG_SCHEMA.names}
    kinds: dict[bytes, _Kind] = {}
    for batch in batches:
        count = batch.record_count
        columns["offset"] += range(batch.base_offset, batch.base_offset + count)
        columns["epoch"] += [batch.epoch] * count
        columns["timestamp"] += [None if t == NO_TIMESTAMP else t * 1000 for t in batch.timestamps]
        columns["batch"] += [batch.base_offset] * count
        columns["control"] += [batch.control] * count
        columns["payload"] += batch.values
        for name, values in zip(("type", "api_key", "version"), zip(*_kinds(batch, kinds), strict=True), strict=True):
            columns[name] += values
    return columns


def columns_to_rows(columns: Mapping[str, list[Any] | pa.Array]) -> pa.Table:
    """Convert columns, in the form of `to_columns` or as arrays, to rows in `LOG_SCHEMA`."""
    arrays = [
        column if isinstance(column := columns[field.name], pa.Array) else pa.array(column, field.type)
        for field in LOG_SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=LOG_SCHEMA)


def _kinds(batch: RecordBatch, known: dict[bytes, _Kind]) -> list[_Kind]:
    """The kind of each record; `known` caches kinds by the three bytes that begin nearly all frames."""
    if batch.control:
        pairs = [(t, control_version(value)) for t, value in zip(batch.control_types, batch.values, strict=True)]
        return [(record_type(True, control_type, version), control_type, version) for control_type, version in pairs]
    found: list[_Kind] = []
    for index, value in enumerate(batch.values):
        head = value[:3]
        kind = known.get(head)
        if kind is None:
            try:
                api_key, version = read_frame(value)
            except CorruptDataError as fault:
                raise CorruptDataError(f"Offset {batch.base_offset + index}: {fault}") from None
            kind = (record_type(False, api_key, version), api_key, version)
            if len(head) == 3 and max(head) < 0x80:
                known[head] = kind
        found.append(kind)
    return found


def from_rows(table: pa.Table) -> Iterator[RecordBatch]:
    """Yield the batches, in offset order, whose rows in `LOG_SCHEMA` are given in any order.

    Raises CorruptDataError if a column is missing, a batch has a hole or lacks its first record, its records disagree
    in epoch or kind, or a value is null or out of range. Missing records at the end of a batch can't be detected.
    """
    rows = sorted_rows(table)
    offsets, batches, epochs, controls, api_keys, payloads = (rows[name].to_pylist() for name in _NEEDED)
    micros = rows["timestamp"].cast(pa.int64()).to_pylist()
    times = [NO_TIMESTAMP if t is None else t // 1000 for t in micros]
    end = len(offsets)
    start = 0
    while start < end:
        base = batches[start]
        stop = start + 1
        while stop < end and batches[stop] == base:
            stop += 1
        size = stop - start
        where = f"The batch at offset {base}"
        if offsets[start:stop] != list(range(base, base + size)):
            raise CorruptDataError(f"{where} is not whole: its rows are those from {offsets[start]}, {size} of them.")
        if epochs[start:stop].count(epochs[start]) != size or controls[start:stop].count(controls[start]) != size:
            raise CorruptDataError(f"{where} has records of several epochs or kinds.")
        values = tuple(payloads[start:stop])
        control = controls[start]
        timestamps = tuple(times[start:stop])
        yield RecordBatch(
            base_offset=base, epoch=epochs[start], timestamp=max(timestamps), control=control, values=values,
            control_types=tuple(api_keys[start:stop]) if control else (), timestamps=timestamps,
        )  # fmt: skip
        start = stop


def sorted_rows(table: pa.Table) -> pa.Table:
    """Return the columns needed to rebuild batches, in offset order.

    Raises CorruptDataError if one is missing or wrong.
    """
    schema, there = _SORTED_SCHEMA, frozenset(table.column_names)
    missing = [name for name in _SORTED if name not in there]
    if missing:
        raise CorruptDataError(f"The rows of a metadata log lack the column {missing[0]}.")
    rows = table.select(_SORTED)
    nulls = [name for name in _NEEDED if rows[name].null_count]
    if nulls:
        raise CorruptDataError(f"The rows of a metadata log have a null in the column {nulls[0]}.")
    try:
        rows = rows if rows.schema.equals(schema) else rows.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as fault:
        raise CorruptDataError(f"The rows of a metadata log have columns of other types: {fault}.") from None
    offsets = rows["offset"].to_numpy()
    return rows if (offsets[1:] > offsets[:-1]).all() else rows.sort_by("offset")
