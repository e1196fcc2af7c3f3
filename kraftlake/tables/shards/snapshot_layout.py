"""The offsets and batches of a snapshot's records, and its records before and after the topics. Needs no Spark.

Source of the form: `kraftlake.kafka_files.snapshots.batches`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.kafka_files.snapshots.batches import (
    MAX_RECORDS_IN_BATCH,
    RECORD_OVERHEAD,
    BatchCutter,
    footer_batch,
    head_batch,
)
from kraftlake.records.batch import RecordBatch
from kraftlake.records.rows import LOG_SCHEMA, to_rows
from kraftlake.records.serde import ApiMessageAndVersion, encode_value
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.runtime.errors import ReplayError

RECORDS_OF_A_PART = 1_000_000


@attrs.frozen(kw_only=True)
class TopicRange:
    """The topics with names from `first_name` to that of the next range, exclusive: a file of the snapshot."""

    number: int
    first_name: str
    first_offset: int
    records: int


def ranges_of(names: pa.Table, first_offset: int, records: int = RECORDS_OF_A_PART) -> list[TopicRange]:
    """All topics (NAMES_SCHEMA, in any order) in ranges by name, of about `records` records.

    Raises ReplayError where two topics have one name.
    """
    if not names.num_rows:
        return []
    names = names.sort_by("name")  # of UTF-8 bytes, which is the order of Python's strings
    column = names["name"].combine_chunks()
    twice = pc.index(pc.equal(column[1:], column[:-1]), True).as_py()
    if twice >= 0:
        raise ReplayError(f"two topics are named {column[twice].as_py()!r}.")
    counts = names["partitions"].to_numpy().astype(np.int64) + 1
    begins = np.cumsum(counts) - counts
    total = int(counts.sum())
    parts = -(-total // records)
    firsts = np.unique(np.searchsorted(begins, np.arange(parts) * total // parts, side="left")).tolist()
    firsts = [first for first in firsts if first < len(counts)]
    assert firsts[0] == 0, "the first range begins with the first topic"
    edges = [*begins[firsts].tolist(), total]
    return [
        TopicRange(
            number=number,
            first_name=column[first].as_py(),
            first_offset=first_offset + edges[number],
            records=edges[number + 1] - edges[number],
        )
        for number, first in enumerate(firsts)
    ]


@attrs.frozen(kw_only=True, eq=False)
class Head:
    """The snapshot before the topics: its `rows`, and the first offset of its last batch, which the topics continue.

    `records` and `size` are those of that batch so far (see `BatchCutter`).
    """

    rows: pa.Table
    open_batch: int
    records: int
    size: int

    @property
    def end_offset(self) -> int:
        """The offset at which the topics begin."""
        return int(self.rows.num_rows)


def batches_of(open_batch: int, offsets: Any) -> Any:
    """The base offsets of the batches of topics' records, by offset: they fill the open batch, then further ones.

    A batch ends after 1,024 records. It would also end after a megabyte, but records of topics are smaller.
    """
    return open_batch + (offsets - open_batch) // MAX_RECORDS_IN_BATCH * MAX_RECORDS_IN_BATCH


def head_of(
    image: MetadataImage, options: ImageWriterOptions, provenance: MetadataProvenance, quorum: QuorumState
) -> Head:
    """The snapshot's header, features and cluster."""
    control = head_batch(provenance.epoch, provenance.timestamp, quorum.kraft_version, quorum.voters)
    cutter = BatchCutter()
    records = image.write_before_topics(options)
    rows, open_batch = _rows(records, control.last_offset + 1, cutter, control.last_offset + 1, provenance)
    return Head(
        rows=pa.concat_tables([to_rows([control]), rows]),
        open_batch=open_batch,
        records=cutter.records,
        size=cutter.size,
    )


def tail_of(
    image: MetadataImage,
    options: ImageWriterOptions,
    provenance: MetadataProvenance,
    *,
    head: Head,
    topic_records: int,
    last_sizes: Any,
) -> pa.Table:
    """The records after the topics, and the footer.

    `last_sizes` are the sizes of the last values of topics, of MAX_RECORDS_IN_BATCH of them or of all.
    """
    offset = head.end_offset + topic_records
    open_batch, cutter = head.open_batch, BatchCutter(head.records, head.size)
    if topic_records:
        open_batch = batches_of(head.open_batch, offset - 1)
        held = min(offset - open_batch, topic_records)
        size = int(last_sizes[len(last_sizes) - held :].sum()) + held * RECORD_OVERHEAD
        from_head = head.size if open_batch == head.open_batch else 0
        cutter = BatchCutter(offset - open_batch, size + from_head)
    rows, _ = _rows(image.write_after_topics(options), offset, cutter, open_batch, provenance)
    footer = footer_batch(offset + rows.num_rows, provenance.epoch, provenance.timestamp)
    return pa.concat_tables([rows, to_rows([footer])])


def _rows(
    messages: Iterable[ApiMessageAndVersion],
    first_offset: int,
    cutter: BatchCutter,
    open_batch: int,
    provenance: MetadataProvenance,
) -> tuple[pa.Table, int]:
    """Rows of messages, and the first offset of the last batch."""
    values = tuple(encode_value(message.message, message.version) for message in messages)
    if not values:
        return LOG_SCHEMA.empty_table(), open_batch
    begins = np.array(cutter.beginnings([*map(len, values)]), np.int64)
    bases = np.append(open_batch, first_offset + begins)[np.searchsorted(begins, np.arange(len(values)), side="right")]
    batch = RecordBatch(
        base_offset=first_offset,
        epoch=provenance.epoch,
        timestamp=provenance.timestamp,
        values=values,
        timestamps=(provenance.timestamp,) * len(values),
    )
    return with_batches(to_rows([batch]), bases), int(bases[-1])


def with_batches(rows: pa.Table, batches: Any) -> pa.Table:
    """Rows of a log in batches with other base offsets."""
    column = LOG_SCHEMA.get_field_index("batch")
    return rows.set_column(column, LOG_SCHEMA.field("batch"), pa.array(batches, pa.int64()))
