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
from kraftlake.spark_jobs.fold.chunks import BASE, CHECK, FAULT, Chunk, batch_of, chunks_of, fault_to_json, raise_first
from kraftlake.spark_jobs.fold.shard import ShardFold
from kraftlake.tables.changes.log_values import LogValues
from kraftlake.tables.changes.transactions import TransactionFilter

FOLDED_SCHEMA = pa.schema(
    [
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("topics", pa.binary()),
        pa.field("names", pa.binary()),
        pa.field("removed", pa.binary()),
        pa.field("cleared", pa.binary()),
        pa.field("others", pa.binary()),
        pa.field("fault", pa.string()),
    ]
)
"""The shard; its topics as an Arrow stream of `topics_to_arrow`; streams of NAMES_SCHEMA, REMOVED_SCHEMA and
CLEARED_SCHEMA; chunks for no shard; or an error, as JSON."""

NAMES_SCHEMA = pa.schema([pa.field("name", pa.string()), pa.field("partitions", pa.int32())])
REMOVED_SCHEMA = pa.schema([pa.field("offset", pa.int64()), pa.field("name", pa.string())])
CLEARED_SCHEMA = pa.schema([pa.field("offset", pa.int64())])


def shards_in(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[Chunk]]]:
    """The chunks of each shard, in their order: those of a shard follow each other."""
    chunks = (chunk for batch in batches for chunk in chunks_of(batch))
    return groupby(chunks, key=attrgetter("shard"))


def fold_shard(chunks: Iterable[Chunk], *, split_at: int | None = None, base_last: int = -1) -> ShardFold:
    """Replay a shard's chunks, in order; those of the base take effect at `base_last`. Raises as `ShardFold` does."""
    fold, transactions = ShardFold(split_at), TransactionFilter[LogValues]()
    for chunk in chunks:
        values = chunk.values()
        if chunk.part == BASE:
            fold.replay(values, base_last)
        else:
            for taken, mark in transactions.take(values, values.keys):
                for part in taken:
                    fold.replay(part, None if mark is None else int(values.offsets[mark]))
    return fold


def row_of_shard(shard: int, fold: ShardFold) -> pa.RecordBatch:
    """The result of a shard's fold."""
    topics = fold.topics()
    packed = topics.rows()
    starts = packed.table.starts
    names = pa.table([pa.array(packed.table.names, pa.string()), pa.array(starts[1:] - starts[:-1])], NAMES_SCHEMA)
    offsets = [offset for offset, _ in fold.removed]
    removed = pa.table([pa.array(offsets, pa.int64()), pa.array([name for _, name in fold.removed], pa.string())],
                       REMOVED_SCHEMA)  # fmt: skip
    return one_row(
        FOLDED_SCHEMA,
        shard=shard,
        topics=stream_of(pa.Table.from_batches([topics_to_arrow(topics)])),
        names=stream_of(names),
        removed=stream_of(removed),
        cleared=stream_of(pa.table([pa.array(fold.cleared, pa.int64())], CLEARED_SCHEMA)),
    )


def row_of_others(shard: int, chunks: Iterable[Chunk]) -> pa.RecordBatch:
    """The chunks for no shard, unchanged."""
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

    `names` has NAMES_SCHEMA, in no order; `others` are the chunks for no shard.
    """

    names: pa.Table
    removed: list[tuple[int, str]]
    cleared: list[int]
    others: list[Chunk]

    @classmethod
    def of(cls, rows: pa.Table) -> Collected:
        """From rows of FOLDED_SCHEMA, whose topics are left out. Raises the first fault that a shard had."""
        tables = {name: [read_stream(cell.as_buffer()) for cell in rows[name] if cell.is_valid]
                  for name in ("names", "removed", "cleared", "others")}  # fmt: skip
        removed = pa.concat_tables([*tables["removed"], REMOVED_SCHEMA.empty_table()])
        cleared = pa.concat_tables([*tables["cleared"], CLEARED_SCHEMA.empty_table()])
        others = [chunk for table in tables["others"] for batch in table.to_batches() for chunk in chunks_of(batch)]
        raise_first(bytes(chunk.payload).decode() for chunk in others if chunk.part == FAULT)
        raise_first(fault for fault in rows["fault"].to_pylist() if fault is not None)
        return cls(
            names=pa.concat_tables([*tables["names"], NAMES_SCHEMA.empty_table()]),
            removed=list(zip(removed["offset"].to_pylist(), removed["name"].to_pylist(), strict=True)),
            cleared=cleared["offset"].to_pylist(),
            others=others,
        )

    def checks(self) -> list[Chunk]:
        """The checksums of the base's pieces."""
        return [chunk for chunk in self.others if chunk.part == CHECK]
