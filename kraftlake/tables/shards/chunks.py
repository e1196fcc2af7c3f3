"""The rows between readers of a log, shards, the last task and the driver: many records, or a result, in one cell.

The JVM's and Arrow's cost of a row hardly depends on its size, so that a million records are some hundred rows.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import cached_property
from typing import Any, Final

import attrs
import pyarrow as pa

_CODEC: Final = "lz4"
_SIZE_BYTES: Final = 8


class Part(IntEnum):
    """The content of a chunk, in the order in which a shard takes its chunks.

    ShardRecords of the snapshot that a fold starts from, of the log after it, and of a step; the number of rows of a
    piece of that snapshot, their bytes and their checksum; an error of a reader, as JSON. Then the results of a task:
    what the driver has to know, what else the task has made, and its error.
    """

    BASE = 0
    LOG = 1
    STEP = 2
    CHECK = 3
    UNREAD = 4
    FACTS = 5
    MADE = 6
    FAULT = 7


CHUNK_SCHEMA = pa.schema(
    [
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("part", pa.int32(), nullable=False),
        pa.field("first", pa.int64(), nullable=False),
        pa.field("cell", pa.binary(), nullable=False),
    ]
)
"""The columns of a Chunk."""


@attrs.frozen(eq=False)
class Chunk:
    """One row: a shard, or their number for the rest; a Part; an offset by which the chunks of a part are in order.

    Its `content` is pickled in `cell`, compressed behind its size: both ends are processes of one run, and every byte
    passes through several JVMs.
    """

    shard: int
    part: int
    first: int
    cell: Any = attrs.field(repr=False)

    @classmethod
    def of(cls, shard: int, part: Part, content: object, first: int = 0) -> Chunk:
        """A chunk with a content."""
        pickled = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
        size = len(pickled).to_bytes(_SIZE_BYTES)
        return cls(shard, part, first, size + pa.compress(pickled, codec=_CODEC, asbytes=True))

    @cached_property
    def content(self) -> Any:
        """The content."""
        cell = memoryview(self.cell)
        pickled = pa.decompress(cell[_SIZE_BYTES:], int.from_bytes(cell[:_SIZE_BYTES]), codec=_CODEC)
        return pickle.loads(pickled)  # noqa: S301 - of a process that this run has started


def chunks_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Chunk]:
    """The rows of batches of CHUNK_SCHEMA."""
    for batch in batches:
        shards, parts, firsts, cells = (batch.column(name) for name in CHUNK_SCHEMA.names)
        for number, cell in enumerate(cells):
            yield Chunk(shards[number].as_py(), parts[number].as_py(), firsts[number].as_py(), cell.as_buffer())


def batch_of(chunks: Iterable[Chunk]) -> pa.RecordBatch:
    """Chunks as a batch of CHUNK_SCHEMA."""
    rows = [(chunk.shard, chunk.part, chunk.first, bytes(chunk.cell)) for chunk in chunks]
    columns = zip(*rows, strict=True) if rows else [()] * len(CHUNK_SCHEMA)
    return pa.RecordBatch.from_arrays([*map(pa.array, columns, CHUNK_SCHEMA.types)], schema=CHUNK_SCHEMA)
