"""The results of the tasks of shards. Needs no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any

import attrs
import pyarrow as pa

from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.replay.loader.image_columns import topics_to_arrow
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.tables.shards.chunks import Chunk, Part, batch_of, chunks_of
from kraftlake.tables.shards.faults import fault_to_json, raise_first

NAMES_SCHEMA = pa.schema([pa.field("name", pa.string()), pa.field("partitions", pa.int32())])


def shards_in(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[Chunk]]]:
    """The chunks of each shard, in their order: those of a shard follow each other."""
    return groupby(chunks_of(batches), key=attrgetter("shard"))


def in_order(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """The chunks of all shards in one batch: by shard, and those of a shard in the order in which it takes them."""
    return batch_of(sorted(chunks_of(batches), key=attrgetter("shard", "part", "first")))


def result_of(shard: int, work: Callable[[], tuple[object, object]]) -> pa.RecordBatch:
    """What a shard's work has made and the facts that the driver needs of it, or its error."""
    try:
        made, facts = work()
    except KraftlakeError as fault:
        return batch_of([Chunk.of(shard, Part.FAULT, fault_to_json(fault))])
    return batch_of([Chunk.of(shard, Part.FACTS, facts), Chunk.of(shard, Part.MADE, made)])


def topics_and_names(topics: TopicsImage) -> tuple[pa.RecordBatch, pa.Table]:
    """Topics as `topics_to_arrow`, and their `names_of`."""
    return topics_to_arrow(topics), names_of(topics)


def names_of(topics: TopicsImage) -> pa.Table:
    """The names of topics and their numbers of partitions: NAMES_SCHEMA."""
    table = topics.rows().table
    counts = pa.array(table.starts[1:] - table.starts[:-1])
    return pa.table([pa.array(table.names, pa.string()), counts], NAMES_SCHEMA)


@attrs.frozen(kw_only=True, eq=False)
class Results:
    """The results of all shards: the `facts` and what else was `made`, by shard, and the `faults`.

    `rest` are the chunks of no shard, in order, `checks` the checksums of the base's pieces.
    """

    facts: list[Any]
    made: list[Any]
    faults: list[str]
    rest: list[Chunk]
    checks: list[Any]

    @classmethod
    def of(cls, rows: pa.Table) -> Results:
        """Made from rows of CHUNK_SCHEMA, in any order. Raises the error of a reader."""
        chunks = sorted(chunks_of(rows.to_batches()), key=attrgetter("part", "first", "shard"))

        def contents(part: Part) -> list[Any]:
            return [chunk.content for chunk in chunks if chunk.part == part]

        raise_first(contents(Part.UNREAD))
        return cls(
            facts=contents(Part.FACTS),
            made=contents(Part.MADE),
            faults=contents(Part.FAULT),
            rest=[chunk for chunk in chunks if chunk.part < Part.CHECK],
            checks=contents(Part.CHECK),
        )

    @property
    def names(self) -> pa.Table:
        """The names of the topics of all shards, of the facts of `topics_and_names`, in no order: NAMES_SCHEMA."""
        return pa.concat_tables([*self.facts, NAMES_SCHEMA.empty_table()])
