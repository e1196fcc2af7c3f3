"""The actions of a broker on changed partitions, from their rows before and after. Imports numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.kernels import compiled
from kraftlake.kernels.columns.change_buffers import BrokerChanges
from kraftlake.kernels.partition_row import HEAP_LISTS, ISR


def changes_of_brokers(
    order: Any, before: Any, after: Any, flags: Any, heaps: tuple[Any, Any], *, broker: int | None = None
) -> tuple[BrokerChanges, int, int]:
    """The changes of a broker (None: of all) that changed partitions make, and their sums: see the kernel."""
    states = (before, after, flags, *heaps)
    most, longest = compiled.most_changes(*states)
    kinds: Any = (np.int64, np.int32, np.uint8, np.int32)
    found = BrokerChanges._make(np.empty(most, kind) for kind in kinds)
    only = np.array([] if broker is None else [broker], np.int32)
    room = _list_room(max(longest, ISR))
    count, replicas, members = compiled.changes_of_brokers(order, *states, only, room, compiled.BrokerChanges(*found))
    return BrokerChanges._make(column[:count] for column in found), replicas, members


def _list_room(longest: int) -> compiled.ListRoom:
    """Memory to work in, for lists up to a length."""
    lists, lengths = np.empty((2, HEAP_LISTS, longest), np.int32), np.empty((2, HEAP_LISTS), np.int64)
    return compiled.ListRoom(lists[0], lengths[0], lists[1], lengths[1])
