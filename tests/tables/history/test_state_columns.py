from __future__ import annotations

import numpy as np
import pyarrow as pa

from kraftlake.replay.log.partition_changes import Heaps, Names
from kraftlake.tables.history.history_columns import STILL_SO
from kraftlake.tables.history.state_columns import NO_RACK, StateColumns, States

IN_ROW = [5, 6, 0, 5, 0, 0, 1, 1, 0, 5, 2, 3, 0, 2 | 1 << 8]
"""Replicas 5 and 6, ISR 5, directories 1 and 1; leader 5, leader epoch 2, partition epoch 3."""


def in_heap(at: int) -> list[int]:
    return [at, *[0] * 8, 7, 4, 5, 1, -1]


BASE_HEAP = [2, 1, 2, 0, 0, 1, 0, *[7, 8], *[7], *[0, 1], *[8]]
HEAP = [4, 0, 4, 1, 2, 0, 1, *[1, 2, 3, 4], *[0, 1, 1, 0], *[9], *[1, 2], *[3]]


def test_states_become_rows_in_the_order_of_their_begins_with_lists_from_wherever_these_are() -> None:
    numbers = lambda *values: np.array(values, np.int64)  # noqa: E731
    states = States(
        topics=numbers(2, 0, 2),
        partitions=numbers(0, 4, 1),
        rows=np.array([in_heap(len(BASE_HEAP)), in_heap(0), IN_ROW], np.int32),
        begins=numbers(30, 10, 20),
        begin_times=numbers(3, -1, 2),
        ends=numbers(31, 40, STILL_SO),
        end_times=numbers(4, -1, -1),
        racks=np.array([1, NO_RACK, 0], np.int32),
    )
    columns = StateColumns(
        names=Names(
            topics=pa.array(["foo", "unused", "bar"]),
            ids=pa.array(["id-foo", "id-unused", "id-bar"]),
            directories=pa.array(["MIGRATING", "d1"]),
        ),
        heaps=Heaps(np.array(BASE_HEAP, np.int32), np.array(HEAP, np.int32)),
        racks=pa.array(["a", "b"]),
    )
    (table,) = columns.tables([States(*(array[part] for array in states)) for part in (slice(1), slice(1, 3))])
    names = ("topic", "topic_id", "partition")
    keys = [tuple(row[name] for name in names) for row in table.to_pylist()]
    assert keys == [("foo", "id-foo", 4), ("bar", "id-bar", 1), ("bar", "id-bar", 0)]
    assert table["leader_rack"].to_pylist() == [None, "a", "b"]
    assert len(table["topic"].chunk(0).dictionary) == 2, "strings that no row has are not written"
    lists = {
        "replicas": [[7, 8], [5, 6], [1, 2, 3, 4]],
        "isr": [[7], [5], []],
        "directories": [["MIGRATING", "d1"], ["d1", "d1"], ["MIGRATING", "d1", "d1", "MIGRATING"]],
        "adding_replicas": [[], [], [9]],
        "removing_replicas": [[], [], [1, 2]],
        "elr": [[8], [], []],
        "last_known_elr": [[], [], [3]],
    }
    assert {name: table[name].to_pylist() for name in lists} == lists
    fixed = ("leader", "leader_epoch", "partition_epoch", "leader_recovery_state")
    assert [[row[name] for name in fixed] for row in table.to_pylist()] == [[7, 4, 5, 1], [5, 2, 3, 0], [7, 4, 5, 1]]
    assert table["valid_from_offset"].to_pylist() == [10, 20, 30]
    assert table["valid_to_offset"].to_pylist() == [40, None, 31]
    assert table["valid_from"].cast(pa.int64()).to_pylist() == [None, 2000, 3000]
    assert table["valid_to"].cast(pa.int64()).to_pylist() == [None, None, 4000]
