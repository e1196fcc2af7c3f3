"""The rows from the readers of a log to its shards: a row has many records of one shard in a few cells.

The JVM's and Arrow's cost of a row hardly depends on its size, so that a million records are some hundred rows.
"""

from __future__ import annotations

from enum import IntEnum

import attrs
import pyarrow as pa

from kraftlake.replay.log.shard_records import ShardRecords
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.tables.shards.faults import fault_to_json


class Part(IntEnum):
    """The content of a chunk, in the order in which a shard takes its chunks.

    Records of the snapshot that a fold starts from, of the log after it, and of a step; the checksum of a piece of that
    snapshot; an error of a reader.
    """

    BASE = 0
    LOG = 1
    STEP = 2
    CHECK = 3
    FAULT = 4


CHUNK_SCHEMA = pa.schema(
    [
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("part", pa.int32(), nullable=False),
        pa.field("first", pa.int64(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
        pa.field("sizes", pa.binary(), nullable=False),
        pa.field("offsets", pa.binary(), nullable=False),
        pa.field("control", pa.binary(), nullable=False),
        pa.field("batches", pa.binary(), nullable=False),
    ]
)
"""shard, or the number of shards for the driver; a Part; an offset by which the chunks of a part are
in order; the cells of ShardRecords, or what else the part says in `payload`."""
_NUMBERS = ("shard", "part", "first")


@attrs.frozen(kw_only=True, eq=False)
class Chunk:
    """One row."""

    shard: int
    part: int
    first: int
    payload: bytes
    sizes: bytes = b""
    offsets: bytes = b""
    control: bytes = b""
    batches: bytes = b""

    def records(self) -> ShardRecords:
        """The records, control ones too."""
        return ShardRecords.of_cells(
            self.first,
            payload=self.payload,
            sizes=self.sizes,
            offsets=self.offsets,
            control=self.control,
            batches=self.batches,
        )


def chunks_of(batch: pa.RecordBatch) -> list[Chunk]:
    """The rows of a batch of CHUNK_SCHEMA, as views."""
    columns = {name: batch.column(batch.schema.get_field_index(name)) for name in CHUNK_SCHEMA.names}
    chunks = []
    for row in range(batch.num_rows):
        numbers = {name: column[row].as_py() for name, column in columns.items() if name in _NUMBERS}
        cells = {name: column[row].as_buffer() for name, column in columns.items() if name not in _NUMBERS}
        chunks.append(Chunk(**numbers, **cells))
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
    """An error of a reader, for the driver."""
    return Chunk(shard=shards, part=Part.FAULT, first=0, payload=fault_to_json(fault).encode())
