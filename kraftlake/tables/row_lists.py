"""The lists of partitions that are packed as rows, as flat arrays. Imports numpy and numba."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kraftlake.kernels.change_state import LONGEST
from kraftlake.kernels.partition_journal import list_lengths, list_values

LISTS: Final = {
    "replicas": 0,
    "isr": 1,
    "directories": 2,
    "adding_replicas": 3,
    "removing_replicas": 4,
    "elr": 5,
    "last_known_elr": 6,
}
"""The number of each list among those of a row: see `kraftlake.image.topics.partition_rows`."""


class RowLists:
    """The lists of n rows (int32[n, 14]), which are in them, in a heap or in that of their base."""

    def __init__(self, rows: Any, base_heap: Any, heap: Any) -> None:
        self._given = rows, base_heap, heap
        self._lengths = np.empty((len(LISTS), len(rows)), np.int32)
        list_lengths(*self._given, self._lengths)

    def some_too_long(self) -> bool:
        """Whether one of them is too long for compiled code."""
        return bool((self._lengths > LONGEST).any())

    def lengths(self, name: str) -> Any:
        """How long one list of each row is (int32[n])."""
        return self._lengths[LISTS[name]]

    def flat(self, name: str) -> tuple[Any, Any]:
        """One list of each row: where each begins and the last ends (int32[n + 1]), and the members (int32)."""
        which = LISTS[name]
        bounds = np.zeros(len(self._lengths[which]) + 1, np.int32)
        if not self._lengths[which].any():  # as most of them are
            return bounds, np.empty(0, np.int32)
        np.cumsum(self._lengths[which], out=bounds[1:])
        members = np.empty(int(bounds[-1]), np.int32)
        list_values(*self._given, self._lengths, which, members)
        return bounds, members
