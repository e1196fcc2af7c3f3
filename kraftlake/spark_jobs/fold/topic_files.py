"""The files of a snapshot that hold its topics: a task writes one file for a range of names."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.image import ImageWriterOptions, MetadataProvenance
from kraftlake.image.topics.topic_values import topic_values, topics_by_name
from kraftlake.kafka_files.snapshots.batches import MAX_RECORDS_IN_BATCH
from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.log_facts import SNAPSHOTS_TABLE
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotPart, write_part
from kraftlake.metadata_log.storage.disk import disk_for
from kraftlake.metadata_log.storage.location import lake_location
from kraftlake.records.metadata_records import PartitionRecord, TopicRecord
from kraftlake.records.rows import LOG_SCHEMA
from kraftlake.records.serde import record_type
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.fold.frames import in_arrow, telling_faults
from kraftlake.spark_jobs.spark_versions import by_number
from kraftlake.tables.shards.faults import fault_to_json, raise_first
from kraftlake.tables.shards.results import one_row, read_stream, stream_of, topics_in
from kraftlake.tables.shards.snapshot_layout import TopicRange, batches_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PIECE_SCHEMA = pa.schema(
    [pa.field("range", pa.int32(), nullable=False), pa.field("topics", pa.binary()), pa.field("fault", pa.string())]
)
"""A shard's topics of one range: a stream of _TOPIC_SCHEMA."""
_TOPIC_SCHEMA = pa.schema([("name", pa.string()), ("values", pa.large_binary()), ("sizes", pa.large_list(pa.int32()))])
_WRITTEN_SCHEMA = pa.schema([pa.field("range", pa.int32(), nullable=False), ("part", pa.string()),
                             ("sizes", pa.binary()), ("fault", pa.string())])  # fmt: skip


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
        pieces = in_arrow(folded.select("content").where("content IS NOT NULL"), self._pieces, _PIECE_SCHEMA)
        written = in_arrow(by_number(pieces, len(self.ranges), "range"), self._files, _WRITTEN_SCHEMA)
        with telling_faults():
            rows = written.toArrow().sort_by("range")
        raise_first(fault for fault in rows["fault"].to_pylist() if fault is not None)
        parts = [_part_from_json(text) for text in rows["part"].to_pylist()]
        assert [part.record_count for part in parts] == [each.records for each in self.ranges], "nothing is lost"
        sizes = np.concatenate([np.frombuffer(cell.as_buffer(), np.int32) for cell in rows["sizes"]])
        return parts, sizes

    def _pieces(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A shard's topics, encoded and sorted by name, cut where ranges begin."""
        firsts = [each.first_name for each in self.ranges]
        for batch in batches:
            for cell in batch.column(0):
                packed = topics_in(cell.as_buffer()).rows()
                order = topics_by_name(packed.table)
                try:
                    values = topic_values(packed, self.options, order)
                except KraftlakeError as fault:
                    yield one_row(_PIECE_SCHEMA, range=0, fault=fault_to_json(fault))
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
                        mine = table.slice(start, stop - start)
                        yield one_row(_PIECE_SCHEMA, range=number, topics=stream_of(mine))

    def _files(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All pieces of a range as a file of the snapshot."""
        pieces: dict[int, list[pa.Table]] = {}
        for batch in batches:
            for row in batch.to_pylist():
                if row["fault"] is not None:
                    yield one_row(_WRITTEN_SCHEMA, range=0, fault=row["fault"])
                    return
                pieces.setdefault(row["range"], []).append(read_stream(row["topics"]))
        for number in sorted(pieces):
            rows, sizes = self._rows(self.ranges[number], pa.concat_tables(pieces.pop(number)))
            place = lake_location(self.lake)
            try:
                part = write_part(
                    disk_for(place, "fsync"), place / SNAPSHOTS_TABLE, rows, self.provenance.offset + 1,
                    self.provenance.epoch,
                )  # fmt: skip
            except KraftlakeError as fault:
                yield one_row(_WRITTEN_SCHEMA, range=number, fault=fault_to_json(fault))
                continue
            last = sizes[-MAX_RECORDS_IN_BATCH:].tobytes()
            yield one_row(_WRITTEN_SCHEMA, range=number, part=_part_to_json(part), sizes=last)

    def _rows(self, topics: TopicRange, table: pa.Table) -> tuple[pa.Table, Any]:
        """The rows of a range in LOG_SCHEMA, and the sizes of their values."""
        table = table.sort_by("name").combine_chunks()
        values, lists = table["values"].chunk(0), table["sizes"].chunk(0)
        sizes = lists.flatten().to_numpy()
        counts = np.diff(np.frombuffer(lists.buffers()[1], np.int64, len(lists) + 1, 8 * lists.offset))
        count = len(sizes)
        assert count == topics.records, "a range has the records that were counted"
        bounds = np.zeros(count + 1, np.int32)
        np.cumsum(sizes, out=bounds[1:])
        _, begins, data = values.buffers()
        first = int(np.frombuffer(begins, np.int64)[values.offset])
        payload = pa.Array.from_buffers(
            pa.binary(), count, [None, pa.py_buffer(bounds), data.slice(first, int(bounds[-1]))]
        )
        is_partition = np.ones(count, np.int8)
        is_partition[np.cumsum(counts) - counts] = 0
        offsets = topics.first_offset + np.arange(count, dtype=np.int64)
        provenance = self.provenance
        version = self.options.metadata_version.partition_record_version
        types = pa.array([record_type(False, TopicRecord.API_KEY, 0),
                          record_type(False, PartitionRecord.API_KEY, version)])  # fmt: skip
        time = None if provenance.timestamp < 0 else provenance.timestamp * 1000
        columns = {
            "offset": pa.array(offsets),
            "epoch": pa.repeat(pa.scalar(provenance.epoch, pa.int32()), count),
            "timestamp": pa.repeat(pa.scalar(time, LOG_SCHEMA.field("timestamp").type), count),
            "batch": pa.array(batches_of(self.open_batch, offsets)),
            "type": types.take(pa.array(is_partition)),
            "api_key": pa.array(np.where(is_partition, PartitionRecord.API_KEY, TopicRecord.API_KEY).astype(np.int16)),
            "version": pa.array(np.where(is_partition, version, 0).astype(np.int16)),
            "control": pa.repeat(pa.scalar(False), count),
            "payload": payload,
        }
        return pa.table([columns[name] for name in LOG_SCHEMA.names], schema=LOG_SCHEMA), sizes


def _slices(kind: pa.DataType, bounds: Any, data: Any) -> pa.Array:
    return pa.Array.from_buffers(kind, len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)])


def _part_to_json(part: SnapshotPart) -> str:
    return json.dumps(attrs.asdict(part))


def _part_from_json(text: str) -> SnapshotPart:
    fields = json.loads(text)
    return SnapshotPart(**(fields | {"file": AddFile(**fields["file"])}))
