"""The partitions of an image as an Arrow table of plain columns. Imports numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake.image import TopicsImage
from kraftlake.image.topics.partition_rows import LEADER, LEADER_EPOCH, PARTITION_EPOCH, RECOVERY
from kraftlake.runtime.arguments import instance
from kraftlake.tables.partition_columns import PARTITION_STATE
from kraftlake.tables.row_lists import LISTS, RowLists

_ORDER = (
    "topic", "topic_id", "partition", "leader", "leader_epoch", "partition_epoch", "leader_recovery_state", "replicas",
    "isr", "adding_replicas", "removing_replicas", "elr", "last_known_elr", "directories",
)  # fmt: skip

PARTITION_SCHEMA = pa.schema(
    sorted((field for field, _ in PARTITION_STATE), key=lambda field: _ORDER.index(field.name))
)


def partition_table(topics: TopicsImage) -> pa.Table:
    """A row for each partition of `image.topics`, in no order, as PARTITION_SCHEMA says. Needs no Spark."""
    packed = instance(topics, TopicsImage, "a TopicsImage, such as image.topics").rows()
    table, rows = packed.table, packed.merged_rows()
    columns = topics.columns()
    number = pa.array(np.repeat(np.arange(table.topic_count, dtype=np.int32), np.diff(table.starts)))
    ids = [str(table.id_of(topic)) for topic in range(table.topic_count)]
    directories = pa.array([str(directory) for directory in packed.directories], pa.string())
    made: dict[str, Any] = {
        "topic": pa.array(table.names, pa.string()).take(number),
        "topic_id": pa.array(ids, pa.string()).take(number),
        "partition": pa.array(columns.partition_ids),
    }
    for name, column in (
        ("leader", LEADER),
        ("leader_epoch", LEADER_EPOCH),
        ("partition_epoch", PARTITION_EPOCH),
        ("leader_recovery_state", RECOVERY),
    ):
        made[name] = pa.array(np.ascontiguousarray(rows[:, column]))
    lists = RowLists(rows, packed.heap, packed.heap)
    for name in LISTS:
        bounds, values = lists.flat(name)
        content = directories.take(pa.array(values)) if name == "directories" else pa.array(values)
        made[name] = pa.ListArray.from_arrays(pa.array(bounds), content)
    return pa.table([made[name] for name in PARTITION_SCHEMA.names], schema=PARTITION_SCHEMA)
