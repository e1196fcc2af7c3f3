"""Check of packed topics that come from a file: each number that is a place lies in its array. Imports numpy.

Values are believed (a file has a checksum, and `verify` compares it), places are not: kernels do not check them, and
would read what lies beyond an array.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from kraftlake.image.topics.row_lists import RowLists
from kraftlake.kernels.partition_row import DIRECTORIES, HEAP_LISTS, LEADER, RARE, RECOVERY, SHAPE, WIDTH

_LENGTHS: Final = WIDTH | WIDTH << 8
"""The bits of a shape that has lengths; WIDTH has all bits of a length."""


def check_table(topics: int, starts: Any, sparse: Mapping[int, tuple[int, ...]]) -> None:
    """Raise ValueError for bounds or ids of partitions that a table with this number of topics can't have."""
    sizes = np.diff(starts)
    if len(starts) != topics + 1 or starts[0] != 0 or (topics and sizes.min() < 0):
        raise ValueError("the rows of topics don't lie one behind the other")
    for number, of_topic in sparse.items():
        rising = all(one < other for one, other in zip((-1, *of_topic), of_topic, strict=False))
        if not (0 <= number < topics and len(of_topic) == sizes[number] and rising):
            raise ValueError("the ids of partitions don't fit the rows of their topic")


def check_rows(rows: Any, heap: Any, directories: int) -> None:
    """Raise ValueError for rows (int32[n, 14]) with a place outside of `heap`, or a directory from `directories` on."""
    if not len(rows):
        return
    shape, unsigned = rows[:, SHAPE].copy(), rows.view(np.uint32)
    rare = shape == RARE
    if ((shape & ~_LENGTHS).astype(np.bool_) & ~rare).any():
        raise ValueError("a partition has lists of a length that no row has")
    if unsigned[:, DIRECTORIES:LEADER].max() >= directories or unsigned[:, RECOVERY].max() > 1:
        raise ValueError("a partition names a directory or a state of recovery that is not there")
    if rare.any():
        _check_heap(rows[rare], heap, directories)


def _check_heap(rare: Any, heap: Any, directories: int) -> None:
    starts = rare[:, 0].astype(np.int64)
    if starts.min() < 0 or starts.max() > len(heap) - HEAP_LISTS:
        raise ValueError("the lists of a partition lie outside of the heap")
    lengths = heap[starts[:, None] + np.arange(HEAP_LISTS)]
    if lengths.min() < 0 or (starts + HEAP_LISTS + lengths.sum(axis=1, dtype=np.int64)).max() > len(heap):
        raise ValueError("the lists of a partition end outside of the heap")
    lists = RowLists(rare, heap, heap[:0])
    _, numbers = lists.flat("directories")
    if (numbers.view(np.uint32) >= directories).any():
        raise ValueError("a partition names a directory that is not there")
    if (lists.lengths("directories") != lists.lengths("replicas")).any():
        raise ValueError("a partition has another number of directories than of replicas")
