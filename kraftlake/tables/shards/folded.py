"""The result of the fold of a shard, as a row of a few cells. Needs no Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter

import attrs
import pyarrow as pa

from kraftlake.image import TopicsImage
from kraftlake.replay import topics_from_arrow, topics_to_arrow
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.tables.shards.chunks import Chunk, Part, batch_of, chunks_of
from kraftlake.tables.shards.faults import fault_to_json, raise_first

FOLDED_SCHEMA = pa.schema(
    [
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("topics", pa.binary()),
        pa.field("names", pa.binary()),
        pa.field("others", pa.binary()),
        pa.field("fault", pa.string()),
    ]
)
"""The shard; its topics as an Arrow stream of `topics_to_arrow`; a stream of NAMES_SCHEMA; chunks for the driver; or an
error, as JSON."""

NAMES_SCHEMA = pa.schema([pa.field("name", pa.string()), pa.field("partitions", pa.int32())])


def shards_in(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[Chunk]]]:
    """The chunks of each shard, in their order: those of a shard follow each other."""
    chunks = (chunk for batch in batches for chunk in chunks_of(batch))
    return groupby(chunks, key=attrgetter("shard"))


def row_of_shard(shard: int, topics: TopicsImage) -> pa.RecordBatch:
    """The topics of a shard after its fold."""
    packed = topics.rows()
    starts = packed.table.starts
    names = pa.table([pa.array(packed.table.names, pa.string()), pa.array(starts[1:] - starts[:-1])], NAMES_SCHEMA)
    return one_row(
        FOLDED_SCHEMA,
        shard=shard,
        topics=stream_of(pa.Table.from_batches([topics_to_arrow(topics)])),
        names=stream_of(names),
    )


def row_of_others(shard: int, chunks: Iterable[Chunk]) -> pa.RecordBatch:
    """The chunks for the driver, unchanged."""
    return one_row(FOLDED_SCHEMA, shard=shard, others=stream_of(pa.Table.from_batches([batch_of(list(chunks))])))


def row_of_fault(shard: int, fault: KraftlakeError) -> pa.RecordBatch:
    """The error of a shard's fold, as JSON."""
    return one_row(FOLDED_SCHEMA, shard=shard, fault=fault_to_json(fault))


def one_row(schema: pa.Schema, **cells: object) -> pa.RecordBatch:
    """A batch of one row; columns without a cell are null."""
    columns = [pa.array([cells.get(field.name)], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def stream_of(table: pa.Table) -> bytes:
    """A table as the content of a cell."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def read_stream(cell: pa.Buffer | bytes) -> pa.Table:
    """The table in a cell."""
    return pa.ipc.open_stream(cell).read_all()


def topics_in(cell: pa.Buffer | bytes) -> TopicsImage:
    """The topics in a cell of a shard's row."""
    return topics_from_arrow(read_stream(cell).combine_chunks().to_batches()[0])


@attrs.frozen(kw_only=True, eq=False)
class Collected:
    """The results of all shards without their topics.

    `names` has NAMES_SCHEMA, in no order; `others` are the chunks for the driver.
    """

    names: pa.Table
    others: list[Chunk]

    @classmethod
    def of(cls, rows: pa.Table) -> Collected:
        """From rows of FOLDED_SCHEMA, whose topics are left out. Raises the first fault that a shard had."""
        names, tables = (
            [read_stream(cell.as_buffer()) for cell in rows[name] if cell.is_valid] for name in ("names", "others")
        )
        others = [chunk for table in tables for batch in table.to_batches() for chunk in chunks_of(batch)]
        raise_first(bytes(chunk.payload).decode() for chunk in others if chunk.part == Part.FAULT)
        raise_first(fault for fault in rows["fault"].to_pylist() if fault is not None)
        return cls(names=pa.concat_tables([*names, NAMES_SCHEMA.empty_table()]), others=others)

    def checks(self) -> list[Chunk]:
        """The checksums of the base's pieces."""
        return [chunk for chunk in self.others if chunk.part == Part.CHECK]
