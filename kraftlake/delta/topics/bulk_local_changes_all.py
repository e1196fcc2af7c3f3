"""What a change made in bulk means to every broker, found in one pass. Imports numpy and numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.delta.topics.bulk_local_changes import brokers_of, changes_at
from kraftlake.delta.topics.local_replica_changes import LocalReplicaChanges
from kraftlake.kernels import local_changes_all as kernel


def all_bulk_local_changes(bulk: BulkChange) -> dict[int, LocalReplicaChanges]:
    """See `TopicsDelta.local_changes_all`."""
    brokers = np.array(sorted(brokers_of(bulk)), np.int32)
    ends = np.zeros(kernel.KINDS * len(brokers), np.int64)
    _note_all(bulk, brokers, ends, np.empty(0, np.int32))
    bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(ends)))
    found = np.empty(int(bounds[-1]), np.int32)
    if len(found):
        _note_all(bulk, brokers, bounds[:-1].copy(), found)
    found.flags.writeable = False
    edges, width = bounds.tolist(), kernel.KINDS
    changes = {}
    for number, broker in enumerate(brokers.tolist()):
        at = number * width
        parts = [found[edges[kind] : edges[kind + 1]] for kind in range(at, at + width)]
        changes[broker] = changes_at(bulk, broker, dict(zip(_NAMES, parts, strict=True)))
    return changes


_NAMES = ("deletes", "leaders", "elected_leaders", "followers", "directory_ids", "deleted_rows")
"""As `BulkChange.local_places` names them, in the kernel's order."""


def _note_all(bulk: BulkChange, brokers: Any, ends: Any, found: Any) -> None:
    kernel.local_changes_all(bulk.base, bulk.gathered(), bulk.packed.patches, brokers, ends, found)
    dead = np.flatnonzero(bulk.state.alive[: bulk.packed.table.topic_count] == 0)
    if len(dead):
        kernel.deleted_rows_all(bulk.packed.merged_rows(), dead, bulk.base, bulk.gathered(), brokers, ends, found)
