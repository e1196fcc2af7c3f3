"""The changes of partitions that one topics delta makes. Imports numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.delta import TopicsDelta
from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.image.topics.partition_rows import COLUMNS, SHAPE
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.kernels.partition_row import ABSENT
from kraftlake.kernels.replay.change_state import AGAIN, ALIVE, DIRECTORIES_WRITTEN, GONE, N_FRESH, N_TOUCHED, TOUCHED
from kraftlake.replay.log.gathered_changes import GatheredChanges
from kraftlake.replay.log.partition_changes import HAD, HAS, WRITTEN, Heaps, Names, PartitionChanges


def changes_of_delta(delta: TopicsDelta) -> PartitionChanges:
    """The changes of one delta, whose number is 0; it says nothing of offsets, times, elections and topics' sizes."""
    bulk = delta.as_bulk()
    if bulk is None:
        gathered = GatheredChanges()
        gathered.add_delta(0, delta)
        return gathered.changes(TopicsImage.EMPTY)
    state, base, lives = bulk.gathered(), bulk.base, bulk.lives
    rows = bulk.packed.merged_rows()
    touched = np.flatnonzero(state.touched_info[: state.counts[N_TOUCHED], 0] & TOUCHED)
    numbers = state.touched[touched].astype(np.int64)
    topics = np.searchsorted(base.starts, numbers, side="right") - 1
    some = (lives[topics] != GONE) & (state.touched_rows[touched, SHAPE] != ABSENT)
    touched, numbers, topics = touched[some], numbers[some], topics[some]
    fresh = np.flatnonzero(lives[state.fresh_topics[: state.counts[N_FRESH]]] != GONE)
    fresh = fresh[state.fresh_rows[fresh, SHAPE] != ABSENT]
    is_dead = (lives == GONE) | (lives == AGAIN)
    dead = np.flatnonzero(np.repeat(is_dead[: len(base.sparse)], np.diff(base.starts)))
    had = lives[topics] == ALIVE
    written = (state.touched_info[touched, 0] & DIRECTORIES_WRITTEN) != 0
    flags = (HAD * had | HAS | written * WRITTEN, np.full(len(fresh), HAS), np.full(len(dead), HAD))
    topics_of_dead = np.searchsorted(base.starts, dead, side="right") - 1
    partitions = (
        _partitions(bulk, numbers, topics),
        state.fresh_partitions[fresh],
        _partitions(bulk, dead, topics_of_dead),
    )
    names = [*bulk.packed.table.names, *bulk.new_names]
    return PartitionChanges.of_one_delta(
        partitions=np.concatenate(partitions).astype(np.int32),
        topics=np.concatenate((topics, state.fresh_topics[fresh], topics_of_dead)).astype(np.int32),
        before=np.concatenate((rows[numbers] * had[:, None], _no_rows(len(fresh)), rows[dead])),
        after=np.concatenate((state.touched_rows[touched], state.fresh_rows[fresh], _no_rows(len(dead)))),
        flags=np.concatenate(flags).astype(np.uint8),
        names=Names.of(names, [str(bulk.topic_id(topic)) for topic in range(len(names))], bulk.directory_ids()),
        heaps=Heaps(base.heap, state.heap),
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
