"""Packed topics encoded as the record values of a snapshot, without an object for each partition. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.partition_registration import DIRECTORIES_LOST, ELR_LOST
from kraftlake.image.topics.topic_table import TopicTable
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.kernels import compiled
from kraftlake.kernels.partition_row import LOST_DIRECTORIES, LOST_ELR
from kraftlake.records.encoded_values import EncodedValues
from kraftlake.records.metadata_records import TopicRecord
from kraftlake.records.serde import encode_value
from kraftlake.records.uuid import Uuid
from kraftlake.records.varint import uvarint

_PARTITIONS_AT_ONCE = 65_536


@attrs.frozen(kw_only=True, eq=False)
class TopicValues(EncodedValues):
    """The values of each topic's records: its TopicRecord's, then those of its partitions by id.

    The t-th topic has the bytes data[starts[t]:starts[t + 1]] and the sizes sizes[firsts[t]:firsts[t + 1]].
    """

    starts: Any = attrs.field(repr=False)
    firsts: Any = attrs.field(repr=False)


def values_by_name(packed: PackedTopics, options: ImageWriterOptions) -> Iterator[TopicValues]:
    """The records of `TopicsImage.write`, encoded: topics by name, about _PARTITIONS_AT_ONCE partitions at a time."""
    packed, order = packed.merged(), topics_by_name(packed.table)
    before = _begins(np.diff(packed.table.starts)[order])
    first = 0
    while first < len(order):
        last = int(np.searchsorted(before, before[first] + _PARTITIONS_AT_ONCE, side="right")) - 1
        last = max(last, first + 1)
        yield topic_values(packed, options, order[first:last])
        first = last


def topics_by_name(table: TopicTable) -> Any:
    """The numbers of a table's topics (int64[T]) in the order of their names."""
    names = table.names
    return np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)


def topic_values(packed: PackedTopics, options: ImageWriterOptions, topics: Any) -> TopicValues:
    """The records of `TopicImage.write` of the topics with the numbers `topics` (int64[n]), encoded.

    State that the records can't hold is reported to the loss handler: each loss once, in the order of `write`.
    Source of the semantics: `PartitionRegistration.to_record`.
    """
    table, version = packed.table, options.metadata_version
    counts = np.diff(table.starts)[topics]
    firsts = _begins(counts)
    of_row = np.repeat(topics, counts)
    places = np.arange(len(of_row)) - np.repeat(firsts[:-1], counts)
    rows = packed.merged_rows()[table.starts[of_row] + places]
    with_directories = version.is_directory_assignment_supported
    with_elr = options.elr_enabled and version.is_elr_supported
    sizes = np.empty(len(rows), np.int64)
    _report(compiled.measure(rows, packed.heap, with_directories, with_elr, sizes), options)
    heads = _heads(table, topics)
    head_sizes = np.array([len(head) for head in heads], np.int64)
    before = _begins(sizes)
    starts = before[firsts] + _begins(head_sizes)
    begins = before[:-1] + np.repeat(np.cumsum(head_sizes), counts)
    data = np.empty(int(starts[-1]), np.uint8)
    directories = np.frombuffer(b"".join(packed.directories), np.uint8).reshape(-1, 16)
    ids = _partition_ids(table, topics, firsts, places)
    compiled.write(rows, packed.heap, directories, ids, of_row.astype(np.int32), table.ids,
                   version.partition_record_version, with_directories, with_elr, begins, data)  # fmt: skip
    content: Any = data.data
    for start, head in zip(starts.tolist(), heads, strict=False):
        content[start : start + len(head)] = head
    firsts += np.arange(len(firsts))
    all_sizes = np.empty(len(rows) + len(heads), np.int32)
    all_sizes[firsts[:-1]] = head_sizes
    all_sizes[np.arange(len(rows)) + np.repeat(np.arange(1, len(topics) + 1), counts)] = sizes
    return TopicValues(data=data, starts=starts, sizes=all_sizes, firsts=firsts)


def _heads(table: TopicTable, topics: Any) -> list[bytes]:
    """The value of each topic's TopicRecord, assembled from bytes: encoding objects takes ten times as long."""
    empty = encode_value(TopicRecord(name="", topic_id=Uuid.ZERO), 0)
    before, after = empty[:-18], empty[-1:]  # around the name's length, which is a byte here, and the id
    names, ids = table.names, table.ids[topics].tobytes()
    heads = []
    for at, number in enumerate(topics.tolist()):
        name = names[number].encode()
        heads.append(before + uvarint(len(name) + 1) + name + ids[16 * at : 16 * at + 16] + after)
    return heads


def _report(lost: tuple[int, int], options: ImageWriterOptions) -> None:
    """Report losses in the order of `PartitionRegistration.to_record`: eligible leader replicas before directories."""
    ever, first = lost
    losses = [(LOST_ELR, ELR_LOST), (LOST_DIRECTORIES, DIRECTORIES_LOST)]
    if not first & LOST_ELR:
        losses.reverse()
    for flag, loss in losses:
        if ever & flag:
            options.handle_loss(loss)


def _partition_ids(table: TopicTable, topics: Any, firsts: Any, places: Any) -> Any:
    ids = places.astype(np.int32)
    if table.sparse:
        for index, number in enumerate(topics.tolist()):
            if number in table.sparse:
                ids[firsts[index] : firsts[index + 1]] = table.sparse[number]
    return ids


def _begins(sizes: Any) -> Any:
    begins = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=begins[1:])
    return begins
