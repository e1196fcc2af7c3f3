"""The partitions of an image as an Arrow table of plain columns. Imports numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake.image import TopicsImage
from kraftlake.image.topics.partition_rows import (
    DIRECTORIES,
    HEAP_LISTS,
    ISR,
    LEADER,
    LEADER_EPOCH,
    PARTITION_EPOCH,
    RARE,
    RECOVERY,
    SHAPE,
    WIDTH,
)
from kraftlake.runtime.arguments import instance
from kraftlake.tables.partition_columns import PARTITION_STATE

_LISTS = ("replicas", "isr", "directories", "adding_replicas", "removing_replicas", "elr", "last_known_elr")
"""In the order in which the heap has them."""
_FIRST_COLUMNS = (0, ISR, DIRECTORIES)

_ORDER = (
    "topic", "topic_id", "partition", "leader", "leader_epoch", "partition_epoch", "leader_recovery_state", "replicas",
    "isr", "adding_replicas", "removing_replicas", "elr", "last_known_elr", "directories",
)  # fmt: skip
_FIELDS = {field.name: field for field, _ in PARTITION_STATE}

PARTITION_SCHEMA = pa.schema([_FIELDS[name] for name in _ORDER])


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
    for which, name in enumerate(_LISTS):
        bounds, values = ragged(rows, packed.heap, which)
        content = directories.take(pa.array(values)) if name == "directories" else pa.array(values)
        made[name] = pa.ListArray.from_arrays(pa.array(bounds), content)
    return pa.table([made[name] for name in PARTITION_SCHEMA.names], schema=PARTITION_SCHEMA)


def ragged(rows: Any, heap: Any, which: int) -> tuple[Any, Any]:
    """One of the lists (_LISTS) of all rows: bounds int32[n + 1], and the numbers one behind the other (int32)."""
    shape = rows[:, SHAPE]
    rare = np.flatnonzero(shape == RARE)
    counts = np.zeros(len(rows), np.int32)
    if which < len(_FIRST_COLUMNS):
        counts = np.where(shape == RARE, 0, shape >> 8 if which == 1 else shape & 0xFF).astype(np.int32)
    starts = rows[rare, 0].astype(np.int64)
    if len(rare):
        lengths = heap[starts[:, None] + np.arange(HEAP_LISTS)]
        counts[rare] = lengths[:, which]
        starts += HEAP_LISTS + lengths[:, :which].sum(axis=1)
    bounds = np.zeros(len(rows) + 1, np.int32)
    np.cumsum(counts, out=bounds[1:])
    values = np.empty(int(bounds[-1]), np.int32)
    if which < len(_FIRST_COLUMNS):
        column = _FIRST_COLUMNS[which]
        there = (np.arange(WIDTH) < counts[:, None]) & (shape != RARE)[:, None]
        places = bounds[:-1, None] + np.arange(WIDTH)
        values[places[there]] = rows[:, column : column + WIDTH][there]
    for row, start in zip(rare.tolist(), starts.tolist(), strict=True):
        values[bounds[row] : bounds[row + 1]] = heap[start : start + counts[row]]
    return bounds, values
