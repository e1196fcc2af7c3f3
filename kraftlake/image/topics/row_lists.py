"""The lists of packed partitions as flat arrays. Imports numpy."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kraftlake.kernels.partition_row import DIRECTORIES, HEAP_LISTS, ISR, RARE, SHAPE

LISTS: Final = {
    "replicas": 0,
    "isr": 1,
    "directories": 2,
    "adding_replicas": 3,
    "removing_replicas": 4,
    "elr": 5,
    "last_known_elr": 6,
}
"""The number of each list among those that the heap has of a row: see `kraftlake.image.topics.partition_rows`."""

_FIRST_COLUMNS: Final = (0, ISR, DIRECTORIES)
"""The columns in which the first lists of a row begin that is not RARE."""


class RowLists:
    """The lists of n rows (int32[n, 14]).

    The lists of a RARE row lie in `base_heap` or, at positions from its length on, in `heap` (both int32).
    """

    def __init__(self, rows: Any, base_heap: Any, heap: Any) -> None:
        self._rows = rows
        self._heaps = np.asarray(base_heap), np.asarray(heap)
        shape = rows[:, SHAPE]
        self._rare = np.flatnonzero(shape == RARE)
        self._lengths = np.zeros((HEAP_LISTS, len(rows)), np.int32)
        self._lengths[0] = self._lengths[2] = shape & 0xFF
        self._lengths[1] = shape >> 8
        if len(self._rare):
            self._lengths[:, self._rare] = self._in_heap(self._starts()[:, None] + np.arange(HEAP_LISTS)).T

    def lengths(self, name: str) -> Any:
        """The lengths of one list of each row (int32[n])."""
        return self._lengths[LISTS[name]]

    def flat(self, name: str) -> tuple[Any, Any]:
        """One list of each row: where each begins and the last ends (int32[n + 1]), and the members (int32)."""
        which = LISTS[name]
        lengths = self._lengths[which]
        bounds = np.zeros(len(lengths) + 1, np.int32)
        if not lengths.any():  # as in most lists
            return bounds, np.empty(0, np.int32)
        np.cumsum(lengths, out=bounds[1:])
        plain = lengths
        if len(self._rare):
            plain = lengths.copy()
            plain[self._rare] = 0
        members = np.empty(0, np.int32)
        if which < len(_FIRST_COLUMNS):
            first = _FIRST_COLUMNS[which]
            longest = int(plain.max())
            members = self._rows[:, first : first + longest]
            all_alike = plain.min() == longest  # as the replicas of most clusters
            members = members.reshape(-1) if all_alike else members[np.arange(longest) < plain[:, None]]
        if not len(self._rare):
            return bounds, members
        sizes = lengths[self._rare]
        starts = self._starts() + HEAP_LISTS + self._lengths[:which, self._rare].sum(axis=0)
        in_heap = self._in_heap(_ranges(starts, sizes))
        if len(self._rare) == len(lengths):
            return bounds, in_heap
        of_rare = _ranges(bounds[self._rare], sizes)
        both = np.empty(int(bounds[-1]), np.int32)
        is_plain = np.ones(len(both), np.bool_)
        is_plain[of_rare] = False
        both[is_plain] = members
        both[of_rare] = in_heap
        return bounds, both

    def _starts(self) -> Any:
        return self._rows[self._rare, 0].astype(np.int64)

    def _in_heap(self, positions: Any) -> Any:
        base, heap = self._heaps
        in_base = positions < len(base)
        if in_base.all():
            return base[positions]
        if not in_base.any():
            return heap[positions - len(base)]
        numbers = np.empty(positions.shape, np.int32)
        numbers[in_base] = base[positions[in_base]]
        numbers[~in_base] = heap[positions[~in_base] - len(base)]
        return numbers


def _ranges(starts: Any, sizes: Any) -> Any:
    """The numbers of all ranges [start, start + size), one range after the other (int64)."""
    ends = np.cumsum(sizes, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - ends + sizes, sizes)
