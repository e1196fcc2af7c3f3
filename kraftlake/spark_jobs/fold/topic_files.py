"""The files of a snapshot that hold its topics: a task writes one file for a range of names."""

from __future__ import annotations

import pickle
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics.topic_values import topic_values, topics_by_name
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.kafka_files.snapshots.batches import MAX_RECORDS_IN_BATCH
from kraftlake.metadata_log.log_facts import SNAPSHOTS_TABLE
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotPart, write_part
from kraftlake.metadata_log.storage.disk import disk_for
from kraftlake.metadata_log.storage.location import lake_location
from kraftlake.records.batch_values import BatchValues
from kraftlake.records.rows import to_rows
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.fold.frames import collected, in_arrow
from kraftlake.spark_jobs.spark_versions import by_number
from kraftlake.tables.shards.faults import fault_to_json, raise_first
from kraftlake.tables.shards.results import (
    RESULT_SCHEMA,
    one_row,
    read_stream,
    result_of,
    stream_of,
    topics_in,
    unpickled,
)
from kraftlake.tables.shards.snapshot_layout import TopicRange, batches_of, with_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TOPIC_SCHEMA = pa.schema([("name", pa.string()), ("values", pa.large_binary()), ("sizes", pa.large_list(pa.int32()))])
"""A topic with the values of its records, back to back."""


@attrs.frozen(kw_only=True, eq=False)
class TopicFiles:
    """Writes the topics of a snapshot; it can be sent to other processes."""

    lake: str
    provenance: MetadataProvenance
    options: ImageWriterOptions
    open_batch: int
    ranges: Sequence[TopicRange]

    def write(self, folded: DataFrame) -> tuple[list[SnapshotPart], Any]:
        """Write the topics in rows of RESULT_SCHEMA: the files in their order, and the sizes of the last values.

        The files are not in the snapshots' table yet. Raises UnwritableMetadataError for state that records can't hold.
        """
        if not self.ranges:
            return [], np.empty(0, np.int32)
        pieces = in_arrow(folded.select("content").where("content IS NOT NULL"), self._pieces, RESULT_SCHEMA)
        written = in_arrow(by_number(pieces, len(self.ranges), "shard"), self._files, RESULT_SCHEMA)
        results = collected(written, "content")
        raise_first(results.faults)
        parts = [*map(unpickled, results.facts)]
        assert [part.record_count for part in parts] == [each.records for each in self.ranges], "nothing is lost"
        sizes = np.concatenate([np.frombuffer(cell.as_buffer(), np.int32) for cell in results.rows["content"]])
        return parts, sizes

    def _pieces(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The topics of a shard by range, encoded and sorted by name: a result for each range."""
        firsts = [each.first_name for each in self.ranges]
        for cell in (cell for batch in batches for cell in batch.column(0)):
            packed = topics_in(cell.as_buffer()).rows()
            order = topics_by_name(packed.table)
            try:
                values = topic_values(packed, self.options, order)
            except KraftlakeError as fault:
                yield one_row(RESULT_SCHEMA, shard=0, fault=fault_to_json(fault))
                return
            names = [packed.table.names[topic] for topic in order.tolist()]
            table = pa.table(
                [
                    pa.array(names, pa.string()),
                    _slices(pa.large_binary(), values.starts, values.data),
                    pa.LargeListArray.from_arrays(pa.array(values.firsts), pa.array(values.sizes)),
                ],
                _TOPIC_SCHEMA,
            )
            edges = [*(bisect_left(names, first) for first in firsts), len(names)]
            for number, (start, stop) in enumerate(pairwise(edges)):
                if start < stop:
                    yield one_row(RESULT_SCHEMA, shard=number, content=stream_of(table.slice(start, stop - start)))

    def _files(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All pieces of a range as a file of the snapshot."""
        pieces: dict[int, list[pa.Table]] = {}
        for batch in batches:
            for row in batch.to_pylist():
                if row["fault"] is not None:
                    yield one_row(RESULT_SCHEMA, shard=0, fault=row["fault"])
                    return
                pieces.setdefault(row["shard"], []).append(read_stream(row["content"]))
        for number in sorted(pieces):
            yield result_of(number, partial(self._file, self.ranges[number], pieces.pop(number)))

    def _file(self, topics: TopicRange, pieces: list[pa.Table]) -> tuple[bytes, bytes]:
        """Write the file of a range: the sizes of its last values, and the part of the snapshot, pickled."""
        rows, sizes = self._rows(topics, pa.concat_tables(pieces))
        at, place = self.provenance, lake_location(self.lake)
        part = write_part(disk_for(place, "fsync"), place / SNAPSHOTS_TABLE, rows, at.offset + 1, at.epoch)
        return sizes[-MAX_RECORDS_IN_BATCH:].tobytes(), pickle.dumps(part)

    def _rows(self, topics: TopicRange, table: pa.Table) -> tuple[pa.Table, Any]:
        """The rows of a range in LOG_SCHEMA, and the sizes of their values."""
        table = table.sort_by("name").combine_chunks()
        values, at = table["values"].chunk(0), self.provenance
        sizes = table["sizes"].chunk(0).flatten().to_numpy()
        count, stops = len(sizes), np.cumsum(sizes, dtype=np.int64)
        assert count == topics.records, "a range has the records that were counted"
        _, bounds, data = values.buffers()
        first = int(np.frombuffer(bounds, np.int64)[values.offset])
        times = np.full(count, at.timestamp, np.int64)
        last = np.array([topics.first_offset + count - 1], np.int64)
        records = BatchValues(
            base_offset=topics.first_offset,
            data=np.frombuffer(data, np.uint8)[first : first + int(stops[-1])],
            starts=stops - sizes,
            stops=stops,
            times=times,
            last_offsets=last,
            epochs=np.array([at.epoch], np.int64),
            timestamps=times[:1],
            sizes=stops[-1:],
        )
        return with_batches(
            to_rows([records]), batches_of(self.open_batch, topics.first_offset + np.arange(count))
        ), sizes


def _slices(kind: pa.DataType, bounds: Any, data: Any) -> pa.Array:
    return pa.Array.from_buffers(kind, len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
