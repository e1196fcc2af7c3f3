"""What a topics delta that was replayed in bulk tells all brokers, as columns. Imports numpy and numba."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.image.topics.partition_rows import COLUMNS
from kraftlake.kernels.columns.broker_changes import HAD, HAS, WRITTEN
from kraftlake.kernels.replay.change_state import DIRECTORIES_WRITTEN, N_FRESH, N_TOUCHED, TOUCHED
from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
from kraftlake.tables.local_changes.columns import ChangedPartitions, Strings, local_change_table

_PARTITIONS_AT_ONCE: Final = 50_000


def bulk_delta_changes(bulk: BulkChange, heads: DeltaBoundaries) -> Iterator[pa.Table] | None:
    """The rows that `local_change_rows` makes of the delta, in pieces that are sorted each for itself.

    `heads` is the delta's own. None where a partition has a list that is too long for compiled code.
    """
    changed = _changed(bulk)
    names = [*bulk.packed.table.names, *bulk.new_names]
    strings = Strings(
        names=lambda topics: pa.array([names[topic] for topic in topics.tolist()], pa.string()),
        ids=lambda topics: pa.array((str(bulk.topic_id(topic)) for topic in topics.tolist()), pa.string()),
        directories=pa.array(map(str, bulk.directory_ids()), pa.string()),
    )
    if changed.has_long_lists():
        return None
    count = len(changed.flags)
    pieces = (slice(start, start + _PARTITIONS_AT_ONCE) for start in range(0, count, _PARTITIONS_AT_ONCE))
    return (local_change_table(changed.part(piece), heads, strings) for piece in pieces)


def _changed(bulk: BulkChange) -> ChangedPartitions:
    """The partitions that records have named, and those of the topics that are gone."""
    state, base, packed = bulk.gathered(), bulk.base, bulk.packed
    rows = packed.merged_rows()
    touched = np.flatnonzero(state.touched_info[: state.counts[N_TOUCHED], 0] & TOUCHED)
    numbers = state.touched[touched].astype(np.int64)
    topics = np.searchsorted(base.starts, numbers, side="right") - 1
    alive = state.alive[topics] != 0
    touched, numbers, topics = touched[alive], numbers[alive], topics[alive]
    fresh = np.flatnonzero(state.alive[state.fresh_topics[: state.counts[N_FRESH]]])
    dead = np.flatnonzero(np.repeat(state.alive[: len(base.sparse)] == 0, np.diff(base.starts)))
    written = (state.touched_info[touched, 0] & DIRECTORIES_WRITTEN) != 0
    flags = (HAD | HAS | written * WRITTEN, np.full(len(fresh), HAS), np.full(len(dead), HAD))
    topics_of_dead = np.searchsorted(base.starts, dead, side="right") - 1
    return ChangedPartitions(
        before=np.concatenate((rows[numbers], _no_rows(len(fresh)), rows[dead])),
        after=np.concatenate((state.touched_rows[touched], state.fresh_rows[fresh], _no_rows(len(dead)))),
        flags=np.concatenate(flags).astype(np.uint8),
        deltas=np.zeros(len(touched) + len(fresh) + len(dead), np.int64),
        topics=np.concatenate((topics, state.fresh_topics[fresh], topics_of_dead)).astype(np.int64),
        partitions=np.concatenate(
            (numbers - base.starts[topics], state.fresh_partitions[fresh], _partitions(bulk, dead, topics_of_dead))
        ).astype(np.int32),
        base=base,
        state=state,
    )


def _partitions(bulk: BulkChange, rows: Any, topics: Any) -> Any:
    """The partition ids of rows of the base."""
    ids = rows - bulk.base.starts[topics]
    for topic, partitions in bulk.packed.table.sparse.items():
        mine = topics == topic
        ids[mine] = np.array(partitions)[ids[mine]]
    return ids


def _no_rows(count: int) -> Any:
    return np.zeros((count, COLUMNS), np.int32)
