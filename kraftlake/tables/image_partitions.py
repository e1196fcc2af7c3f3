"""The partitions of an image as an Arrow table of plain columns. Imports numpy."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.runtime.arguments import instance
from kraftlake.tables.partition_columns import PARTITION_SCHEMA
from kraftlake.tables.state_arrays import state_arrays


def partition_table(image: MetadataImage | TopicsImage) -> pa.Table:
    """The partitions of an image as columns: an Arrow table with a row for each partition, in no order.

    Columns: `topic`, `topic_id` (Kafka's base64), `partition`, `leader` (-1 for none), `leader_epoch`,
    `partition_epoch`, `replicas`, `isr`, `elr`, `last_known_elr`, `adding_replicas`, `removing_replicas` (lists of
    broker ids), `leader_recovery_state` (0 recovered, 1 recovering) and `directories` (a list of ids, in the order of
    the replicas); numbers are int32. Raises UsageError for an argument that is not an image.
    """
    topics = image.topics if isinstance(image, MetadataImage) else image
    packed = instance(topics, TopicsImage, "an image, such as `kraftlake.open(SOURCE).image()` gives").rows()
    table, rows = packed.table, packed.merged_rows()
    number = pa.array(table.topic_numbers())
    ids = [str(table.id_of(topic)) for topic in range(table.topic_count)]
    directories = pa.array([str(directory) for directory in packed.directories], pa.string())
    made: dict[str, Any] = {
        "topic": pa.array(table.names, pa.string()).take(number),
        "topic_id": pa.array(ids, pa.string()).take(number),
        "partition": pa.array(table.partition_ids()),
        **state_arrays(rows, (packed.heap, packed.heap), directories.take),
    }
    return pa.table([made[name] for name in PARTITION_SCHEMA.names], schema=PARTITION_SCHEMA)
