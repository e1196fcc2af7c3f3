"""Rows of packed partitions as Arrow columns. Imports numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from kraftlake.image.topics.row_lists import LISTS, RowLists
from kraftlake.kernels.partition_row import LEADER, LEADER_EPOCH, PARTITION_EPOCH, RECOVERY


def state_arrays(rows: Any, heaps: tuple[Any, Any], directories: Callable[[pa.Array], pa.Array]) -> dict[str, pa.Array]:
    """The states in n rows (int32[n, 14]) as the columns of `partition_columns.PARTITION_STATE` that rows hold.

    `heaps` are those of `RowLists`; `directories` makes an array of directories' ids of their numbers (int32).
    """
    numbers = {
        "leader": LEADER,
        "leader_epoch": LEADER_EPOCH,
        "partition_epoch": PARTITION_EPOCH,
        "leader_recovery_state": RECOVERY,
    }
    arrays = {name: pa.array(rows[:, column]) for name, column in numbers.items()}
    lists = RowLists(rows, *heaps)
    for name in LISTS:
        bounds, flat = lists.flat(name)
        members = pa.array(flat)
        arrays[name] = pa.ListArray.from_arrays(
            pa.array(bounds), directories(members) if name == "directories" else members
        )
    return arrays
