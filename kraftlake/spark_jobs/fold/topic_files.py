"""The files of a snapshot that hold its topics: a task writes one file for a range of names."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.topic_values import topic_values, topics_by_name
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.kafka_files.snapshots.batches import MAX_RECORDS_IN_BATCH
from kraftlake.metadata_log.log_facts import SNAPSHOTS_TABLE
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotPart, write_part
from kraftlake.metadata_log.storage.disk import disk_for
from kraftlake.metadata_log.storage.location import lake_location
from kraftlake.records.batch_values import BatchValues
from kraftlake.records.rows import to_rows
from kraftlake.replay.loader.image_columns import topics_from_arrow
from kraftlake.spark_jobs.spark_versions import by_number
from kraftlake.spark_jobs.tasks import collected, in_arrow
from kraftlake.tables.shards.chunks import CHUNK_SCHEMA, Chunk, Part, chunks_of
from kraftlake.tables.shards.faults import raise_first
from kraftlake.tables.shards.results import Results, in_order, result_of, shards_in
from kraftlake.tables.shards.routing import values_in
from kraftlake.tables.shards.snapshot_layout import TopicRange, batches_of, with_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Folded: TypeAlias = "DataFrame | list[pa.RecordBatch]"
"""The topics of shards, in rows of CHUNK_SCHEMA: for tasks, or few of them for this process."""


@attrs.frozen(kw_only=True, eq=False)
class TopicFiles:
    """Writes the topics of a snapshot; it can be sent to other processes."""

    lake: str
    provenance: MetadataProvenance
    options: ImageWriterOptions
    open_batch: int
    ranges: Sequence[TopicRange]

    def write(self, folded: Folded) -> tuple[list[SnapshotPart], Any]:
        """Write the topics: the files in their order, and the sizes of the last values.

        The files are not in the snapshots' table yet. Raises UnwritableMetadataError for state that records can't hold.
        """
        if not self.ranges:
            return [], np.empty(0, np.int32)
        if isinstance(folded, list):
            results = Results.of(pa.Table.from_batches(self._files([in_order(self._pieces(folded))])))
        else:
            pieces = in_arrow(folded.where(f"part = {Part.MADE:d}"), self._pieces, CHUNK_SCHEMA)
            by_range = by_number(pieces, len(self.ranges), "shard").sortWithinPartitions("shard")
            results = collected(in_arrow(by_range, self._files, CHUNK_SCHEMA), made=True)
        raise_first(results.faults)
        counts = [part.record_count for part in results.facts]
        assert counts == [each.records for each in self.ranges], "nothing is lost"
        return results.facts, np.concatenate(results.made)

    def _pieces(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The topics of a shard by range, encoded and sorted by name: a result for each range."""
        firsts = [each.first_name for each in self.ranges]
        for chunk in (chunk for chunk in chunks_of(batches) if chunk.part == Part.MADE):
            packed = topics_from_arrow(chunk.content).rows()
            order = topics_by_name(packed.table)
            names = [packed.table.names[topic] for topic in order.tolist()]
            edges = [*(bisect_left(names, first) for first in firsts), len(names)]
            for number, (start, stop) in enumerate(pairwise(edges)):
                if start < stop:
                    yield result_of(number, partial(self._piece, packed, order[start:stop], names[start:stop]))

    def _piece(self, packed: PackedTopics, topics: Any, names: list[str]) -> tuple[pa.Table, None]:
        values = topic_values(packed, self.options, topics)
        buffers = [None, pa.py_buffer(values.starts), pa.py_buffer(values.data)]
        sizes = pa.LargeListArray.from_arrays(pa.array(values.firsts), pa.array(values.sizes))
        encoded = pa.Array.from_buffers(pa.large_binary(), len(names), buffers)
        return pa.table([pa.array(names, pa.string()), encoded, sizes], ["name", "values", "sizes"]), None

    def _files(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All pieces of a range as a file of the snapshot."""
        for number, chunks in shards_in(batches):
            yield result_of(number, partial(self._file, self.ranges[number], chunks))

    def _file(self, topics: TopicRange, chunks: Iterator[Chunk]) -> tuple[Any, SnapshotPart]:
        """Write the file of a range: the sizes of its last values, and the part of the snapshot."""
        pieces = [*chunks]
        raise_first(chunk.content for chunk in pieces if chunk.part == Part.FAULT)
        table = pa.concat_tables([chunk.content for chunk in pieces if chunk.part == Part.MADE])
        rows, sizes = self._rows(topics, table.sort_by("name").combine_chunks())
        at, place = self.provenance, lake_location(self.lake)
        part = write_part(disk_for(place, "fsync"), place / SNAPSHOTS_TABLE, rows, at.offset + 1, at.epoch)
        return sizes[-MAX_RECORDS_IN_BATCH:], part

    def _rows(self, topics: TopicRange, table: pa.Table) -> tuple[pa.Table, Any]:
        """The rows of a range in LOG_SCHEMA, and the sizes of their values; `table` has the topics by name."""
        data, starts, _ = values_in(table["values"].combine_chunks())
        sizes = table["sizes"].combine_chunks().flatten().to_numpy()
        count, stops, at = len(sizes), starts[0] + np.cumsum(sizes, dtype=np.int64), self.provenance
        assert count == topics.records, "a range has the records that were counted"
        times = np.full(count, at.timestamp, np.int64)
        records = BatchValues(
            base_offset=topics.first_offset,
            data=data,
            starts=stops - sizes,
            stops=stops,
            times=times,
            last_offsets=np.array([topics.first_offset + count - 1], np.int64),
            epochs=np.array([at.epoch], np.int64),
            timestamps=times[:1],
            sizes=stops[-1:],
        )
        batches = batches_of(self.open_batch, topics.first_offset + np.arange(count))
        return with_batches(to_rows([records]), batches), sizes
