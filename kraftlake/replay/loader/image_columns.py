"""An image as one Arrow record batch and back: topics as packed columns, the rest as records.

Each column has one row, a list: arrays of any length fit in one batch, and reading them from a mapped file copies
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.row_checks import check_rows, check_table
from kraftlake.image.topics.topic_table import TopicTable
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.kernels.partition_row import COLUMNS
from kraftlake.records.serde import decode_value
from kraftlake.records.uuid import Uuid

_FACTS = b"kraftlake"
_INTS, _BYTES = pa.large_list(pa.int32()), pa.large_binary()
_TOPICS_SCHEMA = pa.schema(
    {
        "names": pa.large_list(pa.large_string()),
        "ids": _BYTES,
        "starts": _INTS,
        "rows": _INTS,
        "heap": _INTS,
        "directories": _BYTES,
        "sparse_topics": _INTS,
        "sparse_ids": pa.large_list(_INTS),
    }
)
"""The fields of PackedTopics."""

SCHEMA = _TOPICS_SCHEMA.append(pa.field("records", pa.large_list(_BYTES)))
"""The columns of topics, and `records`: values of the wire for all that is not topics."""


def topics_to_arrow(topics: TopicsImage) -> pa.RecordBatch:
    """A topics image as columns of one row each; `topics_from_arrow` makes an equal one of them."""
    packed = topics.rows().merged()
    table = packed.table
    sparse = sorted(table.sparse.items())
    arrays = [
        _one(pa.array(table.names, pa.large_string())),
        pa.array([table.id_bytes], _BYTES),
        _numbers(table.starts),
        _numbers(packed.rows),
        _numbers(packed.heap),
        pa.array([b"".join(packed.directories)], _BYTES),
        pa.array([[number for number, _ in sparse]], _INTS),
        pa.array([[list(ids) for _, ids in sparse]], _TOPICS_SCHEMA.field("sparse_ids").type),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_TOPICS_SCHEMA)


def topics_from_arrow(batch: pa.RecordBatch) -> TopicsImage:
    """The topics image again; it keeps the batch's memory, without a copy of its columns.

    Raises ValueError or pa.ArrowException for columns that are none of a topics image; their values are believed.
    """
    _check(batch, _TOPICS_SCHEMA)
    columns: dict[str, Any] = {name: batch.column(name)[0] for name in _TOPICS_SCHEMA.names}
    starts = _array(columns["starts"])
    ids = columns["ids"].as_py()
    names: list[str] = columns["names"].values.to_pylist()
    numbers, of_topics = columns["sparse_topics"].as_py(), columns["sparse_ids"].as_py()
    sparse = {number: tuple(of_topic) for number, of_topic in zip(numbers, of_topics, strict=True)}
    check_table(len(names), starts, sparse)
    rows, heap = _array(columns["rows"]).reshape(-1, COLUMNS), _array(columns["heap"])
    directories = columns["directories"].as_py()
    if 16 * len(names) != len(ids) or len(rows) != starts[-1] or len(directories) % 16:
        raise ValueError("names, ids, rows and directories of topics don't fit together")
    check_rows(rows, heap, len(directories) // 16)
    return TopicsImage.with_rows(
        PackedTopics(
            table=TopicTable(names, ids, starts, sparse),
            rows=rows,
            heap=heap,
            directories=tuple(Uuid(directories[at : at + 16]) for at in range(0, len(directories), 16)),
        )
    )


def image_to_arrow(image: MetadataImage, other_records: Iterable[bytes]) -> pa.RecordBatch:
    """The topics of `image` as columns, and the records of all other parts."""
    topics = topics_to_arrow(image.topics)
    return pa.RecordBatch.from_arrays([*topics.columns, _one(pa.array(other_records, _BYTES))], schema=SCHEMA)


def image_from_arrow(batch: pa.RecordBatch, provenance: MetadataProvenance) -> MetadataImage:
    """The image again; it keeps the batch's memory, as `topics_from_arrow` does.

    Raises ValueError, ReplayError, CorruptDataError or pa.ArrowException for columns that are none of an image.
    """
    _check(batch, SCHEMA)
    delta = MetadataDelta(MetadataImage.EMPTY)
    for value in batch.column("records")[0].values.to_pylist():
        delta.replay(decode_value(value).message)
    topics = topics_from_arrow(batch.select(_TOPICS_SCHEMA.names))
    return attrs.evolve(delta.apply(provenance), topics=topics)


def to_file(batch: pa.RecordBatch, facts: Mapping[str, Any]) -> pa.Buffer:
    """An Arrow file of a batch, and of facts that JSON can hold."""
    schema, sink = batch.schema.with_metadata({_FACTS: json.dumps(facts)}), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(batch.replace_schema_metadata(schema.metadata))
    return sink.getvalue()


def from_file(content: pa.Buffer) -> tuple[pa.RecordBatch, Any]:
    """The inverse of `to_file`; raises KeyError, ValueError or pa.ArrowException for other content."""
    reader = pa.ipc.open_file(content)
    return reader.get_batch(0).replace_schema_metadata(None), json.loads(reader.schema.metadata[_FACTS])


def _check(batch: pa.RecordBatch, schema: pa.Schema) -> None:
    """Raise ValueError or pa.ArrowException for a batch of another schema, one with nulls, or one that is damaged."""
    if not batch.schema.equals(schema) or batch.num_rows != 1:
        raise ValueError("these are not the columns of an image")
    batch.validate(full=True)
    if any(map(_has_nulls, batch.columns)):
        raise ValueError("a value of the columns is missing")


def _has_nulls(column: Any) -> bool:
    is_list = pa.types.is_large_list(column.type)
    return column.null_count > 0 or (is_list and _has_nulls(column.values))


def _one(values: pa.Array) -> pa.Array:
    """A column whose one row is a list of all values."""
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)


def _numbers(values: Any) -> pa.Array:
    return _one(pa.array(np.ascontiguousarray(values).reshape(-1)))


def _array(column: Any) -> Any:
    """The int32 numbers of a column's row, in place; to_numpy would import pandas for it."""
    values = column.values
    return np.frombuffer(values.buffers()[1], np.int32, len(values), 4 * values.offset) if len(values) else _NOTHING


_NOTHING = np.empty(0, np.int32)
