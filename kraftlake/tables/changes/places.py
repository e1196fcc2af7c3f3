"""What is common to states that are kept by the places of a `JournaledChange`. Imports numpy and numba."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake.delta.topics.journaled_change import JournaledChange
from kraftlake.image.topics.partition_rows import ROW_BYTES

_WORN_BYTES = 1 << 26


class PlaceStrings:
    """`names`, `ids` and `directories` (string arrays): those of topics and directories by number, since `learn`."""

    def __init__(self, change: JournaledChange) -> None:
        self._change = change
        self.names = self.ids = self.directories = pa.array([], pa.string())

    def learn(self) -> None:
        """Bring them up to date."""
        change, known = self._change, len(self.names)
        if known < change.topic_total:
            self.names = pa.array([*change.packed.table.names, *change.new_names], pa.string())
            ids = [str(change.topic_id(number)) for number in range(known, len(self.names))]
            self.ids = pa.concat_arrays([self.ids, pa.array(ids, pa.string())])
        if len(self.directories) < change.directory_total:
            self.directories = pa.array(map(str, change.directory_ids()), pa.string())


def is_worn(change: JournaledChange, there: int) -> bool:
    """Whether much memory is taken by what is gone: lists of former states, places of partitions not among `there`."""
    lists = change.state.heap.nbytes > max(_WORN_BYTES, change.base.heap.nbytes)
    return lists or change.place_count * ROW_BYTES > _WORN_BYTES + 2 * there * ROW_BYTES


def grown(array: Any, size: int, fill: int) -> Any:
    """A larger array with the same values at its beginning."""
    larger = np.full((size, *array.shape[1:]), fill, array.dtype)
    larger[: len(array)] = array
    return larger
