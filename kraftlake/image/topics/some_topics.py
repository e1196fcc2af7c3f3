"""Some topics of an image, packed alone."""

from __future__ import annotations

from collections.abc import Collection

from kraftlake.image.topics.buffers import of_bytes, room
from kraftlake.image.topics.packed_partitions import PackedPartitions
from kraftlake.image.topics.packed_topics import EMPTY, PackedTopics, pack
from kraftlake.image.topics.partition_rows import ROW, ROW_BYTES, RowWriter
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topic_table import table_of
from kraftlake.kernels import compiled
from kraftlake.kernels.partition_row import COLUMNS


def packed_alone(topics: Collection[TopicImage]) -> PackedTopics:
    """Topics as an image of them alone would hold them: their rows are copied where all have them in one base."""
    parts = [topic.partitions for topic in topics if isinstance(topic.partitions, PackedPartitions)]
    if not topics:
        return EMPTY
    if len(parts) < len(topics) or any(part.base is not parts[0].base for part in parts):
        return pack(EMPTY, (), {}, [(topic.name, topic.id, topic.partitions) for topic in topics])
    base = parts[0].base
    data = bytearray(b"".join([base.row_bytes(part.start, part.start + part.size) for part in parts]))
    rows = of_bytes("i", data, COLUMNS)
    heap = room("i", compiled.heap_size(rows, base.heap))
    compiled.move_lists(rows, base.heap, heap)
    writer, first = RowWriter(base.directories, len(heap)), 0
    for part in parts:
        for row, state in part.changed_rows():
            at = (first + row - part.start) * ROW_BYTES
            data[at : at + ROW_BYTES] = ROW.pack(*writer.row(state))
        first += part.size
    table = table_of([(topic.name, topic.id, [*topic.partitions]) for topic in topics])
    return PackedTopics(table=table, rows=rows, heap=writer.after(heap), directories=writer.known(base.directories))
