"""What metadata deltas change of the counts of topics and partitions, by places. Imports numpy and numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.image.partition_registration import NO_LEADER
from kraftlake.image.partition_rows import LEADER
from kraftlake.kernels.broker_changes import HAD, HAS
from kraftlake.records.metadata_records import RemoveTopicRecord, TopicRecord
from kraftlake.spark_jobs.history.effective_records import EffectiveRecords
from kraftlake.spark_jobs.partition_places import PartitionPlaces
from kraftlake.spark_jobs.row_lists import RowLists


def count_changes(places: PartitionPlaces, records: EffectiveRecords, deltas: Any, changes: Any) -> int:
    """Replay records of topics as `PartitionPlaces.replay` does, and count what that changes.

    `changes` (int64[d, 6]) gets for each delta by how much the counts of topics, partitions, offline and imbalanced
    ones grow, and how many unclean elections there were and from the eligible leader replicas. Gives the first record
    that was not replayed.
    """
    moved = places.replay(records, deltas)
    kinds, size = records.kinds[: moved.done], len(changes)
    for kind, sign in ((TopicRecord.API_KEY, 1), (RemoveTopicRecord.API_KEY, -1)):
        changes[:, 0] += sign * np.bincount(deltas[: moved.done][kinds == kind], minlength=size)
    for flag, states, sign in ((HAD, moved.before, -1), (HAS, moved.after, 1)):
        there = np.flatnonzero(moved.flags & flag)
        rows, of_delta = np.ascontiguousarray(states[there]), moved.deltas[there]
        leader = rows[:, LEADER]
        counted = (np.ones(len(rows), np.bool_), leader == NO_LEADER, leader != _preferred(places, rows))
        for column, these in enumerate(counted, start=1):
            changes[:, column] += sign * np.bincount(of_delta[these], minlength=size)
    stays = (moved.flags & HAS) != 0  # of a topic that is gone nobody counts elections
    for column, elections in ((4, moved.unclean), (5, moved.eligible)):
        some = np.flatnonzero(stays & (elections > 0))
        np.add.at(changes[:, column], moved.deltas[some], elections[some])
    return moved.done


def _preferred(places: PartitionPlaces, rows: Any) -> Any:
    """The first replica of each row, or NO_LEADER."""
    bounds, replicas = RowLists(rows, places.change.base.heap, places.change.state.heap).flat("replicas")
    preferred = np.full(len(rows), NO_LEADER, np.int32)
    some = np.flatnonzero(np.diff(bounds))
    preferred[some] = replicas[bounds[some]]
    return preferred
