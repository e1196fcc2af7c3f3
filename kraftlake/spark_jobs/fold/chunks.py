"""The rows from the readers of a log to the shards of a fold: a row has many records of one shard in a few cells.

The JVM's and Arrow's cost of a row hardly depends on its size, so that a million records are some hundred rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.runtime import errors
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.tables.changes.log_values import LogValues

BASE, LOG, CHECK, FAULT = 0, 1, 2, 3
"""The content of a chunk: records of the snapshot that the fold starts from, records of the log after it, the checksum
of a piece of that snapshot, or an error of a reader."""

CHUNK_SCHEMA = pa.schema(
    [
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("part", pa.int32(), nullable=False),
        pa.field("first", pa.int64(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
        pa.field("sizes", pa.binary(), nullable=False),
        pa.field("offsets", pa.binary(), nullable=False),
        pa.field("kinds", pa.binary(), nullable=False),
    ]
)
"""shard, or the number of shards for records that are of no topic; BASE, LOG, CHECK or FAULT; an offset by which the
chunks of a part are in order; values back to back; their sizes (int32); their offsets less `first` (int32); for records
of no topic the types of control records (int32, -1 for others)."""


@attrs.frozen(kw_only=True, eq=False)
class Chunk:
    """One row."""

    shard: int
    part: int
    first: int
    payload: bytes
    sizes: bytes
    offsets: bytes
    kinds: bytes

    def values(self) -> LogValues:
        """The records, control ones too."""
        return LogValues.packed(first_offset=self.first, offsets=self.offsets, payload=self.payload, sizes=self.sizes)

    def control_types(self) -> Any:
        """int32[n]: the type of a control record, -1 for one of metadata."""
        return np.frombuffer(self.kinds, np.int32)


def chunks_of(batch: pa.RecordBatch) -> list[Chunk]:
    """The rows of a batch of CHUNK_SCHEMA, as views."""
    columns = [batch.column(batch.schema.get_field_index(name)) for name in CHUNK_SCHEMA.names]
    chunks = []
    for row in range(batch.num_rows):
        shard, part, first = (columns[i][row].as_py() for i in range(3))
        cells = [columns[i][row].as_buffer() for i in range(3, 7)]
        chunks.append(
            Chunk(
                shard=shard, part=part, first=first, payload=cells[0], sizes=cells[1], offsets=cells[2], kinds=cells[3]
            )
        )
    return chunks


def batch_of(chunks: list[Chunk]) -> pa.RecordBatch:
    """Chunks as a batch of CHUNK_SCHEMA."""
    columns = []
    for field in CHUNK_SCHEMA:
        cells = [getattr(chunk, field.name) for chunk in chunks]
        if pa.types.is_binary(field.type):
            cells = [bytes(cell) for cell in cells]
        columns.append(pa.array(cells, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=CHUNK_SCHEMA)


def chunk_of_fault(shards: int, fault: KraftlakeError) -> Chunk:
    """An error of a reader, for the number after the shards'."""
    text = fault_to_json(fault).encode()
    return Chunk(shard=shards, part=FAULT, first=0, payload=text, sizes=b"", offsets=b"", kinds=b"")


def fault_to_json(fault: KraftlakeError) -> str:
    """An error as JSON, to pass it between processes: Spark would make a traceback of an exception."""
    return json.dumps({"kind": type(fault).__name__, "text": str(fault), "offset": getattr(fault, "offset", None)})


def raise_first(faults: Iterable[str]) -> None:
    """Raise the error with the lowest offset, if there is any."""
    found = [json.loads(fault) for fault in faults]
    if not found:
        return
    first = min(found, key=lambda fault: (fault["offset"] is None, fault["offset"] or 0))
    kind = getattr(errors, first["kind"], KraftlakeError)
    raise kind(first["text"], **({} if first["offset"] is None else {"offset": first["offset"]}))
