"""The results of the tasks of shards, as rows of a few cells. Needs no Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any

import attrs
import pyarrow as pa

from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.replay.loader.image_columns import topics_from_arrow, topics_to_arrow
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.tables.shards.chunks import Chunk, Part, batch_of, chunks_of
from kraftlake.tables.shards.faults import fault_to_json, raise_first

RESULT_SCHEMA = pa.schema(
    [
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("content", pa.binary()),
        pa.field("facts", pa.binary()),
        pa.field("driver", pa.binary()),
        pa.field("fault", pa.string()),
    ]
)
"""The shard; what its task has made, and what the driver has to know of it; or the chunks for the driver, as a stream;
or an error, as JSON."""

NAMES_SCHEMA = pa.schema([pa.field("name", pa.string()), pa.field("partitions", pa.int32())])


def shards_in(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[Chunk]]]:
    """The chunks of each shard, in their order: those of a shard follow each other."""
    chunks = (chunk for batch in batches for chunk in chunks_of(batch))
    return groupby(chunks, key=attrgetter("shard"))


def result_of(shard: int, work: Callable[[], tuple[bytes, bytes]]) -> pa.RecordBatch:
    """The content and the facts that a shard's work gives, or its error."""
    try:
        content, facts = work()
    except KraftlakeError as fault:
        return one_row(RESULT_SCHEMA, shard=shard, fault=fault_to_json(fault))
    return one_row(RESULT_SCHEMA, shard=shard, content=content, facts=facts)


def result_for_driver(shard: int, chunks: Iterable[Chunk]) -> pa.RecordBatch:
    """The chunks for the driver, unchanged."""
    return one_row(RESULT_SCHEMA, shard=shard, driver=stream_of(pa.Table.from_batches([batch_of(list(chunks))])))


def topics_and_names(topics: TopicsImage) -> tuple[bytes, bytes]:
    """Topics as a stream of `topics_to_arrow`, and one of NAMES_SCHEMA."""
    table = topics.rows().table
    counts = pa.array(table.starts[1:] - table.starts[:-1])
    names = pa.table([pa.array(table.names, pa.string()), counts], NAMES_SCHEMA)
    return stream_of(pa.Table.from_batches([topics_to_arrow(topics)])), stream_of(names)


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


def unpickled(cell: bytes) -> Any:
    """The result that a task of this run has pickled."""
    return pickle.loads(cell)  # noqa: S301 - of a task that this process has sent out


def topics_in(cell: pa.Buffer | bytes) -> TopicsImage:
    """The topics in a cell of a shard's row."""
    return topics_from_arrow(read_stream(cell).combine_chunks().to_batches()[0])


def names_in(facts: Iterable[bytes]) -> pa.Table:
    """The names of the topics of all shards, in no order: NAMES_SCHEMA."""
    return pa.concat_tables([*map(read_stream, facts), NAMES_SCHEMA.empty_table()])


@attrs.frozen(kw_only=True, eq=False)
class Results:
    """The results of all shards: the columns of `rows`, by shard, the `driver`'s chunks, in order, and the `faults`."""

    rows: pa.Table
    driver: list[Chunk]
    faults: list[str]

    @classmethod
    def of(cls, rows: pa.Table) -> Results:
        """Made from rows with columns of RESULT_SCHEMA, in any order. Raises the error of a reader."""
        tables = [read_stream(cell.as_buffer()) for cell in rows["driver"] if cell.is_valid]
        chunks = [chunk for table in tables for batch in table.to_batches() for chunk in chunks_of(batch)]
        raise_first(bytes(chunk.payload).decode() for chunk in chunks if chunk.part == Part.FAULT)
        return cls(
            rows=rows.filter(rows["facts"].is_valid()).sort_by("shard"),
            driver=sorted(chunks, key=attrgetter("part", "first")),
            faults=[fault for fault in rows["fault"].to_pylist() if fault is not None],
        )

    @property
    def facts(self) -> list[bytes]:
        """The results of the shards that the driver needs, by shard."""
        facts: list[bytes] = self.rows["facts"].to_pylist()
        return facts

    @property
    def checks(self) -> list[Chunk]:
        """The checksums of the base's pieces."""
        return [chunk for chunk in self.driver if chunk.part == Part.CHECK]
