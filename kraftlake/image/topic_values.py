"""Packed topics as the values of the records that a snapshot holds, without an object a partition. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

from kraftlake import kernels
from kraftlake.image.packed_topics import PackedTopics
from kraftlake.image.topic_table import TopicTable
from kraftlake.image.topics_image import TopicsImage
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.records.metadata_records import TopicRecord
from kraftlake.records.serde import encode_value

ELR_LOST = "the eligible leader replicas of one or more partitions"
DIRECTORIES_LOST = "the log directories of one or more replicas"


@attrs.frozen(kw_only=True, eq=False)
class TopicValues:
    """The values of each topic's records back to back: its TopicRecord's, then those of its partitions by id.

    Topic t has the bytes data[starts[t]:starts[t + 1]] (uint8) and the sizes sizes[firsts[t]:firsts[t + 1]] (int32).
    """

    data: Any = attrs.field(repr=False)
    starts: Any = attrs.field(repr=False)
    sizes: Any = attrs.field(repr=False)
    firsts: Any = attrs.field(repr=False)


def topic_values(packed: PackedTopics, options: ImageWriterOptions) -> TopicValues:
    """What `TopicImage.write` gives of each topic, in the order of the table, encoded.

    What the records can't hold goes to the loss handler, once. Source of the semantics:
    `PartitionRegistration.to_record`.
    """
    return _by_kernel(packed, options) if kernels.available() else _by_objects(packed, options)


def _by_kernel(packed: PackedTopics, options: ImageWriterOptions) -> TopicValues:
    from kraftlake.kernels.partition_values import LOST_DIRECTORIES, LOST_ELR, measure, write

    table, rows = packed.table, packed.merged_rows()
    version = options.metadata_version
    with_directories = int(version.is_directory_assignment_supported)
    with_elr = int(options.elr_enabled and version.is_elr_supported)
    sizes = np.empty(len(rows), np.int64)
    lost = measure(rows, packed.heap, with_directories, with_elr, sizes)
    for flag, loss in ((LOST_ELR, ELR_LOST), (LOST_DIRECTORIES, DIRECTORIES_LOST)):
        if lost & flag:
            options.handle_loss(loss)
    heads = list(_topic_records(table))
    head_sizes = np.array([len(head) for head in heads], np.int64)
    topics = np.repeat(np.arange(len(heads), dtype=np.int32), np.diff(table.starts))
    before = _begins(sizes)
    starts = before[table.starts] + _begins(head_sizes)
    begins = before[:-1] + np.cumsum(head_sizes)[topics] if len(topics) else before[:0]
    data = np.empty(int(starts[-1]), np.uint8)
    directories = np.frombuffer(b"".join(packed.directories), np.uint8).reshape(-1, 16)
    write(rows, packed.heap, directories, _partition_ids(table, topics), topics, table.ids,
          version.partition_record_version, with_directories, with_elr, begins, data)  # fmt: skip
    content: Any = data.data
    for start, head in zip(starts.tolist(), heads, strict=False):
        content[start : start + len(head)] = head
    firsts = table.starts.astype(np.int64) + np.arange(len(heads) + 1)
    all_sizes = np.empty(len(rows) + len(heads), np.int32)
    all_sizes[firsts[:-1]] = head_sizes
    all_sizes[np.arange(len(rows)) + topics + 1] = sizes
    return TopicValues(data=data, starts=starts, sizes=all_sizes, firsts=firsts)


def _topic_records(table: TopicTable) -> Iterator[bytes]:
    for number, name in enumerate(table.names):
        yield encode_value(TopicRecord(name=name, topic_id=table.id_of(number)), 0)


def _partition_ids(table: TopicTable, topics: Any) -> Any:
    ids = np.arange(len(topics), dtype=np.int32) - table.starts[topics]
    for number, of_topic in table.sparse.items():
        ids[table.bounds[number] : table.bounds[number + 1]] = of_topic
    return ids


def _by_objects(packed: PackedTopics, options: ImageWriterOptions) -> TopicValues:
    image = TopicsImage.with_rows(packed)
    values: list[list[bytes]] = []
    for name in packed.table.names:
        topic = image.get_topic(name)
        assert topic is not None, "the table has it"
        values.append([encode_value(record.message, record.version) for record in topic.write(options)])
    data = np.frombuffer(b"".join(value for topic in values for value in topic), np.uint8)
    return TopicValues(
        data=data,
        starts=_begins(np.array([sum(map(len, topic)) for topic in values], np.int64)),
        sizes=np.array([len(value) for topic in values for value in topic], np.int32),
        firsts=_begins(np.array([len(topic) for topic in values], np.int64)),
    )


def _begins(sizes: Any) -> Any:
    begins = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=begins[1:])
    return begins
